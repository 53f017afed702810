// One run of one prompt in one arm, and the comparison of two such runs.
#pragma once

#include <stop_token>
#include <vector>

#include "bench/bench.hpp"

namespace paceline::bench {

/// Runs the prompt from cold state: a new sequence, a new drafter slot, nothing kept afterwards.
Result<record::Sample> run_sample(const Contender& contender, const PreparedPrompt& prompt,
                                  std::size_t max_tokens, const runtime::Vocabulary& vocabulary,
                                  Clock& clock, std::stop_token stop, const SampleFacts& facts);

struct SampleOf {
  const Contender& contender;
  const record::Sample& sample;
};

/// Compares the tokens. Where they part, compat/replay.hpp tells whether the arithmetic of wider
/// passes explains it: a numeric tie. If not, it is an error of the decoder or the back end.
/// Errors: cancelled, runtime_failed.
Result<record::Comparison> compare(const SampleOf& speculative, const SampleOf& baseline,
                                   const PreparedPrompt& prompt,
                                   const runtime::Vocabulary& vocabulary, std::stop_token stop);

}  // namespace paceline::bench
