// Guard rails: they block a verdict only where they are clearly broken. Internal to gate.
#pragma once

#include <string>
#include <vector>

#include "gate/gate.hpp"
#include "gate/pairing_impl.hpp"
#include "record/record.hpp"

namespace paceline::gate {

using Scopes = std::vector<const Scope*>;

/// p95 of the time for equal tokens, speculative over plain.
Guard latency_guard(const Scopes& scopes, const Policy& policy);
/// Time to the first token id, speculative over plain.
Guard ttft_guard(const Estimate& ttft_ratio, const Policy& policy);
/// Speed in the last window of continuous generation, speculative over plain. Its limit is a floor.
Guard sustained_guard(const record::Record& record, const record::Arm& arm,
                      const std::string& baseline, const Policy& policy);

}  // namespace paceline::gate
