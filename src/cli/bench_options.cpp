#include "cli/bench_options.hpp"

#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <format>
#include <set>

#include "core/file.hpp"
#include "core/text.hpp"
#include "runtime/toy/toy.hpp"

namespace paceline::cli {

namespace {

constexpr std::size_t k_default_depth = 3;
constexpr std::size_t k_quick_prompts = 3;
constexpr std::size_t k_quick_tokens = 64;
constexpr std::size_t k_published_runs = 3;
constexpr std::size_t k_most_runs = 1000;  // of each prompt
const std::vector<std::string> k_quick_fixtures{"code", "edit", "chat", "extraction"};

/// A model's name as part of an arm's: the file name without folders and ending.
std::string short_name(const std::string& model) {
  if (runtime::is_toy_name(model)) return model;
  std::string name = model.substr(model.find_last_of('/') + 1);
  if (name.ends_with(".gguf")) name.resize(name.size() - 5);
  return name;
}

}  // namespace

Result<std::vector<record::Arm>> make_arms(const BenchOptions& options) {
  const auto make = [&](std::string id, record::ArmKind kind, std::size_t depth) {
    record::Arm arm;
    arm.id = std::move(id);
    arm.kind = kind;
    arm.runtime = runtime::is_toy_name(options.target) ? "toy" : options.runtime;
    arm.num_draft_tokens = depth;
    return arm;
  };
  if (options.draft_confidence && options.drafts.empty()) {
    return fail(ErrorCode::invalid_argument,
                "--draft-confidence has no effect without --draft; add one or leave it out");
  }
  std::vector<record::Arm> arms{make("plain", record::ArmKind::plain, 0)};
  const auto add = [&](record::Arm arm) {
    arm.baseline = "plain";
    arms.push_back(std::move(arm));
  };
  if (options.control) {
    if (!options.drafts.empty() || options.lookup || !options.scripted.empty() ||
        !options.num_draft_tokens.empty()) {
      return fail(ErrorCode::invalid_argument,
                  "--control compares plain with plain; leave out --draft, --lookup, --scripted "
                  "and --num-draft-tokens");
    }
    add(make("control", record::ArmKind::plain, 0));
    return arms;
  }
  std::vector<std::size_t> depths = options.num_draft_tokens;
  if (depths.empty()) depths = {k_default_depth};
  const bool lookup = options.lookup || (options.drafts.empty() && options.scripted.empty());
  for (const std::size_t depth : depths) {
    if (lookup) add(make(std::format("lookup-{}", depth), record::ArmKind::lookup, depth));
    for (const std::string& draft : options.drafts) {
      record::Arm arm = make(std::format("draft-{}-{}", short_name(draft), depth),
                             record::ArmKind::draft_model, depth);
      arm.draft_model = draft;
      arm.draft_confidence = options.draft_confidence;
      add(std::move(arm));
    }
    for (const double acceptance : options.scripted) {
      record::Arm arm =
          make(std::format("what-if-{}-{}", acceptance, depth), record::ArmKind::scripted, depth);
      arm.scripted_acceptance = acceptance;
      add(std::move(arm));
    }
  }
  std::set<std::string> ids;
  for (const record::Arm& arm : arms) {
    if (!ids.insert(arm.id).second) {
      return fail(ErrorCode::invalid_argument,
                  std::format("the arm {} was asked for twice", arm.id));
    }
  }
  return arms;
}

std::size_t prompts_per_fixture(const BenchOptions& options) {
  return options.quick ? k_quick_prompts : 0;
}

Result<std::vector<workload::Fixture>> choose_fixtures(const BenchOptions& options) {
  std::vector<std::string> names = options.fixtures;
  if (names.empty() && options.quick) names = k_quick_fixtures;
  if (names.empty()) {
    for (const auto content_class : workload::all_classes()) {
      names.emplace_back(workload::to_string(content_class));
    }
  }
  std::vector<workload::Fixture> fixtures;
  std::set<std::string> ids;
  for (const std::string& name : names) {
    PACELINE_TRY(workload::Fixture fixture, workload::load_fixture(name));
    if (!ids.insert(fixture.id).second) {
      return fail(ErrorCode::invalid_argument,
                  std::format("the fixture \"{}\" was given twice", fixture.id));
    }
    if (options.quick) {
      fixture.max_tokens = std::min(fixture.max_tokens.value_or(k_quick_tokens), k_quick_tokens);
    }
    if (options.max_tokens) fixture.max_tokens = *options.max_tokens;
    if (options.temperature) fixture.temperature = *options.temperature;
    if (options.top_p) fixture.top_p = *options.top_p;
    fixtures.push_back(std::move(fixture));
  }
  return fixtures;
}

Result<std::size_t> choose_repetitions(const BenchOptions& options,
                                       const std::vector<workload::Fixture>& fixtures) {
  const bool published = fixtures.size() == 1 && fixtures.front().id.starts_with("spec028-");
  const std::size_t fallback = published ? k_published_runs : 1;
  // One of the two given: the other follows.
  const std::size_t baseline = options.baseline_runs.value_or(options.spec_runs.value_or(fallback));
  const std::size_t spec = options.spec_runs.value_or(baseline);
  const auto check = [&](const std::optional<std::size_t>& given,
                         std::string_view option) -> Result<void> {
    if (given && *given == 0) {
      return fail(ErrorCode::invalid_argument, std::format("--{} must be > 0", option));
    }
    if (given && *given > k_most_runs) {
      return fail(ErrorCode::invalid_argument,
                  std::format("--{} is {}, at most {} is wanted", option, *given, k_most_runs));
    }
    return {};
  };
  PACELINE_TRY_VOID(check(options.baseline_runs, "baseline-runs"));
  PACELINE_TRY_VOID(check(options.spec_runs, "spec-runs"));
  if (baseline != spec) {
    return fail(ErrorCode::invalid_argument,
                std::format("--baseline-runs {} and --spec-runs {} differ; runs are paired, so "
                            "both must be equal",
                            baseline, spec));
  }
  return baseline;
}

namespace {

struct PolicyKey {
  const char* name;
  double gate::Policy::* field;
  double low;
  double high;
};

constexpr PolicyKey k_policy_keys[] = {
    {"ratio_floor", &gate::Policy::ratio_floor, 0.01, 100},
    {"acceptance_floor", &gate::Policy::acceptance_floor, 0, 1},
    {"spec028_latency_limit", &gate::Policy::spec028_latency_limit, 0.01, 100},
    {"spec028_ttft_limit", &gate::Policy::spec028_ttft_limit, 0.01, 100},
    {"latency_guard", &gate::Policy::latency_guard, 0.01, 100},
    {"ttft_guard", &gate::Policy::ttft_guard, 0.01, 100},
    {"confidence", &gate::Policy::confidence, 0.5, 0.999},
    {"parity_low", &gate::Policy::parity_low, 0.01, 1},
    {"parity_high", &gate::Policy::parity_high, 1, 100},
};

Result<void> read_policy_file(const std::string& path, gate::Policy& policy) {
  PACELINE_TRY(const std::string text, read_file(path, 1 << 20));
  try {
    const YAML::Node root = YAML::Load(text);
    if (!root.IsMap()) {
      return fail(ErrorCode::bad_format,
                  std::format("policy \"{}\": a map of keys and numbers is wanted", path));
    }
    for (const auto& entry : root) {
      const auto name = entry.first.as<std::string>();
      const auto key =
          std::ranges::find_if(k_policy_keys, [&](const PolicyKey& k) { return name == k.name; });
      if (key == std::end(k_policy_keys)) {
        std::vector<std::string> known;
        for (const PolicyKey& k : k_policy_keys) known.emplace_back(k.name);
        return fail(ErrorCode::bad_format,
                    std::format("policy \"{}\": the key \"{}\" is unknown; known are {}", path,
                                escape(name), join(known, ", ")));
      }
      double value = 0;
      if (!YAML::convert<double>::decode(entry.second, value) ||
          !(value >= key->low && value <= key->high)) {
        return fail(
            ErrorCode::bad_format,
            std::format("policy \"{}\": {} is \"{}\", a number from {} to {} is wanted", path, name,
                        entry.second.IsScalar() ? escape(entry.second.Scalar()) : "no number",
                        key->low, key->high));
      }
      policy.*key->field = value;
    }
  } catch (const YAML::Exception& error) {
    return fail(ErrorCode::bad_format,
                std::format("policy \"{}\": not valid YAML: {}", path, error.what()));
  }
  return {};
}

}  // namespace

Result<gate::Policy> make_policy(const BenchOptions& options) {
  gate::Policy policy;
  if (!options.policy_file.empty()) {
    PACELINE_TRY_VOID(read_policy_file(options.policy_file, policy));
  }
  if (options.ratio_floor) policy.ratio_floor = *options.ratio_floor;
  if (options.max_p95_latency_ratio) {
    policy.spec028_latency_limit = *options.max_p95_latency_ratio;
    policy.latency_guard = *options.max_p95_latency_ratio;
  }
  if (options.max_p95_ttft_ratio) {
    policy.spec028_ttft_limit = *options.max_p95_ttft_ratio;
    policy.ttft_guard = *options.max_p95_ttft_ratio;
  }
  if (options.acceptance_floor) policy.acceptance_floor = *options.acceptance_floor;
  return policy;
}

}  // namespace paceline::cli
