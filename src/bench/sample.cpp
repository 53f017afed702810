#include "bench/sample.hpp"

#include <algorithm>
#include <functional>
#include <optional>
#include <span>

#include "engine/engine.hpp"
#include "verify/sampler.hpp"

namespace paceline::bench {

namespace {

verify::SamplerOptions to_sampler_options(const record::Sampling& sampling) {
  verify::SamplerOptions options;
  options.temperature = sampling.temperature;
  options.top_k = sampling.top_k;
  options.top_p = sampling.top_p;
  options.min_p = sampling.min_p;
  options.repetition_penalty = sampling.repetition_penalty;
  options.presence_penalty = sampling.presence_penalty;
  options.frequency_penalty = sampling.frequency_penalty;
  options.seed = sampling.seed;
  return options;
}

record::Round to_record(const engine::Round& round) {
  return {.rows = static_cast<std::uint32_t>(round.rows),
          .drafted = static_cast<std::uint32_t>(round.drafted),
          .accepted = static_cast<std::uint32_t>(round.accepted),
          .emitted = static_cast<std::uint32_t>(round.emitted),
          .draft_ns = round.draft.count(),
          .verify_ns = round.verify.count(),
          .accept_ns = round.accept.count(),
          .other_ns = round.other.count(),
          .delivered_ns = round.delivered.count()};
}

std::vector<std::uint32_t> to_record(const std::vector<std::size_t>& counts) {
  return {counts.begin(), counts.end()};
}

}  // namespace

Result<record::Sample> run_sample(const Contender& contender, const PreparedPrompt& prompt,
                                  std::size_t max_tokens, const runtime::Vocabulary& vocabulary,
                                  Clock& clock, std::stop_token stop, const SampleFacts& facts) {
  draft::Drafter* drafter = nullptr;
  if (contender.drafter) {
    PACELINE_TRY(drafter, contender.drafter(facts));
  }
  engine::Engine engine(*contender.target, vocabulary, drafter, clock);
  const runtime::PassCounters before = contender.target->counters();
  const std::uint64_t draft_before = drafter != nullptr ? drafter->forwards() : 0;

  record::Sample sample;
  sample.arm = contender.arm.id;
  sample.prompt_tokens = prompt.tokens.size();
  sample.started_at_unix_seconds = clock.unix_seconds();
  const Nanoseconds start = clock.now();
  PACELINE_TRY(const auto text, engine.start({.prompt = prompt.tokens,
                                              .max_tokens = max_tokens,
                                              .stop = prompt.stop,
                                              .sampler = to_sampler_options(prompt.sampling),
                                              .num_draft_tokens = contender.arm.num_draft_tokens}));
  PACELINE_TRY_VOID(engine.run(*text, stop));
  const Nanoseconds elapsed = clock.now() - start;
  sample.ended_at_unix_seconds = clock.unix_seconds();

  const Nanoseconds offset = text->started_at() - start;
  sample.finish_reason = to_string(text->finish_reason());
  for (const Token token : text->tokens()) sample.tokens.push_back(to_int(token));
  sample.prefill_ns = (offset + text->prefill_time()).count();
  sample.first_token_ns = (offset + text->first_token_time()).count();
  if (text->first_text_time()) {
    sample.first_text_ns = (offset + *text->first_text_time()).count();
  }
  sample.elapsed_ns = elapsed.count();
  sample.other_ns = sample.elapsed_ns - sample.prefill_ns;
  for (const engine::Round& round : text->rounds()) {
    sample.rounds.push_back(to_record(round));
    sample.rounds.back().delivered_ns += offset.count();
    const record::Round& r = sample.rounds.back();
    sample.other_ns -= r.draft_ns + r.verify_ns + r.accept_ns + r.other_ns;
  }
  sample.streamed_chunks = text->deliveries_with_text();
  const runtime::PassCounters after = contender.target->counters();
  sample.target_forwards = after.forwards - before.forwards;
  sample.target_rows = after.rows - before.rows;
  sample.replayed_rows = after.replayed_rows - before.replayed_rows;
  sample.draft_forwards = drafter != nullptr ? drafter->forwards() - draft_before : 0;
  sample.drafted_at = to_record(text->drafted_at());
  sample.accepted_at = to_record(text->accepted_at());
  return sample;
}

namespace {

/// Puts one pass through and commits its first `commit` rows. Gives the logits of row `wanted`.
Result<std::vector<float>> pass(runtime::Runtime& target, runtime::SequenceId sequence,
                                std::span<const Token> tokens, std::size_t commit,
                                std::optional<std::size_t> wanted, std::stop_token stop) {
  std::vector<runtime::Row> rows;
  std::vector<std::int32_t> path;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    rows.push_back({sequence, tokens[i], static_cast<std::int32_t>(i) - 1,
                    wanted == i ? runtime::Wants::logits : runtime::Wants::nothing});
    if (i < commit) path.push_back(static_cast<std::int32_t>(i));
  }
  PACELINE_TRY_VOID(target.forward(rows, stop));
  std::vector<float> logits;
  if (wanted) {
    const auto row = target.logits(*wanted);
    logits.assign(row.begin(), row.end());
  }
  PACELINE_TRY_VOID(target.accept(sequence, path));
  return logits;
}

/// The logits that emitted token number `index` was chosen from: the sample's passes again, with
/// the same numbers of rows. Rejected rows get another token, which no other row sees.
Result<std::vector<float>> replay(runtime::Runtime& target, runtime::SequenceId sequence,
                                  const record::Sample& sample, const std::vector<Token>& prompt,
                                  std::size_t index, std::stop_token stop) {
  for (std::size_t done = 0; done < prompt.size();) {
    const std::size_t count = std::min(target.limits().rows, prompt.size() - done);
    const bool last = done + count == prompt.size();
    const auto wanted = last ? std::optional(count - 1) : std::nullopt;
    PACELINE_TRY(auto logits, pass(target, sequence, std::span(prompt).subspan(done, count), count,
                                   wanted, stop));
    done += count;
    if (last && index == 0) return logits;
  }
  std::size_t emitted = 1;
  for (const record::Round& round : sample.rounds) {
    std::vector<Token> tokens;
    for (std::size_t i = 0; i < round.rows; ++i) {
      const std::size_t at = emitted - 1 + std::min<std::size_t>(i, round.accepted);
      tokens.push_back(Token{sample.tokens[at]});
    }
    const bool here = index < emitted + round.emitted;
    const auto wanted = here ? std::optional(index - emitted) : std::nullopt;
    PACELINE_TRY(auto logits, pass(target, sequence, tokens, round.emitted, wanted, stop));
    if (here) return logits;
    emitted += round.emitted;
  }
  return fail(ErrorCode::internal, "the sample's rounds end before its tokens do");
}

/// `replay` on a sequence of its own.
Result<std::vector<float>> logits_at(const SampleOf& run, const PreparedPrompt& prompt,
                                     std::size_t index, std::stop_token stop) {
  runtime::Runtime& target = *run.contender.target;
  PACELINE_TRY(const runtime::SequenceId sequence, target.create_sequence());
  auto logits = replay(target, sequence, run.sample, prompt.tokens, index, stop);
  target.release(sequence);
  return logits;
}

}  // namespace

Result<record::Comparison> compare(const SampleOf& speculative, const SampleOf& baseline,
                                   const PreparedPrompt& prompt,
                                   const runtime::Vocabulary& vocabulary, std::stop_token stop) {
  const auto& tokens = speculative.sample.tokens;
  const auto& expected = baseline.sample.tokens;
  record::Comparison comparison;
  comparison.arm = speculative.sample.arm;
  comparison.baseline = baseline.sample.arm;
  comparison.equal = tokens == expected;
  if (comparison.equal) return comparison;
  const auto [here, there] = std::ranges::mismatch(tokens, expected);
  const auto index = static_cast<std::size_t>(here - tokens.begin());
  comparison.first_difference = index;
  if (here == tokens.end() || there == expected.end()) return comparison;

  PACELINE_TRY(const auto plain_logits, logits_at(baseline, prompt, index, stop));
  PACELINE_TRY(const auto logits, logits_at(speculative, prompt, index, stop));
  std::vector<float> sorted = plain_logits;
  std::ranges::partial_sort(sorted, sorted.begin() + 2, std::greater<>());
  comparison.top_two_margin = static_cast<double>(sorted[0]) - static_cast<double>(sorted[1]);

  verify::Sampler sampler(to_sampler_options(prompt.sampling), vocabulary.size());
  for (const Token token : prompt.tokens) sampler.push(token);
  for (std::size_t i = 0; i < index; ++i) sampler.push(Token{expected[i]});
  comparison.numeric_tie = to_int(sampler.choose(plain_logits, index)) == *there &&
                           to_int(sampler.choose(logits, index)) == *here;
  return comparison;
}

}  // namespace paceline::bench
