// Making a llama_context: limits, attention, layout of the cache. Inside this room.
#pragma once

#include <cstddef>

#include "core/result.hpp"
#include "runtime/llama/llama_version.hpp"
#include "runtime/runtime.hpp"

namespace paceline::runtime {

// How attention is computed. On the CPU the choice is made so that a row has the same bits at every
// width, in every tree and beside every other row, which ggml 0.27's other ways do not give:
// - without flash attention the sum over the values depends on which cells lie between a row's own,
//   so rows of a tree differ from the chain of their path;
// - with it, and one type for keys and values, a single row over 512 cells or more and 64 or more
//   rows at once take code of their own, which adds up in another order.
// Two types keep every row on one path, which walks the cells in order and skips those of others.
// bf16 values also make it add up in 32 bits instead of 16.
struct Attention {
  llama_flash_attn_type flash;
  ggml_type key_type;
  ggml_type value_type;
};

struct OpenContext {
  llama_context_ptr context;
  RuntimeLimits limits;  // in effect
  Attention attention{};
  std::size_t batch_capacity =
      0;  // rows of one llama_decode, with those that are put through again
};

/// Errors: invalid_argument, unsupported (trees on recurrent models, models without a cache),
/// out_of_memory, runtime_failed.
Result<OpenContext> open_context(llama_model* model, const ModelInfo& info,
                                 const RuntimeLimits& asked);

}  // namespace paceline::runtime
