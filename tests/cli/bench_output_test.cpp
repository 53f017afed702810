// What a run may replace, what it moves aside, and what it refuses.
#include "cli/bench_output.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "core/file.hpp"
#include "report/report.hpp"
#include "support/matchers.hpp"
#include "support/sample_record.hpp"
#include "support/temporary_folder.hpp"

namespace paceline::test {
namespace {

namespace fs = std::filesystem;
using cli::BenchOutput;
using report::Format;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::string render(const record::Record& record, Format format = Format::json) {
  return report::render(record, gate::evaluate(record, {}), format);
}

record::Record finished_record() {
  return sample_record({.classes = {{"code", 0.5}}, .prompts = 2, .tokens = 12});
}

record::Record broken_off_record() {
  record::Record record = finished_record();
  record.complete = false;
  record.incomplete_reason = "the run was cancelled";
  return record;
}

class Output : public testing::Test {
 protected:
  Output() {
    ::setenv("XDG_STATE_HOME", (folder.path() / "state").c_str(), 1);
    options.target = "toy:7";
    options.output = path("out.json");
  }

  std::string path(const std::string& name) const { return (folder.path() / name).string(); }
  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(path(name), std::ios::binary) << text;
    return path(name);
  }
  std::string read(const std::string& name) const { return value_of(read_file(path(name))); }
  std::vector<std::string> names() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder.path())) {
      if (entry.path().extension() != ".lock") names.push_back(entry.path().filename().string());
    }
    std::ranges::sort(names);
    return names;
  }

  TemporaryFolder folder;
  cli::BenchOptions options;
};

TEST_F(Output, TouchesNothingBeforeThereIsABlock) {
  const std::string before = render(finished_record());
  write("out.json", before);
  const auto output = BenchOutput::open(options);
  ASSERT_THAT(output, IsOk());
  EXPECT_EQ(read("out.json"), before);
  EXPECT_THAT(output->kept_sentence(),
              AllOf(HasSubstr("no finished block is kept"), HasSubstr("is as it was")));
}

TEST_F(Output, ReplacesAFinishedRecordOnceItHasABlock) {
  write("out.json", render(finished_record()));
  auto output = value_of(BenchOutput::open(options));
  ASSERT_THAT(output.keep("new", 1), IsOk());
  EXPECT_EQ(read("out.json"), "new");
  EXPECT_THAT(names(), ElementsAre("out.json"));
  EXPECT_THAT(output.kept_sentence(), HasSubstr("1 finished block is kept in " + path("out.json")));
}

TEST_F(Output, MovesARecordThatWasBrokenOffAside) {
  const std::string before = render(broken_off_record());
  write("out.json", before);
  write("out.json.earlier-1", "of a run before that one");
  auto output = value_of(BenchOutput::open(options));
  ASSERT_THAT(output.keep("new", 1), IsOk());
  ASSERT_THAT(output.keep("newer", 2), IsOk());
  EXPECT_EQ(read("out.json"), "newer");
  EXPECT_EQ(read("out.json.earlier-1"), "of a run before that one");
  EXPECT_EQ(read("out.json.earlier-2"), before);
  EXPECT_THAT(names(), ElementsAre("out.json", "out.json.earlier-1", "out.json.earlier-2"));
}

TEST_F(Output, MovesEvenAFinishedRecordAsideForARunThatMeasuredNothing) {
  const std::string before = render(finished_record());
  write("out.json", before);
  auto output = value_of(BenchOutput::open(options));
  ASSERT_THAT(output.keep("nothing fits", 0), IsOk());
  EXPECT_EQ(read("out.json"), "nothing fits");
  EXPECT_EQ(read("out.json.earlier-1"), before);
}

TEST_F(Output, ReplacesARecordThatHasNoBlock) {
  record::Record record = broken_off_record();
  record.blocks.clear();
  write("out.json", render(record));
  auto output = value_of(BenchOutput::open(options));
  ASSERT_THAT(output.keep("new", 1), IsOk());
  EXPECT_THAT(names(), ElementsAre("out.json"));
}

TEST_F(Output, MovesAsideWhatCameThereDuringTheRun) {
  auto output = value_of(BenchOutput::open(options));
  write("out.json", "somebody's notes");
  ASSERT_THAT(output.keep("new", 1), IsOk());
  EXPECT_EQ(read("out.json"), "new");
  EXPECT_EQ(read("out.json.earlier-1"), "somebody's notes");
}

TEST_F(Output, ContinuesTheRecordThatResumeNames) {
  options.resume = write("out.json", render(broken_off_record()));
  options.output = folder.path() / "." / "out.json";
  auto output = value_of(BenchOutput::open(options));
  ASSERT_THAT(output.keep("longer", 3), IsOk());
  EXPECT_EQ(read("out.json"), "longer");
  EXPECT_THAT(names(), ElementsAre("out.json"));
}

TEST_F(Output, RefusesAFileOfAnotherKind) {
  for (const char* text : {"Dear diary", "{}", "{\"paceline\": 1}", "[1, 2]", "GGUF\x03"}) {
    write("out.json", text);
    EXPECT_THAT(BenchOutput::open(options),
                FailsWith(ErrorCode::invalid_argument,
                          AllOf(HasSubstr("out.json"), HasSubstr("remove it"))))
        << text;
    EXPECT_EQ(read("out.json"), text);
  }
  write("out.json", "");
  EXPECT_THAT(BenchOutput::open(options), IsOk());
}

TEST_F(Output, RefusesAResultOfAnotherFormat) {
  constexpr Format k_formats[] = {Format::table, Format::markdown, Format::json, Format::jsonl,
                                  Format::csv};
  for (const Format there : k_formats) {
    write("out.json", render(finished_record(), there));
    for (const Format here : k_formats) {
      options.format = report::to_string(here);
      const auto output = BenchOutput::open(options);
      EXPECT_EQ(output.has_value(), here == there)
          << report::to_string(here) << " over " << report::to_string(there);
    }
  }
}

TEST_F(Output, ReplacesAnEarlierTableByTheNewOne) {
  options.format = "csv";
  write("out.json", render(finished_record(), Format::csv));
  auto output = value_of(BenchOutput::open(options));
  ASSERT_THAT(output.keep("record", 1), IsOk());
  ASSERT_THAT(output.publish("cells", 1), IsOk());
  output.finish();
  EXPECT_EQ(read("out.json"), "cells");
  EXPECT_THAT(names(), ElementsAre("out.json", "state"));
}

TEST_F(Output, IsRefusedWhileAnotherRunWritesTheFile) {
  const auto first = BenchOutput::open(options);
  ASSERT_THAT(first, IsOk());
  EXPECT_THAT(BenchOutput::open(options), FailsWith(ErrorCode::busy, HasSubstr("out.json")));
  fs::create_symlink("out.json", path("link.json"));
  options.output = path("link.json");
  EXPECT_THAT(BenchOutput::open(options), FailsWith(ErrorCode::busy));
}

TEST_F(Output, KeepsTheRecordsOfRunsToStdoutApart) {
  options.output = "-";
  auto first = value_of(BenchOutput::open(options));
  auto second = value_of(BenchOutput::open(options));
  EXPECT_NE(first.record_file(), second.record_file());
  EXPECT_TRUE(fs::is_empty(folder.path() / "state" / "paceline"));
  ASSERT_THAT(first.keep("one", 1), IsOk());
  ASSERT_THAT(first.keep("two", 2), IsOk());
  EXPECT_EQ(value_of(read_file(first.record_file())), "two");
  EXPECT_THAT(first.kept_sentence(), HasSubstr(first.record_file().string()));
  first.finish();
  EXPECT_TRUE(fs::is_empty(folder.path() / "state" / "paceline"));
}

TEST_F(Output, OfAnotherFormatDoesNotReplaceTheRecordThatIsContinued) {
  options.resume = write("out.json", render(broken_off_record()));
  options.output = folder.path() / "." / "out.json";
  options.format = "csv";
  EXPECT_THAT(BenchOutput::open(options),
              FailsWith(ErrorCode::invalid_argument,
                        AllOf(HasSubstr("csv"), HasSubstr("/./out.json"), HasSubstr("--resume"))));
}

TEST_F(Output, ToADeviceKeepsItsRecordElsewhere) {
  options.output = "/dev/full";
  auto output = value_of(BenchOutput::open(options));
  ASSERT_THAT(output.keep("record", 1), IsOk());
  EXPECT_THAT(output.kept_sentence(), Not(HasSubstr("/dev/full")));
  EXPECT_THAT(output.publish("result", 1), FailsWith(ErrorCode::io, HasSubstr("/dev/full")));
}

TEST_F(Output, IsNoPipe) {
  ASSERT_EQ(::mkfifo(path("out.json").c_str(), 0600), 0);
  EXPECT_THAT(BenchOutput::open(options), FailsWith(ErrorCode::io, HasSubstr("is a pipe")));
}

}  // namespace
}  // namespace paceline::test
