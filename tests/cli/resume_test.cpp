// Taking up a record that was broken off.
#include "cli/resume.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>

#include "core/json.hpp"
#include "support/matchers.hpp"
#include "support/sample_record.hpp"
#include "support/temporary_folder.hpp"

namespace paceline::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class Resumed : public testing::Test {
 protected:
  Resumed() : here(sample_record({.prompts = 2})) {
    here.blocks.clear();
    here.host_at_start.reset();
  }

  std::string write(const std::string& text) {
    const auto path = folder.path() / "earlier.json";
    std::ofstream(path) << text;
    return path.string();
  }
  std::string write(const record::Record& record) {
    return write(dump_json(Json{{"paceline", {{"record", record::to_json(record)}}}}, 1));
  }

  /// Written, read and taken up, as the program does it.
  Result<void> resume(const record::Record& record) {
    const std::string path = write(record);
    PACELINE_TRY(record::Record read, cli::read_earlier(path));
    return cli::resume_from(path, std::move(read), here);
  }

  TemporaryFolder folder;
  record::Record earlier = sample_record({.prompts = 2});
  record::Record here;
};

TEST_F(Resumed, TakesTheBlocksAndTriesFailedOnesAgain) {
  const auto failed = [](const record::Block& block) {
    return block.status == record::CellStatus::failed;
  };
  ASSERT_TRUE(std::ranges::any_of(earlier.blocks, failed));
  earlier.generated_at_unix_seconds = 1234;
  ASSERT_THAT(resume(earlier), IsOk());
  std::erase_if(earlier.blocks, failed);
  EXPECT_EQ(here.blocks, earlier.blocks);
  EXPECT_EQ(here.host_at_start, earlier.host_at_start);
  EXPECT_EQ(here.generated_at_unix_seconds, 1234);
}

TEST_F(Resumed, RefusesAnotherPlanAndNamesEveryPart) {
  earlier.plan.order_seed = 77;
  earlier.plan.sampling.temperature = 0.5;
  EXPECT_THAT(resume(earlier),
              FailsWith(ErrorCode::invalid_argument,
                        AllOf(HasSubstr("earlier.json"), HasSubstr("order_seed (77"),
                              HasSubstr("sampling"))));
  EXPECT_TRUE(here.blocks.empty());
}

TEST_F(Resumed, RefusesAnotherEnvironment) {
  earlier.environment.target.sha256 = std::string(64, '0');
  earlier.environment.host.cores_allowed += 2;
  EXPECT_THAT(resume(earlier), FailsWith(ErrorCode::invalid_argument, HasSubstr("cores")));
}

TEST_F(Resumed, DoesNotMindOtherTimeLimits) {
  earlier.plan.time_limit_seconds = 5;
  earlier.plan.run_time_limit_seconds = 7;
  here.plan.time_limit_seconds.reset();
  EXPECT_THAT(resume(earlier), IsOk());
  EXPECT_EQ(here.plan.time_limit_seconds, std::nullopt);
}

TEST_F(Resumed, RefusesWhatIsNoResult) {
  for (const char* text : {"{}", "[]", "{\"paceline\": 3}", "{\"paceline\": {}}"}) {
    EXPECT_THAT(cli::read_earlier(write(text)),
                FailsWith(ErrorCode::bad_format, HasSubstr("earlier.json")))
        << text;
  }
  EXPECT_THAT(cli::read_earlier(write("{\"paceline\": ")), FailsWith(ErrorCode::bad_format));
  EXPECT_THAT(cli::read_earlier("none.json"), FailsWith(ErrorCode::not_found));
}

TEST_F(Resumed, IsHeldAgainstThePlanBeforeAModelIsLoaded) {
  record::Plan plan = earlier.plan;
  plan.max_context_tokens = 0;  // not known yet, like what computes
  for (record::Arm& arm : plan.arms) arm.runtime = "auto";
  EXPECT_THAT(cli::check_plan("earlier.json", earlier, plan), IsOk());
  plan.sampling.seed += 1;
  plan.arms.pop_back();
  EXPECT_THAT(
      cli::check_plan("earlier.json", earlier, plan),
      FailsWith(ErrorCode::invalid_argument,
                AllOf(HasSubstr("earlier.json"), HasSubstr("sampling"), HasSubstr("arms"))));
}

}  // namespace
}  // namespace paceline::test
