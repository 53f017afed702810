#include "cli/terminal.hpp"

#include <gtest/gtest.h>

namespace paceline::test {
namespace {

TEST(Seconds, AreWrittenInTheUnitsOfAReader) {
  EXPECT_EQ(cli::format_seconds(0), "0 s");
  EXPECT_EQ(cli::format_seconds(42.4), "42 s");
  EXPECT_EQ(cli::format_seconds(59.4), "59 s");
  EXPECT_EQ(cli::format_seconds(59.6), "1 min 00 s");
  EXPECT_EQ(cli::format_seconds(185), "3 min 05 s");
  EXPECT_EQ(cli::format_seconds(3599.6), "1 h 00 min");
  EXPECT_EQ(cli::format_seconds(3725), "1 h 02 min");
}

TEST(Errors, AreOneLineWithTheirWord) {
  testing::internal::CaptureStderr();
  cli::print_error(fail(ErrorCode::io, "the disk is full"));
  cli::print_error(fail(ErrorCode::unsupported, "other tokens", "draft_model_tokenizer_mismatch"));
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "paceline: the disk is full\n"
            "paceline: other tokens (draft_model_tokenizer_mismatch)\n");
}

}  // namespace
}  // namespace paceline::test
