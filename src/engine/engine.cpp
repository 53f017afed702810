#include "engine/engine.hpp"

#include <algorithm>
#include <format>
#include <utility>

#include "core/check.hpp"
#include "verify/match.hpp"

namespace paceline::engine {

using runtime::Row;
using runtime::Wants;

Engine::Engine(runtime::Runtime& target, const runtime::Vocabulary& vocabulary,
               draft::Drafter* drafter, Clock& clock)
    : target_(target), vocabulary_(vocabulary), drafter_(drafter), clock_(clock) {}

Result<std::unique_ptr<Generation>> Engine::start(GenerationOptions options) {
  if (options.prompt.empty()) {
    return fail(ErrorCode::invalid_argument, "the prompt has no tokens; at least one is needed");
  }
  if (options.max_tokens == 0) {
    return fail(ErrorCode::invalid_argument, "max_tokens is 0, it must be at least 1");
  }
  if (options.prompt.size() > target_.limits().context) {
    return fail(ErrorCode::invalid_argument,
                std::format("the prompt has {} tokens, the context holds {}; shorten it or raise "
                            "--max-context-tokens",
                            options.prompt.size(), target_.limits().context),
                "context_length_exceeded");
  }
  PACELINE_TRY_VOID(verify::check_sampler_options(options.sampler, vocabulary_.size()));
  if (options.num_draft_tokens > 0) {
    if (drafter_ == nullptr) {
      return fail(ErrorCode::unsupported, "drafted tokens were asked for without a drafter");
    }
    const runtime::Capabilities capabilities = target_.capabilities();
    if (!capabilities.rollback) {
      return fail(ErrorCode::unsupported,
                  std::format("the target cannot take rejected tokens back: {}; only plain "
                              "decoding is possible",
                              capabilities.rollback_reason),
                  "target_no_rollback");
    }
    const std::size_t leaves = capabilities.trees ? target_.limits().leaves : 1;
    if (drafter_->max_leaves() > leaves) {
      return fail(ErrorCode::unsupported,
                  std::format("the drafter proposes trees of up to {} leaves, the target's runtime "
                              "was made for {}",
                              drafter_->max_leaves(), leaves),
                  "target_no_trees");
    }
  }
  const Nanoseconds now = clock_.now();
  PACELINE_TRY(const runtime::SequenceId sequence, target_.create_sequence());
  std::unique_ptr<Generation> text(
      new Generation(*this, std::move(options), sequence, vocabulary_.size(), now));
  if (text->options_.num_draft_tokens > 0) {
    PACELINE_TRY(text->slot_, drafter_->open());
  }
  return text;
}

void Engine::forget(Generation& text) {
  target_.release(text.sequence_);
  if (text.slot_) drafter_->close(*text.slot_);
}

Result<void> Engine::run(Generation& text, std::stop_token stop) {
  Generation* const texts[] = {&text};
  while (text.failed() || !text.finished()) PACELINE_TRY_VOID(step(texts, stop));
  return {};
}

Result<std::vector<Delivery>> Engine::step(std::span<Generation* const> all, std::stop_token stop) {
  std::vector<Generation*> texts;
  for (Generation* text : all) {
    if (text->failed()) {
      return fail(ErrorCode::runtime_failed, "a text cannot go on after its failed step");
    }
    if (!text->finished()) texts.push_back(text);
  }
  if (!texts.empty()) PACELINE_TRY_VOID(pass(texts, stop));

  std::vector<Delivery> deliveries(all.size());
  for (std::size_t i = 0; i < all.size(); ++i) {
    Generation& text = *all[i];
    deliveries[i].tokens.assign(
        text.emitted_.begin() + static_cast<std::ptrdiff_t>(text.delivered_), text.emitted_.end());
    text.delivered_ = text.emitted_.size();
    text.text_ += text.fresh_text_;
    deliveries[i].text = std::exchange(text.fresh_text_, {});
  }
  return deliveries;
}

Result<void> Engine::pass(std::span<Generation* const> texts, std::stop_token stop) {
  PassTimes times{.begin = clock_.now()};
  PACELINE_TRY_VOID(propose(texts, stop));
  times.proposed = clock_.now();
  const std::vector<Row> rows = choose_rows(texts);
  times.chosen = clock_.now();
  PACELINE_TRY_VOID(target_.forward(rows, stop));
  times.verified = clock_.now();

  Result<void> outcome;
  for (Generation* text : texts) {
    if (text->row_count_ == 0) continue;
    auto consumed = consume(*text, times);
    text->failed_ = !consumed;
    if (!consumed && outcome) outcome = std::move(consumed);
  }
  return outcome;
}

Result<void> Engine::consume(Generation& text, const PassTimes& times) {
  const bool in_prompt = text.in_prompt();
  PACELINE_TRY_VOID(in_prompt ? consume_prompt(text) : consume_round(text));
  const Nanoseconds now = clock_.now();
  if (!text.fresh_text_.empty()) {
    ++text.deliveries_with_text_;
    if (!text.first_text_) text.first_text_ = now - text.start_;
  }
  if (in_prompt) {
    text.prefill_ = now - text.start_;
  } else {
    Round& round = text.rounds_.back();
    round.draft = times.proposed - times.begin;
    round.verify = times.verified - times.chosen;
    round.accept = now - times.verified;
    round.other = (times.begin - text.mark_) + (times.chosen - times.proposed);
    round.delivered = now - text.start_;
  }
  text.mark_ = now;
  return {};
}

Result<void> Engine::propose(std::span<Generation* const> texts, std::stop_token stop) {
  std::vector<draft::DraftRequest> requests;
  std::vector<Generation*> asking;
  for (Generation* text : texts) {
    text->tree_.nodes.clear();
    if (text->in_prompt() || text->options_.num_draft_tokens == 0) continue;
    if (text->observed_ == 0) {
      PACELINE_TRY_VOID(drafter_->observe(*text->slot_, text->options_.prompt));
    }
    PACELINE_TRY_VOID(
        drafter_->observe(*text->slot_, std::span(text->emitted_).subspan(text->observed_)));
    text->observed_ = text->emitted_.size();
    const std::size_t depth = text->depth_limit();
    if (depth == 0) continue;
    requests.push_back({*text->slot_, depth, {}});
    asking.push_back(text);
  }
  if (requests.empty()) return {};
  PACELINE_TRY_VOID(drafter_->draft(requests, stop));
  for (std::size_t i = 0; i < requests.size(); ++i) {
    PACELINE_CHECK(requests[i].tree.depth() <= asking[i]->depth_limit(),
                   "a drafter went deeper than it was asked to");
    asking[i]->tree_ = std::move(requests[i].tree);
  }
  return {};
}

std::vector<Row> Engine::choose_rows(std::span<Generation* const> texts) {
  std::vector<Row> rows;
  const std::size_t most_rows = target_.limits().rows;
  const std::size_t most_results = target_.limits().most_results();
  auto waiting = static_cast<std::size_t>(
      std::ranges::count_if(texts, [](const Generation* text) { return !text->in_prompt(); }));
  for (Generation* text : texts) {
    text->first_row_ = rows.size();
    text->row_count_ = 0;
    if (text->in_prompt()) continue;
    // Every text that is being written has a row of its own before any has a tree. A tree keeps the
    // nodes for which there is room: parents come first, so what is left is a tree.
    const std::size_t free = most_results - rows.size();
    const std::size_t nodes = free > waiting ? free - waiting : 0;
    --waiting;
    if (text->tree_.size() > nodes) text->tree_.nodes.resize(nodes);
    if (free == 0) continue;
    const Wants wants = text->sampler_.needs_logits() ? Wants::logits : Wants::argmax;
    const auto first = static_cast<std::int32_t>(rows.size());
    rows.push_back({text->sequence_, text->emitted_.back(), runtime::k_committed_end, wants});
    for (const DraftTree::Node& node : text->tree_.nodes) {
      rows.push_back({text->sequence_, node.token, first + 1 + node.parent, wants});
    }
    text->row_count_ = rows.size() - text->first_row_;
  }
  std::size_t results = rows.size();
  for (Generation* text : texts) {
    if (!text->in_prompt()) continue;
    const std::size_t missing = text->options_.prompt.size() - text->prompt_done_;
    std::size_t count = std::min(missing, most_rows - rows.size());
    if (count == missing) {
      // The last row wants a result: where there is no room for it, it waits for the next pass.
      if (results < most_results) {
        ++results;
      } else {
        --count;
      }
    }
    text->first_row_ = rows.size();
    text->row_count_ = count;
    for (std::size_t i = 0; i < count; ++i) {
      const bool last = i + 1 == missing;
      const Wants wants = text->sampler_.needs_logits() ? Wants::logits : Wants::argmax;
      rows.push_back(
          {text->sequence_, text->options_.prompt[text->prompt_done_ + i],
           i == 0 ? runtime::k_committed_end : static_cast<std::int32_t>(rows.size()) - 1,
           last ? wants : Wants::nothing});
    }
  }
  return rows;
}

namespace {

/// The target's choice after row `row`, as emitted token number `position`.
Token choose(runtime::Runtime& target, verify::Sampler& sampler, std::size_t row,
             std::size_t position) {
  return sampler.needs_logits() ? sampler.choose(target.logits(row), position) : target.argmax(row);
}

}  // namespace

Result<void> Engine::consume_prompt(Generation& text) {
  const bool complete = text.prompt_done_ + text.row_count_ == text.options_.prompt.size();
  if (complete) {
    const std::size_t last_row = text.first_row_ + text.row_count_ - 1;
    text.emit(choose(target_, text.sampler_, last_row, 0));
    text.first_token_ = clock_.now() - text.start_;
  }
  std::vector<std::int32_t> path(text.row_count_);
  for (std::size_t i = 0; i < path.size(); ++i) {
    path[i] = static_cast<std::int32_t>(text.first_row_ + i);
  }
  PACELINE_TRY_VOID(target_.accept(text.sequence_, path));
  text.prompt_done_ += text.row_count_;
  return {};
}

Result<void> Engine::consume_round(Generation& text) {
  const auto row_of = [&](std::int32_t node) {
    return static_cast<std::int32_t>(text.first_row_) + 1 + node;
  };
  const verify::Match match = verify::sample_and_match(
      text.tree_,
      [&](std::int32_t node) {
        return choose(target_, text.sampler_, static_cast<std::size_t>(row_of(node)),
                      text.emitted_.size());
      },
      [&](Token token) { return text.emit(token); });

  // The last emitted token gets its own row in the next pass; all before it are committed now.
  std::vector<std::int32_t> path{row_of(k_tree_root)};
  for (std::size_t i = 0; i + 1 < match.emitted.size(); ++i) path.push_back(row_of(match.path[i]));
  PACELINE_TRY_VOID(target_.accept(text.sequence_, path));

  text.rounds_.push_back({.rows = text.row_count_,
                          .drafted = text.tree_.size(),
                          .accepted = match.path.size(),
                          .emitted = match.emitted.size()});
  const std::size_t deepest = text.tree_.depth();
  for (std::size_t i = 0; i < deepest; ++i) ++text.drafted_at_[i];
  for (std::size_t i = 0; i < match.path.size(); ++i) ++text.accepted_at_[i];
  return {};
}

}  // namespace paceline::engine
