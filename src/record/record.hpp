// The result record of a benchmark: raw samples and the circumstances. Plain structs; aggregates
// are derived by gate/ and never stored here. Times are nanoseconds on one clock.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/json_fwd.hpp"
#include "core/result.hpp"
#include "host/host.hpp"

namespace paceline::record {

inline constexpr int k_schema_version = 1;

enum class ArmKind { plain, lookup, draft_model, scripted };
std::string_view to_string(ArmKind kind);

/// One configuration that is measured.
struct Arm {
  std::string id;  // unique in the record: "plain", "lookup-3", "draft-smollm2-135m-3"
  ArmKind kind = ArmKind::plain;
  std::string runtime;  // "llama", "toy"
  std::size_t num_draft_tokens = 0;
  std::optional<std::string> draft_model;     // as named by the user
  std::optional<double> draft_confidence;     // stop drafting below this probability
  std::optional<double> scripted_acceptance;  // scripted arms are what-if runs
  std::optional<std::string> baseline;        // arm that this one is compared with

  bool operator==(const Arm&) const = default;
};

/// Of a model that was made for measuring: a small model's weights inside a large shape.
struct Inflation {
  std::string source = {};         // the source's own name
  std::string source_sha256 = {};  // of its file
  std::string shape = {};          // "7b"
  double noise = 0;                // relative, on the weights of the layers
  bool random = false;             // random weights: its texts and what is accepted mean nothing
  std::uint64_t seed = 0;          // of noise or random weights

  bool operator==(const Inflation&) const = default;
};

/// A model that took part.
struct ModelEvidence {
  std::string name;  // as named by the user
  std::string path;
  std::string description;  // general.name
  std::string architecture;
  std::string file_type;
  std::optional<std::string> sha256;  // absent where there is no file
  std::optional<std::uint64_t> bytes;
  std::optional<std::uint64_t> parameters;
  std::size_t trained_context = 0;
  std::size_t sliding_window = 0;
  std::string chat_template_sha256;  // empty: no template
  std::string chat_renderer;         // built-in, minja, none
  std::optional<Inflation> inflation;

  bool operator==(const ModelEvidence&) const = default;
};

/// A runtime that computed.
struct RuntimeEvidence {
  std::string name;
  std::string build;
  std::string backend;
  std::size_t threads = 0;
  std::size_t context = 0;
  std::size_t rows = 0;
  std::string kv_type_k;
  std::string kv_type_v;
  std::string flash_attention;
  bool exact_widths = false;

  bool operator==(const RuntimeEvidence&) const = default;
};

struct Sampling {
  double temperature = 0;
  std::size_t top_k = 0;
  double top_p = 1;
  double min_p = 0;
  double repetition_penalty = 1;
  double presence_penalty = 0;
  double frequency_penalty = 0;
  std::uint64_t seed = 0;

  bool operator==(const Sampling&) const = default;
};

struct Environment {
  std::string paceline_version;
  std::string build_type;  // Release, RelWithDebInfo, Debug
  std::string compiler;
  std::string sanitizers;  // empty: none
  host::HostInfo host;
  ModelEvidence target;
  std::vector<ModelEvidence> drafts;
  RuntimeEvidence target_runtime;
  std::vector<RuntimeEvidence> draft_runtimes;
  std::map<std::string, std::string> packages;  // of the build root, name to version

  /// SHA-256 over everything that a verdict depends on: processor, cores, memory, models,
  /// templates, runtimes, threads, build. Load, time, paths and other packages do not count. Two
  /// runs with equal keys may be joined.
  std::string key() const;

  bool operator==(const Environment&) const = default;
};

/// What makes the keys of two environments differ, one part each: "cores allowed: 2 -> 4" (a's
/// value first). Empty exactly where the keys are equal.
std::vector<std::string> environment_differences(const Environment& a, const Environment& b);

/// One round of one sample (see docs/glossary.md). Times sum to the round's wall time.
struct Round {
  std::uint32_t rows = 0;  // target rows of the pass
  std::uint32_t drafted = 0;
  std::uint32_t accepted = 0;  // drafted tokens that were emitted
  std::uint32_t emitted = 0;
  std::int64_t draft_ns = 0;
  std::int64_t verify_ns = 0;  // the target's pass
  std::int64_t accept_ns = 0;  // choosing tokens and committing rows
  std::int64_t other_ns = 0;
  std::int64_t delivered_ns = 0;  // since the sample's start

  bool operator==(const Round&) const = default;
};

struct Sample {
  std::string arm;
  std::size_t order = 0;  // 0: ran first in its block
  std::size_t prompt_tokens = 0;
  std::string finish_reason;         // stop, length, context
  std::vector<std::int32_t> tokens;  // emitted, first token included
  double started_at_unix_seconds = 0;
  double ended_at_unix_seconds = 0;
  std::int64_t prefill_ns = 0;
  std::int64_t first_token_ns = 0;            // since start, the token's id is known
  std::optional<std::int64_t> first_text_ns;  // since start, first visible text delivered
  std::int64_t elapsed_ns = 0;                // whole wall time
  std::int64_t other_ns = 0;                  // elapsed - prefill - rounds
  std::size_t streamed_chunks = 0;            // deliveries of text
  std::uint64_t target_forwards = 0;          // whatever they were for
  std::uint64_t target_rows = 0;
  std::uint64_t replayed_rows = 0;
  std::uint64_t draft_forwards = 0;
  std::vector<Round> rounds;
  std::vector<std::uint32_t> drafted_at;   // [depth] times a token was drafted at position i
  std::vector<std::uint32_t> accepted_at;  // [depth] times it was accepted
  std::string thermal_state;

  bool operator==(const Sample&) const = default;
};

/// How a speculative sample compares with its baseline sample of the same block.
struct Comparison {
  std::string arm;
  std::string baseline;
  bool equal = false;
  std::optional<std::size_t> first_difference;  // token index
  /// The target's logit margin between its first and second choice where the texts part.
  std::optional<double> top_two_margin;
  bool numeric_tie = false;  // they part, and the margin is within the back end's noise

  bool operator==(const Comparison&) const = default;
};

enum class CellStatus { ok, skipped, failed };
std::string_view to_string(CellStatus status);

/// One prompt, all arms, one repetition. The unit that is written, resumed and compared.
struct Block {
  std::string fixture;
  std::string content_class;
  std::string prompt;
  std::size_t repetition = 0;
  CellStatus status = CellStatus::ok;
  std::string reason;  // of skipped and failed
  std::vector<Sample> samples;
  std::vector<Comparison> comparisons;
  std::optional<host::HostState> host_before;
  std::optional<host::HostState> host_after;

  bool operator==(const Block&) const = default;
};

struct FixtureEvidence {
  std::string id;
  std::string content_class;
  std::string source;
  std::string sha256;
  std::size_t prompts = 0;
  std::size_t repetitions = 1;
  bool stream = false;
  double temperature = 0;
  double top_p = 1;
  std::size_t max_tokens = 0;

  bool operator==(const FixtureEvidence&) const = default;
};

struct Warmup {
  std::vector<double> first_arm_ms;  // repeated short runs of the plain arm, in order
  bool stable = false;
  bool slow_first = false;  // the first run took over 1.5 times the last

  bool operator==(const Warmup&) const = default;
};

/// A window of continuous generation, arms taking turns.
struct Sustained {
  double requested_seconds = 0;
  double last_window_seconds = 0;
  double started_at_unix_seconds = 0;
  double ended_at_unix_seconds = 0;
  std::vector<Sample> samples;

  bool operator==(const Sustained&) const = default;
};

struct Warning {
  std::string id;  // debug_build, one_thread, noisy_host, short_prompt, ...
  std::string cause;
  std::string hint;

  bool operator==(const Warning&) const = default;
};

struct Plan {
  std::vector<Arm> arms;  // the first is the plain one
  std::vector<FixtureEvidence> fixtures;
  Sampling sampling;
  std::uint64_t order_seed = 0;
  bool control = false;
  bool quick = false;
  std::optional<double> time_limit_seconds;
  double run_time_limit_seconds = 0;
  std::size_t max_context_tokens = 0;

  bool operator==(const Plan&) const = default;
};

/// Why an arm of the plan was not run at all.
struct Obstacle {
  std::string arm;
  std::string word;  // does_not_fit
  std::string reason;

  bool operator==(const Obstacle&) const = default;
};

struct Record {
  int schema_version = k_schema_version;
  double generated_at_unix_seconds = 0;
  Environment environment;
  Plan plan;
  std::vector<Obstacle> obstacles;
  std::optional<Warmup> warmup;
  std::vector<Block> blocks;
  std::optional<Sustained> sustained;
  std::vector<Warning> warnings;
  std::optional<host::HostState> host_at_start;
  std::optional<host::HostState> host_at_end;
  bool complete = false;          // every planned block was run
  std::string incomplete_reason;  // why not

  bool operator==(const Record&) const = default;
};

/// The record as JSON and back. `from_json(to_json(r))` gives r. Unknown numbers are null; bytes
/// that are not UTF-8 become U+FFFD. A sample's rounds are stored by column:
/// {"rows": [4, 4], "drafted": [3, 3], ...}.
Json to_json(const Record& record);
/// Every member must be there and no other. Errors (bad_format) name the member, the value seen
/// and the value wanted; a newer schema_version is refused (unsupported, record_schema_newer).
Result<Record> from_json(const Json& json);
Json to_json(const host::HostInfo& info);
Json to_json(const host::HostState& state);
Json to_json(const ModelEvidence& model);
Json to_json(const RuntimeEvidence& runtime);
Json to_json(const Sample& sample);
Json to_json(const Inflation& inflation);

}  // namespace paceline::record
