// Is the output equal? Plain decoding against speculation on fixed prompts, token for token: for
// every depth, chains and trees, forced rejections, past a sliding window and at the context's end.
// It measures no speed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "core/json_fwd.hpp"
#include "core/result.hpp"
#include "core/token.hpp"
#include "draft/drafter.hpp"
#include "runtime/runtime.hpp"

namespace paceline::compat {

/// What a case looks at, in the order they run.
enum class CanaryStage {
  sampler,      // the sampler chain against known answers: both arms share it, so no text shows it
  repeat,       // the same arm twice: does the back end say the same again?
  chain,        // the drafter under test, one path
  forced,       // scripted drafts: every number of accepted tokens from 0 to the depth
  tree,         // the drafter with branches, and scripted drafts with wrong siblings
  window,       // past the sliding window of the target
  context_end,  // until no position is left
  drafter,      // does the drafter keep in step with a text that takes other turns?
};
std::string_view to_string(CanaryStage stage);

/// equal, numeric_tie (see find_difference) or different; not_run where the run ended before.
enum class CanaryOutcome { equal, numeric_tie, different, not_run };
std::string_view to_string(CanaryOutcome outcome);

/// Where a case found the first difference.
struct CanaryDifference {
  std::size_t position = 0;  // emitted token number
  std::optional<Token> plain;
  std::optional<Token> speculative;
  std::string plain_text;
  std::string speculative_text;
  std::optional<double> top_two_margin;  // logits
  std::optional<double> deviation;
  std::optional<double> width_noise;
};

struct CanaryCase {
  CanaryStage stage = CanaryStage::chain;
  std::string prompt;
  std::string arm;  // "lookup", "draft", "forced", "forced-tree", "plain"
  std::size_t depth = 0;
  double temperature = 0;
  CanaryOutcome outcome = CanaryOutcome::not_run;
  /// Why it is not equal, a stable word: tokens_differ, finish_reason_differs,
  /// backend_not_deterministic, speculation_not_deterministic, wrong_commit, drafter_out_of_step,
  /// sampler_order, run_failed. Empty where it is equal.
  std::string reason;
  std::string detail;
  std::size_t prompt_tokens = 0;
  std::size_t tokens = 0;
  std::string finish_reason;
  std::size_t rounds = 0;
  std::size_t drafted = 0;
  std::size_t accepted = 0;
  std::vector<std::size_t> accepted_counts;  // [depth + 1] rounds that accepted so many tokens
  std::optional<CanaryDifference> difference;
};

/// Something that was left out, and why.
struct CanarySkip {
  CanaryStage stage = CanaryStage::tree;
  std::string reason;
};

/// not_exercised: no drafted token stood in any text that was compared, so equality shows nothing.
enum class CanaryResult { equal, numeric_tie, different, inconclusive, not_exercised };
std::string_view to_string(CanaryResult result);

struct CanaryReport {
  std::vector<CanaryCase> cases;
  std::vector<CanarySkip> skipped;
  bool complete = false;
  std::string incomplete_reason;

  /// different before inconclusive (cases are missing) before not_exercised before numeric_tie
  /// before equal.
  CanaryResult result() const;
};

struct CanaryPrompt {
  std::string id;
  std::vector<Token> tokens;
};

struct CanaryProgress {
  std::size_t done = 0;
  std::size_t total = 0;
  std::string what;
};

/// A drafter that is looked at. `make` gives a new one that has seen nothing, for texts of up to
/// `context` tokens, with up to `branches` continuations a round where it can branch.
struct CanaryDrafter {
  std::string name;  // "lookup", "draft"
  std::size_t most_branches = 1;
  std::function<Result<std::unique_ptr<draft::Drafter>>(std::size_t context, std::size_t branches)>
      make;
};

struct CanarySetup {
  const runtime::Vocabulary* vocabulary = nullptr;
  /// A runtime of the target. Errors of trees (unsupported) leave the tree stage out.
  std::function<Result<std::unique_ptr<runtime::Runtime>>(const runtime::RuntimeLimits&)>
      make_target;
  std::optional<CanaryDrafter> drafter;  // none: scripted drafts only
  std::vector<CanaryPrompt> prompts;     // cut to their last tokens where they are too long
  std::size_t depth = 3;                 // the deepest; all from 1 are tried
  std::size_t max_tokens = 48;
  std::size_t most_context = 0;    // what the target was trained for; 0: not known
  std::size_t sliding_window = 0;  // of the target; 0: none
  double temperature = 0.8;        // of the sampled cases
  std::uint64_t seed = 0;
  std::function<void(const CanaryProgress&)> progress;
};

/// Runs the cases. Where `stop` is requested the report holds what is known so far and says that it
/// is not complete. Errors: invalid_argument (no prompt, depth 0), unsupported target_no_rollback
/// (rejected tokens cannot be taken back, so speculation is not possible), runtime_failed.
Result<CanaryReport> run_canary(const CanarySetup& setup, std::stop_token stop);

/// The report as JSON; canary_schema() describes it.
Json to_json(const CanaryReport& report);
/// The report as a table for people, at most `width` columns where words allow it.
std::string canary_table(const CanaryReport& report, std::size_t width);
/// JSON Schema (draft-07) of what `paceline canary --format json` writes.
std::string_view canary_schema();

}  // namespace paceline::compat
