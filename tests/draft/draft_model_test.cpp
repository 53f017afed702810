#include "draft/draft_model.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/random.hpp"
#include "support/fake_runtime.hpp"
#include "support/matchers.hpp"

namespace paceline::draft {
namespace {

using runtime::SequenceId;
using test::Call;
using test::FailsWith;
using test::FailsWithWord;
using test::FakeRuntime;
using test::IsOk;
using test::tokens;
using test::value_of;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr std::size_t k_vocabulary = 8;

/// Depends on every token of the context, so that a wrong one shows.
Token next_after(std::span<const Token> context) {
  std::uint64_t hash = context.size();
  for (const Token token : context) hash = mix64(hash * 31 + to_index(token) + 1);
  return to_token(hash % k_vocabulary);
}

std::vector<float> peak(Token token, float height) {
  std::vector<float> logits(k_vocabulary, 0.0f);
  logits[to_index(token)] = height;
  return logits;
}

std::vector<Token> chain_after(std::vector<Token> text, std::size_t depth) {
  std::vector<Token> chain;
  for (std::size_t i = 0; i < depth; ++i) {
    chain.push_back(next_after(text));
    text.push_back(chain.back());
  }
  return chain;
}

struct Made {
  std::unique_ptr<Drafter> drafter;
  FakeRuntime* runtime = nullptr;  // owned by the drafter
};

Made make(
    const runtime::RuntimeLimits& limits, DraftModelOptions options = {},
    FakeRuntime::Logits logits = [](std::span<const Token> context) {
      return peak(next_after(context), 3);
    }) {
  if (options.target_vocabulary == 0) options.target_vocabulary = k_vocabulary;
  auto owned = std::make_unique<FakeRuntime>(k_vocabulary, limits, std::move(logits));
  FakeRuntime* const runtime = owned.get();
  return {value_of(make_draft_model_drafter(std::move(owned), options)), runtime};
}

runtime::RuntimeLimits roomy() { return {.sequences = 1, .context = 1000, .rows = 64}; }

std::vector<Token> chain_of(const DraftTree& tree) {
  std::vector<Token> chain;
  for (std::size_t i = 0; i < tree.size(); ++i) {
    EXPECT_EQ(tree.nodes[i].parent, static_cast<std::int32_t>(i) - 1);
    chain.push_back(tree.nodes[i].token);
  }
  return chain;
}

std::vector<Token> draft_once(Drafter& drafter, DraftSlot slot, std::size_t depth) {
  DraftRequest request{.slot = slot, .depth = depth, .tree = {}};
  EXPECT_THAT(drafter.draft(std::span(&request, 1), {}), IsOk());
  return chain_of(request.tree);
}

TEST(DraftModelDrafter, ProposesItsOwnGreedyContinuation) {
  for (std::size_t depth = 0; depth <= 8; ++depth) {
    Made made = make(roomy());
    const DraftSlot slot = value_of(made.drafter->open());
    ASSERT_THAT(made.drafter->observe(slot, tokens({3, 1, 4})), IsOk());
    EXPECT_EQ(draft_once(*made.drafter, slot, depth), chain_after(tokens({3, 1, 4}), depth));
  }
}

TEST(DraftModelDrafter, ProposesNothingBeforeItHasSeenAText) {
  Made made = make(roomy());
  const DraftSlot slot = value_of(made.drafter->open());
  EXPECT_THAT(draft_once(*made.drafter, slot, 4), IsEmpty());
  EXPECT_EQ(made.runtime->counters().forwards, 0U);
}

// Every accept count after every depth, followed by another round: the draft is that of a fresh
// drafter, the cache is the text, and no row was computed twice.
TEST(DraftModelDrafter, IsInStepWithTheTextAfterEveryAcceptCount) {
  for (std::size_t depth = 0; depth <= 6; ++depth) {
    for (std::size_t accepted = 0; accepted <= depth; ++accepted) {
      for (std::size_t next_depth = 1; next_depth <= 6; ++next_depth) {
        Made made = make(roomy());
        const DraftSlot slot = value_of(made.drafter->open());
        std::vector<Token> text = tokens({3, 1, 4, 1, 5});
        ASSERT_THAT(made.drafter->observe(slot, text), IsOk());
        std::vector<Token> round = draft_once(*made.drafter, slot, depth);
        // The accepted ones, and the target's own token, which differs from the draft's.
        const Token own =
            to_token((to_index(accepted < depth ? round[accepted] : Token{0}) + 1) % k_vocabulary);
        round.resize(accepted);
        round.push_back(own);
        ASSERT_THAT(made.drafter->observe(slot, round), IsOk());
        text.insert(text.end(), round.begin(), round.end());

        const std::uint64_t rows_before = made.runtime->counters().rows;
        ASSERT_EQ(draft_once(*made.drafter, slot, next_depth), chain_after(text, next_depth))
            << depth << " " << accepted << " " << next_depth;
        // The draft model had computed the text and its first depth - 1 proposals.
        const std::size_t held = depth == 0 ? 0 : 5 + std::min(accepted, depth - 1);
        ASSERT_EQ(made.runtime->counters().rows - rows_before, text.size() - held + next_depth - 1);
        std::vector<Token> cache = text;
        const std::vector<Token> proposals = chain_after(text, next_depth - 1);
        cache.insert(cache.end(), proposals.begin(), proposals.end());
        ASSERT_EQ(made.runtime->contents(SequenceId{0}), cache);
      }
    }
  }
}

TEST(DraftModelDrafter, StaysInStepOverManyRandomRounds) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    Random random(seed);
    Made made = make({.sequences = 1, .context = 200, .rows = 1 + random.below(7)});
    const DraftSlot slot = value_of(made.drafter->open());
    std::vector<Token> text;
    while (text.size() < 100) {
      std::vector<Token> round;
      if (!text.empty()) {
        const std::size_t depth = random.below(9);
        round = draft_once(*made.drafter, slot, depth);
        ASSERT_EQ(round, chain_after(text, depth)) << "seed " << seed << ", " << text.size();
        if (!round.empty()) round.resize(random.below(round.size() + 1));
      }
      // Plain rounds in between too: tokens that were never drafted.
      for (std::size_t more = 1 + random.below(3); more > 0; --more) {
        round.push_back(to_token(random.below(k_vocabulary)));
      }
      ASSERT_THAT(made.drafter->observe(slot, round), IsOk());
      text.insert(text.end(), round.begin(), round.end());
    }
  }
}

TEST(DraftModelDrafter, PutsALongPromptThroughInChunks) {
  for (std::size_t rows = 1; rows <= 16; ++rows) {
    for (const std::size_t length : {1UL, 2UL, 15UL, 16UL, 17UL, 3 * rows, 3 * rows + 1}) {
      Made made = make({.sequences = 1, .context = 1000, .rows = rows});
      const DraftSlot slot = value_of(made.drafter->open());
      std::vector<Token> text;
      for (std::size_t i = 0; i < length; ++i) text.push_back(to_token(i * i % k_vocabulary));
      ASSERT_THAT(made.drafter->observe(slot, text), IsOk());
      ASSERT_EQ(draft_once(*made.drafter, slot, 3), chain_after(text, 3)) << rows << " " << length;
      ASSERT_EQ(made.drafter->forwards(), (length + rows - 1) / rows + 2);
    }
  }
}

TEST(DraftModelDrafter, ProposesLessAndThenNothingAtTheEndOfItsContext) {
  constexpr std::size_t k_context = 16;
  Made made = make({.sequences = 1, .context = k_context, .rows = 64});
  const DraftSlot slot = value_of(made.drafter->open());
  std::vector<Token> text = tokens({1});
  ASSERT_THAT(made.drafter->observe(slot, text), IsOk());
  while (text.size() < 24) {
    const std::size_t room = text.size() <= k_context ? k_context - text.size() + 1 : 0;
    ASSERT_EQ(draft_once(*made.drafter, slot, 4), chain_after(text, std::min<std::size_t>(4, room)))
        << text.size();
    const auto own = tokens({static_cast<int>(text.size() % k_vocabulary)});
    ASSERT_THAT(made.drafter->observe(slot, own), IsOk());
    text.push_back(own[0]);
  }
}

TEST(DraftModelDrafter, ServesAPromptLongerThanItsContextWithoutDrafts) {
  Made made = make({.sequences = 1, .context = 4, .rows = 64});
  const DraftSlot slot = value_of(made.drafter->open());
  ASSERT_THAT(made.drafter->observe(slot, tokens({1, 2, 3, 4, 5, 6})), IsOk());
  EXPECT_THAT(draft_once(*made.drafter, slot, 4), IsEmpty());
}

TEST(DraftModelDrafter, DraftsForManySlotsAsForEachAlone) {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    Random random(seed);
    const std::size_t slots = 1 + random.below(5);
    Made made = make({.sequences = slots, .context = 60, .rows = slots + random.below(8)});
    std::vector<DraftSlot> ids;
    std::vector<std::vector<Token>> texts(slots);
    for (std::size_t i = 0; i < slots; ++i) ids.push_back(value_of(made.drafter->open()));
    for (int round = 0; round < 8; ++round) {
      std::vector<DraftRequest> requests;
      std::vector<std::size_t> asking;
      for (std::size_t i = 0; i < slots; ++i) {
        std::vector<Token> more(1 + random.below(6));
        for (Token& token : more) token = to_token(random.below(k_vocabulary));
        ASSERT_THAT(made.drafter->observe(ids[i], more), IsOk());
        texts[i].insert(texts[i].end(), more.begin(), more.end());
        if (random.below(4) == 0) continue;  // a plain round of this text
        requests.push_back({ids[i], random.below(6), {}});
        asking.push_back(i);
      }
      const std::vector<DraftRequest> asked = requests;
      ASSERT_THAT(made.drafter->draft(requests, {}), IsOk());
      for (std::size_t i = 0; i < requests.size(); ++i) {
        const std::vector<Token>& text = texts[asking[i]];
        const std::size_t depth =
            std::min(asked[i].depth, text.size() <= 60 ? 61 - text.size() : 0);
        ASSERT_EQ(chain_of(requests[i].tree), chain_after(text, depth)) << "seed " << seed;
      }
    }
  }
}

TEST(DraftModelDrafter, StopsBeforeATokenBelowTheConfidence) {
  // Probability of the peak after n tokens: falls with n.
  const auto logits = [](std::span<const Token> context) {
    return peak(next_after(context), 6.0f - static_cast<float>(context.size()));
  };
  const auto probability = [](std::size_t length) {
    const double weight = std::exp(6.0 - static_cast<double>(length));
    return weight / (weight + k_vocabulary - 1);
  };
  for (std::size_t expected = 0; expected <= 4; ++expected) {
    const double threshold = (probability(1 + expected) + probability(expected)) / 2;
    Made made = make(roomy(), {.confidence = threshold, .target_vocabulary = 0}, logits);
    const DraftSlot slot = value_of(made.drafter->open());
    ASSERT_THAT(made.drafter->observe(slot, tokens({2})), IsOk());
    if (expected > 0) {
      EXPECT_EQ(draft_once(*made.drafter, slot, 8), chain_after(tokens({2}), expected));
    } else {
      EXPECT_THAT(draft_once(*made.drafter, slot, 8), IsEmpty());
    }
    // And it is in step afterwards.
    ASSERT_THAT(made.drafter->observe(slot, tokens({7})), IsOk());
    const std::size_t left = expected > 0 ? expected - 1 : 0;
    EXPECT_EQ(draft_once(*made.drafter, slot, 8), chain_after(tokens({2, 7}), left));
  }
}

TEST(DraftModelDrafter, NeverProposesWhatTheTargetDoesNotKnow) {
  Made made =
      make(roomy(), {.confidence = 0, .target_vocabulary = 5}, [](std::span<const Token> context) {
        return peak(to_token(context.size()), 3);  // 1, 2, 3, 4, then 5
      });
  const DraftSlot slot = value_of(made.drafter->open());
  ASSERT_THAT(made.drafter->observe(slot, tokens({0})), IsOk());
  EXPECT_EQ(draft_once(*made.drafter, slot, 7), tokens({1, 2, 3, 4}));
}

TEST(DraftModelDrafter, ForgetsAClosedSlotAndFreesItsSequence) {
  Made made = make(roomy());
  DraftSlot slot = value_of(made.drafter->open());
  EXPECT_THAT(made.drafter->open(), FailsWith(ErrorCode::busy));
  ASSERT_THAT(made.drafter->observe(slot, tokens({1, 2, 3})), IsOk());
  draft_once(*made.drafter, slot, 3);
  made.drafter->close(slot);
  EXPECT_EQ(made.runtime->sequences_in_use(), 0U);
  slot = value_of(made.drafter->open());
  ASSERT_THAT(made.drafter->observe(slot, tokens({4})), IsOk());
  EXPECT_EQ(draft_once(*made.drafter, slot, 3), chain_after(tokens({4}), 3));
}

TEST(DraftModelDrafter, CanBeCancelledAndGoesOnLater) {
  Made made = make(roomy());
  const DraftSlot slot = value_of(made.drafter->open());
  ASSERT_THAT(made.drafter->observe(slot, tokens({1, 2, 3})), IsOk());
  for (int passes = 0; passes < 4; ++passes) {
    std::stop_source source;
    int left = passes;
    made.runtime->before = [&](Call call) -> Result<void> {
      if (call == Call::forward && left-- == 0) source.request_stop();
      return {};
    };
    DraftRequest request{.slot = slot, .depth = 4, .tree = {}};
    EXPECT_THAT(made.drafter->draft(std::span(&request, 1), source.get_token()),
                FailsWith(ErrorCode::cancelled));
    made.runtime->before = [](Call) -> Result<void> { return {}; };
    EXPECT_EQ(draft_once(*made.drafter, slot, 4), chain_after(tokens({1, 2, 3}), 4));
  }
}

TEST(DraftModelDrafter, PassesOnWhatTheRuntimeRefuses) {
  for (const Call failing : {Call::forward, Call::accept, Call::truncate}) {
    Made made = make(roomy());
    const DraftSlot slot = value_of(made.drafter->open());
    ASSERT_THAT(made.drafter->observe(slot, tokens({1, 2, 3})), IsOk());
    draft_once(*made.drafter, slot, 4);  // the next draft has something to take back
    ASSERT_THAT(made.drafter->observe(slot, {}), IsOk());
    made.runtime->before = [&](Call call) -> Result<void> {
      if (call == failing) return fail(ErrorCode::runtime_failed, "kept 7 of 5 tokens");
      return {};
    };
    DraftRequest request{.slot = slot, .depth = 4, .tree = {}};
    EXPECT_THAT(made.drafter->draft(std::span(&request, 1), {}),
                FailsWith(ErrorCode::runtime_failed, HasSubstr("kept 7")));
  }
}

TEST(DraftModelDrafter, GoesOnAfterAFailedPass) {
  Made made = make(roomy());
  const DraftSlot slot = value_of(made.drafter->open());
  ASSERT_THAT(made.drafter->observe(slot, tokens({1, 2, 3})), IsOk());
  for (int passes = 0; passes < 4; ++passes) {
    int left = passes;
    made.runtime->before = [&](Call call) -> Result<void> {
      if (call == Call::forward && left-- == 0) return fail(ErrorCode::runtime_failed, "once");
      return {};
    };
    DraftRequest request{.slot = slot, .depth = 4, .tree = {}};
    EXPECT_THAT(made.drafter->draft(std::span(&request, 1), {}),
                FailsWith(ErrorCode::runtime_failed));
    EXPECT_EQ(draft_once(*made.drafter, slot, 4), chain_after(tokens({1, 2, 3}), 4));
  }
}

TEST(MakeDraftModelDrafter, RefusesARuntimeThatCannotRollBack) {
  auto runtime = std::make_unique<FakeRuntime>(
      k_vocabulary, roomy(), [](std::span<const Token>) { return peak(Token{0}, 1); });
  runtime->says.rollback = false;
  runtime->says.rollback_reason = "it keeps a recurrent state";
  const auto made =
      make_draft_model_drafter(std::move(runtime), {.target_vocabulary = k_vocabulary});
  EXPECT_THAT(made, FailsWith(ErrorCode::unsupported, HasSubstr("recurrent")));
  EXPECT_THAT(made, FailsWithWord("draft_model_no_rollback"));
}

TEST(MakeDraftModelDrafter, NamesWhatLiesOutsideItsRange) {
  const auto made = [](const runtime::RuntimeLimits& limits, const DraftModelOptions& options) {
    return make_draft_model_drafter(
        std::make_unique<FakeRuntime>(k_vocabulary, limits,
                                      [](std::span<const Token>) { return peak(Token{0}, 1); }),
        options);
  };
  EXPECT_THAT(made(roomy(), {.confidence = 0.99, .target_vocabulary = 1}), IsOk());
  for (const double confidence : {-0.1, 1.0, 1.5, std::nan("")}) {
    EXPECT_THAT(made(roomy(), {.confidence = confidence, .target_vocabulary = 1}),
                FailsWith(ErrorCode::invalid_argument, HasSubstr("confidence")));
  }
  EXPECT_THAT(made(roomy(), {}), FailsWith(ErrorCode::invalid_argument, HasSubstr("vocabulary")));
  EXPECT_THAT(made({.sequences = 4, .context = 9, .rows = 3}, {.target_vocabulary = 1}),
              FailsWith(ErrorCode::invalid_argument, HasSubstr("3 rows")));
}

}  // namespace
}  // namespace paceline::draft
