// What scripts rely on.
#include "cli/exit_code.hpp"

#include <gtest/gtest.h>

namespace paceline::test {
namespace {

using cli::exit_code;
using gate::Difference;
using gate::Evaluation;
using gate::Verdict;

Evaluation with_verdict(Verdict verdict, std::size_t different = 0) {
  Evaluation evaluation;
  evaluation.verdict = verdict;
  evaluation.overall.resize(2);
  evaluation.overall[1].outputs_different = different;
  return evaluation;
}

Evaluation control(Difference difference) {
  Evaluation evaluation;
  evaluation.control = true;
  evaluation.control_difference = difference;
  return evaluation;
}

TEST(ExitCode, OfAVerdictIsItsOwn) {
  EXPECT_EQ(exit_code(with_verdict(Verdict::enable)), 0);
  EXPECT_EQ(exit_code(with_verdict(Verdict::do_not_enable)), 10);
  EXPECT_EQ(exit_code(with_verdict(Verdict::inconclusive)), 11);
  EXPECT_EQ(exit_code(with_verdict(Verdict::not_benchmarkable)), 12);
}

TEST(ExitCode, Is13WhereOutputsDifferUnlessNothingWasMeasured) {
  EXPECT_EQ(exit_code(with_verdict(Verdict::do_not_enable, 1)), 13);
  EXPECT_EQ(exit_code(with_verdict(Verdict::inconclusive, 1)), 13);
  EXPECT_EQ(exit_code(with_verdict(Verdict::not_benchmarkable, 1)), 12);
}

TEST(ExitCode, OfAControlRunIs0OnParity) {
  EXPECT_EQ(exit_code(control(Difference::parity)), 0);
  EXPECT_EQ(exit_code(control(Difference::faster)), 10);
  EXPECT_EQ(exit_code(control(Difference::slower)), 10);
  EXPECT_EQ(exit_code(control(Difference::undecided)), 11);
  EXPECT_EQ(exit_code(control(Difference::not_measured)), 12);
}

TEST(ExitCode, OfAnErrorFollowsItsCode) {
  EXPECT_EQ(exit_code(fail(ErrorCode::invalid_argument, "")), 2);
  for (const ErrorCode code : {ErrorCode::not_found, ErrorCode::unsupported, ErrorCode::bad_format,
                               ErrorCode::io, ErrorCode::out_of_memory, ErrorCode::runtime_failed,
                               ErrorCode::busy, ErrorCode::timed_out}) {
    EXPECT_EQ(exit_code(fail(code, "")), 3) << to_string(code);
  }
  EXPECT_EQ(exit_code(fail(ErrorCode::internal, "")), 70);
  EXPECT_EQ(exit_code(fail(ErrorCode::cancelled, "")), 130);
}

TEST(ExitCode, OfAPairThatCannotBeUsedIs12) {
  for (const char* word :
       {"draft_model_tokenizer_mismatch", "draft_model_no_rollback", "target_no_rollback"}) {
    EXPECT_EQ(exit_code(fail(ErrorCode::unsupported, "", word)), 12) << word;
  }
}

TEST(ExitCode, OfAnArtifactOrATargetThatIsMissingIs2) {
  EXPECT_EQ(exit_code(fail(ErrorCode::bad_format, "", "draft_model_unverified_artifact")), 2);
  EXPECT_EQ(exit_code(fail(ErrorCode::invalid_argument, "", "draft_model_target_required")), 2);
}

}  // namespace
}  // namespace paceline::test
