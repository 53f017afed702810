// The canary on the toy model, whose arithmetic is exact, and on runtimes and drafters that do
// wrong.
#include "compat/canary.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <memory>

#include "compat/canary_drafter_impl.hpp"
#include "compat/canary_sampler_impl.hpp"
#include "core/random.hpp"
#include "draft/draft_model.hpp"
#include "draft/lookup.hpp"
#include "runtime/toy/toy.hpp"
#include "support/fake_runtime.hpp"
#include "support/matchers.hpp"
#include "support/odd_runtime.hpp"

namespace paceline::test {
namespace {

using compat::CanaryCase;
using compat::CanaryOutcome;
using compat::CanaryReport;
using compat::CanaryResult;
using compat::CanaryStage;
using testing::AllOf;
using testing::Contains;
using testing::Each;
using testing::Field;
using testing::HasSubstr;
using testing::SizeIs;

class Canary : public testing::Test {
 protected:
  using Spoil = std::function<void(OddRuntime&)>;

  Canary() : model(runtime::make_toy_model({.seed = 7})) {
    setup.vocabulary = &model->vocabulary();
    setup.make_target =
        [this](const runtime::RuntimeLimits& limits) -> Result<std::unique_ptr<runtime::Runtime>> {
      PACELINE_TRY(auto inner, model->create_runtime(limits));
      return spoiled(std::move(inner));
    };
    setup.depth = 3;
    setup.max_tokens = 40;
    for (const std::uint64_t seed : {1U, 2U}) {
      Random random(seed);
      compat::CanaryPrompt prompt{.id = "prompt-" + std::to_string(seed), .tokens = {}};
      for (int i = 0; i < 30; ++i) {
        prompt.tokens.push_back(to_token(1 + random.below(model->vocabulary().size() - 1)));
      }
      setup.prompts.push_back(std::move(prompt));
    }
  }

  std::unique_ptr<runtime::Runtime> spoiled(std::unique_ptr<runtime::Runtime> inner) {
    auto odd = std::make_unique<OddRuntime>(std::move(inner));
    if (spoil) spoil(*odd);
    return odd;
  }

  void use_lookup() {
    setup.drafter = {
        .name = "lookup", .most_branches = 3, .make = [](std::size_t, std::size_t branches) {
          return draft::make_lookup_drafter({.branches = branches});
        }};
  }

  void use_draft_model(Spoil spoil_draft = {}) {
    runtime::ToyOptions options{.seed = 7};
    options.agree = 0.7;
    draft_model = runtime::make_toy_model(options);
    setup.drafter = {
        .name = "draft",
        .most_branches = 1,
        .make = [this, spoil_draft](std::size_t context,
                                    std::size_t) -> Result<std::unique_ptr<draft::Drafter>> {
          PACELINE_TRY(auto inner, draft_model->create_runtime({.context = context, .rows = 64}));
          auto odd = std::make_unique<OddRuntime>(std::move(inner));
          if (spoil_draft) spoil_draft(*odd);
          return draft::make_draft_model_drafter(std::move(odd),
                                                 {.target_vocabulary = model->vocabulary().size()});
        }};
  }

  /// A target of 32 tokens in which t is followed by t + 1, and t + 5 comes second by `margin`.
  void use_steps(float margin) {
    step_vocabulary = FakeVocabulary(std::vector<std::string>(32, "x"));
    setup.vocabulary = &step_vocabulary;
    setup.prompts = {{.id = "steps", .tokens = tokens({3, 4, 5, 6, 7, 8})}};
    setup.make_target =
        [this, margin](
            const runtime::RuntimeLimits& limits) -> Result<std::unique_ptr<runtime::Runtime>> {
      return spoiled(
          std::make_unique<FakeRuntime>(32, limits, [margin](std::span<const Token> context) {
            std::vector<float> logits(32, 0.0f);
            const std::size_t last = to_index(context.back());
            logits[(last + 1) % 32] = 2;
            logits[(last + 5) % 32] = 2 - margin;
            return logits;
          }));
    };
  }

  CanaryReport run() { return value_of(compat::run_canary(setup, {})); }

  static std::vector<CanaryCase> of(const CanaryReport& report, CanaryStage stage) {
    std::vector<CanaryCase> cases;
    std::ranges::copy_if(report.cases, std::back_inserter(cases),
                         [&](const CanaryCase& c) { return c.stage == stage; });
    return cases;
  }

  std::shared_ptr<const runtime::Model> model;
  std::shared_ptr<const runtime::Model> draft_model;
  FakeVocabulary step_vocabulary{{}};
  Spoil spoil;
  compat::CanarySetup setup;
};

void swap_best(std::vector<float>& logits) {
  const auto best = std::ranges::max_element(logits);
  const float top = std::exchange(*best, -1.0f);
  const auto second = std::ranges::max_element(logits);
  *best = *second;
  *second = top;
}

TEST_F(Canary, FindsAFaultlessTargetEqualInAllStages) {
  setup.sliding_window = 48;
  for (const bool lookup : {true, false}) {
    lookup ? use_lookup() : use_draft_model();
    const CanaryReport report = run();
    EXPECT_EQ(report.result(), CanaryResult::equal) << compat::canary_table(report, 100);
    EXPECT_TRUE(report.complete);
    for (const CanaryStage stage :
         {CanaryStage::sampler, CanaryStage::repeat, CanaryStage::chain, CanaryStage::forced,
          CanaryStage::tree, CanaryStage::window, CanaryStage::context_end, CanaryStage::drafter}) {
      EXPECT_THAT(of(report, stage), Not(testing::IsEmpty())) << compat::to_string(stage);
    }
    EXPECT_THAT(report.cases, Each(Field(&CanaryCase::outcome, CanaryOutcome::equal)));
    EXPECT_THAT(of(report, CanaryStage::chain), Contains(Field(&CanaryCase::temperature, 0.8)));
  }
}

TEST_F(Canary, AcceptsEveryNumberOfDraftsAtEveryDepth) {
  use_lookup();
  for (const CanaryCase& c : of(run(), CanaryStage::forced)) {
    EXPECT_THAT(c.accepted_counts, SizeIs(c.depth + 1));
    EXPECT_THAT(c.accepted_counts, Each(testing::Gt(0U))) << "depth " << c.depth;
  }
}

TEST_F(Canary, WritesToTheVeryEndOfTheContext) {
  use_draft_model();
  for (const CanaryCase& c : of(run(), CanaryStage::context_end)) {
    EXPECT_EQ(c.finish_reason, "context");
    EXPECT_EQ(c.tokens, 32U + 1);  // the last one needs no position
  }
}

TEST_F(Canary, CallsADifferenceThatTheWidthOfPassesExplainsATie) {
  use_steps(0.25f);
  spoil = [](OddRuntime& odd) {
    odd.bend = [](std::size_t rows, std::vector<float>& logits) {
      if (rows == 4) swap_best(logits);
    };
  };
  const CanaryReport report = run();
  EXPECT_EQ(report.result(), CanaryResult::numeric_tie) << compat::canary_table(report, 100);
  const auto forced = of(report, CanaryStage::forced);
  for (const CanaryCase& c : forced) {
    if (c.depth < 3) {
      EXPECT_EQ(c.outcome, CanaryOutcome::equal);
    }
    if (c.depth < 3 || c.temperature > 0) continue;
    ASSERT_TRUE(c.difference.has_value());
    EXPECT_EQ(c.outcome, CanaryOutcome::numeric_tie);
    EXPECT_EQ(c.reason, "tokens_differ");
    EXPECT_FLOAT_EQ(static_cast<float>(c.difference->top_two_margin.value_or(0)), 0.25f);
    EXPECT_FLOAT_EQ(static_cast<float>(c.difference->width_noise.value_or(0)), 0.25f);
    EXPECT_EQ(to_int(*c.difference->speculative), (to_int(*c.difference->plain) + 4) % 32);
  }
}

/// A wide pass that computes something else, the same each time: no rounding is that large.
TEST_F(Canary, CallsNoTieWhatMovesLogitsByMoreThanTheySpread) {
  use_steps(1.5f);
  spoil = [](OddRuntime& odd) {
    odd.bend = [](std::size_t rows, std::vector<float>& logits) {
      if (rows == 4) swap_best(logits);
    };
  };
  EXPECT_EQ(run().result(), CanaryResult::different);
}

TEST_F(Canary, FindsABonusTokenThatIsTakenFromAWrongPlace) {
  use_lookup();
  spoil = [](OddRuntime& odd) {
    odd.bend_row = [](std::size_t rows, std::size_t row, std::vector<float>& logits) {
      if (rows > 1 && rows < 8 && row + 1 == rows) std::ranges::rotate(logits, logits.begin() + 3);
    };
  };
  const CanaryReport report = run();
  EXPECT_EQ(report.result(), CanaryResult::different);
  EXPECT_THAT(of(report, CanaryStage::forced),
              Contains(AllOf(Field(&CanaryCase::outcome, CanaryOutcome::different),
                             Field(&CanaryCase::reason, "tokens_differ"))));
}

TEST_F(Canary, FindsARollbackThatIsOnePositionShort) {
  use_lookup();
  spoil = [](OddRuntime& odd) { odd.rolls_back_one_short = true; };
  const CanaryReport report = run();
  EXPECT_EQ(report.result(), CanaryResult::different);
  const auto forced = of(report, CanaryStage::forced);
  EXPECT_THAT(forced, Each(AllOf(Field(&CanaryCase::outcome, CanaryOutcome::different),
                                 Field(&CanaryCase::reason, "wrong_commit"),
                                 Field(&CanaryCase::difference, testing::Optional(testing::_)))));
  EXPECT_THAT(forced.front().detail, HasSubstr("were committed"));
}

/// The same faults in a runtime that says the length that should be: only the tokens show them.
TEST_F(Canary, FindsRollbacksThatAreShortOrFarByTheTokensAlone) {
  use_lookup();
  for (const bool far : {false, true}) {
    spoil = [far](OddRuntime& odd) {
      odd.hides_lengths = true;
      (far ? odd.rolls_back_one_far : odd.rolls_back_one_short) = true;
    };
    const CanaryReport report = run();
    EXPECT_EQ(report.result(), CanaryResult::different);
    for (const CanaryCase& c : of(report, CanaryStage::forced)) {
      if (far && c.depth == 1) continue;
      EXPECT_EQ(c.outcome, CanaryOutcome::different) << c.depth;
      EXPECT_EQ(c.reason, "tokens_differ");
    }
  }
}

// C2: rollback quietly does nothing once the window has wrapped.
TEST_F(Canary, FindsAFaultThatShowsOnlyPastTheWindow) {
  use_lookup();
  setup.sliding_window = 100;
  spoil = [](OddRuntime& odd) {
    odd.hides_lengths = true;
    odd.rolls_back_one_short = true;
    odd.faulty_from = 100;
  };
  const CanaryReport report = run();
  EXPECT_EQ(report.result(), CanaryResult::different);
  for (const CanaryCase& c : report.cases) {
    if (c.stage != CanaryStage::window) {
      EXPECT_EQ(c.outcome, CanaryOutcome::equal) << compat::to_string(c.stage) << " " << c.arm;
    } else if (c.arm.starts_with("forced")) {
      EXPECT_EQ(c.outcome, CanaryOutcome::different) << c.arm;
    }
  }
}

TEST_F(Canary, NamesABackEndThatDoesNotRepeatItself) {
  use_lookup();
  auto passes = std::make_shared<std::size_t>(0);
  spoil = [passes](OddRuntime& odd) {
    odd.bend = [passes](std::size_t, std::vector<float>& logits) {
      if (++*passes % 101 == 0) swap_best(logits);
    };
  };
  const CanaryReport report = run();
  EXPECT_EQ(report.result(), CanaryResult::different);
  EXPECT_FALSE(report.complete);
  EXPECT_THAT(report.incomplete_reason, HasSubstr("does not repeat itself"));
  EXPECT_THAT(report.cases, Contains(Field(&CanaryCase::reason, "backend_not_deterministic")));
  EXPECT_EQ(report.cases.back().outcome, CanaryOutcome::not_run);
}

TEST_F(Canary, NamesWidePassesThatDoNotRepeatThemselves) {
  use_lookup();
  auto passes = std::make_shared<std::size_t>(0);
  spoil = [passes](OddRuntime& odd) {
    odd.bend = [passes](std::size_t rows, std::vector<float>& logits) {
      if (rows > 1 && rows < 8 && ++*passes % 23 == 0) swap_best(logits);
    };
  };
  const CanaryReport report = run();
  EXPECT_EQ(report.result(), CanaryResult::different);
  EXPECT_THAT(report.cases, Contains(Field(&CanaryCase::reason, "speculation_not_deterministic")));
}

TEST_F(Canary, RefusesTargetsThatCannotRollBack) {
  setup.make_target = [](const runtime::RuntimeLimits& limits) {
    auto fake = std::make_unique<FakeRuntime>(
        512, limits, [](std::span<const Token>) { return std::vector<float>(512); });
    fake->says.rollback = false;
    fake->says.rollback_reason = "it keeps a recurrent state";
    return Result<std::unique_ptr<runtime::Runtime>>(std::move(fake));
  };
  const auto report = compat::run_canary(setup, {});
  EXPECT_THAT(report, FailsWithWord("target_no_rollback"));
  EXPECT_THAT(report, FailsWith(ErrorCode::unsupported, HasSubstr("recurrent state")));
}

TEST_F(Canary, LeavesOutTreesThatTheTargetCannotHave) {
  use_lookup();
  setup.make_target =
      [this](const runtime::RuntimeLimits& limits) -> Result<std::unique_ptr<runtime::Runtime>> {
    if (limits.leaves > 1) return fail(ErrorCode::unsupported, "no trees here");
    return model->create_runtime(limits);
  };
  const CanaryReport report = run();
  EXPECT_EQ(report.result(), CanaryResult::equal);
  EXPECT_THAT(of(report, CanaryStage::tree), testing::IsEmpty());
  ASSERT_FALSE(report.skipped.empty());
  EXPECT_EQ(report.skipped.front().stage, CanaryStage::tree);
  EXPECT_EQ(report.skipped.front().reason, "no trees here");
}

TEST_F(Canary, SaysWhereTheWindowIsTooFarAway) {
  setup.sliding_window = 4096;
  setup.most_context = 4096;
  const CanaryReport report = run();
  EXPECT_THAT(report.skipped,
              Contains(AllOf(Field(&compat::CanarySkip::stage, CanaryStage::window),
                             Field(&compat::CanarySkip::reason, HasSubstr("window of 4096")))));
}

TEST_F(Canary, KeepsWhatIsKnownWhenItIsStopped) {
  use_lookup();
  std::stop_source stop;
  setup.progress = [&](const compat::CanaryProgress& progress) {
    if (progress.done == 8) stop.request_stop();
  };
  const CanaryReport report = value_of(compat::run_canary(setup, stop.get_token()));
  EXPECT_EQ(report.result(), CanaryResult::inconclusive);
  EXPECT_FALSE(report.complete);
  EXPECT_EQ(report.cases[7].outcome, CanaryOutcome::equal);
  EXPECT_EQ(report.cases[8].outcome, CanaryOutcome::not_run);
}

TEST_F(Canary, CallsATextThatSpeculationBreaksOffAFault) {
  use_lookup();
  spoil = [](OddRuntime& odd) {
    odd.before_pass = [](std::span<const runtime::Row> rows, std::stop_token) -> Result<void> {
      if (rows.size() == 4) return fail(ErrorCode::runtime_failed, "the cache is broken");
      return {};
    };
  };
  const CanaryReport report = run();
  EXPECT_EQ(report.result(), CanaryResult::different);
  EXPECT_THAT(report.cases,
              Contains(AllOf(Field(&CanaryCase::reason, "run_failed"),
                             Field(&CanaryCase::detail, HasSubstr("the cache is broken")))));
}

TEST_F(Canary, EndsWhereAModelGivesNoNumbers) {
  use_lookup();
  spoil = [](OddRuntime& target) {
    target.bend = [](std::size_t, std::vector<float>& logits) {
      logits.back() = std::numeric_limits<float>::quiet_NaN();
    };
  };
  const auto report = compat::run_canary(setup, {});
  EXPECT_THAT(report, FailsWith(ErrorCode::bad_format));
  EXPECT_EQ(report.error().word, "logits_not_finite");
}

TEST_F(Canary, EndsWhereItsDraftGivesNoNumbers) {
  use_draft_model([](OddRuntime& draft) {
    draft.bend = [](std::size_t, std::vector<float>& logits) {
      std::ranges::fill(logits, std::numeric_limits<float>::infinity());
    };
  });
  const auto report = compat::run_canary(setup, {});
  EXPECT_THAT(report, FailsWith(ErrorCode::bad_format));
  EXPECT_EQ(report.error().word, "logits_not_finite");
  EXPECT_THAT(report.error().message, HasSubstr("draft at depth 3"));
}

TEST_F(Canary, ProvesNothingWhereNothingWasDrafted) {
  use_lookup();
  setup.make_target =
      [this](runtime::RuntimeLimits limits) -> Result<std::unique_ptr<runtime::Runtime>> {
    limits.results = 1;  // no room for a draft in any pass
    return model->create_runtime(limits);
  };
  const CanaryReport report = run();
  EXPECT_TRUE(report.complete);
  EXPECT_EQ(report.result(), CanaryResult::not_exercised);
  EXPECT_THAT(compat::canary_table(report, 80),
              AllOf(HasSubstr("result: not_exercised"), HasSubstr("shows nothing")));
}

TEST_F(Canary, WantsPromptsDepthAndRoom) {
  setup.depth = 0;
  EXPECT_THAT(compat::run_canary(setup, {}), FailsWith(ErrorCode::invalid_argument));
  setup.depth = 3;
  setup.most_context = 8;
  EXPECT_THAT(compat::run_canary(setup, {}),
              FailsWith(ErrorCode::invalid_argument, HasSubstr("too few for depth 3")));
  setup.most_context = 0;
  setup.prompts.clear();
  EXPECT_THAT(compat::run_canary(setup, {}), FailsWith(ErrorCode::invalid_argument));
}

/// Forgets the first of several tokens that it is told at once.
class ForgetfulDrafter final : public draft::Drafter {
 public:
  explicit ForgetfulDrafter(std::unique_ptr<draft::Drafter> inner) : inner_(std::move(inner)) {}
  Result<draft::DraftSlot> open() override { return inner_->open(); }
  void close(draft::DraftSlot slot) override { inner_->close(slot); }
  Result<void> observe(draft::DraftSlot slot, std::span<const Token> tokens) override {
    const bool later = tokens.size() > 1 && tokens.size() < 5;
    return inner_->observe(slot, later ? tokens.subspan(1) : tokens);
  }
  Result<void> draft(std::span<draft::DraftRequest> requests, std::stop_token stop) override {
    return inner_->draft(requests, std::move(stop));
  }

 private:
  std::unique_ptr<draft::Drafter> inner_;
};

TEST_F(Canary, FindsADrafterThatLosesItsPlace) {
  setup.drafter = {.name = "lookup",
                   .most_branches = 1,
                   .make = [](std::size_t, std::size_t) -> Result<std::unique_ptr<draft::Drafter>> {
                     PACELINE_TRY(auto inner, draft::make_lookup_drafter({}));
                     return std::make_unique<ForgetfulDrafter>(std::move(inner));
                   }};
  const CanaryReport report = run();
  EXPECT_EQ(report.result(), CanaryResult::different);
  for (const CanaryCase& c : report.cases) {  // no text shows it: only the drafter's own stage does
    EXPECT_EQ(c.outcome == CanaryOutcome::different, c.stage == CanaryStage::drafter);
  }
  EXPECT_EQ(of(report, CanaryStage::drafter).front().reason, "drafter_out_of_step");
}

// C6: the draft's cache is cut at the wrong place.
TEST_F(Canary, FindsADraftModelWhoseCacheIsCutOneShort) {
  use_draft_model([](OddRuntime& odd) { odd.truncates_one_short = true; });
  const CanaryReport report = run();
  EXPECT_EQ(of(report, CanaryStage::drafter).front().outcome, CanaryOutcome::different);
  EXPECT_EQ(of(report, CanaryStage::drafter).front().reason, "drafter_out_of_step");
}

TEST_F(Canary, SaysThatADrafterNeverDrafted) {
  setup.drafter = {.name = "quiet",
                   .most_branches = 1,
                   .make = [](std::size_t, std::size_t) -> Result<std::unique_ptr<draft::Drafter>> {
                     return std::make_unique<FakeDrafter>(
                         [](std::span<const Token>, std::size_t) { return DraftTree{}; });
                   }};
  EXPECT_THAT(run().skipped,
              Contains(Field(&compat::CanarySkip::reason, HasSubstr("proposed nothing"))));
}

TEST(CanarySampler, GivesTheKnownAnswers) { EXPECT_EQ(compat::sampler_fault(), ""); }

TEST(CanaryDrafterSteps, AllowAModelItsOwnNoiseAndALookupNone) {
  compat::DrafterSteps steps;
  EXPECT_FALSE(steps.is_fault());
  steps.stale = 1;
  EXPECT_TRUE(steps.is_fault());
  steps.computes = true;
  EXPECT_FALSE(steps.is_fault());
  steps.stale = 2;
  EXPECT_TRUE(steps.is_fault());
  steps.noisy = 1;
  EXPECT_FALSE(steps.is_fault());
}

}  // namespace
}  // namespace paceline::test
