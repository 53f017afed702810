// Records as a benchmark would write them, on a scripted clock: the true speed-up is known.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/random.hpp"
#include "record/record.hpp"

namespace paceline::test {

/// Standard normal.
double gauss(Random& random);

/// What one round does and how long its parts take.
struct RoundScript {
  std::uint32_t drafted = 0;
  std::uint32_t accepted = 0;
  double draft_ms = 0;
  double verify_ms = 10;
  double accept_ms = 0;
};

struct SampleScript {
  std::string arm = "plain";
  std::vector<std::int32_t> tokens = {};
  double prefill_ms = 20;
  double other_ms = 0;  // outside prefill and rounds
  /// The last round is cut to the tokens that are left.
  std::vector<RoundScript> rounds = {};
  double slower = 1;  // every time is multiplied by it
};

/// A sample whose counters and times all agree.
record::Sample make_sample(const SampleScript& script);

/// `count` different tokens that never loop; texts of different `salt` part at the first token.
std::vector<std::int32_t> distinct_tokens(std::size_t count, std::int32_t salt = 0);

struct ClassScript {
  std::string name = "code";
  std::size_t prompts = 8;
  double speedup = 1.3;  // the truth: plain over speculative
};

/// How durations come out: log-normal noise on every sample, drift over the run, rare outliers.
struct NoiseScript {
  double sigma = 0;
  double drift = 0;  // the last sample takes this much longer than the first, as a share
  double outlier_share = 0;
  double outlier_factor = 1.5;
};

struct RunScript {
  std::vector<ClassScript> classes = {ClassScript{}};
  NoiseScript noise = {};
  std::uint64_t seed = 1;
  std::size_t repetitions = 1;
  std::size_t tokens = 33;
  std::size_t depth = 3;
  bool drafts = true;
  bool control = false;
};

/// One speculative arm, "lookup-3", against "plain". Its rounds draft three and accept one token
/// each; the time of a round follows from the class's speed-up. In a control run the second arm is
/// "plain-2".
record::Record make_run(const RunScript& script);

/// The block's sample of that arm, which must be there.
record::Sample& sample_of(record::Block& block, const std::string& arm);

/// Multiplies every time of a sample.
void scale_times(record::Sample& sample, double factor);

}  // namespace paceline::test
