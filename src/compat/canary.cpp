#include "compat/canary.hpp"

#include <algorithm>
#include <format>
#include <limits>
#include <map>
#include <tuple>
#include <utility>

#include "compat/canary_drafter_impl.hpp"
#include "compat/canary_sampler_impl.hpp"
#include "compat/canary_watch_impl.hpp"
#include "core/text.hpp"
#include "draft/scripted.hpp"
#include "engine/engine.hpp"
#include "runtime/largest.hpp"

namespace paceline::compat {

namespace {

/// Stages whose speculative texts are compared with plain ones.
bool is_held_against_plain(CanaryStage stage) {
  switch (stage) {
    case CanaryStage::chain:
    case CanaryStage::forced:
    case CanaryStage::tree:
    case CanaryStage::window:
    case CanaryStage::context_end:
      return true;
    case CanaryStage::sampler:
    case CanaryStage::repeat:
    case CanaryStage::drafter:
      return false;
  }
  return false;
}

}  // namespace

CanaryResult CanaryReport::result() const {
  const auto any = [&](CanaryOutcome outcome) {
    return std::ranges::contains(cases, outcome, &CanaryCase::outcome);
  };
  if (any(CanaryOutcome::different)) return CanaryResult::different;
  if (!complete || any(CanaryOutcome::not_run)) return CanaryResult::inconclusive;
  if (std::ranges::none_of(cases, [](const CanaryCase& c) {
        return is_held_against_plain(c.stage) && c.drafted > 0;
      })) {
    return CanaryResult::not_exercised;
  }
  return any(CanaryOutcome::numeric_tie) ? CanaryResult::numeric_tie : CanaryResult::equal;
}

namespace {

constexpr std::size_t k_pass_rows = 128;  // several runtimes live at once: buffers stay small
constexpr std::size_t k_lookup_branches = 3;
constexpr std::size_t k_forced_decoys = 1;
constexpr std::size_t k_shortest_prompt = 4;   // tokens
constexpr std::size_t k_window_lead = 32;      // tokens of the prompt's end before the window's
constexpr std::size_t k_window_tokens = 128;   // written; about 100 of them past the window
constexpr std::size_t k_end_prompt = 32;       // tokens
constexpr std::size_t k_end_tokens = 32;       // written until the context is full
constexpr std::size_t k_room_for_faults = 64;  // tokens
constexpr const char* k_window_prompt = "long";

/// The runtimes that texts are written on.
enum class Place { chain, tree, window, window_tree, context_end };

/// A case with what it takes to run it.
struct Planned {
  CanaryCase result;
  Place place = Place::chain;
  const CanaryPrompt* prompt = nullptr;
};

struct Text {
  WrittenText written;
  engine::FinishReason finish = engine::FinishReason::none;
  std::vector<engine::Round> rounds;
  std::string fault;  // a watcher's, with the word it goes under
  std::string fault_word;
};

/// Scripted drafts that are right 0, 1, ... depth times in a row, over and over: every number of
/// accepted tokens occurs.
std::function<bool(std::size_t)> every_accept_count(std::size_t depth) {
  return [depth](std::size_t index) {
    std::size_t place = (index - 1) % ((depth + 1) * (depth + 2) / 2);
    std::size_t right = 0;
    while (place > right) place -= ++right;
    return place < right;
  };
}

class Canary {
 public:
  Canary(const CanarySetup& setup, std::stop_token stop)
      : setup_(setup), stop_(std::move(stop)), vocabulary_(*setup.vocabulary) {}

  Result<CanaryReport> run();

 private:
  Result<void> prepare();
  Result<void> add_place(Place place, std::size_t context, std::size_t leaves);
  void plan();
  void plan_repeats();
  void plan_places(Place place, Place tree, CanaryStage stage, const CanaryPrompt& prompt);
  void add(Place place, CanaryStage stage, std::string arm, const CanaryPrompt& prompt,
           std::size_t depth, double temperature);
  bool has(Place place) const { return runtimes_.contains(place); }

  Result<void> run_case(Planned& planned);
  Result<void> run_repeat(Planned& planned);
  Result<void> run_comparison(Planned& planned);
  Result<void> judged(Planned& planned, const std::function<Result<void>()>& work);
  Result<void> run_drafter(Planned& planned);
  Result<void> compare(CanaryCase& result, const Text& ours, const Text& plain,
                       const Planned& planned);
  Result<void> compare_runs(Planned& planned, const Text& second, const Text& first,
                            const char* word);
  Result<std::unique_ptr<draft::Drafter>> make_drafter(const Planned& planned);
  Result<Text> write(const Planned& planned, draft::Drafter* drafter);
  Result<const Text*> plain_text(const Planned& planned);
  verify::SamplerOptions sampler(const Planned& planned) const;
  std::size_t max_tokens(Place place) const;
  runtime::Runtime& target(Place place) { return *runtimes_.at(place); }

  const CanarySetup& setup_;
  std::stop_token stop_;
  const runtime::Vocabulary& vocabulary_;
  SystemClock clock_;
  std::size_t max_tokens_ = 0;
  std::vector<CanaryPrompt> prompts_;
  CanaryPrompt window_prompt_;
  CanaryPrompt end_prompt_;
  std::vector<std::pair<Token, double>> no_end_;  // logit bias: the text does not end by itself
  std::map<Place, std::unique_ptr<runtime::Runtime>> runtimes_;
  std::map<std::tuple<Place, std::string, double>, Text> plain_;
  std::vector<Planned> planned_;
  CanaryReport report_;
};

std::vector<Token> last_tokens(std::span<const Token> tokens, std::size_t count) {
  const auto part = tokens.last(std::min(count, tokens.size()));
  return {part.begin(), part.end()};
}

void differs(CanaryCase& result, std::string word, std::string detail) {
  result.outcome = CanaryOutcome::different;
  if (!result.reason.empty()) return;  // the first cause is the one to name
  result.reason = std::move(word);
  result.detail = std::move(detail);
}

/// For texts whose passes are not what they should be: then there is nothing to put through again.
WrittenText without_passes(const WrittenText& text) {
  return {.target = nullptr, .tokens = text.tokens, .rounds = {}};
}

Place plain_place(Place place) {
  switch (place) {
    case Place::tree:
      return Place::chain;
    case Place::window_tree:
      return Place::window;
    default:
      return place;
  }
}

Result<void> Canary::add_place(Place place, std::size_t context, std::size_t leaves) {
  PACELINE_TRY(auto made, setup_.make_target({.sequences = 1,
                                              .context = context,
                                              .rows = k_pass_rows,
                                              .leaves = leaves,
                                              .threads = 0,
                                              .features = false}));
  runtimes_[place] = std::move(made);
  return {};
}

Result<void> Canary::prepare() {
  if (setup_.depth == 0) {
    return fail(ErrorCode::invalid_argument,
                "the canary was asked for depth 0, which is plain decoding; 1 to 16 is wanted");
  }
  const std::size_t most = setup_.most_context > 0 ? setup_.most_context : 1 << 20;
  const std::size_t spare = setup_.depth + 1;
  if (most < spare + 2 * k_shortest_prompt) {
    return fail(ErrorCode::invalid_argument,
                std::format("the target was trained for {} tokens, too few for depth {}", most,
                            setup_.depth));
  }
  max_tokens_ = std::min(setup_.max_tokens, (most - spare) / 2);
  std::size_t longest = 0;
  for (const CanaryPrompt& prompt : setup_.prompts) {
    if (prompt.tokens.empty()) continue;
    prompts_.push_back({prompt.id, last_tokens(prompt.tokens, most - spare - max_tokens_)});
    longest = std::max(longest, prompts_.back().tokens.size());
  }
  if (prompts_.empty()) {
    return fail(ErrorCode::invalid_argument, "the canary needs a prompt that has tokens");
  }
  for (std::size_t id = 0; id < vocabulary_.size(); ++id) {
    if (vocabulary_.is_end_of_text(to_token(id))) {
      no_end_.emplace_back(to_token(id), -std::numeric_limits<double>::infinity());
    }
  }

  // Some room beyond: rows that a fault leaves behind shall show as tokens, not as a full context.
  const std::size_t room = std::min(most, longest + max_tokens_ + spare + k_room_for_faults);
  PACELINE_TRY_VOID(add_place(Place::chain, room, 1));
  const runtime::Capabilities can = target(Place::chain).capabilities();
  if (!can.rollback) {
    return fail(ErrorCode::unsupported,
                std::format("the target cannot take rejected tokens back: {}; only plain decoding "
                            "is possible",
                            can.rollback_reason),
                "target_no_rollback");
  }
  end_prompt_ = {prompts_.front().id, last_tokens(prompts_.front().tokens, k_end_prompt)};
  const std::size_t end = std::min(most, end_prompt_.tokens.size() + k_end_tokens);
  PACELINE_TRY_VOID(add_place(Place::context_end, end, 1));

  draft::ScriptedOptions with_decoys;
  with_decoys.decoys_before = k_forced_decoys;
  const std::size_t leaves = std::max(
      k_lookup_branches, draft::make_scripted_drafter(std::move(with_decoys))->max_leaves());
  const auto tree = add_place(Place::tree, room, leaves);
  if (!tree) {
    report_.skipped.push_back({CanaryStage::tree, tree.error().message});
  } else if (!target(Place::tree).capabilities().trees) {
    runtimes_.erase(Place::tree);
    report_.skipped.push_back({CanaryStage::tree, "the target's runtime takes chains only"});
  }

  if (setup_.sliding_window == 0) {
    report_.skipped.push_back({CanaryStage::window, "the target has no sliding window"});
    return {};
  }
  const std::size_t wanted = setup_.sliding_window > 2 * k_window_lead
                                 ? setup_.sliding_window - k_window_lead
                                 : 2 * k_window_lead;
  const std::size_t context = wanted + k_window_tokens + spare;
  if (context > most) {
    report_.skipped.push_back(
        {CanaryStage::window,
         std::format("writing past the window of {} takes {} tokens, the target was trained for {}",
                     setup_.sliding_window, context, most)});
    return {};
  }
  window_prompt_.id = k_window_prompt;
  while (window_prompt_.tokens.size() < wanted) {
    for (const CanaryPrompt& prompt : prompts_) {
      const std::size_t missing = wanted - window_prompt_.tokens.size();
      const auto part = std::span(prompt.tokens).first(std::min(missing, prompt.tokens.size()));
      window_prompt_.tokens.insert(window_prompt_.tokens.end(), part.begin(), part.end());
    }
  }
  const std::size_t with_room = std::min(most, context + k_room_for_faults);
  PACELINE_TRY_VOID(add_place(Place::window, with_room, 1));
  if (has(Place::tree)) PACELINE_TRY_VOID(add_place(Place::window_tree, with_room, leaves));
  return {};
}

void Canary::add(Place place, CanaryStage stage, std::string arm, const CanaryPrompt& prompt,
                 std::size_t depth, double temperature) {
  Planned planned{.result = {}, .place = place, .prompt = &prompt};
  planned.result.stage = stage;
  planned.result.prompt = prompt.id;
  planned.result.arm = std::move(arm);
  planned.result.depth = depth;
  planned.result.temperature = temperature;
  planned.result.prompt_tokens = prompt.tokens.size();
  planned_.push_back(std::move(planned));
}

void Canary::plan_repeats() {
  const CanaryPrompt& first = prompts_.front();
  for (const CanaryPrompt& prompt : prompts_) {
    add(Place::chain, CanaryStage::repeat, "plain", prompt, 0, 0);
  }
  add(Place::chain, CanaryStage::repeat, "plain", first, 0, setup_.temperature);
  if (setup_.drafter) {
    add(Place::chain, CanaryStage::repeat, setup_.drafter->name, first, setup_.depth, 0);
  }
  add(Place::chain, CanaryStage::repeat, "forced", first, setup_.depth, 0);
}

/// The deepest chains and trees of one stage that has one prompt.
void Canary::plan_places(Place place, Place tree, CanaryStage stage, const CanaryPrompt& prompt) {
  for (const double temperature : {0.0, setup_.temperature}) {
    if (setup_.drafter) add(place, stage, setup_.drafter->name, prompt, setup_.depth, temperature);
    add(place, stage, "forced", prompt, setup_.depth, temperature);
    if (tree != place && has(tree)) {
      add(tree, stage, "forced-tree", prompt, setup_.depth, temperature);
    }
  }
}

void Canary::plan() {
  add(Place::chain, CanaryStage::sampler, "sampler", prompts_.front(), 0, setup_.temperature);
  plan_repeats();
  for (std::size_t depth = 1; depth <= setup_.depth; ++depth) {
    for (const CanaryPrompt& prompt : prompts_) {
      for (const double temperature : {0.0, setup_.temperature}) {
        if (temperature > 0 && depth < setup_.depth) continue;
        if (setup_.drafter) {
          add(Place::chain, CanaryStage::chain, setup_.drafter->name, prompt, depth, temperature);
        }
        add(Place::chain, CanaryStage::forced, "forced", prompt, depth, temperature);
        if (!has(Place::tree)) continue;
        if (setup_.drafter && setup_.drafter->most_branches > 1) {
          add(Place::tree, CanaryStage::tree, setup_.drafter->name + "-tree", prompt, depth,
              temperature);
        }
        if (depth == setup_.depth || depth == 1) {
          add(Place::tree, CanaryStage::tree, "forced-tree", prompt, depth, temperature);
        }
      }
    }
  }
  if (has(Place::window)) {
    plan_places(Place::window, Place::window_tree, CanaryStage::window, window_prompt_);
  }
  plan_places(Place::context_end, Place::context_end, CanaryStage::context_end, end_prompt_);
  if (setup_.drafter) {
    add(Place::chain, CanaryStage::drafter, setup_.drafter->name, prompts_.front(), setup_.depth,
        0);
  }
  std::ranges::stable_sort(planned_, {}, [](const Planned& p) { return p.result.stage; });
}

std::size_t Canary::max_tokens(Place place) const {
  switch (place) {
    case Place::chain:
    case Place::tree:
      return max_tokens_;
    case Place::window:
    case Place::window_tree:
      return k_window_tokens;
    case Place::context_end:
      return 2 * k_end_tokens;  // the context ends before
  }
  return max_tokens_;
}

verify::SamplerOptions Canary::sampler(const Planned& planned) const {
  verify::SamplerOptions options;
  options.temperature = planned.result.temperature;
  options.seed = setup_.seed;
  if (options.temperature > 0) {  // every link of the chain has something to do
    options.top_k = 40;
    options.top_p = 0.95;
    options.min_p = 0.02;
    options.repetition_penalty = 1.1;
    options.frequency_penalty = 0.1;
  }
  if (planned.place != Place::chain && planned.place != Place::tree) options.logit_bias = no_end_;
  return options;
}

Result<Text> Canary::write(const Planned& planned, draft::Drafter* drafter) {
  const std::vector<Token>& prompt = planned.prompt->tokens;
  WatchedRuntime runtime(target(planned.place), prompt.size());
  std::optional<WatchedDrafter> watched;
  if (drafter != nullptr) watched.emplace(*drafter);
  engine::Engine engine(runtime, vocabulary_, watched ? &*watched : nullptr, clock_);
  Text text;
  {
    PACELINE_TRY(const auto generation,
                 engine.start({.prompt = prompt,
                               .max_tokens = max_tokens(planned.place),
                               .stop = {},
                               .sampler = sampler(planned),
                               .num_draft_tokens = drafter != nullptr ? planned.result.depth : 0}));
    PACELINE_TRY_VOID(engine.run(*generation, stop_));
    text.written = {.target = &target(planned.place),
                    .tokens = generation->tokens(),
                    .rounds = runtime.rounds()};
    text.finish = generation->finish_reason();
    text.rounds = generation->rounds();
  }
  const auto fault = [&](const char* word, std::string detail) {
    if (!text.fault.empty()) return;
    text.fault_word = word;
    text.fault = std::move(detail);
  };
  if (!runtime.fault().empty()) fault("wrong_commit", runtime.fault());
  for (std::size_t i = 0; i < text.rounds.size(); ++i) {
    const std::size_t committed = text.written.rounds[i].path.size();
    if (committed != text.rounds[i].emitted) {
      fault("wrong_commit", std::format("round {} emitted {} tokens and committed {} rows", i + 1,
                                        text.rounds[i].emitted, committed));
    }
  }
  if (watched) {
    std::vector<Token> whole = prompt;
    whole.insert(whole.end(), text.written.tokens.begin(), text.written.tokens.end());
    std::size_t expected = prompt.size() + 1;
    for (std::size_t i = 0; i < watched->observed_at().size(); ++i) {
      if (watched->observed_at()[i] != expected) {
        fault("drafter_out_of_step",
              std::format("before round {} the drafter was told {} tokens of {}", i + 1,
                          watched->observed_at()[i], expected));
      }
      expected += text.rounds[i].emitted;
    }
    const auto& observed = watched->observed();
    if (observed.size() > whole.size() ||
        !std::ranges::equal(observed, std::span(whole).first(observed.size()))) {
      fault("drafter_out_of_step", "the drafter was told other tokens than those of the text");
    }
  }
  return text;
}

Result<const Text*> Canary::plain_text(const Planned& planned) {
  Planned plain = planned;
  plain.place = plain_place(planned.place);
  const std::tuple key(plain.place, planned.prompt->id, planned.result.temperature);
  const auto known = plain_.find(key);
  if (known != plain_.end()) return &known->second;
  PACELINE_TRY(Text text, write(plain, nullptr));
  return &plain_.emplace(key, std::move(text)).first->second;
}

Result<std::unique_ptr<draft::Drafter>> Canary::make_drafter(const Planned& planned) {
  const std::string& arm = planned.result.arm;
  if (!arm.starts_with("forced")) {
    return setup_.drafter->make(target(planned.place).limits().context,
                                planned.place == Place::tree ? k_lookup_branches : 1);
  }
  PACELINE_TRY(const Text* plain, plain_text(planned));
  return draft::make_scripted_drafter(
      {.oracle = plain->written.tokens,
       .prompt_tokens = planned.prompt->tokens.size(),
       .right = every_accept_count(planned.result.depth),
       .vocabulary = vocabulary_.size(),
       .decoys_before = arm == "forced-tree" ? k_forced_decoys : 0});
}

Result<void> Canary::compare(CanaryCase& result, const Text& ours, const Text& plain,
                             const Planned& planned) {
  result.tokens = ours.written.tokens.size();
  result.finish_reason = engine::to_string(ours.finish);
  result.rounds = ours.rounds.size();
  result.accepted_counts.assign(result.depth + 1, 0);
  for (const engine::Round& round : ours.rounds) {
    result.drafted += round.drafted;
    result.accepted += round.accepted;
    if (round.drafted > 0) ++result.accepted_counts[std::min(round.accepted, result.depth)];
  }
  result.outcome = CanaryOutcome::equal;
  if (!ours.fault.empty()) differs(result, ours.fault_word, ours.fault);
  const bool replayable = ours.fault.empty() && plain.fault.empty();
  const ReplaySetting setting{.prompt = planned.prompt->tokens,
                              .sampler = sampler(planned),
                              .vocabulary = vocabulary_.size()};
  auto found = find_difference(replayable ? ours.written : without_passes(ours.written),
                               plain.written, setting, stop_);
  std::string unexplained = "arithmetic does not explain it";
  if (!found && found.error().code != ErrorCode::cancelled) {
    unexplained =
        std::format("its passes could not be put through again: {}", found.error().message);
    found = find_difference(without_passes(ours.written), plain.written, setting, stop_);
  }
  if (!found) return found.error();
  if (!*found) {
    if (ours.finish != plain.finish) {
      differs(result, "finish_reason_differs",
              std::format("plain ended by {}, speculative by {}", engine::to_string(plain.finish),
                          engine::to_string(ours.finish)));
    }
    return {};
  }
  const TextDifference& difference = **found;
  const auto text = [&](std::optional<Token> token) {
    return token ? to_valid_utf8(vocabulary_.piece(*token, true)) : std::string();
  };
  result.difference = {.position = difference.index,
                       .plain = difference.plain,
                       .speculative = difference.speculative,
                       .plain_text = text(difference.plain),
                       .speculative_text = text(difference.speculative),
                       .top_two_margin = difference.top_two_margin,
                       .deviation = difference.deviation,
                       .width_noise = difference.width_noise};
  if (difference.numeric_tie) {
    result.outcome = CanaryOutcome::numeric_tie;
    result.reason = "tokens_differ";
    result.detail = "the same passes on a fresh sequence give both choices again";
  } else {
    differs(result, "tokens_differ", std::move(unexplained));
  }
  return {};
}

Result<void> Canary::run_repeat(Planned& planned) {
  CanaryCase& result = planned.result;
  PACELINE_TRY(const Text* plain, plain_text(planned));
  if (result.arm == "plain") {
    PACELINE_TRY(const Text again, write(planned, nullptr));
    return compare_runs(planned, again, *plain, "backend_not_deterministic");
  }
  return judged(planned, [&]() -> Result<void> {
    PACELINE_TRY(const auto one, make_drafter(planned));
    PACELINE_TRY(const Text first, write(planned, one.get()));
    PACELINE_TRY(const auto two, make_drafter(planned));
    PACELINE_TRY(const Text second, write(planned, two.get()));
    return compare_runs(planned, second, first, "speculation_not_deterministic");
  });
}

/// Plain decoding wrote this text, so an error of `work` is speculation's.
Result<void> Canary::judged(Planned& planned, const std::function<Result<void>()>& work) {
  const auto worked = work();
  if (worked || worked.error().code == ErrorCode::cancelled) return worked;
  if (worked.error().word == runtime::k_logits_not_finite) {  // the model is damaged, or the draft
    return worked.error().in(std::format("{} {} at depth {}", to_string(planned.result.stage),
                                         planned.result.arm, planned.result.depth));
  }
  differs(planned.result, "run_failed", worked.error().message);
  return {};
}

/// Two runs of one arm: no arithmetic may tell them apart.
Result<void> Canary::compare_runs(Planned& planned, const Text& second, const Text& first,
                                  const char* word) {
  PACELINE_TRY_VOID(compare(planned.result, second, first, planned));
  CanaryCase& result = planned.result;
  if (result.reason == "tokens_differ" || result.reason == "finish_reason_differs") {
    result.outcome = CanaryOutcome::different;
    result.reason = word;
    result.detail = "two runs of the same passes gave different texts";
  }
  return {};
}

Result<void> Canary::run_comparison(Planned& planned) {
  PACELINE_TRY(const Text* plain, plain_text(planned));
  return judged(planned, [&]() -> Result<void> {
    PACELINE_TRY(const auto drafter, make_drafter(planned));
    PACELINE_TRY(const Text text, write(planned, drafter.get()));
    return compare(planned.result, text, *plain, planned);
  });
}

Result<void> Canary::run_drafter(Planned& planned) {
  CanaryCase& result = planned.result;
  PACELINE_TRY(const Text* plain, plain_text(planned));
  return judged(planned, [&]() -> Result<void> {
    PACELINE_TRY(const DrafterSteps steps,
                 check_drafter_steps([&] { return make_drafter(planned); },
                                     turned_text(plain->written.tokens, vocabulary_.size()),
                                     planned.prompt->tokens, result.depth, stop_));
    result.tokens = steps.tokens;
    result.rounds = steps.rounds;
    result.drafted = steps.drafted;
    result.outcome = CanaryOutcome::equal;
    if (steps.stale == 0) return {};
    result.outcome = steps.is_fault() ? CanaryOutcome::different : CanaryOutcome::numeric_tie;
    result.reason = "drafter_out_of_step";
    result.detail = std::format(
        "in {} of {} rounds it drafted other tokens than one that read the text anew; the first in "
        "round {}; two that read it in different parts disagreed in {}",
        steps.stale, steps.rounds, steps.first_stale + 1, steps.noisy);
    return {};
  });
}

Result<void> Canary::run_case(Planned& planned) {
  switch (planned.result.stage) {
    case CanaryStage::sampler:
      planned.result.outcome = CanaryOutcome::equal;
      if (const std::string fault = sampler_fault(); !fault.empty()) {
        differs(planned.result, "sampler_order", fault);
      }
      return {};
    case CanaryStage::repeat:
      return run_repeat(planned);
    case CanaryStage::drafter:
      return run_drafter(planned);
    default:
      return run_comparison(planned);
  }
}

Result<CanaryReport> Canary::run() {
  PACELINE_TRY_VOID(prepare());
  plan();
  Result<void> outcome;
  for (std::size_t i = 0; i < planned_.size() && outcome; ++i) {
    Planned& planned = planned_[i];
    const CanaryCase& result = planned.result;
    if (setup_.progress) {
      setup_.progress(
          {i, planned_.size(),
           std::format("{}: {}, {}", to_string(result.stage), result.arm, result.prompt)});
    }
    outcome = run_case(planned);
    if (!outcome && outcome.error().code == ErrorCode::cancelled) {
      planned.result.outcome = CanaryOutcome::not_run;
      report_.incomplete_reason = "stopped";
    } else if (result.reason == "backend_not_deterministic") {
      report_.incomplete_reason =
          "plain decoding does not repeat itself, so no difference would say anything";
      break;
    }
  }
  if (!outcome && outcome.error().code != ErrorCode::cancelled) return outcome.error();
  report_.complete = report_.incomplete_reason.empty();
  if (setup_.drafter && report_.complete && std::ranges::none_of(planned_, [&](const Planned& p) {
        return p.result.arm.starts_with(setup_.drafter->name) &&
               p.result.stage != CanaryStage::drafter && p.result.drafted > 0;
      })) {
    report_.skipped.push_back({CanaryStage::chain,
                               "the drafter proposed nothing for these prompts, so its own texts "
                               "show nothing; the forced ones do"});
  }
  for (Planned& planned : planned_) report_.cases.push_back(std::move(planned.result));
  return std::move(report_);
}

}  // namespace

Result<CanaryReport> run_canary(const CanarySetup& setup, std::stop_token stop) {
  return Canary(setup, std::move(stop)).run();
}

}  // namespace paceline::compat
