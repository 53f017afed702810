// The JSON type's name for headers; core/json.hpp has the rest.
#pragma once

#include <nlohmann/json_fwd.hpp>

namespace paceline {
using Json = nlohmann::json;
}  // namespace paceline
