// Output of every drafter equals plain decoding, token for token, on the real SmolLM2. A few
// prompts by default, every depth greedily and sampled; 20 longer ones where PACELINE_ALL_PROMPTS
// is defined (the slow tests), sampled at one depth: what is sampled does not depend on the depth.
#include <gtest/gtest.h>

#include <format>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "draft/draft_model.hpp"
#include "draft/lookup.hpp"
#include "draft/scripted.hpp"
#include "engine/engine.hpp"
#include "support/matchers.hpp"
#ifdef PACELINE_NATIVE
#include "support/native_model.hpp"
#else
#include "support/real_model.hpp"
#endif
#include "workload/fixture.hpp"

namespace paceline::engine {
namespace {

#ifdef PACELINE_ALL_PROMPTS
constexpr std::size_t k_prompts_per_class = 4;  // of six classes
constexpr std::size_t k_most_prompts = 20;
constexpr std::size_t k_tokens = 128;
constexpr std::size_t k_sampled_depths[] = {3};
#else
constexpr std::size_t k_prompts_per_class = 1;
constexpr std::size_t k_most_prompts = 6;
constexpr std::size_t k_tokens = 48;
constexpr std::size_t k_sampled_depths[] = {1, 3, 7};
#endif
constexpr std::size_t k_greedy_depths[] = {1, 3, 7};

#ifdef PACELINE_NATIVE
using RealModel = test::NativeSmolLm2;
#else
using RealModel = test::SmolLm2;
#endif

struct Case {
  std::string id;
  std::vector<Token> prompt;
  std::map<double, std::vector<Token>> plain;  // by temperature
};

class ModelEquality : public RealModel {
 protected:
  void SetUp() override {
    RealModel::SetUp();
    if (testing::Test::HasFatalFailure() || testing::Test::IsSkipped()) return;
    for (const auto content_class : workload::all_classes()) {
      const auto fixture =
          test::value_of(workload::builtin_fixture(workload::to_string(content_class)));
      for (std::size_t i = 0; i < k_prompts_per_class && cases_.size() < k_most_prompts; ++i) {
        std::vector<runtime::ChatMessage> messages;
        for (const auto& message : fixture.prompts[i].messages) {
          messages.push_back({message.role, message.content});
        }
        cases_.push_back({fixture.prompts[i].id,
                          test::value_of(runtime::chat_tokens(model().vocabulary(), messages)),
                          {}});
      }
    }
  }

  std::unique_ptr<runtime::Runtime> make_runtime(std::size_t leaves) const {
    return test::value_of(model().create_runtime({.context = 1024, .rows = 128, .leaves = leaves}));
  }

  std::vector<Token> write(runtime::Runtime& target, draft::Drafter* drafter, const Case& c,
                           double temperature, std::size_t depth) {
    Engine engine(target, model().vocabulary(), drafter, clock_);
    GenerationOptions options;
    options.prompt = c.prompt;
    options.max_tokens = k_tokens;
    options.sampler.temperature = temperature;
    options.sampler.seed = 11;
    options.num_draft_tokens = depth;
    const auto text = test::value_of(engine.start(std::move(options)));
    EXPECT_TRUE(engine.run(*text, {}));
    for (const Round& round : text->rounds()) accepted_ += round.accepted;
    return text->tokens();
  }

  using MakeDrafter = std::function<std::unique_ptr<draft::Drafter>(const Case&, double)>;

  /// Every prompt, depth and temperature: plain on a runtime of its own, then with the drafter.
  void expect_equal(std::size_t leaves, const MakeDrafter& make) {
    const auto plain_runtime = make_runtime(1);
    const auto target = make_runtime(leaves);
    for (Case& c : cases_) {
      for (const double temperature : {0.0, 0.8}) {
        c.plain[temperature] = write(*plain_runtime, nullptr, c, temperature, 0);
        const auto drafter = make(c, temperature);
        for (const std::size_t depth :
             temperature == 0 ? std::span<const std::size_t>(k_greedy_depths) : k_sampled_depths) {
          EXPECT_EQ(write(*target, drafter.get(), c, temperature, depth), c.plain[temperature])
              << c.id << " at depth " << depth << ", temperature " << temperature;
        }
      }
    }
    EXPECT_GT(accepted_, 0U) << "nothing was accepted, so nothing was tested";
  }

  static MakeDrafter scripted(std::size_t vocabulary, std::size_t decoys) {
    return [=](const Case& c, double temperature) {
      return draft::make_scripted_drafter({.oracle = c.plain.at(temperature),
                                           .prompt_tokens = c.prompt.size(),
                                           .right = draft::right_with_probability(0.75, 5),
                                           .vocabulary = vocabulary,
                                           .decoys_before = decoys});
    };
  }

  SystemClock clock_;
  std::vector<Case> cases_;
  std::size_t accepted_ = 0;
};

TEST_F(ModelEquality, LookupWritesWhatPlainWrites) {
  expect_equal(1,
               [](const Case&, double) { return test::value_of(draft::make_lookup_drafter({})); });
}

TEST_F(ModelEquality, LookupTreesWriteWhatPlainWrites) {
  expect_equal(3, [](const Case&, double) {
    return test::value_of(draft::make_lookup_drafter({.branches = 3}));
  });
}

// Two runtimes of libllama spin against each other: with all prompts that would take half an hour.
#if defined(PACELINE_NATIVE) || !defined(PACELINE_ALL_PROMPTS)
TEST_F(ModelEquality, TheModelAsItsOwnDraftWritesWhatPlainWrites) {
  expect_equal(1, [&](const Case&, double) {
    return test::value_of(draft::make_draft_model_drafter(
        make_runtime(1), {.target_vocabulary = model().vocabulary().size()}));
  });
}
#endif

TEST_F(ModelEquality, ScriptedChainsWriteWhatPlainWrites) {
  expect_equal(1, scripted(model().vocabulary().size(), 0));
}

TEST_F(ModelEquality, TreesWhoseBranchesAreAcceptedWriteWhatPlainWrites) {
  expect_equal(17, scripted(model().vocabulary().size(), 1));
}

}  // namespace
}  // namespace paceline::engine
