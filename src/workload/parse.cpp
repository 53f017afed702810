// Fixture files: bytes to prompts and settings. Strict about what would change the output, lenient
// about what does not: such members are named once in the log.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <format>
#include <map>
#include <set>
#include <utility>

#include "core/hash.hpp"
#include "core/json.hpp"
#include "core/log.hpp"
#include "core/text.hpp"
#include "workload/fixture.hpp"

namespace paceline::workload {

namespace {

constexpr std::size_t k_max_id_bytes = 200;
constexpr std::size_t k_max_stop_strings = 16;
constexpr std::int64_t k_max_tokens_limit = 1 << 30;

/// What holds for a whole fixture, so it has to be the same in each of its requests.
struct Settings {
  ContentClass content_class = ContentClass::custom;
  std::optional<std::string> target_model;
  std::optional<std::string> draft_model;
  bool stream = false;
  double temperature = 0;
  double top_p = 1;
  std::optional<std::size_t> max_tokens;
  std::vector<std::string> stop;
};

/// One request of a file.
struct Request {
  std::string fixture_id;  // empty where the file has none
  Prompt prompt;
  Settings settings;
};

/// A place in a file: "x.jsonl" line 3: request.messages[1]
struct Place {
  std::string source;
  std::string path;

  Place at(std::string_view member) const {
    return {source, path.empty() ? std::string(member) : std::format("{}.{}", path, member)};
  }
  Place at(std::size_t index) const { return {source, std::format("{}[{}]", path, index)}; }
  Error error(std::string_view what, ErrorCode code = ErrorCode::bad_format) const {
    return fail(code, path.empty() ? std::format("{}: {}", source, what)
                                   : std::format("{}: {}: {}", source, path, what));
  }
};

/// A value for a message. Nested values are not shown: they may be huge.
std::string shown(const Json& value) {
  if (value.is_string()) {
    return std::format("\"{}\"", escape(value.get_ref<const std::string&>(), 60));
  }
  return value.is_structured() ? value.type_name() : dump_json(value);
}

Error wanted(const Place& place, std::string_view what, const Json& value) {
  return place.error(std::format("{} is wanted, found {}", what, shown(value)));
}

/// The member, null where it is absent or null.
const Json* member(const Json& object, const char* key) {
  const auto found = object.find(key);
  return found == object.end() || found->is_null() ? nullptr : &*found;
}

Result<std::string> read_text(const Json& value, const Place& place) {
  if (!value.is_string()) return wanted(place, "a string", value);
  const auto& text = value.get_ref<const std::string&>();
  if (text.contains('\0')) return place.error("the text has a NUL character, which prompts cannot");
  if (trim(text).empty()) return place.error("the text is empty");
  return text;
}

/// A short name: an id or a model.
Result<std::string> read_name(const Json& value, const Place& place) {
  PACELINE_TRY(std::string name, read_text(value, place));
  if (name.size() > k_max_id_bytes) {
    return place.error(
        std::format("at most {} bytes are wanted, found {}", k_max_id_bytes, name.size()));
  }
  const auto is_control = [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; };
  if (std::ranges::any_of(name, is_control)) return wanted(place, "a name in one line", value);
  return name;
}

Result<double> read_number(const Json& value, const Place& place, double low, double high) {
  const auto what = std::format("a number from {} to {}", low, high);
  if (!value.is_number()) return wanted(place, what, value);
  const double number = value.get<double>();
  if (!std::isfinite(number) || number < low || number > high) return wanted(place, what, value);
  return number;
}

Result<std::size_t> read_max_tokens(const Json& value, const Place& place) {
  const auto what = std::format("an integer from 1 to {}", k_max_tokens_limit);
  if (!value.is_number_integer()) return wanted(place, what, value);
  // Unsigned values beyond int64 would wrap.
  if (value.is_number_unsigned() && value.get<std::uint64_t>() > k_max_tokens_limit) {
    return wanted(place, what, value);
  }
  const auto number = value.get<std::int64_t>();
  if (number < 1 || number > k_max_tokens_limit) return wanted(place, what, value);
  return static_cast<std::size_t>(number);
}

Result<std::vector<std::string>> read_stop(const Json& value, const Place& place) {
  std::vector<std::string> stop;
  const auto add = [&](const Json& text, const Place& at) -> Result<void> {
    if (!text.is_string() || text.get_ref<const std::string&>().empty()) {
      return wanted(at, "a string with at least one character", text);
    }
    stop.push_back(text.get<std::string>());
    return {};
  };
  if (!value.is_array()) {
    PACELINE_TRY_VOID(add(value, place));
    return stop;
  }
  if (value.size() > k_max_stop_strings) {
    return place.error(std::format("at most {} stop strings are wanted, found {}",
                                   k_max_stop_strings, value.size()));
  }
  for (std::size_t i = 0; i < value.size(); ++i) PACELINE_TRY_VOID(add(value[i], place.at(i)));
  return stop;
}

/// Members of a request that would change the output, with the values that do not.
const std::map<std::string, std::vector<Json>, std::less<>>& neutral_values() {
  static const std::map<std::string, std::vector<Json>, std::less<>> values = {
      {"audio", {}},
      {"best_of", {1}},
      {"echo", {false}},
      {"frequency_penalty", {0}},
      {"functions", {Json::array()}},
      {"function_call", {"none"}},
      {"grammar", {""}},
      {"json_schema", {Json::object()}},
      {"logit_bias", {Json::object(), Json::array()}},
      {"logprobs", {false}},
      {"min_p", {0}},
      {"modalities", {Json::array({"text"})}},
      {"n", {1}},
      {"presence_penalty", {0}},
      {"repeat_penalty", {1}},
      {"repetition_penalty", {1}},
      {"response_format", {Json{{"type", "text"}}}},
      {"suffix", {""}},
      {"tool_calls", {Json::array()}},
      {"tool_choice", {"none", "auto"}},
      {"tools", {Json::array()}},
      {"top_k", {0, -1}},
      {"top_logprobs", {0}},
  };
  return values;
}

/// True for the neutral value; null is neutral too. Nested values are compared only where both are
/// as small as ours, because comparing is recursive.
bool is_neutral(const Json& value, const std::vector<Json>& neutral) {
  if (value.is_null()) return true;
  return std::ranges::any_of(neutral, [&](const Json& candidate) {
    if (value.is_structured()) {
      if (value.type() != candidate.type() || value.size() != candidate.size()) return false;
      const auto is_flat = [](const Json& part) { return !part.is_structured(); };
      if (!std::ranges::all_of(value, is_flat)) return false;
    }
    return value == candidate;
  });
}

/// Reads the requests of one file and collects the members that have no effect.
class Reader {
 public:
  explicit Reader(const FileContext& context) : context_(context) {}

  Result<Request> request(const Json& value, const Place& place) {
    if (!value.is_object()) return wanted(place, "an object with messages or a prompt", value);
    Request request;
    request.settings.content_class = context_.content_class;
    PACELINE_TRY_VOID(read_identity(value, place, request));
    const bool is_wrapper = value.contains("request") || value.contains("fixture_id");
    const Json* body = &value;
    Place body_place = place;
    if (is_wrapper) {
      body = member(value, "request");
      body_place = place.at("request");
      if (body == nullptr) return place.error("the member \"request\" is missing");
      if (!body->is_object()) return wanted(body_place, "an object with messages", *body);
      note_ignored(value, {"fixture_id", "id", "class", "target_model", "draft_model", "request",
                           "canary", "description"});
    }
    PACELINE_TRY_VOID(check_members(*body, body_place));
    PACELINE_TRY_VOID(read_settings(*body, body_place, request.settings));
    PACELINE_TRY_VOID(read_prompt(*body, body_place, request.prompt));
    return request;
  }

  const std::set<std::string>& ignored() const { return ignored_; }

 private:
  Result<void> read_identity(const Json& value, const Place& place, Request& request) {
    if (const Json* const id = member(value, "fixture_id")) {
      PACELINE_TRY(request.fixture_id, read_name(*id, place.at("fixture_id")));
      request.prompt.id = request.fixture_id;
    }
    if (const Json* const id = member(value, "id")) {
      PACELINE_TRY(request.prompt.id, read_name(*id, place.at("id")));
    }
    if (const Json* const word = member(value, "class")) {
      PACELINE_TRY(const std::string text, read_name(*word, place.at("class")));
      const auto content_class = parse_class(text);
      if (!content_class) return place.at("class").error(content_class.error().message);
      request.settings.content_class = *content_class;
    }
    if (const Json* const model = member(value, "target_model")) {
      PACELINE_TRY(request.settings.target_model, read_name(*model, place.at("target_model")));
    }
    if (const Json* const model = member(value, "draft_model")) {
      PACELINE_TRY(request.settings.draft_model, read_name(*model, place.at("draft_model")));
    }
    return {};
  }

  Result<void> check_members(const Json& body, const Place& place) {
    for (const auto& [key, neutral] : neutral_values()) {
      const auto found = body.find(key);
      if (found == body.end() || is_neutral(*found, neutral)) continue;
      return place.at(key).error(
          std::format("fixtures do not have this, found {}; remove the member{}", shown(*found),
                      neutral.empty() ? "" : std::format(" or set {}", dump_json(neutral.front()))),
          ErrorCode::unsupported);
    }
    note_ignored(body, {"id", "class", "target_model", "draft_model", "messages", "prompt",
                        "temperature", "top_p", "max_tokens", "max_completion_tokens", "stream",
                        "stop", "model", "description"});
    return {};
  }

  Result<void> read_settings(const Json& body, const Place& place, Settings& settings) {
    if (const Json* const value = member(body, "temperature")) {
      PACELINE_TRY(settings.temperature, read_number(*value, place.at("temperature"), 0, 2));
    }
    if (const Json* const value = member(body, "top_p")) {
      PACELINE_TRY(settings.top_p, read_number(*value, place.at("top_p"), 0, 1));
      if (settings.top_p <= 0) return wanted(place.at("top_p"), "a number above 0", *value);
    }
    if (const Json* const value = member(body, "stream")) {
      if (!value->is_boolean()) return wanted(place.at("stream"), "true or false", *value);
      settings.stream = value->get<bool>();
    }
    if (const Json* const value = member(body, "stop")) {
      PACELINE_TRY(settings.stop, read_stop(*value, place.at("stop")));
    }
    for (const char* const key : {"max_tokens", "max_completion_tokens"}) {
      const Json* const value = member(body, key);
      if (value == nullptr) continue;
      if (settings.max_tokens) return place.at(key).error("max_tokens is given as well");
      PACELINE_TRY(settings.max_tokens, read_max_tokens(*value, place.at(key)));
    }
    return {};
  }

  Result<void> read_prompt(const Json& body, const Place& place, Prompt& prompt) {
    const Json* const messages = member(body, "messages");
    const Json* const raw = member(body, "prompt");
    if ((messages == nullptr) == (raw == nullptr)) {
      return place.error(messages == nullptr
                             ? "one of the members \"messages\" and \"prompt\" is wanted"
                             : "only one of the members \"messages\" and \"prompt\" is wanted");
    }
    if (raw != nullptr) {
      PACELINE_TRY(prompt.raw_text, read_text(*raw, place.at("prompt")));
      return {};
    }
    const Place list = place.at("messages");
    if (!messages->is_array()) return wanted(list, "an array of messages", *messages);
    if (messages->empty()) return list.error("the array is empty, at least one message is wanted");
    for (std::size_t i = 0; i < messages->size(); ++i) {
      PACELINE_TRY(Message message, read_message((*messages)[i], list.at(i)));
      prompt.messages.push_back(std::move(message));
    }
    if (prompt.messages.back().role != "user") {
      return list.error(std::format("the last message must be the user's, found the role \"{}\"",
                                    prompt.messages.back().role));
    }
    return {};
  }

  Result<Message> read_message(const Json& value, const Place& place) {
    constexpr std::array<std::string_view, 3> k_roles = {"system", "user", "assistant"};
    if (!value.is_object()) return wanted(place, "an object with role and content", value);
    const Json* const role = member(value, "role");
    if (role == nullptr) return place.error("the member \"role\" is missing");
    if (!role->is_string() ||
        std::ranges::find(k_roles, role->get_ref<const std::string&>()) == k_roles.end()) {
      return wanted(place.at("role"), "\"system\", \"user\" or \"assistant\"", *role);
    }
    const Json* const calls = member(value, "tool_calls");
    if (calls != nullptr && !is_neutral(*calls, {Json::array()})) {
      return place.at("tool_calls").error("fixtures do not have tools", ErrorCode::unsupported);
    }
    note_ignored(value, {"role", "content", "tool_calls"});
    const Json* const content = member(value, "content");
    if (content == nullptr) return place.error("the member \"content\" is missing");
    if (content->is_array()) {
      return place.at("content").error(
          "a string is wanted, found an array; parts such as images "
          "are not supported",
          ErrorCode::unsupported);
    }
    PACELINE_TRY(std::string text, read_text(*content, place.at("content")));
    return Message{role->get<std::string>(), std::move(text)};
  }

  void note_ignored(const Json& object, std::initializer_list<std::string_view> known) {
    for (const auto& [key, value] : object.items()) {
      if (std::ranges::find(known, key) != known.end() || neutral_values().contains(key)) continue;
      ignored_.insert(escape(key, 60));
    }
  }

  const FileContext& context_;
  std::set<std::string> ignored_;
};

/// The name of the first setting that differs, empty where all are the same.
std::string_view first_difference(const Settings& a, const Settings& b) {
  if (a.content_class != b.content_class) return "class";
  if (a.target_model != b.target_model) return "target_model";
  if (a.draft_model != b.draft_model) return "draft_model";
  if (a.stream != b.stream) return "stream";
  if (a.temperature != b.temperature) return "temperature";
  if (a.top_p != b.top_p) return "top_p";
  if (a.max_tokens != b.max_tokens) return "max_tokens";
  if (a.stop != b.stop) return "stop";
  return {};
}

/// Gathers a file's requests into its fixture.
class Builder {
 public:
  Builder(const FileContext& context, Fixture fixture)
      : context_(context), reader_(context), fixture_(std::move(fixture)) {}

  Result<void> add(const Json& value, const Place& place) {
    PACELINE_TRY(Request request, reader_.request(value, place));
    const bool is_first = fixture_.prompts.empty();
    if (is_first) {
      settings_ = request.settings;
      first_fixture_id_ = request.fixture_id;
      first_place_ = place;
    } else if (const auto name = first_difference(settings_, request.settings); !name.empty()) {
      return place.error(std::format(
          "\"{}\" is not the same as in the first request; a fixture has one set of settings, so "
          "put these requests into files of their own",
          name));
    }
    if (!request.prompt.id.empty()) {
      const auto [other, is_new] = ids_.emplace(request.prompt.id, fixture_.prompts.size());
      if (!is_new) {
        return place.error(std::format("the id \"{}\" is taken by request {} of the file",
                                       escape(request.prompt.id), other->second + 1));
      }
    }
    fixture_.prompts.push_back(std::move(request.prompt));
    return {};
  }

  Result<Fixture> finish() {
    if (fixture_.prompts.empty()) {
      return fail(ErrorCode::bad_format,
                  std::format("\"{}\" has no prompt, at least one is wanted", context_.source));
    }
    if (fixture_.prompts.size() == 1 && !first_fixture_id_.empty()) fixture_.id = first_fixture_id_;
    name_prompts();
    fixture_.content_class = settings_.content_class;
    fixture_.target_model = std::move(settings_.target_model);
    fixture_.draft_model = std::move(settings_.draft_model);
    fixture_.stream = settings_.stream;
    fixture_.temperature = settings_.temperature;
    fixture_.top_p = settings_.top_p;
    fixture_.max_tokens = settings_.max_tokens;
    fixture_.stop = std::move(settings_.stop);
    if (!reader_.ignored().empty()) {
      log_warning("\"{}\": members without effect: {}", context_.source, ignored_names());
    }
    return std::move(fixture_);
  }

 private:
  /// The first ten names, for a message.
  std::string ignored_names() const {
    constexpr std::size_t k_shown = 10;
    std::vector<std::string> names(reader_.ignored().begin(), reader_.ignored().end());
    const std::size_t count = names.size();
    names.resize(std::min(count, k_shown));
    return join(names, ", ") +
           (count > k_shown ? std::format(" and {} more", count - k_shown) : "");
  }

  /// Prompts without an id get the fixture's, with their number where there are several.
  void name_prompts() {
    for (std::size_t i = 0; i < fixture_.prompts.size(); ++i) {
      Prompt& prompt = fixture_.prompts[i];
      if (!prompt.id.empty()) continue;
      std::string id =
          fixture_.prompts.size() == 1 ? fixture_.id : std::format("{}-{:02}", fixture_.id, i + 1);
      while (!ids_.emplace(id, i).second) id += "-unnamed";
      prompt.id = std::move(id);
    }
  }

  const FileContext& context_;
  Reader reader_;
  Fixture fixture_;
  Settings settings_;
  std::string first_fixture_id_;
  Place first_place_;
  std::map<std::string, std::size_t, std::less<>> ids_;  // to the index of the prompt
};

std::size_t line_of(std::string_view bytes, std::size_t at) {
  return 1 + static_cast<std::size_t>(std::ranges::count(bytes.substr(0, at), '\n'));
}

/// Checks that the bytes are UTF-8 text without NUL; returns them without a byte order mark.
Result<std::string_view> check_text(std::string_view bytes, std::string_view source) {
  constexpr std::string_view k_mark = "\xef\xbb\xbf";
  if (bytes.starts_with("\xff\xfe") || bytes.starts_with("\xfe\xff")) {
    return fail(ErrorCode::bad_format,
                std::format("\"{}\" looks like UTF-16; save it as UTF-8", source));
  }
  if (bytes.starts_with(k_mark)) bytes.remove_prefix(k_mark.size());
  if (const auto at = bytes.find('\0'); at != std::string_view::npos) {
    return fail(ErrorCode::bad_format,
                std::format("\"{}\" line {}: a NUL byte; UTF-8 text is wanted", source,
                            line_of(bytes, at)));
  }
  const std::string valid = to_valid_utf8(bytes);
  if (valid != bytes) {
    const auto at =
        static_cast<std::size_t>(std::ranges::mismatch(bytes, valid).in1 - bytes.begin());
    return fail(ErrorCode::bad_format,
                std::format("\"{}\" line {}: not valid UTF-8, found the byte 0x{:02x}", source,
                            line_of(bytes, at), static_cast<unsigned char>(bytes[at])));
  }
  if (trim(bytes).empty()) {
    return fail(ErrorCode::bad_format,
                bytes.empty()
                    ? std::format("\"{}\" is empty, a prompt is wanted", source)
                    : std::format("\"{}\" holds only white space, a prompt is wanted", source));
  }
  return bytes;
}

/// One prompt from plain text: line ends become \n, those at the end go.
Prompt text_prompt(std::string_view text) {
  std::string content;
  for (const std::string_view line : split(text, '\n')) {
    content += line.ends_with('\r') ? line.substr(0, line.size() - 1) : line;
    content += '\n';
  }
  content.erase(content.find_last_not_of('\n') + 1);
  Prompt prompt;
  prompt.messages.push_back({"user", std::move(content)});
  return prompt;
}

Result<void> add_json(std::string_view text, const std::string& source, Builder& builder) {
  auto value = parse_json(text, source);
  if (!value) {
    const std::string_view rest = text.substr(std::min(text.find('\n'), text.size()));
    const std::string_view hint =
        trim(rest).starts_with('{') ? "; a file with one object a line is named .jsonl" : "";
    return fail(value.error().code, value.error().message + std::string(hint));
  }
  const Place place{source, ""};
  if (!value->is_array()) return builder.add(*value, place);
  if (value->empty()) return place.error("the array is empty, at least one request is wanted");
  if (value->front().is_object() && value->front().contains("role")) {
    return place.error(R"(this is a list of messages; wrap it: {"messages": [...]})");
  }
  for (std::size_t i = 0; i < value->size(); ++i) {
    PACELINE_TRY_VOID(builder.add((*value)[i], place.at(i)));
  }
  return {};
}

Result<void> add_json_lines(std::string_view text, const std::string& source, Builder& builder) {
  std::size_t number = 0;
  for (const std::string_view line : split(text, '\n')) {
    ++number;
    if (trim(line).empty()) continue;
    const Place place{std::format("{} line {}", source, number), ""};
    PACELINE_TRY(const Json value, parse_json(line, place.source));
    PACELINE_TRY_VOID(builder.add(value, place));
  }
  return {};
}

}  // namespace

FileKind file_kind(const std::filesystem::path& path, std::string_view bytes) {
  const std::string extension = path.extension().string();
  if (extension == ".json") return FileKind::json;
  if (extension == ".jsonl" || extension == ".ndjson") return FileKind::jsonl;
  if (!extension.empty()) return FileKind::text;
  const std::string_view text = trim(bytes);
  if (!text.starts_with('{') && !text.starts_with('[')) return FileKind::text;
  if (parse_json(text, "")) return FileKind::json;
  const auto first = parse_json(text.substr(0, text.find('\n')), "");
  return first && first->is_object() ? FileKind::jsonl : FileKind::text;
}

Result<Fixture> parse_fixture(std::string_view bytes, const FileContext& context) {
  PACELINE_TRY(const std::string_view text, check_text(bytes, context.source));
  Fixture fixture;
  fixture.id = context.id;
  fixture.source = context.source;
  fixture.sha256 = sha256_hex(bytes);
  fixture.content_class = context.content_class;
  if (context.kind == FileKind::text) {
    fixture.prompts.push_back(text_prompt(text));
    fixture.prompts.front().id = fixture.id;
    return fixture;
  }
  Builder builder(context, std::move(fixture));
  const std::string quoted = std::format("\"{}\"", escape(context.source));
  PACELINE_TRY_VOID(context.kind == FileKind::json ? add_json(text, quoted, builder)
                                                   : add_json_lines(text, quoted, builder));
  return builder.finish();
}

}  // namespace paceline::workload
