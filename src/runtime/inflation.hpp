// What an inflated model says about itself: a small model's weights inside a large shape.
#pragma once

#include <cstdint>
#include <string>

namespace paceline::runtime {

/// Read from the file's keys paceline.inflated.*, which `inflate_model` writes.
struct Inflation {
  std::string source = {};         // the source's own name
  std::string source_sha256 = {};  // of its file
  std::string shape = {};          // "7b"
  double noise = 0;                // relative, on the weights of the layers
  bool random = false;             // nothing of the source but its vocabulary
  std::uint64_t seed = 0;          // of noise or random weights

  bool operator==(const Inflation&) const = default;
};

}  // namespace paceline::runtime
