// A Runtime over one llama_context.
#pragma once

#include <memory>

#include "core/result.hpp"
#include "runtime/runtime.hpp"

struct llama_model;

namespace paceline::runtime {

/// `owner` keeps `model` alive for as long as the runtime lives. Errors: invalid_argument,
/// unsupported (trees on recurrent models, models without a cache), out_of_memory.
Result<std::unique_ptr<Runtime>> create_llama_runtime(std::shared_ptr<const Model> owner,
                                                      llama_model* model,
                                                      const RuntimeLimits& limits);

}  // namespace paceline::runtime
