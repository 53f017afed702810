// How many threads a runtime takes that was not told.
#pragma once

#include <cstddef>

namespace paceline::runtime {

/// Cores of the affinity mask, at least 1.
std::size_t available_cores();

}  // namespace paceline::runtime
