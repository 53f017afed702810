// Chat templates that libllama does not know, rendered by minja. The one place where minja's
// exceptions are caught.
#pragma once

#include <string>
#include <vector>

#include "core/result.hpp"
#include "runtime/vocabulary.hpp"

namespace paceline::runtime {

/// The conversation through the Jinja template `source`, ending where the assistant's answer
/// begins. Error: bad_format where the template cannot be parsed or refuses the messages.
Result<std::string> render_with_minja(const std::string& source, const std::string& begin_of_text,
                                      const std::string& end_of_text,
                                      const std::vector<ChatMessage>& messages);

}  // namespace paceline::runtime
