// The result of `paceline check` as text and as JSON.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "compat/check.hpp"
#include "core/json_fwd.hpp"

namespace paceline::compat {

/// Lines of at most `width` columns where words allow it, ending in a newline.
std::string to_text(const PairCheck& check, std::size_t width);
std::string to_text(const FolderCheck& check, std::size_t width);

Json to_json(const PairCheck& check);
Json to_json(const FolderCheck& check);

/// The JSON Schema (draft-07) of both documents.
std::string_view check_schema();

}  // namespace paceline::compat
