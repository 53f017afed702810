// Where the result of a benchmark goes and where its record is kept while it runs. Nothing that was
// measured before is lost unasked, and no file of another kind is replaced.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>

#include "cli/bench_options.hpp"
#include "core/file_lock.hpp"
#include "core/result.hpp"
#include "report/report.hpp"

namespace paceline::cli {

/// Locks its files until it is destroyed. One thread.
class BenchOutput {
 public:
  BenchOutput() = default;

  /// Chooses the files, takes their locks and looks at what they hold. Nothing but the locks is
  /// written.
  /// Errors: invalid_argument (options that contradict each other, an input of this run, a file
  /// that is no result in this format), busy (another run writes it), not_found, io.
  static Result<BenchOutput> open(const BenchOptions& options);

  report::Format format() const { return format_; }
  bool is_stdout() const { return file_.empty(); }

  /// Replaces the record on disk. The first time, what was there is copied aside where it was not
  /// finished, or where `finished_blocks` is 0, which means that the new one holds no measurement.
  Result<void> keep(std::string_view document, std::size_t finished_blocks);
  /// Writes the finished result where that is not the record itself.
  Result<void> publish(std::string_view text, std::size_t finished_blocks);
  /// After `publish`: a record that nobody asked for goes.
  void finish();

  /// For stderr, when the run ended early: what is kept, where, and how to go on.
  std::string kept_sentence() const;
  const std::filesystem::path& record_file() const { return record_file_; }

 private:
  Result<void> choose_record(const BenchOptions& options);

  report::Format format_ = report::Format::table;
  std::string file_;                   // of the finished result; empty: stdout
  std::filesystem::path record_file_;  // the JSON document, replaced after every block
  bool record_is_result_ = false;
  bool own_record_ = false;  // in the state folder, under a name that no other run has
  bool continues_ = false;   // the record is the one that --resume names
  bool kept_ = false;        // `keep` has written
  std::size_t kept_blocks_ = 0;
  FileLock record_lock_;
  FileLock file_lock_;
};

}  // namespace paceline::cli
