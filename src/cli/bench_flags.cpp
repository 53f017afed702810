// The command line of `paceline bench`: names, defaults, ranges, help.
#include "cli/bench_options.hpp"
#include "cli/memory_fit.hpp"
#include "cli/open_model.hpp"
#include "cli/validators.hpp"

#include <CLI/CLI.hpp>

#include "runtime/runtime.hpp"

namespace paceline::cli {

void add_bench_options(CLI::App& app, BenchOptions& o) {
  app.add_option("--target,-t", o.target,
                 "Model that is to be made faster: a known name (see `paceline models`), the path "
                 "of a GGUF file, or toy:SEED")
      ->capture_default_str();
  app.add_option("--draft,-d", o.drafts,
                 "Draft model, named like the target. Repeat it to compare several");
  app.add_flag("--lookup", o.lookup,
               "Prompt lookup: drafts are taken from the text so far, no second model. The "
               "default where no other arm is asked for");
  app.add_option("--num-draft-tokens,-n", o.num_draft_tokens,
                 "Tokens drafted per round, 1 to 16 [3]. Repeat it to compare several depths")
      ->check(count_between(1, 16));
  app.add_option("--draft-confidence", o.draft_confidence,
                 "Stop drafting before a token that the draft model gives less than this "
                 "probability [0: never]")
      ->check(number_between(0.0, 0.999));
  app.add_option("--scripted", o.scripted,
                 "What-if arm: drafts that are right with this probability, made from the known "
                 "answer. Labelled so, and never recommended")
      ->check(number_between(0.0, 1.0));
  app.add_flag("--control", o.control,
               "Plain against plain: does this host or the harness favour one side? Exit 0 on "
               "parity, 11 undecided, 10 where a difference was found");

  app.add_option("--fixture,-f", o.fixtures,
                 "Prompts: a class (code, edit, chat, reasoning, extraction, multilingual), a "
                 "built-in id, or a text, JSON or JSONL file. Repeatable [all six classes]")
      ->group("Workload");
  app.add_flag("--quick", o.quick,
               "3 prompts of 4 classes, 64 tokens, at most 3 minutes: a first impression")
      ->group("Workload");
  app.add_option("--max-tokens", o.max_tokens, "Tokens per answer [the fixture's, else 96]")
      ->check(count_between(1, 1 << 20))
      ->group("Workload");
  app.add_option("--max-context-tokens", o.max_context_tokens,
                 "Context size [by this host's memory, at most what the model was trained for]")
      ->check(count_between(2, runtime::k_longest_context))
      ->group("Workload");
  add_memory_limit(app, o.memory_limit)->group("Workload");
  app.add_option("--baseline-runs", o.baseline_runs,
                 "Plain runs per prompt; equal to --spec-runs, since runs are paired [1; 3 for a "
                 "single spec028 fixture]")
      ->group("Workload");
  app.add_option("--spec-runs", o.spec_runs, "Speculative runs per prompt [as --baseline-runs]")
      ->group("Workload");
  app.add_option("--sustained-seconds", o.sustained_seconds,
                 "Afterwards decode without a pause for this long, to see drift and heat [0: no]")
      ->check(number_between(0.0, 1e6))
      ->group("Workload");
  app.add_option("--last-window-seconds", o.last_window_seconds,
                 "End of that window which the sustained ratio is taken from")
      ->capture_default_str()
      ->check(number_between(0.001, 1e6))
      ->group("Workload");
  app.add_option("--temperature", o.temperature, "Sampling temperature [the fixture's, else 0]")
      ->check(number_between(0.0, 100.0))
      ->group("Workload");
  app.add_option("--top-p", o.top_p, "Nucleus sampling [the fixture's, else 1: off]")
      ->check(number_between(0.0, 1.0))
      ->group("Workload");
  app.add_option("--top-k", o.sampling.top_k, "Sample from the k most probable tokens [0: off]")
      ->check(count_between(0, 1 << 24))
      ->group("Workload");
  app.add_option("--min-p", o.sampling.min_p,
                 "Drop tokens below this part of the most probable one [0: off]")
      ->check(number_between(0.0, 1.0))
      ->group("Workload");
  app.add_option("--repetition-penalty", o.sampling.repetition_penalty,
                 "Penalty on the last 64 tokens [1: off]")
      ->check(number_between(0.01, 100.0))
      ->group("Workload");
  app.add_option("--seed", o.sampling.seed, "Seed of sampling and of the order of runs [0]")
      ->group("Workload");

  add_runtime_option(app, o.runtime)->group("Machine");
  app.add_option("--threads", o.threads, "Threads [the cores of the affinity mask]")
      ->check(count_between(1, 1024))
      ->group("Machine");
  app.add_option("--time-limit", o.time_limit,
                 "Seconds for the whole run; the finished part is judged [none; --quick: 180]")
      ->check(number_between(0.001, 1e7))
      ->group("Machine");
  app.add_option(
         "--run-time-limit", o.run_time_limit,
         "Seconds for one answer; a slower one is a failed block. Where it is over 300, also for "
         "loading a model")
      ->check(number_between(0.001, 1e6))
      ->capture_default_str()
      ->group("Machine");
  app.add_flag("--offline", o.offline, "Never fetch a model")->group("Machine");

  app.add_option("--recommend-ratio-floor", o.ratio_floor,
                 "Speed-up that must be shown before speculation is recommended [1.15]")
      ->check(number_between(0.01, 100.0))
      ->group("Verdict");
  app.add_option("--max-p95-latency-ratio", o.max_p95_latency_ratio,
                 "Limit of the p95 latency, speculative over plain [1.0 in the spec028 "
                 "evaluation, 1.10 in ours]")
      ->check(number_between(0.01, 100.0))
      ->group("Verdict");
  app.add_option("--max-p95-ttft-ratio", o.max_p95_ttft_ratio,
                 "Limit of the time to the first token [1.0 in the spec028 evaluation, 1.10 in "
                 "ours]")
      ->check(number_between(0.01, 100.0))
      ->group("Verdict");
  app.add_option("--recommend-acceptance-floor", o.acceptance_floor,
                 "Acceptance rate that the spec028 evaluation asks for [0.30]; ours judges by "
                 "time")
      ->check(number_between(0.0, 1.0))
      ->group("Verdict");
  app.add_option("--policy", o.policy_file,
                 "YAML or JSON file of thresholds; see docs/methodology.md. Options win over it")
      ->group("Verdict");

  app.add_option("--format", o.format, "table, markdown, json, jsonl or csv [table; json with -o]")
      ->check(CLI::IsMember({"table", "markdown", "json", "jsonl", "csv"}))
      ->group("Output");
  app.add_flag("--jsonl", o.jsonl, "Short for --format jsonl")->group("Output");
  app.add_option("--output,-o", o.output,
                 "File for the result; stdout then stays empty. - is stdout. Without it a table "
                 "is printed and the record goes to ./paceline-bench.json")
      ->group("Output");
  app.add_option("--resume", o.resume, "Continue a run that was broken off, from its JSON record")
      ->group("Output");
}

}  // namespace paceline::cli
