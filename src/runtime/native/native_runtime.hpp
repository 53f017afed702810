// A Runtime over a packed network.
#pragma once

#include <memory>

#include "core/result.hpp"
#include "runtime/native/kernels/kernels.hpp"
#include "runtime/native/network.hpp"
#include "runtime/runtime.hpp"

namespace paceline::runtime::native {

/// `owner` keeps `network` alive for as long as the runtime lives.
/// Errors: invalid_argument, out_of_memory.
Result<std::unique_ptr<Runtime>> create_native_runtime(std::shared_ptr<const Model> owner,
                                                       const Network& network,
                                                       const Kernels& kernels,
                                                       const RuntimeLimits& limits);

/// What a runtime of these limits holds beside the weights. Errors: those of create_native_runtime.
Result<MemoryNeed> memory_need(const Network& network, const RuntimeLimits& limits);

}  // namespace paceline::runtime::native
