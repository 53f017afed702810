#include "bench/scene.hpp"

#include <gtest/gtest.h>

#include <format>

#include "core/random.hpp"
#include "draft/draft_model.hpp"
#include "draft/lookup.hpp"
#include "draft/scripted.hpp"
#include "runtime/toy/toy.hpp"
#include "support/matchers.hpp"

namespace paceline::test {

namespace {

constexpr std::size_t k_context = 512;
constexpr std::size_t k_prompt_tokens = 40;

std::shared_ptr<const runtime::Model> toy_model(std::string_view name) {
  return runtime::make_toy_model(value_of(runtime::parse_toy_name(name)));
}

std::unique_ptr<runtime::Runtime> toy_runtime(const runtime::Model& model) {
  return value_of(model.create_runtime(
      {.sequences = 1, .context = k_context, .rows = 64, .leaves = 1, .threads = 1}));
}

}  // namespace

Scene::Scene(std::string_view toy) : model(toy_model(toy)), target(toy_runtime(*model)) {
  setup.vocabulary = &model->vocabulary();
  record.plan.order_seed = 5;
  record.plan.run_time_limit_seconds = 1e6;
}

bench::Contender& Scene::add(std::string id, record::ArmKind kind, std::size_t depth) {
  record::Arm arm;
  arm.id = std::move(id);
  arm.kind = kind;
  arm.runtime = "toy";
  arm.num_draft_tokens = depth;
  if (!setup.contenders.empty()) arm.baseline = "plain";
  record.plan.arms.push_back(arm);
  setup.contenders.push_back({.arm = arm, .target = &target, .drafter = {}});
  return setup.contenders.back();
}

void Scene::add_plain(std::string id) { add(std::move(id), record::ArmKind::plain, 0); }

void Scene::add_drafter(std::string id, draft::Drafter& drafter, std::size_t depth) {
  add(std::move(id), record::ArmKind::draft_model, depth).drafter =
      [&drafter](const bench::SampleFacts&) -> Result<draft::Drafter*> { return &drafter; };
}

void Scene::add_lookup(std::size_t depth) {
  drafters_.push_back(value_of(draft::make_lookup_drafter({})));
  add(std::format("lookup-{}", depth), record::ArmKind::lookup, depth).drafter =
      [drafter = drafters_.back().get()](const bench::SampleFacts&) -> Result<draft::Drafter*> {
    return drafter;
  };
}

void Scene::add_draft(std::string_view toy, std::size_t depth) {
  const auto draft = toy_model(toy);
  drafters_.push_back(value_of(draft::make_draft_model_drafter(
      toy_runtime(*draft), {.confidence = 0, .target_vocabulary = model->vocabulary().size()})));
  add_drafter(std::format("draft-{}", depth), *drafters_.back(), depth);
}

void Scene::add_scripted(double acceptance, std::size_t depth) {
  add(std::format("what-if-{}-{}", acceptance, depth), record::ArmKind::scripted, depth).drafter =
      [this, acceptance](const bench::SampleFacts& facts) -> Result<draft::Drafter*> {
    scripted_ = draft::make_scripted_drafter({.oracle = facts.plain_tokens,
                                              .prompt_tokens = facts.prompt_tokens,
                                              .right = draft::right_with_probability(acceptance, 1),
                                              .vocabulary = model->vocabulary().size()});
    return scripted_.get();
  };
}

void Scene::add_prompts(const std::string& fixture, std::size_t count, std::size_t repetitions) {
  for (std::size_t i = 0; i < count; ++i) {
    bench::PreparedPrompt prompt;
    prompt.fixture = fixture;
    prompt.content_class = "custom";
    prompt.id = std::format("{}-{}", fixture, i);
    Random random(100 * i + static_cast<unsigned char>(fixture.front()));
    for (std::size_t t = 0; t < k_prompt_tokens + i; ++t) {
      prompt.tokens.push_back(to_token(1 + random.below(model->vocabulary().size() - 1)));
    }
    prompt.max_tokens = 24;
    prompt.repetitions = repetitions;
    setup.prompts.push_back(std::move(prompt));
  }
}

Result<void> Scene::run(std::stop_token stop) { return bench::run(setup, record, clock, stop); }

std::unique_ptr<Scene> lookup_scene(std::size_t classes, std::size_t prompts,
                                    std::size_t repetitions) {
  auto scene = std::make_unique<Scene>();
  scene->add_plain();
  scene->add_lookup(3);
  for (std::size_t c = 0; c < classes; ++c) {
    scene->add_prompts(std::string(1, static_cast<char>('a' + c)), prompts, repetitions);
  }
  return scene;
}

std::vector<std::string> names(const std::vector<record::Block>& blocks) {
  std::vector<std::string> list;
  for (const record::Block& block : blocks) {
    list.push_back(std::format("{} #{}", block.prompt, block.repetition));
  }
  return list;
}

std::vector<record::Block> without_times(std::vector<record::Block> blocks) {
  for (record::Block& block : blocks) {
    block.host_before.reset();
    block.host_after.reset();
    for (record::Sample& sample : block.samples) {
      sample.started_at_unix_seconds = sample.ended_at_unix_seconds = 0;
      sample.prefill_ns = sample.first_token_ns = sample.elapsed_ns = sample.other_ns = 0;
      sample.first_text_ns.reset();
      sample.thermal_state.clear();
      for (record::Round& round : sample.rounds) {
        round.draft_ns = round.verify_ns = round.accept_ns = round.other_ns = 0;
        round.delivered_ns = 0;
      }
    }
  }
  return blocks;
}

const record::Sample& sample_of(const record::Block& block, std::string_view arm) {
  for (const record::Sample& sample : block.samples) {
    if (sample.arm == arm) return sample;
  }
  ADD_FAILURE() << "no sample of " << arm << " in " << block.prompt << ": " << block.reason;
  static const record::Sample none;
  return none;
}

std::uint64_t drafted(const record::Sample& sample) {
  std::uint64_t sum = 0;
  for (const record::Round& round : sample.rounds) sum += round.drafted;
  return sum;
}

std::uint64_t accepted(const record::Sample& sample) {
  std::uint64_t sum = 0;
  for (const record::Round& round : sample.rounds) sum += round.accepted;
  return sum;
}

}  // namespace paceline::test
