// Builds samples and whole runs whose counters, times and true speed-ups are known.
#include "gate/scripted_run.hpp"

#include <algorithm>
#include <cmath>
#include <format>
#include <numbers>
#include <numeric>

#include "core/check.hpp"

namespace paceline::test {
namespace {

std::int64_t ns(double ms) { return std::llround(ms * 1e6); }

double noise_factor(const NoiseScript& noise, double progress, Random& random) {
  double factor = std::exp(noise.sigma * gauss(random)) * (1 + noise.drift * progress);
  if (random.unit() < noise.outlier_share) factor *= noise.outlier_factor;
  return factor;
}

record::Arm arm(std::string id, record::ArmKind kind, std::size_t depth) {
  record::Arm result;
  result.id = std::move(id);
  result.kind = kind;
  result.runtime = "toy";
  result.num_draft_tokens = depth;
  return result;
}

void plan(record::Record& record, const RunScript& script) {
  record.environment.paceline_version = "0.1.0";
  record.environment.build_type = "Release";
  record.environment.target.name = "smollm2-135m";
  record.environment.target.description = "SmolLM2-135M-Instruct";
  record.plan.control = script.control;
  record.plan.arms.push_back(arm("plain", record::ArmKind::plain, 0));
  if (script.control) {
    record.plan.arms.push_back(arm("plain-2", record::ArmKind::plain, 0));
  } else {
    record.plan.arms.push_back(arm("lookup-3", record::ArmKind::lookup, script.depth));
  }
  record.plan.arms.back().baseline = "plain";
  for (const ClassScript& one : script.classes) {
    record::FixtureEvidence fixture;
    fixture.id = one.name;
    fixture.content_class = one.name;
    fixture.prompts = one.prompts;
    fixture.repetitions = script.repetitions;
    fixture.max_tokens = script.tokens;
    record.plan.fixtures.push_back(fixture);
  }
  record.complete = true;
}

SampleScript plain_script(const RunScript& script, std::vector<std::int32_t> tokens) {
  SampleScript plain;
  plain.prefill_ms = 0.01;
  plain.rounds.assign(script.tokens - 1, RoundScript{.verify_ms = 10});
  plain.tokens = std::move(tokens);
  return plain;
}

/// Rounds of two tokens, as long as two plain rounds over the speed-up.
SampleScript speculative_script(const RunScript& script, double speedup,
                                std::vector<std::int32_t> tokens) {
  SampleScript sample = plain_script(script, std::move(tokens));
  sample.arm = "lookup-3";
  const auto drafted = static_cast<std::uint32_t>(script.drafts ? script.depth : 0);
  const double whole = 20 / speedup;
  const RoundScript round{.drafted = drafted,
                          .accepted = 1,
                          .draft_ms = whole * 0.1,
                          .verify_ms = whole * 0.85,
                          .accept_ms = whole * 0.05};
  if (script.drafts) {
    sample.rounds.assign(script.tokens / 2, round);
  } else {
    for (RoundScript& plain : sample.rounds) plain.verify_ms = 10 / speedup;
  }
  return sample;
}

}  // namespace

double gauss(Random& random) {
  const double radius = std::sqrt(-2 * std::log(1 - random.unit()));
  return radius * std::cos(2 * std::numbers::pi * random.unit());
}

record::Sample make_sample(const SampleScript& script) {
  record::Sample sample;
  sample.arm = script.arm;
  sample.prompt_tokens = 40;
  sample.finish_reason = "stop";
  sample.tokens = script.tokens;
  sample.prefill_ns = ns(script.prefill_ms * script.slower);
  sample.first_token_ns = sample.prefill_ns;
  sample.other_ns = ns(script.other_ms * script.slower);
  sample.streamed_chunks = 1 + script.rounds.size();
  sample.target_forwards = 1 + script.rounds.size();
  sample.target_rows = sample.prompt_tokens;
  sample.thermal_state = "nominal";
  std::int64_t clock = sample.first_token_ns;
  std::size_t left = script.tokens.empty() ? 0 : script.tokens.size() - 1;
  for (const RoundScript& from : script.rounds) {
    record::Round round;
    round.drafted = from.drafted;
    round.rows = from.drafted + 1;
    round.emitted = static_cast<std::uint32_t>(std::min<std::size_t>(from.accepted + 1, left));
    round.accepted = std::min(from.accepted, round.emitted);
    round.draft_ns = ns(from.draft_ms * script.slower);
    round.verify_ns = ns(from.verify_ms * script.slower);
    round.accept_ns = ns(from.accept_ms * script.slower);
    clock += round.draft_ns + round.verify_ns + round.accept_ns;
    round.delivered_ns = clock;
    left -= round.emitted;
    sample.target_rows += round.rows;
    for (std::uint32_t i = 0; i < from.drafted; ++i) {
      if (sample.drafted_at.size() <= i) {
        sample.drafted_at.push_back(0);
        sample.accepted_at.push_back(0);
      }
      sample.drafted_at[i] += 1;
      sample.accepted_at[i] += round.accepted > i ? 1 : 0;
    }
    sample.rounds.push_back(round);
  }
  PACELINE_CHECK(left == 0, "the scripted rounds do not emit all tokens");
  sample.elapsed_ns = clock + sample.other_ns;
  sample.ended_at_unix_seconds = 1000 + static_cast<double>(sample.elapsed_ns) / 1e9;
  return sample;
}

std::vector<std::int32_t> distinct_tokens(std::size_t count, std::int32_t salt) {
  std::vector<std::int32_t> tokens(count);
  std::iota(tokens.begin(), tokens.end(), salt * 100000);
  return tokens;
}

record::Record make_run(const RunScript& script) {
  record::Record record;
  plan(record, script);
  Random random(script.seed);
  std::size_t longest_class = 0;
  std::size_t samples = 0;
  for (const ClassScript& one : script.classes) {
    longest_class = std::max(longest_class, one.prompts);
    samples += one.prompts * script.repetitions * 2;
  }
  std::size_t done = 0;
  const auto progress = [&] {
    return static_cast<double>(done++) / static_cast<double>(std::max<std::size_t>(samples, 2) - 1);
  };
  for (std::size_t repetition = 0; repetition < script.repetitions; ++repetition) {
    for (std::size_t prompt = 0; prompt < longest_class; ++prompt) {
      for (const ClassScript& one : script.classes) {
        if (prompt >= one.prompts) continue;
        record::Block block;
        block.fixture = one.name;
        block.content_class = one.name;
        block.prompt = std::format("p{}", prompt + 1);
        block.repetition = repetition;
        const auto tokens = distinct_tokens(script.tokens);
        SampleScript first = plain_script(script, tokens);
        SampleScript second =
            script.control ? first : speculative_script(script, one.speedup, tokens);
        if (script.control) second.arm = "plain-2";
        if (random.below(2) == 1) std::swap(first, second);
        for (SampleScript* sample : {&first, &second}) {
          sample->slower = noise_factor(script.noise, progress(), random);
          block.samples.push_back(make_sample(*sample));
          block.samples.back().order = block.samples.size() - 1;
        }
        record.blocks.push_back(std::move(block));
      }
    }
  }
  return record;
}

record::Sample& sample_of(record::Block& block, const std::string& arm) {
  const auto found = std::ranges::find(block.samples, arm, &record::Sample::arm);
  PACELINE_CHECK(found != block.samples.end(), "the block has no sample of that arm");
  return *found;
}

void scale_times(record::Sample& sample, double factor) {
  const auto scale = [&](std::int64_t& time) {
    time = std::llround(static_cast<double>(time) * factor);
  };
  for (std::int64_t* time :
       {&sample.prefill_ns, &sample.first_token_ns, &sample.elapsed_ns, &sample.other_ns}) {
    scale(*time);
  }
  for (record::Round& round : sample.rounds) {
    for (std::int64_t* time : {&round.draft_ns, &round.verify_ns, &round.accept_ns, &round.other_ns,
                               &round.delivered_ns}) {
      scale(*time);
    }
  }
}

}  // namespace paceline::test
