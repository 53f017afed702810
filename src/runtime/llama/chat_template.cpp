#include "runtime/llama/chat_template.hpp"

#include <ctime>
#include <exception>
#include <format>
#include <iomanip>
#include <memory>
#include <minja/minja.hpp>
#include <nlohmann/json.hpp>
#include <sstream>
#include <utility>

namespace paceline::runtime {

namespace {

// Today in UTC, for templates that write the date.
minja::Value format_now(const std::shared_ptr<minja::Context>& /*context*/,
                        minja::ArgumentsValue& arguments) {
  arguments.expectArgs("strftime_now", {1, 1}, {0, 0});
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&now, &parts);
  std::ostringstream text;
  text << std::put_time(&parts, arguments.args[0].get<std::string>().c_str());
  return {text.str()};
}

}  // namespace

// minja's own chat_template class is not used: it tries every template with tool calls first and
// prints on stderr what it thinks of the outcome.
Result<std::string> render_with_minja(const std::string& source, const std::string& begin_of_text,
                                      const std::string& end_of_text,
                                      const std::vector<ChatMessage>& messages) {
  try {
    const auto parsed = minja::Parser::parse(
        source, {.trim_blocks = true, .lstrip_blocks = true, .keep_trailing_newline = false});
    nlohmann::ordered_json list = nlohmann::ordered_json::array();
    for (const ChatMessage& message : messages) {
      list.push_back({{"role", message.role}, {"content", message.content}});
    }
    const auto context = minja::Context::make(nlohmann::ordered_json{
        {"messages", std::move(list)},
        {"add_generation_prompt", true},
        {"bos_token", begin_of_text},
        {"eos_token", end_of_text},
    });
    context->set("strftime_now", minja::Value::callable(format_now));
    return parsed->render(context);
  } catch (const std::exception& error) {
    return fail(ErrorCode::bad_format,
                std::format("the model's chat template failed: {}", error.what()));
  }
}

}  // namespace paceline::runtime
