#include "support/sample_record.hpp"

#include <algorithm>
#include <cmath>
#include <format>
#include <utility>

#include "core/hash.hpp"
#include "core/random.hpp"

namespace paceline::test {

namespace {

using record::Arm;
using record::ArmKind;
using record::Block;
using record::CellStatus;
using record::Comparison;
using record::Environment;
using record::ModelEvidence;
using record::Plan;
using record::Record;
using record::Round;
using record::RuntimeEvidence;
using record::Sample;
using record::Sustained;
using record::Warmup;

constexpr double k_start = 1790000000;    // 2026-09-21 14:13:20 UTC
constexpr double k_step_ns = 11.5e6;      // a plain step
constexpr double k_more_rows = 0.16;      // of a step, for each further row of a pass
constexpr double k_draft_ns = 60e3;       // lookup
constexpr double k_draft_model_ns = 4e6;  // per drafted token
constexpr std::size_t k_prompt_tokens = 64;

std::int64_t whole(double nanoseconds) { return static_cast<std::int64_t>(nanoseconds); }

host::HostInfo sample_host() {
  host::HostInfo host;
  host.machine = "x86_64";
  host.system = "Linux 6.12.0";
  host.cpu_model = "Intel(R) Xeon(R) Gold 6442Y";
  host.chip = "non_apple_silicon";
  host.hardware_model = "non_apple_silicon";
  host.instruction_sets = {"avx2", "f16c", "fma", "avx512f", "avx512_vnni"};
  host.cores = 4;
  host.cores_allowed = 2;
  host.physical_cores = 2;
  host.memory_bytes = std::uint64_t{8255991808};
  host.memory_limit_bytes = std::uint64_t{6} << 30;
  host.cpu_quota = 2.0;
  host.governor = "performance";
  host.hypervisor = "QEMU";
  host.nice = 5;
  return host;
}

host::HostState host_state(double seconds) {
  host::HostState state;
  state.at_unix_seconds = k_start + seconds;
  state.load_1min = 0.25 + std::min(1.75, seconds / 60);
  state.memory_available_bytes = std::uint64_t{5} << 30;
  state.frequency_mhz = 2600.0;
  state.temperature_celsius = 51.5;
  state.thermal_state = "nominal";
  state.steal_seconds = 12.5 + seconds * 0.01;
  state.busy_seconds = 4000 + seconds * 2.1;
  state.cpu_pressure_some_percent = 1.25;
  state.own_cpu_seconds = 1.5 + seconds * 2;
  state.involuntary_switches = static_cast<std::uint64_t>(100 + seconds * 3);
  return state;
}

ModelEvidence sample_model() {
  ModelEvidence model;
  model.name = "smollm2-135m";
  model.path = "/home/user/.cache/paceline/models/smollm2-135m.gguf";
  model.description = "SmolLM2 135M Instruct";
  model.architecture = "llama";
  model.file_type = "Q4_1";
  model.sha256 = sha256_hex("smollm2-135m");
  model.bytes = std::uint64_t{98362432};
  model.parameters = std::uint64_t{134515008};
  model.trained_context = 8192;
  model.sliding_window = 0;
  model.chat_template_sha256 = sha256_hex("template");
  model.chat_renderer = "built-in";
  return model;
}

RuntimeEvidence sample_runtime() {
  RuntimeEvidence runtime;
  runtime.name = "llama";
  runtime.build = "0.7.0";
  runtime.backend = "CPU";
  runtime.threads = 2;
  runtime.context = 4096;
  runtime.rows = 512;
  runtime.kv_type_k = "f16";
  runtime.kv_type_v = "f16";
  runtime.flash_attention = "auto";
  runtime.exact_widths = true;
  return runtime;
}

Environment sample_environment(const SampleShape& shape) {
  Environment environment;
  environment.paceline_version = "0.1.0";
  environment.build_type = "Release";
  environment.compiler = "GNU 16.2.0";
  environment.host = sample_host();
  environment.target = sample_model();
  environment.target_runtime = sample_runtime();
  const bool drafts = std::ranges::any_of(
      shape.arms, [](const Arm& arm) { return arm.kind == ArmKind::draft_model; });
  if (drafts) {
    environment.drafts.push_back(sample_model());
    environment.draft_runtimes.push_back(sample_runtime());
  }
  environment.packages = {{"libllama0", "1:0.7.0+dfsg-2"}, {"g++", "4:16.2.0"}};
  return environment;
}

/// Runs made-up passes and keeps their times.
class Maker {
 public:
  Maker(const SampleShape& shape) : shape_(shape), random_(shape.seed) {}

  Sample make(const Arm& arm, double acceptance, const std::vector<std::int32_t>& tokens) {
    Sample sample;
    sample.arm = arm.id;
    sample.prompt_tokens = k_prompt_tokens;
    sample.finish_reason = "length";
    sample.tokens = tokens;
    sample.started_at_unix_seconds = k_start + seconds_;
    sample.prefill_ns = noisy(3 * k_step_ns);
    sample.first_token_ns = sample.prefill_ns;
    sample.first_text_ns = sample.first_token_ns + 40'000;
    sample.other_ns = 100'000;
    sample.drafted_at.resize(arm.num_draft_tokens);
    sample.accepted_at.resize(arm.num_draft_tokens);
    std::int64_t now = sample.prefill_ns + sample.other_ns;
    for (std::size_t left = tokens.size() - 1; left > 0;) {
      const Round round = make_round(arm, acceptance, left, sample);
      now += round.draft_ns + round.verify_ns + round.accept_ns + round.other_ns;
      sample.rounds.push_back(round);
      sample.rounds.back().delivered_ns = now;
      left -= round.emitted;
    }
    sample.elapsed_ns = now;
    sample.streamed_chunks = sample.rounds.size() + 1;
    sample.target_forwards = sample.rounds.size() + 1;
    sample.target_rows = k_prompt_tokens;
    for (const Round& round : sample.rounds) sample.target_rows += round.rows;
    seconds_ += static_cast<double>(now) / 1e9;
    sample.ended_at_unix_seconds = k_start + seconds_;
    sample.thermal_state = "nominal";
    return sample;
  }

  std::vector<std::int32_t> make_tokens() {
    std::vector<std::int32_t> tokens(shape_.tokens);
    for (std::int32_t& token : tokens) token = static_cast<std::int32_t>(random_.below(49152));
    return tokens;
  }

  double seconds() const { return seconds_; }
  bool flip() { return random_.unit() < 0.5; }

 private:
  std::int64_t noisy(double nanoseconds) {
    return whole(nanoseconds * (1 + shape_.noise * (2 * random_.unit() - 1)));
  }

  Round make_round(const Arm& arm, double acceptance, std::size_t left, Sample& sample) {
    Round round;
    const bool found = arm.kind == ArmKind::draft_model || random_.unit() < 0.3 + acceptance;
    if (found) {
      round.drafted = static_cast<std::uint32_t>(std::min(arm.num_draft_tokens, left - 1));
    }
    while (round.accepted < round.drafted && random_.unit() < acceptance) ++round.accepted;
    for (std::uint32_t i = 0; i < round.drafted; ++i) ++sample.drafted_at[i];
    for (std::uint32_t i = 0; i < round.accepted; ++i) ++sample.accepted_at[i];
    round.rows = round.drafted + 1;
    round.emitted = round.accepted + 1;
    if (arm.kind == ArmKind::draft_model) {
      round.draft_ns = noisy(k_draft_model_ns * round.drafted);
      sample.draft_forwards += round.drafted;
    } else if (arm.num_draft_tokens > 0) {
      round.draft_ns = noisy(k_draft_ns);
    }
    round.verify_ns = noisy(k_step_ns * (1 + k_more_rows * round.drafted));
    round.accept_ns = noisy(90e3);
    round.other_ns = noisy(25e3);
    return round;
  }

  const SampleShape& shape_;
  Random random_;
  double seconds_ = 0;
};

Block make_block(const SampleShape& shape, const SampleClass& content, std::size_t prompt,
                 const Plan& plan, Maker& maker) {
  Block block;
  block.fixture = content.name;
  block.content_class = content.name;
  block.prompt = std::format("{}-{}", content.name, prompt + 1);
  block.host_before = host_state(maker.seconds());
  const std::vector<std::int32_t> tokens = maker.make_tokens();
  for (const Arm& arm : plan.arms) {
    block.samples.push_back(maker.make(arm, content.acceptance, tokens));
    if (arm.baseline) block.comparisons.push_back({arm.id, *arm.baseline, true, {}, {}, false});
  }
  const bool swapped = shape.arms.size() == 1 && maker.flip();
  for (std::size_t i = 0; i < block.samples.size(); ++i) {
    block.samples[i].order = swapped ? block.samples.size() - 1 - i : i;
  }
  block.host_after = host_state(maker.seconds());
  return block;
}

/// The last comparison parts at a tie near its end; the block before it failed.
void add_mishaps(Record& record) {
  if (record.blocks.size() < 4) return;
  Block& tied = record.blocks[record.blocks.size() - 1];
  for (Comparison& comparison : tied.comparisons) {
    const auto sample = std::ranges::find(tied.samples, comparison.arm, &Sample::arm);
    const std::size_t at = sample->tokens.size() - 8;
    sample->tokens[at] = (sample->tokens[at] + 1) % 49152;
    comparison.equal = false;
    comparison.first_difference = at;
    comparison.top_two_margin = 0.0021;
    comparison.numeric_tie = true;
  }
  Block& failed = record.blocks[record.blocks.size() - 2];
  failed.status = CellStatus::failed;
  failed.reason = "the run took longer than 60 s";
  failed.samples.clear();
  failed.comparisons.clear();
}

}  // namespace

Arm SampleShape::lookup_arm(std::size_t depth) {
  Arm arm;
  arm.id = std::format("lookup-{}", depth);
  arm.kind = ArmKind::lookup;
  arm.runtime = "llama";
  arm.num_draft_tokens = depth;
  arm.baseline = "plain";
  return arm;
}

Arm SampleShape::draft_arm(std::size_t depth) {
  Arm arm = lookup_arm(depth);
  arm.id = std::format("draft-smollm2-135m-{}", depth);
  arm.kind = ArmKind::draft_model;
  arm.draft_model = "smollm2-135m";
  arm.draft_confidence = 0.1;
  return arm;
}

Record sample_record(const SampleShape& shape) {
  Record record;
  record.generated_at_unix_seconds = k_start;
  record.environment = sample_environment(shape);
  Plan& plan = record.plan;
  Arm plain;
  plain.id = "plain";
  plain.runtime = "llama";
  plan.arms = {plain};
  plan.arms.insert(plan.arms.end(), shape.arms.begin(), shape.arms.end());
  plan.order_seed = shape.seed;
  plan.time_limit_seconds = 1800;
  plan.run_time_limit_seconds = 60;
  plan.max_context_tokens = 4096;
  Maker maker(shape);
  for (const SampleClass& content : shape.classes) {
    plan.fixtures.push_back({content.name, content.name, "built-in", sha256_hex(content.name),
                             shape.prompts, 1, false, 0, 1, shape.tokens});
    for (std::size_t prompt = 0; prompt < shape.prompts; ++prompt) {
      record.blocks.push_back(make_block(shape, content, prompt, plan, maker));
    }
  }
  add_mishaps(record);
  record.warmup = Warmup{{210.5, 187.25, 186.75}, true, false};
  Sustained sustained{20, 10, k_start + maker.seconds(), 0, {}};
  for (std::size_t i = 0; i < 8 && !shape.classes.empty(); ++i) {
    const Arm& arm = plan.arms[i % plan.arms.size()];
    const double acceptance = shape.classes.front().acceptance;
    sustained.samples.push_back(maker.make(arm, acceptance, maker.make_tokens()));
  }
  sustained.ended_at_unix_seconds = k_start + maker.seconds();
  record.sustained = std::move(sustained);
  record.warnings = {{"short_prompt", "2 prompts have fewer than 16 tokens",
                      "prompts of the length you really use give a truer answer"}};
  record.host_at_start = host_state(0);
  record.host_at_end = host_state(maker.seconds());
  record.complete = true;
  return record;
}

Record empty_record() { return {}; }

}  // namespace paceline::test
