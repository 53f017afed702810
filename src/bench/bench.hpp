// The benchmark itself: arms times prompts in interleaved blocks, warmed up, limited in time,
// saved after every block. It fills a record and judges nothing.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "core/clock.hpp"
#include "core/result.hpp"
#include "draft/drafter.hpp"
#include "record/record.hpp"
#include "runtime/runtime.hpp"
#include "workload/fixture.hpp"

namespace paceline::bench {

/// What a drafter may be told before a sample. Only scripted ones look at it.
struct SampleFacts {
  std::size_t prompt_tokens = 0;
  std::vector<Token> plain_tokens;  // what the target says to this prompt, for scripted arms
};

/// An arm that is ready to run.
struct Contender {
  record::Arm arm;
  runtime::Runtime* target = nullptr;
  /// Null for plain arms. The pointer stays valid until the next call.
  std::function<Result<draft::Drafter*>(const SampleFacts&)> drafter;
};

/// A prompt as tokens.
struct PreparedPrompt {
  std::string fixture;
  std::string content_class;
  std::string id;
  std::vector<Token> tokens;
  std::size_t max_tokens = 0;
  std::size_t repetitions = 1;
  std::vector<std::string> stop;
  record::Sampling sampling;
  std::string unusable;  // why it cannot be run, empty: it can
};

struct PrepareLimits {
  std::size_t context = 0;  // tokens
  std::size_t default_max_tokens = 96;
  std::size_t max_prompts = 0;  // of each fixture; 0: all
  std::size_t repetitions = 1;
  record::Sampling sampling;  // temperature and top_p come from the fixture
};

/// Renders and tokenises the prompts of a fixture. Those that leave no room for an answer are
/// marked as unusable. Errors: bad_format where the template fails.
Result<std::vector<PreparedPrompt>> prepare(const workload::Fixture& fixture,
                                            const runtime::Vocabulary& vocabulary,
                                            const PrepareLimits& limits);

struct Progress {
  std::string stage;  // warm-up, measuring, sustained
  std::size_t done = 0;
  std::size_t total = 0;
  double elapsed_seconds = 0;
  std::optional<double> seconds_left;
};

struct Setup {
  /// The arms of record.plan.arms that have no obstacle, in their order; the first is plain. With
  /// none there is nothing to measure.
  std::vector<Contender> contenders;
  std::vector<PreparedPrompt> prompts;
  const runtime::Vocabulary* vocabulary = nullptr;
  double sustained_seconds = 0;
  double last_window_seconds = 30;
  std::function<void(const Progress&)> progress;
  /// Called before the first block, after every block and at the end. Its error ends the run.
  std::function<Result<void>(const record::Record&)> save;
};

/// Runs what `record` still lacks (blocks that are there already are kept) and completes it.
/// Failed and timed-out blocks are recorded and the run goes on.
/// Errors: cancelled by `stop` (the record holds the finished blocks), or what `save` said.
Result<void> run(const Setup& setup, record::Record& record, Clock& clock, std::stop_token stop);

}  // namespace paceline::bench
