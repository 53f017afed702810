// Properties over random records, sound and absurd ones.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <array>
#include <cmath>
#include <cstdlib>
#include <limits>

#include "core/json.hpp"
#include "gate/gate.hpp"
#include "gate/scripted_run.hpp"
#include "gate/spec028.hpp"

namespace paceline::gate {
namespace {

/// Runs RapidCheck from a fixed seed (RC_PARAMS may set another) and reports through GoogleTest.
template <typename Property>
void expect_always(const Property& property) {
  setenv("RC_PARAMS", "seed=20261", 0);
  EXPECT_TRUE(rc::check(property));
}

std::int64_t absurd_time(Random& random) {
  constexpr std::array<std::int64_t, 9> k_times = {0,
                                                   1,
                                                   -1,
                                                   1000,
                                                   -1'000'000'000,
                                                   50'000'000,
                                                   std::numeric_limits<std::int64_t>::max(),
                                                   std::numeric_limits<std::int64_t>::min(),
                                                   123'456'789};
  return k_times[random.below(k_times.size())];
}

double absurd_number(Random& random) {
  constexpr std::array<double, 8> k_numbers = {0,
                                               1,
                                               -1,
                                               1e308,
                                               1e-308,
                                               std::numeric_limits<double>::quiet_NaN(),
                                               std::numeric_limits<double>::infinity(),
                                               1.15};
  return k_numbers[random.below(k_numbers.size())];
}

std::uint32_t absurd_count(Random& random) {
  constexpr std::array<std::uint32_t, 6> k_counts = {0, 1, 2, 3, 17, 0xffffffff};
  return k_counts[random.below(k_counts.size())];
}

record::Sample absurd_sample(Random& random) {
  constexpr std::array k_arms = {"plain", "lookup-3", "draft", "nobody", ""};
  record::Sample sample;
  sample.arm = k_arms[random.below(k_arms.size())];
  sample.order = random.below(4);
  sample.prompt_tokens = random.below(3) == 0 ? 0 : random.below(100);
  for (std::size_t i = 0; i < random.below(30); ++i) {
    sample.tokens.push_back(static_cast<std::int32_t>(random.below(3)));
  }
  sample.ended_at_unix_seconds = absurd_number(random);
  sample.prefill_ns = absurd_time(random);
  sample.first_token_ns = absurd_time(random);
  sample.elapsed_ns = absurd_time(random);
  sample.other_ns = absurd_time(random);
  sample.target_forwards = absurd_count(random);
  for (std::size_t i = 0; i < random.below(6); ++i) {
    sample.rounds.push_back({.rows = absurd_count(random),
                             .drafted = absurd_count(random),
                             .accepted = absurd_count(random),
                             .emitted = absurd_count(random),
                             .draft_ns = absurd_time(random),
                             .verify_ns = absurd_time(random),
                             .accept_ns = absurd_time(random),
                             .other_ns = absurd_time(random),
                             .delivered_ns = absurd_time(random)});
  }
  for (std::size_t i = 0; i < random.below(4); ++i)
    sample.drafted_at.push_back(absurd_count(random));
  for (std::size_t i = 0; i < random.below(4); ++i)
    sample.accepted_at.push_back(absurd_count(random));
  sample.thermal_state = random.below(2) == 0 ? "nominal" : "\xff\xfe";
  return sample;
}

record::Record absurd_record(std::uint64_t seed) {
  Random random(seed);
  // Often a sound record with absurd parts: that goes deeper than pure noise.
  record::Record record;
  if (random.below(3) > 0) {
    record = test::make_run(
        {.classes = {{.name = "code", .prompts = 3}, {.name = "prose", .prompts = 2}},
         .noise = {.sigma = 0.1},
         .seed = seed});
  }
  for (std::size_t i = 0; i < random.below(3); ++i) {
    record::Arm arm;
    arm.id = i == 0 ? "draft" : "plain";
    arm.kind = static_cast<record::ArmKind>(random.below(4));
    if (random.below(2) == 0) arm.baseline = random.below(2) == 0 ? "lookup-3" : "nobody";
    if (random.below(2) == 0) arm.scripted_acceptance = absurd_number(random);
    record.plan.arms.push_back(arm);
  }
  for (std::size_t i = 0; i < random.below(5); ++i) {
    record::Block block;
    block.fixture = random.below(2) == 0 ? "code" : "";
    block.content_class = random.below(2) == 0 ? "custom" : "code";
    block.prompt = random.below(2) == 0 ? "p1" : "p9";
    block.status = static_cast<record::CellStatus>(random.below(3));
    for (std::size_t k = 0; k < random.below(5); ++k)
      block.samples.push_back(absurd_sample(random));
    record.blocks.push_back(block);
  }
  for (record::Block& block : record.blocks) {
    for (record::Sample& sample : block.samples) {
      if (random.below(4) > 0) continue;
      switch (random.below(5)) {
        case 0:
          sample.elapsed_ns = absurd_time(random);
          break;
        case 1:
          sample.first_token_ns = absurd_time(random);
          break;
        case 2:
          if (!sample.rounds.empty()) sample.rounds[0].delivered_ns = absurd_time(random);
          break;
        case 3:
          sample.tokens.resize(random.below(40), 7);
          break;
        default:
          if (!sample.rounds.empty()) sample.rounds.back().emitted = absurd_count(random);
          break;
      }
    }
  }
  if (random.below(2) == 0) {
    record.sustained.emplace();
    record.sustained->last_window_seconds = absurd_number(random);
    record.sustained->ended_at_unix_seconds = absurd_number(random);
    for (std::size_t k = 0; k < random.below(8); ++k) {
      record.sustained->samples.push_back(absurd_sample(random));
    }
  }
  record.plan.control = random.below(8) == 0;
  record.plan.sampling.temperature = absurd_number(random);
  record.generated_at_unix_seconds = absurd_number(random);
  return record;
}

Policy absurd_policy(std::uint64_t seed) {
  Random random(seed + 77);
  Policy policy;
  if (random.below(2) == 0) return policy;
  for (double* number : {&policy.ratio_floor, &policy.acceptance_floor, &policy.latency_guard,
                         &policy.ttft_guard, &policy.confidence, &policy.parity_low}) {
    if (random.below(2) == 0) *number = absurd_number(random);
  }
  return policy;
}

/// Every number that JSON carries, also deep inside, is finite.
void require_finite(const Json& json) {
  if (json.is_structured()) {
    for (const auto& item : json) require_finite(item);
  } else if (json.is_number_float()) {
    RC_ASSERT(std::isfinite(json.get<double>()));
  }
}

TEST(Property, NoNumberIsEverNanOrInfinite) {
  expect_always([](std::uint64_t seed) {
    const auto record = absurd_record(seed);
    const Policy policy = absurd_policy(seed);
    const Evaluation evaluation = evaluate(record, policy);
    require_finite(to_json(evaluation));
    require_finite(spec028::report(record, policy));
    const std::string text = dump_json(to_json(evaluation));
    RC_ASSERT(text.find("nan") == std::string::npos);
    RC_ASSERT(evaluation.sentence.find("nan") == std::string::npos);
    RC_ASSERT(evaluation.sentence.find("inf") == std::string::npos);
    RC_ASSERT(evaluation.sentence.ends_with('.'));
  });
}

TEST(Property, EvaluationIsDeterministic) {
  expect_always([](std::uint64_t seed) {
    const auto record = absurd_record(seed);
    RC_ASSERT(dump_json(to_json(evaluate(record, Policy{}))) ==
              dump_json(to_json(evaluate(record, Policy{}))));
  });
}

TEST(Property, NothingIsEnabledWithoutAnIntervalThatReachesTheFloor) {
  expect_always([](std::uint64_t seed) {
    const Evaluation evaluation = evaluate(absurd_record(seed), Policy{});
    for (const auto* list : {&evaluation.by_class, &evaluation.overall}) {
      for (const Comparison& comparison : *list) {
        if (comparison.verdict != Verdict::enable) continue;
        RC_ASSERT(comparison.speedup.low.value_or(0) >= 1.15);
        RC_ASSERT(comparison.outputs_different == 0U);
        RC_ASSERT(comparison.draft.drafted > 0U);
      }
    }
  });
}

test::RunScript random_script(std::uint64_t seed) {
  Random random(seed);
  return {.classes =
              {{.name = "code", .prompts = 2 + random.below(8), .speedup = 0.5 + random.unit()},
               {.name = "prose", .prompts = 1 + random.below(5), .speedup = 0.5 + random.unit()}},
          .noise = {.sigma = 0.2 * random.unit(), .drift = random.unit(), .outlier_share = 0.1},
          .seed = seed,
          .repetitions = 1 + random.below(2)};
}

void require_near(const std::optional<double>& a, const std::optional<double>& b) {
  RC_ASSERT(a.has_value() == b.has_value());
  if (a) RC_ASSERT(std::abs(*a / *b - 1) < 1e-5);
}

TEST(Property, ScalingAllTimesLeavesRatiosUnchanged) {
  expect_always([](std::uint64_t seed) {
    const auto record = test::make_run(random_script(seed));
    auto scaled = record;
    for (record::Block& block : scaled.blocks) {
      for (record::Sample& sample : block.samples) test::scale_times(sample, 7.5);
    }
    const Evaluation one = evaluate(record, Policy{});
    const Evaluation two = evaluate(scaled, Policy{});
    require_near(one.overall[0].speedup.value, two.overall[0].speedup.value);
    require_near(one.overall[0].speedup.low, two.overall[0].speedup.low);
    require_near(one.overall[0].decode_speedup.value, two.overall[0].decode_speedup.value);
    require_near(one.overall[0].guards[0].ratio.value, two.overall[0].guards[0].ratio.value);
    RC_ASSERT(one.overall[0].difference == two.overall[0].difference);
  });
}

TEST(Property, SwappingTheArmsInvertsTheRatio) {
  expect_always([](std::uint64_t seed) {
    const auto record = test::make_run(random_script(seed));
    auto swapped = record;
    for (record::Block& block : swapped.blocks) {
      for (record::Sample& sample : block.samples) {
        sample.arm = sample.arm == "plain" ? "lookup-3" : "plain";
      }
    }
    const Comparison one = evaluate(record, Policy{}).overall[0];
    const Comparison two = evaluate(swapped, Policy{}).overall[0];
    const auto inverse = [](const std::optional<double>& value) {
      return value ? std::optional(1 / *value) : std::nullopt;
    };
    require_near(one.speedup.value, inverse(two.speedup.value));
    if (one.speedup.method == "t" && two.speedup.method == "t") {
      require_near(one.speedup.low, inverse(two.speedup.high));
      require_near(one.speedup.high, inverse(two.speedup.low));
    }
    require_near(one.ttft_ratio.value, inverse(two.ttft_ratio.value));
  });
}

TEST(Property, OrderOfBlocksDoesNotMatterToTheValue) {
  expect_always([](std::uint64_t seed) {
    const auto record = test::make_run(random_script(seed));
    auto shuffled = record;
    Random random(seed);
    shuffle(std::span(shuffled.blocks).subspan(1), random);
    require_near(evaluate(record, Policy{}).overall[0].speedup.value,
                 evaluate(shuffled, Policy{}).overall[0].speedup.value);
  });
}

}  // namespace
}  // namespace paceline::gate
