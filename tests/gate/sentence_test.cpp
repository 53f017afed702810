// The verdict in words, as a reader sees it.
#include <gtest/gtest.h>

#include <cmath>

#include "gate/gate.hpp"
#include "gate/scripted_run.hpp"

namespace paceline::gate {
namespace {

using test::make_run;
using test::sample_of;

/// Half the prompts of each class at speed-up * spread, half at speed-up / spread.
record::Record two_sided(std::vector<test::ClassScript> classes, double spread) {
  record::Record record = make_run({.classes = std::move(classes)});
  for (record::Block& block : record.blocks) {
    const bool odd = (block.prompt.back() - '0') % 2 == 1;
    test::scale_times(sample_of(block, "lookup-3"), odd ? spread : 1 / spread);
  }
  return record;
}

std::string sentence(const record::Record& record, const Policy& policy = {}) {
  return evaluate(record, policy).sentence;
}

TEST(Sentence, DoesNotEnableBelowTheFloorAndNamesTheBestClass) {
  EXPECT_EQ(sentence(two_sided({{.name = "prose", .prompts = 8, .speedup = 0.5},
                                {.name = "edit", .prompts = 8, .speedup = 1.05}},
                               1.05)),
            "Do not enable lookup-3 for smollm2-135m on this host: 0.72x [0.70, 0.75] over 16 "
            "prompts, below the floor of 1.15; best class edit 1.05x [1.01, 1.10].");
}

TEST(Sentence, EnablesAndNamesTheWeakestClass) {
  EXPECT_EQ(sentence(two_sided({{.name = "prose", .prompts = 8, .speedup = 1.3},
                                {.name = "edit", .prompts = 8, .speedup = 1.9}},
                               1.05)),
            "Enable lookup-3 for smollm2-135m on this host: 1.57x [1.53, 1.62] over 16 prompts, "
            "not below the floor of 1.15; weakest class prose 1.30x [1.24, 1.36].");
}

TEST(Sentence, OfOneClassNamesNone) {
  EXPECT_EQ(sentence(two_sided({{.name = "edit", .prompts = 8, .speedup = 1.9}}, 1.05)),
            "Enable lookup-3 for smollm2-135m on this host: 1.90x [1.82, 1.98] over 8 prompts, not "
            "below the floor of 1.15.");
}

TEST(Sentence, IsInconclusiveWithTheNumberOfFurtherPrompts) {
  const std::string text =
      sentence(two_sided({{.name = "edit", .prompts = 8, .speedup = 1.2}}, 1.2));
  EXPECT_EQ(
      text,
      "Inconclusive for lookup-3 with smollm2-135m on this host: 1.20x [1.02, 1.41] over 8 prompts "
      "straddles the floor of 1.15; about 157 prompts more would probably decide it.");
}

TEST(Sentence, GivesMoreDigitsWhereTwoWouldMislead) {
  // The lower bound is 1.1496: "1.15" would look like the floor.
  const auto record = make_run({.classes = {{.name = "edit", .prompts = 8, .speedup = 1.1496}}});
  EXPECT_EQ(sentence(record),
            "Do not enable lookup-3 for smollm2-135m on this host: 1.1496x [1.1496, 1.1496] over 8 "
            "prompts, below the floor of 1.15.");
}

TEST(Sentence, SaysWhenTextsDiffer) {
  auto record = make_run({.classes = {{.name = "edit", .prompts = 4, .speedup = 2}}});
  sample_of(record.blocks[0], "lookup-3").tokens[20] += 1;
  EXPECT_EQ(
      sentence(record),
      "Do not enable lookup-3 for smollm2-135m on this host: its text differs from plain decoding "
      "in 1 of 4 pairs, and not by a numeric tie (2.00x [2.00, 2.00] over 4 prompts).");
}

TEST(Sentence, SaysWhenNothingWasDrafted) {
  const auto record = make_run({.classes = {{.name = "edit", .prompts = 4}}, .drafts = false});
  EXPECT_EQ(sentence(record),
            "Do not enable lookup-3 for smollm2-135m on this host: lookup-3 drafted nothing in 4 "
            "pairs: no passage of the prompts or texts came up a second time.");
}

TEST(Sentence, SaysWhenAClassIsSlower) {
  EXPECT_EQ(sentence(two_sided({{.name = "prose", .prompts = 8, .speedup = 0.8},
                                {.name = "edit", .prompts = 8, .speedup = 2.5}},
                               1.05)),
            "Do not enable lookup-3 for smollm2-135m on this host: 1.41x [1.38, 1.45] over 16 "
            "prompts would reach the floor of 1.15, but it is slower than plain decoding in: prose "
            "0.80x [0.77, 0.84].");
}

TEST(Sentence, OfOnePromptAsksForMore) {
  const auto record = make_run({.classes = {{.name = "edit", .prompts = 1, .speedup = 2}}});
  EXPECT_EQ(sentence(record),
            "Inconclusive for lookup-3 with smollm2-135m on this host: 2.00x over 1 prompt, and "
            "one prompt cannot say how much prompts differ.");
}

TEST(Sentence, OfAWhatIfRunSaysSo) {
  auto record = make_run({.classes = {{.name = "edit", .prompts = 4, .speedup = 2}}});
  record.plan.arms[1].kind = record::ArmKind::scripted;
  record.plan.arms[1].scripted_acceptance = 0.8;
  EXPECT_EQ(sentence(record),
            "What if: with acceptance forced to 0.80, lookup-3 runs smollm2-135m at 2.00x [2.00, "
            "2.00] over 4 prompts; no drafter was measured.");
}

TEST(Sentence, CallsATargetThatIsAPathByItsLastPart) {
  auto record = make_run({.classes = {{.name = "edit", .prompts = 4, .speedup = 2}}});
  record.environment.target.name = "/models/tiny.gguf";
  EXPECT_TRUE(sentence(record).starts_with("Enable lookup-3 for tiny.gguf on this host"));
}

TEST(Sentence, OfABrokenGuardNamesIt) {
  auto record = make_run({.classes = {{.name = "edit", .prompts = 8, .speedup = 2}}});
  for (record::Block& block : record.blocks) {
    for (record::Sample& sample : block.samples) {
      const std::int64_t later = sample.arm == "plain" ? 10'000'000 : 20'000'000;
      sample.first_token_ns += later;
      sample.elapsed_ns += later;
      for (record::Round& round : sample.rounds) round.delivered_ns += later;
    }
  }
  EXPECT_TRUE(sentence(record).starts_with(
      "Do not enable lookup-3 for smollm2-135m on this host: its time to the first token is 2.00x "
      "[2.00, 2.00] that of plain decoding, beyond the limit of 1.10 ("))
      << sentence(record);
}

}  // namespace
}  // namespace paceline::gate
