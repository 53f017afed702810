// Fixtures: the prompts that are measured, with their request settings and their content class.
// Built-in ones are compiled in; users bring text, JSON and JSONL files.
#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.hpp"

namespace paceline::workload {

/// What a prompt makes the model write. Speed-ups differ between classes, so no number is reported
/// without one.
enum class ContentClass { code, edit, chat, reasoning, extraction, multilingual, custom };

/// The class's own word, as used in JSON and on the command line.
std::string_view to_string(ContentClass content_class);
/// Error: invalid_argument, with the known words.
Result<ContentClass> parse_class(std::string_view word);
/// The six classes that have a built-in corpus.
std::vector<ContentClass> all_classes();

struct Message {
  std::string role;  // system, user or assistant
  std::string content;
};

struct Prompt {
  std::string id;  // unique in its fixture
  std::vector<Message> messages;
  std::string raw_text;  // used instead of messages when not empty: as it is, no chat template
};

/// Prompts that share one class and one set of request settings.
struct Fixture {
  std::string id;
  ContentClass content_class = ContentClass::custom;
  std::string source;  // "built-in" or the file's path
  std::string sha256;  // of the file's bytes
  std::vector<Prompt> prompts;
  std::optional<std::string> target_model;  // as the fixture names them; may be any words
  std::optional<std::string> draft_model;
  bool stream = false;
  double temperature = 0;  // greedy where the file does not say
  double top_p = 1;
  std::optional<std::size_t> max_tokens;
  std::vector<std::string> stop;
};

/// Names that builtin_fixture knows: the classes, then single fixtures.
std::vector<std::string> builtin_ids();
/// For example "code" (eight prompts) or "spec028-code-iso8601-v1" (one). Error: not_found.
Result<Fixture> builtin_fixture(std::string_view id_or_class);

/// A class, a built-in id, or the path of a file; in this order, so "./code" is a file. Text is one
/// prompt, .json holds one request or an array, .jsonl one request a line. Files may have 16 MiB.
/// Errors name the file, the line, the member, the value seen and the value wanted. Codes:
/// not_found, io, bad_format, unsupported (members that would change the output and that fixtures
/// do not have), invalid_argument.
Result<Fixture> load_fixture(std::string_view name);

enum class FileKind { text, json, jsonl };

/// By extension; by content where the file has none.
FileKind file_kind(const std::filesystem::path& path, std::string_view bytes);

struct FileContext {
  FileKind kind = FileKind::text;
  std::string source;                                 // goes into messages and into the fixture
  std::string id;                                     // the fixture's, where the file has none
  ContentClass content_class = ContentClass::custom;  // where the file has none
};

/// The parser behind load_fixture: a pure function of the bytes, but for one warning in the log
/// that names the members which have no effect. Same errors.
Result<Fixture> parse_fixture(std::string_view bytes, const FileContext& context);

}  // namespace paceline::workload
