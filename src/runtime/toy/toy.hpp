// The toy model: deterministic logits from a seed and the context, no weights. Everything above
// the runtime seam can be tested on it, to the last token, in microseconds a pass.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

#include "core/result.hpp"
#include "runtime/runtime.hpp"

namespace paceline::runtime {

struct ToyOptions {
  std::uint64_t seed = 0;
  std::size_t vocabulary = 512;  // at least 4; token 0 ends the text
  double spike = 4;              // logit of the preferred token above the others' noise in [0, 1)
  /// Where set: a draft that prefers the token of `toy:SEED` with this probability, else another.
  std::optional<double> agree = {};
  std::size_t context = 8192;
};

/// Parses "toy:7", "toy:7,vocab=64,spike=8", "toy:7,agree=0.8,context=128".
/// Errors (invalid_argument) name the part, the value seen and the value wanted.
Result<ToyOptions> parse_toy_name(std::string_view name);
bool is_toy_name(std::string_view name);

std::shared_ptr<const Model> make_toy_model(const ToyOptions& options);
/// Toys have no weights and no cache worth counting: only their logits need memory.
std::unique_ptr<MemoryEstimator> make_toy_memory_estimator(const ToyOptions& options);

}  // namespace paceline::runtime
