#include "workload/fixture.hpp"

#include <format>
#include <system_error>

#include "core/file.hpp"
#include "core/text.hpp"
#include "corpora.hpp"

namespace paceline::workload {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t k_limit_bytes = std::size_t{16} << 20;

const embedded::File* find_builtin(std::string_view id) {
  for (const embedded::File& file : embedded::corpora()) {
    if (fs::path(file.name).stem() == id) return &file;
  }
  return nullptr;
}

std::string known_names() { return join(builtin_ids(), ", "); }

}  // namespace

std::string_view to_string(ContentClass content_class) {
  switch (content_class) {
    case ContentClass::code:
      return "code";
    case ContentClass::edit:
      return "edit";
    case ContentClass::chat:
      return "chat";
    case ContentClass::reasoning:
      return "reasoning";
    case ContentClass::extraction:
      return "extraction";
    case ContentClass::multilingual:
      return "multilingual";
    case ContentClass::custom:
      break;
  }
  return "custom";
}

Result<ContentClass> parse_class(std::string_view word) {
  std::vector<ContentClass> classes = all_classes();
  classes.push_back(ContentClass::custom);
  std::vector<std::string> words;
  for (const ContentClass content_class : classes) {
    if (to_string(content_class) == word) return content_class;
    words.emplace_back(to_string(content_class));
  }
  return fail(
      ErrorCode::invalid_argument,
      std::format("there is no content class \"{}\"; known: {}", escape(word), join(words, ", ")));
}

std::vector<ContentClass> all_classes() {
  using enum ContentClass;
  return {code, edit, chat, reasoning, extraction, multilingual};
}

std::vector<std::string> builtin_ids() {
  std::vector<std::string> ids;
  for (const embedded::File& file : embedded::corpora()) ids.push_back(fs::path(file.name).stem());
  return ids;
}

Result<Fixture> builtin_fixture(std::string_view id_or_class) {
  const embedded::File* const file = find_builtin(id_or_class);
  if (file == nullptr) {
    return fail(ErrorCode::not_found, std::format("there is no built-in fixture \"{}\"; known: {}",
                                                  escape(id_or_class), known_names()));
  }
  FileContext context{.kind = file_kind(file->name, file->contents),
                      .source = "built-in",
                      .id = std::string(id_or_class)};
  if (const auto content_class = parse_class(id_or_class)) context.content_class = *content_class;
  return parse_fixture(file->contents, context);
}

Result<Fixture> load_fixture(std::string_view name) {
  if (find_builtin(name) != nullptr) return builtin_fixture(name);
  if (name.empty() || name.contains('\0')) {
    return fail(ErrorCode::invalid_argument,
                std::format("a fixture is a file or one of: {}; found \"{}\"", known_names(),
                            escape(name)));
  }
  const fs::path path(name);
  std::error_code code;
  if (!name.contains('/') && !fs::exists(path, code)) {
    return fail(ErrorCode::not_found,
                std::format("the fixture \"{}\" is neither a file nor one of: {}", escape(name),
                            known_names()));
  }
  auto bytes = read_file(path, k_limit_bytes);
  if (!bytes) return bytes.error().in("fixture");
  return parse_fixture(*bytes, {.kind = file_kind(path, *bytes),
                                .source = std::string(name),
                                .id = escape(path.stem().string())});
}

}  // namespace paceline::workload
