// Error codes and verdicts as exit codes; the one place where they are mapped.
#pragma once

#include "core/result.hpp"
#include "gate/gate.hpp"

namespace paceline::cli {

inline constexpr int k_exit_done = 0;
inline constexpr int k_exit_usage = 2;
inline constexpr int k_exit_input = 3;  // input or environment
inline constexpr int k_exit_do_not_enable = 10;
inline constexpr int k_exit_inconclusive = 11;
inline constexpr int k_exit_not_benchmarkable = 12;
inline constexpr int k_exit_outputs_differ = 13;
inline constexpr int k_exit_bug = 70;
inline constexpr int k_exit_cancelled = 130;

int exit_code(const Error& error);
int exit_code(const gate::Evaluation& evaluation);

}  // namespace paceline::cli
