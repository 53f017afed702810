#include "draft/lookup.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <vector>

#include "core/random.hpp"
#include "support/fake_runtime.hpp"
#include "support/matchers.hpp"

namespace paceline::draft {
namespace {

using test::FailsWith;
using test::IsOk;
using test::tokens;
using test::value_of;
using testing::HasSubstr;
using testing::IsEmpty;

/// The whole text is looked through from its end: the definition, without an index.
DraftTree reference(const std::vector<Token>& text, std::size_t depth,
                    const LookupOptions& options) {
  DraftTree tree;
  std::map<std::vector<Token>, std::int32_t> nodes;  // by their path
  std::size_t found = 0;
  for (std::size_t n = options.longest_ngram; n >= options.shortest_ngram; --n) {
    if (found == options.branches) break;
    std::optional<std::size_t> next;
    for (std::size_t at = n; at < text.size(); ++at) {
      if (std::equal(text.end() - static_cast<std::ptrdiff_t>(n), text.end(),
                     text.begin() + static_cast<std::ptrdiff_t>(at - n))) {
        next = at;
      }
    }
    if (!next) continue;
    ++found;
    std::vector<Token> longer = text;
    std::vector<Token> path;
    std::int32_t parent = k_tree_root;
    for (std::size_t i = 0; i < depth; ++i) {
      const Token token = longer[*next + i];
      longer.push_back(token);
      path.push_back(token);
      if (!nodes.contains(path)) nodes[path] = tree.add(token, parent);
      parent = nodes[path];
    }
  }
  return tree;
}

std::vector<std::pair<int, int>> shape(const DraftTree& tree) {
  std::vector<std::pair<int, int>> nodes;
  for (const DraftTree::Node& node : tree.nodes)
    nodes.emplace_back(to_int(node.token), node.parent);
  return nodes;
}

DraftTree draft_once(Drafter& drafter, DraftSlot slot, std::size_t depth) {
  DraftRequest request{.slot = slot, .depth = depth, .tree = {}};
  EXPECT_THAT(drafter.draft(std::span(&request, 1), {}), IsOk());
  return request.tree;
}

/// The draft after a whole text in a fresh slot.
DraftTree draft_after(const std::vector<Token>& text, std::size_t depth,
                      const LookupOptions& options = {}) {
  auto drafter = value_of(make_lookup_drafter(options));
  const DraftSlot slot = value_of(drafter->open());
  EXPECT_THAT(drafter->observe(slot, text), IsOk());
  return draft_once(*drafter, slot, depth);
}

TEST(LookupDrafter, ProposesWhatFollowedTheLastTokensBefore) {
  EXPECT_EQ(shape(draft_after(tokens({1, 2, 3, 4, 5, 9, 1, 2, 3}), 3)),
            shape(DraftTree::chain(tokens({4, 5, 9}))));
}

TEST(LookupDrafter, PrefersTheLongestMatchAndThenTheLatest) {
  // After "2 3" stood 7 later, but after "1 2 3" stood 4.
  EXPECT_EQ(shape(draft_after(tokens({1, 2, 3, 4, 9, 2, 3, 7, 1, 2, 3}), 1)),
            shape(DraftTree::chain(tokens({4}))));
  EXPECT_EQ(shape(draft_after(tokens({2, 3, 4, 2, 3, 7, 2, 3}), 1)),
            shape(DraftTree::chain(tokens({7}))));
}

TEST(LookupDrafter, ProposesNothingWithoutAMatch) {
  EXPECT_THAT(draft_after({}, 5).nodes, IsEmpty());
  EXPECT_THAT(draft_after(tokens({1}), 5).nodes, IsEmpty());
  EXPECT_THAT(draft_after(tokens({1, 2, 3, 4}), 5).nodes, IsEmpty());
  EXPECT_THAT(draft_after(tokens({1, 2, 1, 2}), 0).nodes, IsEmpty());
}

TEST(LookupDrafter, NeverMatchesTheLastTokensWithThemselves) {
  EXPECT_THAT(draft_after(tokens({1, 2}), 5).nodes, IsEmpty());
  EXPECT_THAT(draft_after(tokens({1}), 5, {.shortest_ngram = 1}).nodes, IsEmpty());
}

TEST(LookupDrafter, EqualsASearchThroughTheWholeText) {
  Random random(3);
  for (int i = 0; i < 3000; ++i) {
    LookupOptions options;
    options.shortest_ngram = 1 + random.below(3);
    options.longest_ngram = options.shortest_ngram + random.below(4);
    options.branches = 1 + random.below(4);
    auto drafter = value_of(make_lookup_drafter(options));
    const DraftSlot slot = value_of(drafter->open());
    const std::size_t alphabet = 1 + random.below(4);
    std::vector<Token> text;
    while (text.size() < 40) {
      std::vector<Token> more(random.below(6));
      for (Token& token : more) token = to_token(random.below(alphabet));
      ASSERT_THAT(drafter->observe(slot, more), IsOk());
      text.insert(text.end(), more.begin(), more.end());
      const std::size_t depth = random.below(9);
      const DraftTree tree = draft_once(*drafter, slot, depth);
      ASSERT_EQ(shape(tree), shape(reference(text, depth, options)))
          << "round " << i << ", " << text.size() << " tokens";
      ASSERT_LE(tree.depth(), depth);
      ASSERT_LE(tree.leaves(), drafter->max_leaves());
    }
  }
}

TEST(LookupDrafter, GoesOnWithAPeriodOfAnyLength) {
  for (std::size_t period = 1; period <= 5; ++period) {
    std::vector<Token> text;
    for (std::size_t i = 0; i < period + 4; ++i) text.push_back(to_token(i % period));
    std::vector<Token> expected;
    for (std::size_t i = 0; i < 12; ++i) expected.push_back(to_token((text.size() + i) % period));
    EXPECT_EQ(shape(draft_after(text, 12)), shape(DraftTree::chain(expected))) << period;
  }
}

TEST(LookupDrafter, GivesDifferentContinuationsAsOneTree) {
  // After "1 2": 8; after "9 1 2": 7.
  const DraftTree tree = draft_after(tokens({9, 1, 2, 7, 5, 1, 2, 8, 6, 9, 1, 2}), 2,
                                     {.shortest_ngram = 2, .longest_ngram = 3, .branches = 2});
  DraftTree expected;
  expected.add(Token{5}, expected.add(Token{7}, k_tree_root));
  expected.add(Token{6}, expected.add(Token{8}, k_tree_root));
  EXPECT_EQ(shape(tree), shape(expected));
}

TEST(LookupDrafter, KeepsSlotsApart) {
  auto drafter = value_of(make_lookup_drafter({.slots = 2}));
  const DraftSlot first = value_of(drafter->open());
  const DraftSlot second = value_of(drafter->open());
  ASSERT_THAT(drafter->observe(first, tokens({1, 2, 3, 1, 2})), IsOk());
  ASSERT_THAT(drafter->observe(second, tokens({1, 2, 4, 1, 2})), IsOk());
  DraftRequest requests[] = {{second, 1, {}}, {first, 1, {}}};
  ASSERT_THAT(drafter->draft(requests, {}), IsOk());
  EXPECT_EQ(requests[0].tree.nodes.at(0).token, Token{4});
  EXPECT_EQ(requests[1].tree.nodes.at(0).token, Token{3});
}

TEST(LookupDrafter, ForgetsAClosedSlot) {
  auto drafter = value_of(make_lookup_drafter({}));
  DraftSlot slot = value_of(drafter->open());
  ASSERT_THAT(drafter->observe(slot, tokens({1, 2, 3, 1, 2})), IsOk());
  drafter->close(slot);
  slot = value_of(drafter->open());
  ASSERT_THAT(drafter->observe(slot, tokens({1, 2})), IsOk());
  EXPECT_THAT(draft_once(*drafter, slot, 3).nodes, IsEmpty());
}

TEST(LookupDrafter, IsBusyWhenItsSlotsAreInUse) {
  auto drafter = value_of(make_lookup_drafter({.slots = 2}));
  const DraftSlot first = value_of(drafter->open());
  ASSERT_THAT(drafter->open(), IsOk());
  EXPECT_THAT(drafter->open(), FailsWith(ErrorCode::busy, HasSubstr("2")));
  drafter->close(first);
  EXPECT_THAT(drafter->open(), IsOk());
}

TEST(LookupDrafter, ClearsTheTreeOfARequest) {
  auto drafter = value_of(make_lookup_drafter({}));
  DraftRequest request{
      .slot = value_of(drafter->open()), .depth = 3, .tree = DraftTree::chain(tokens({5, 6}))};
  ASSERT_THAT(drafter->draft(std::span(&request, 1), {}), IsOk());
  EXPECT_TRUE(request.tree.empty());
}

TEST(MakeLookupDrafter, AcceptsTheBordersAndNamesWhatLiesOutside) {
  EXPECT_THAT(make_lookup_drafter({.shortest_ngram = 1, .longest_ngram = 1}), IsOk());
  EXPECT_THAT(make_lookup_drafter({.shortest_ngram = 1, .longest_ngram = 16}), IsOk());
  EXPECT_THAT(make_lookup_drafter({.shortest_ngram = 16, .longest_ngram = 16}), IsOk());
  EXPECT_THAT(make_lookup_drafter({.shortest_ngram = 0}),
              FailsWith(ErrorCode::invalid_argument, HasSubstr("from 0")));
  EXPECT_THAT(make_lookup_drafter({.shortest_ngram = 3, .longest_ngram = 2}),
              FailsWith(ErrorCode::invalid_argument, HasSubstr("from 3 to 2")));
  EXPECT_THAT(make_lookup_drafter({.longest_ngram = 17}),
              FailsWith(ErrorCode::invalid_argument, HasSubstr("17")));
  EXPECT_THAT(make_lookup_drafter({.branches = 0}), FailsWith(ErrorCode::invalid_argument));
  EXPECT_THAT(make_lookup_drafter({.slots = 0}), FailsWith(ErrorCode::invalid_argument));
}

TEST(LookupDrafterDeathTest, AbortsOnASlotThatIsNotOpen) {
  auto drafter = value_of(make_lookup_drafter({}));
  EXPECT_DEATH(std::ignore = drafter->observe(DraftSlot{0}, tokens({1})), "no such lookup slot");
  EXPECT_DEATH(drafter->close(DraftSlot{7}), "no such lookup slot");
}

}  // namespace
}  // namespace paceline::draft
