// A made-up but plausible record: SmolLM2 on a small server, prompt lookup against plain decoding.
// Deterministic: the same shape gives the same record.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "record/record.hpp"

namespace paceline::test {

/// A content class and how often a drafted token is right in it.
struct SampleClass {
  std::string name;
  double acceptance = 0.5;
};

struct SampleShape {
  std::vector<SampleClass> classes = {{"code", 0.62},      {"edit", 0.86},
                                      {"chat", 0.22},      {"reasoning", 0.35},
                                      {"extraction", 0.7}, {"multilingual", 0.18}};
  std::size_t prompts = 8;  // of each class
  std::vector<record::Arm> arms = {lookup_arm(3)};
  std::size_t tokens = 96;
  double noise = 0.03;  // relative, of every pass
  std::uint64_t seed = 1;

  static record::Arm lookup_arm(std::size_t depth);
  static record::Arm draft_arm(std::size_t depth);
};

/// Complete, with warm-up, a sustained window, one warning, host readings, one block that failed
/// and one pair that parted at a numeric tie.
record::Record sample_record(const SampleShape& shape = {});

/// Nothing was measured: no arm, no block, no host.
record::Record empty_record();

}  // namespace paceline::test
