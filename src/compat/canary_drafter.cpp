#include <algorithm>

#include "compat/canary_drafter_impl.hpp"

namespace paceline::compat {

namespace {

constexpr std::size_t k_most_rounds = 24;
constexpr std::size_t k_turn_every = 5;   // tokens
constexpr std::size_t k_second_part = 3;  // tokens

Result<DraftTree> draft_at(draft::Drafter& drafter, draft::DraftSlot slot, std::size_t depth,
                           std::stop_token stop) {
  draft::DraftRequest requests[] = {{slot, depth, {}}};
  PACELINE_TRY_VOID(drafter.draft(requests, stop));
  return std::move(requests[0].tree);
}

/// The draft of a slot that reads the text from its beginning: all at once, or all but `rest`
/// tokens, a draft of one token, and the rest.
Result<DraftTree> fresh_draft(draft::Drafter& drafter, std::span<const Token> text,
                              std::size_t rest, std::size_t depth, std::stop_token stop) {
  PACELINE_TRY(const draft::DraftSlot slot, drafter.open());
  const auto drafted = [&]() -> Result<DraftTree> {
    if (rest > 0) {
      PACELINE_TRY_VOID(drafter.observe(slot, text.first(text.size() - rest)));
      PACELINE_TRY([[maybe_unused]] const auto tree, draft_at(drafter, slot, 1, stop));
    }
    PACELINE_TRY_VOID(drafter.observe(slot, text.last(rest > 0 ? rest : text.size())));
    return draft_at(drafter, slot, depth, stop);
  }();
  drafter.close(slot);
  return drafted;
}

bool same(const DraftTree& a, const DraftTree& b) {
  return std::ranges::equal(a.nodes, b.nodes, [](const auto& x, const auto& y) {
    return x.token == y.token && x.parent == y.parent;
  });
}

}  // namespace

std::vector<Token> turned_text(std::vector<Token> tokens, std::size_t vocabulary) {
  tokens.resize((tokens.size() + 1) / 2);
  for (std::size_t i = k_turn_every - 1; i < tokens.size(); i += k_turn_every) {
    tokens[i] = to_token((to_index(tokens[i]) + 3 + i) % vocabulary);
  }
  const std::vector<Token> once = tokens;
  tokens.insert(tokens.end(), once.begin(), once.end());
  return tokens;
}

Result<DrafterSteps> check_drafter_steps(
    const std::function<Result<std::unique_ptr<draft::Drafter>>()>& make,
    const std::vector<Token>& emitted, std::span<const Token> prompt, std::size_t depth,
    std::stop_token stop) {
  PACELINE_TRY(const auto drafter, make());
  PACELINE_TRY(const auto other, make());
  std::vector<Token> text(prompt.begin(), prompt.end());
  text.insert(text.end(), emitted.begin(), emitted.end());
  DrafterSteps steps;
  steps.tokens = emitted.size();
  PACELINE_TRY(const draft::DraftSlot slot, drafter->open());
  std::size_t shown = 0;
  std::size_t length = std::min(prompt.size() + 1, text.size());
  while (steps.rounds < k_most_rounds) {
    const auto so_far = std::span<const Token>(text).first(length);
    PACELINE_TRY_VOID(drafter->observe(slot, so_far.subspan(shown)));
    shown = length;
    PACELINE_TRY(const DraftTree ours, draft_at(*drafter, slot, depth, stop));
    PACELINE_TRY(const DraftTree whole, fresh_draft(*other, so_far, 0, depth, stop));
    const std::size_t rest = std::min(k_second_part, length - 1);
    PACELINE_TRY(const DraftTree parts, fresh_draft(*other, so_far, rest, depth, stop));
    steps.drafted += ours.size();
    if (!same(whole, parts)) ++steps.noisy;
    if (!same(ours, whole) && !same(ours, parts)) {
      if (steps.stale == 0) steps.first_stale = steps.rounds;
      ++steps.stale;
    }
    ++steps.rounds;
    const std::size_t step = 1 + steps.rounds % (depth + 1);
    if (length + step > text.size()) break;
    length += step;
  }
  drafter->close(slot);
  steps.computes = drafter->forwards() > 0;
  return steps;
}

}  // namespace paceline::compat
