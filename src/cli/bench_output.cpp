#include "cli/bench_output.hpp"

#include <algorithm>
#include <cstdio>
#include <format>
#include <system_error>
#include <vector>

#include "cli/terminal.hpp"
#include "core/clock.hpp"
#include "core/file.hpp"
#include "core/json.hpp"
#include "core/log.hpp"
#include "core/text.hpp"

namespace paceline::cli {

namespace fs = std::filesystem;

namespace {

constexpr const char* k_default_record = "paceline-bench.json";

enum class Occupant { nothing, finished, unfinished, foreign };

/// What stands where a result is to go.
struct Found {
  Occupant occupant = Occupant::nothing;
  std::string contents;
  std::size_t blocks = 0;  // measured, of an unfinished record
};

/// A record that was not finished is worth keeping where it has a block that went well. Read
/// loosely: it may be of another version.
void look_at_record(Found& found) {
  const auto json = parse_json(found.contents, "record");
  const Json& record = json->at("paceline").at("record");
  found.occupant = Occupant::finished;
  if (!record.is_object() || record.value("complete", Json()) == true) return;
  const Json blocks = record.value("blocks", Json());
  if (!blocks.is_array()) return;
  found.blocks = static_cast<std::size_t>(std::ranges::count_if(blocks, [](const Json& block) {
    return block.is_object() && block.value("status", Json()) == "ok";
  }));
  if (found.blocks > 0) found.occupant = Occupant::unfinished;
}

Result<Found> look_at(const fs::path& path, report::Format format) {
  Found found;
  std::error_code code;
  if (is_character_device(path) || !fs::exists(path, code) || fs::file_size(path, code) == 0) {
    return found;
  }
  PACELINE_TRY(found.contents, read_file(path));
  found.occupant = Occupant::foreign;
  if (!report::is_result(found.contents, format)) return found;
  found.occupant = Occupant::finished;
  if (format == report::Format::json) look_at_record(found);
  return found;
}

/// Takes what nobody asked to lose out of the way: a copy under the first free name. A copy, so
/// that the file itself is there until it is replaced.
Result<void> copy_aside(const fs::path& path, const Found& found) {
  PACELINE_TRY(const fs::path target, follow_links(path));
  for (std::size_t number = 1;; ++number) {
    const fs::path name = std::format("{}.earlier-{}", target.string(), number);
    auto made = create_file(name, found.contents);
    if (!made) return made.error().in("keeping what an earlier run has written");
    if (!*made) continue;
    std::fprintf(stderr, "paceline: what %s held is now in %s%s\n", path.c_str(), name.c_str(),
                 found.occupant == Occupant::unfinished ? "; --resume continues it" : "");
    return {};
  }
}

/// Before the first write: nothing that is neither finished nor replaced by a measurement is lost.
Result<void> make_way(const fs::path& path, report::Format format, std::size_t finished_blocks) {
  PACELINE_TRY(const Found found, look_at(path, format));
  if (found.occupant == Occupant::nothing) return {};
  if (found.occupant == Occupant::finished && finished_blocks > 0) return {};
  return copy_aside(path, found);
}

/// Whether two names lead to one file that is there.
bool is_same_file(const fs::path& a, const fs::path& b) {
  std::error_code code;
  return fs::equivalent(a, b, code) && !code;
}

/// The result must not replace what it is made from. Names that are no files do not match.
Result<void> check_not_an_input(const fs::path& output, const BenchOptions& options) {
  std::vector<std::string> inputs{options.target, options.policy_file};
  inputs.insert(inputs.end(), options.drafts.begin(), options.drafts.end());
  inputs.insert(inputs.end(), options.fixtures.begin(), options.fixtures.end());
  for (const std::string& input : inputs) {
    if (input.empty() || !is_same_file(output, input)) continue;
    return fail(ErrorCode::invalid_argument,
                std::format("the result would replace \"{}\", which is an input of this run; name "
                            "another file with -o",
                            input));
  }
  return {};
}

/// A file of another kind is refused, before anything is loaded.
Result<void> check_not_foreign(const fs::path& path, report::Format format) {
  constexpr std::size_t k_shown_bytes = 40;
  PACELINE_TRY(const Found found, look_at(path, format));
  if (found.occupant != Occupant::foreign) return {};
  return fail(ErrorCode::invalid_argument,
              std::format("\"{}\" is there and is no {} result of paceline bench (it begins with "
                          "\"{}\"); remove it, or name another file with -o",
                          path.string(), report::to_string(format),
                          escape(found.contents.substr(0, k_shown_bytes), k_shown_bytes)));
}

/// Everything that a file must pass before the run. Gives its lock.
Result<FileLock> claim(const fs::path& path, report::Format format, const BenchOptions& options) {
  PACELINE_TRY_VOID(check_not_an_input(path, options));
  PACELINE_TRY_VOID(check_writable(path));
  FileLock lock;
  if (!is_character_device(path)) {
    PACELINE_TRY(const fs::path target, follow_links(path));
    PACELINE_TRY(lock, FileLock::take(target));
  }
  PACELINE_TRY_VOID(check_not_foreign(path, format));
  return lock;
}

/// A name in the state folder that no other run has; process numbers repeat in containers.
Result<fs::path> choose_own_record() {
  PACELINE_TRY(const fs::path state, state_directory());
  std::error_code code;
  fs::create_directories(state, code);  // check_writable says what is wrong
  const auto seconds = static_cast<std::int64_t>(SystemClock().unix_seconds());
  fs::path name = state / std::format("bench-{}-{}.json", seconds, random_name_part());
  PACELINE_TRY_VOID(check_writable(name));
  return name;
}

Result<report::Format> choose_format(const BenchOptions& options) {
  std::string word = options.format;
  if (options.jsonl) {
    if (!word.empty() && word != "jsonl") {
      return fail(ErrorCode::invalid_argument,
                  std::format("--jsonl and --format {} contradict each other", word));
    }
    word = "jsonl";
  }
  if (word.empty()) word = options.output.empty() ? "table" : "json";
  return report::parse_format(word);
}

}  // namespace

Result<BenchOutput> BenchOutput::open(const BenchOptions& options) {
  BenchOutput output;
  PACELINE_TRY(output.format_, choose_format(options));
  // As a name it may lead to a pipe or to a file, which are written, not replaced.
  const bool to_stdout = options.output.empty() || options.output == "-" ||
                         options.output == "/dev/stdout" || options.output == "/dev/fd/1";
  if (!to_stdout) output.file_ = options.output;
  PACELINE_TRY_VOID(output.choose_record(options));
  if (!output.own_record_) {
    PACELINE_TRY(output.record_lock_, claim(output.record_file_, report::Format::json, options));
  }
  if (!to_stdout && !output.record_is_result_) {
    PACELINE_TRY(output.file_lock_, claim(output.file_, output.format_, options));
  }
  if (output.own_record_) {
    PACELINE_TRY(output.record_file_, choose_own_record());
    return output;
  }
  output.continues_ = !options.resume.empty() && is_same_file(output.record_file_, options.resume);
  PACELINE_TRY(const Found found, look_at(output.record_file_, report::Format::json));
  if (found.occupant == Occupant::unfinished && !output.continues_) {
    log_warning(
        "\"{0}\" holds {1} finished blocks of a run that was broken off; --resume {0} would "
        "continue it. It is moved aside once this run has a block",
        output.record_file_.string(), found.blocks);
  }
  return output;
}

Result<void> BenchOutput::choose_record(const BenchOptions& options) {
  const bool to_file = !file_.empty() && !is_character_device(file_);
  if (to_file && format_ == report::Format::json) {
    record_file_ = file_;
    record_is_result_ = true;
  } else if (options.output.empty()) {
    record_file_ = k_default_record;
  } else if (options.resume.empty()) {
    own_record_ = true;
  } else {
    record_file_ = options.resume;
    if (to_file && is_same_file(file_, options.resume)) {
      return fail(ErrorCode::invalid_argument,
                  std::format("-o \"{}\" in the format {} would replace the record that --resume "
                              "\"{}\" continues; name another file with -o",
                              file_, report::to_string(format_), options.resume));
    }
  }
  return {};
}

Result<void> BenchOutput::keep(std::string_view document, std::size_t finished_blocks) {
  if (!kept_ && !own_record_ && !continues_) {
    PACELINE_TRY_VOID(make_way(record_file_, report::Format::json, finished_blocks));
  }
  if (own_record_ && !kept_) {
    PACELINE_TRY(const bool made, create_file(record_file_, document));
    if (!made) {
      return fail(ErrorCode::io, std::format("\"{}\" is there already, made by another process",
                                             record_file_.string()));
    }
  } else {
    PACELINE_TRY_VOID(replace_file(record_file_, document));
  }
  kept_ = true;
  kept_blocks_ = finished_blocks;
  return {};
}

Result<void> BenchOutput::publish(std::string_view text, std::size_t finished_blocks) {
  if (record_is_result_) return {};
  if (file_.empty()) return print_result(text);
  PACELINE_TRY_VOID(make_way(file_, format_, finished_blocks));
  return replace_file(file_, text);
}

void BenchOutput::finish() {
  std::error_code code;
  if (own_record_) fs::remove(record_file_, code);
}

std::string BenchOutput::kept_sentence() const {
  if (kept_) {
    return std::format("{} finished {} kept in {}; continue with --resume {}", kept_blocks_,
                       kept_blocks_ == 1 ? "block is" : "blocks are", record_file_.string(),
                       record_file_.string());
  }
  std::error_code code;
  const bool untouched = !own_record_ && fs::exists(record_file_, code);
  return "no finished block is kept" +
         (untouched ? std::format("; {} is as it was", record_file_.string()) : "");
}

}  // namespace paceline::cli
