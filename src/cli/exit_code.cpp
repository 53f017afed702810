#include "cli/exit_code.hpp"

#include <algorithm>

namespace paceline::cli {

int exit_code(const Error& error) {
  if (error.word == "draft_model_tokenizer_mismatch" || error.word == "draft_model_no_rollback" ||
      error.word == "target_no_rollback") {
    return k_exit_not_benchmarkable;  // the pair cannot be used
  }
  if (error.word == "draft_model_unverified_artifact") return k_exit_usage;  // as published
  switch (error.code) {
    case ErrorCode::invalid_argument:
      return k_exit_usage;
    case ErrorCode::cancelled:
      return k_exit_cancelled;
    case ErrorCode::internal:
      return k_exit_bug;
    default:
      return k_exit_input;
  }
}

int exit_code(const gate::Evaluation& evaluation) {
  const auto differs = [](const gate::Comparison& c) { return c.outputs_different > 0; };
  if (evaluation.control) {
    switch (evaluation.control_difference) {
      case gate::Difference::parity:
        return k_exit_done;
      case gate::Difference::undecided:
        return k_exit_inconclusive;
      case gate::Difference::not_measured:
        return k_exit_not_benchmarkable;
      default:
        return k_exit_do_not_enable;  // the harness or the host is biased
    }
  }
  if (evaluation.verdict == gate::Verdict::not_benchmarkable) return k_exit_not_benchmarkable;
  if (std::ranges::any_of(evaluation.overall, differs)) return k_exit_outputs_differ;
  switch (evaluation.verdict) {
    case gate::Verdict::enable:
      return k_exit_done;
    case gate::Verdict::do_not_enable:
      return k_exit_do_not_enable;
    case gate::Verdict::inconclusive:
      return k_exit_inconclusive;
    case gate::Verdict::not_benchmarkable:
      return k_exit_not_benchmarkable;
  }
  return k_exit_bug;
}

}  // namespace paceline::cli
