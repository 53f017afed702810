#include "bench/sample.hpp"

#include "compat/replay.hpp"
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

compat::WrittenText to_text(const SampleOf& run) {
  compat::WrittenText text{.target = run.contender.target, .tokens = {}, .rounds = {}};
  for (const std::int32_t token : run.sample.tokens) text.tokens.push_back(Token{token});
  for (const record::Round& round : run.sample.rounds) {
    text.rounds.push_back(compat::PassShape::chain(round.rows, round.emitted));
  }
  return text;
}

}  // namespace

Result<record::Comparison> compare(const SampleOf& speculative, const SampleOf& baseline,
                                   const PreparedPrompt& prompt,
                                   const runtime::Vocabulary& vocabulary, std::stop_token stop) {
  record::Comparison comparison;
  comparison.arm = speculative.sample.arm;
  comparison.baseline = baseline.sample.arm;
  PACELINE_TRY(const auto difference,
               compat::find_difference(to_text(speculative), to_text(baseline),
                                       {.prompt = prompt.tokens,
                                        .sampler = to_sampler_options(prompt.sampling),
                                        .vocabulary = vocabulary.size()},
                                       stop));
  comparison.equal = !difference;
  if (!difference) return comparison;
  comparison.first_difference = difference->index;
  comparison.top_two_margin = difference->top_two_margin;
  comparison.numeric_tie = difference->numeric_tie;
  return comparison;
}

}  // namespace paceline::bench
