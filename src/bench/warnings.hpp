// What a reader of the numbers should know: from a record to named warnings. Pure.
#pragma once

#include <vector>

#include "record/record.hpp"

namespace paceline::bench {

/// Each warning once, in a fixed order.
std::vector<record::Warning> find_warnings(const record::Record& record);

}  // namespace paceline::bench
