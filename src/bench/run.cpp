// The order of work: warm up, then blocks in a seeded random order, then the sustained window.
#include <algorithm>
#include <chrono>
#include <format>
#include <map>
#include <numeric>

#include "bench/bench.hpp"
#include "bench/deadline.hpp"
#include "bench/sample.hpp"
#include "bench/warnings.hpp"
#include "core/random.hpp"
#include "runtime/largest.hpp"

namespace paceline::bench {

namespace {

constexpr std::size_t k_warmup_tokens = 16;
constexpr std::size_t k_warmup_most_runs = 10;
constexpr std::size_t k_warmup_window = 3;  // runs that must agree
constexpr double k_warmup_spread = 0.10;    // of their median
constexpr double k_slow_first = 1.5;        // first over last
constexpr double k_warmup_seconds = 20;

struct Cell {
  std::size_t prompt;
  std::size_t repetition;
};

/// Blocks of all prompts: the classes take turns, prompts in random order within each, so that a
/// run that ends early has seen every class about equally often.
std::vector<Cell> make_order(const std::vector<PreparedPrompt>& prompts, std::uint64_t seed) {
  Random random(seed);
  std::map<std::string, std::vector<std::vector<Cell>>> queues;  // [fixture][repetition]
  for (std::size_t p = 0; p < prompts.size(); ++p) {
    auto& queue = queues[prompts[p].fixture];
    queue.resize(std::max(queue.size(), prompts[p].repetitions));
    for (std::size_t r = 0; r < prompts[p].repetitions; ++r) queue[r].push_back({p, r});
  }
  std::vector<std::vector<Cell>> lines;
  for (auto& [fixture, queue] : queues) {
    std::vector<Cell> line;
    for (auto& repetition : queue) {
      shuffle(std::span(repetition), random);
      line.insert(line.end(), repetition.begin(), repetition.end());
    }
    lines.push_back(std::move(line));
  }
  std::vector<Cell> order;
  for (std::size_t i = 0; order.size() < std::accumulate(lines.begin(), lines.end(), std::size_t{0},
                                                         [](std::size_t n, const auto& line) {
                                                           return n + line.size();
                                                         });
       ++i) {
    std::vector<Cell> turn;
    for (const auto& line : lines) {
      if (i < line.size()) turn.push_back(line[i]);
    }
    shuffle(std::span(turn), random);
    order.insert(order.end(), turn.begin(), turn.end());
  }
  return order;
}

double median_of(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

bool is_stable(const std::vector<double>& values) {
  if (values.size() < k_warmup_window) return false;
  const std::vector<double> last(values.end() - static_cast<std::ptrdiff_t>(k_warmup_window),
                                 values.end());
  const auto [low, high] = std::ranges::minmax(last);
  return high - low <= k_warmup_spread * median_of(last);
}

/// A slow or broken pass says nothing about the other runs.
bool is_of_one_run(const Error& error) {
  return error.code == ErrorCode::timed_out || error.code == ErrorCode::runtime_failed;
}

/// Nobody wants the other runs, or a model is damaged: then no number of any run says anything.
bool ends_everything(const Error& error) {
  return error.code == ErrorCode::cancelled || error.word == runtime::k_logits_not_finite;
}

/// State of one call of run().
class Run {
 public:
  Run(const Setup& setup, record::Record& record, Clock& clock, std::stop_token stop)
      : setup_(setup), record_(record), clock_(clock), stop_(stop), start_(clock.now()) {}

  Result<void> all();

 private:
  enum class End { done, time_up };

  Result<void> warm_up();
  Result<End> blocks();
  Result<record::Block> block(const Cell& cell);
  Result<void> fill(record::Block& block, const PreparedPrompt& prompt, std::size_t seed);
  Result<void> add_comparisons(record::Block& block, const PreparedPrompt& prompt);
  /// Gives why the window ended before its time, empty where it did not.
  Result<std::string> sustain();
  Result<record::Sample> sample(const Contender& contender, const PreparedPrompt& prompt,
                                std::size_t max_tokens, const SampleFacts& facts);
  Result<void> save();
  void report(const char* stage, std::size_t done, std::size_t total,
              std::optional<double> seconds_left);

  double elapsed() const { return std::chrono::duration<double>(clock_.now() - start_).count(); }
  /// Seconds that are left of the whole run's limit.
  double left() const {
    return record_.plan.time_limit_seconds ? *record_.plan.time_limit_seconds - elapsed() : 1e9;
  }
  const PreparedPrompt* first_usable() const {
    const auto found = std::ranges::find_if(
        setup_.prompts, [](const PreparedPrompt& p) { return p.unusable.empty(); });
    return found == setup_.prompts.end() ? nullptr : &*found;
  }
  bool needs_oracle() const {
    return std::ranges::any_of(setup_.contenders, [](const Contender& c) {
      return c.arm.kind == record::ArmKind::scripted;
    });
  }

  const Setup& setup_;
  record::Record& record_;
  Clock& clock_;
  std::stop_token stop_;
  Nanoseconds start_;
};

void Run::report(const char* stage, std::size_t done, std::size_t total,
                 std::optional<double> seconds_left) {
  if (setup_.progress) setup_.progress({stage, done, total, elapsed(), seconds_left});
}

Result<void> Run::save() {
  record_.host_at_end = host::read_host_state();
  record_.warnings = find_warnings(record_);
  return setup_.save ? setup_.save(record_) : Result<void>{};
}

Result<record::Sample> Run::sample(const Contender& contender, const PreparedPrompt& prompt,
                                   std::size_t max_tokens, const SampleFacts& facts) {
  const double limit = std::min(record_.plan.run_time_limit_seconds, left());
  if (limit <= 0) {
    return fail(ErrorCode::timed_out, std::format("no time was left for arm {}", contender.arm.id));
  }
  const Deadline deadline(std::chrono::duration<double>(limit), stop_);
  auto result = run_sample(contender, prompt, max_tokens, *setup_.vocabulary, clock_,
                           deadline.token(), facts);
  if (!result && result.error().code == ErrorCode::cancelled && deadline.expired()) {
    return fail(ErrorCode::timed_out,
                std::format("arm {} was still running after {:.1f} s", contender.arm.id, limit));
  }
  if (result) result->thermal_state = host::read_host_state().thermal_state;
  return result;
}

Result<void> Run::warm_up() {
  const PreparedPrompt* prompt = first_usable();
  if (prompt == nullptr) return {};
  record::Warmup warmup;
  const std::size_t tokens = std::min(k_warmup_tokens, prompt->max_tokens);
  SampleFacts facts{.prompt_tokens = prompt->tokens.size(), .plain_tokens = {}};
  for (std::size_t i = 0; i < k_warmup_most_runs && elapsed() < k_warmup_seconds; ++i) {
    report("warm-up", i, k_warmup_most_runs, std::nullopt);
    for (const Contender& contender : setup_.contenders) {
      auto run = sample(contender, *prompt, tokens, facts);
      if (!run) {
        if (is_of_one_run(run.error())) return {};  // its block will say so
        return run.error().in(std::format("warming up arm {}", contender.arm.id));
      }
      if (&contender != &setup_.contenders.front()) continue;
      warmup.first_arm_ms.push_back(to_ms(Nanoseconds(run->elapsed_ns)));
      facts.plain_tokens.clear();
      for (const std::int32_t token : run->tokens) facts.plain_tokens.push_back(Token{token});
    }
    warmup.stable = is_stable(warmup.first_arm_ms);
    if (warmup.stable) break;
  }
  warmup.slow_first = !warmup.first_arm_ms.empty() &&
                      warmup.first_arm_ms.front() > k_slow_first * warmup.first_arm_ms.back();
  record_.warmup = warmup;
  return {};
}

Result<void> Run::fill(record::Block& block, const PreparedPrompt& prompt, std::size_t seed) {
  SampleFacts facts{.prompt_tokens = prompt.tokens.size(), .plain_tokens = {}};
  if (needs_oracle()) {  // not timed: what-if arms must know what the target will say
    PACELINE_TRY(const auto plain,
                 sample(setup_.contenders.front(), prompt, prompt.max_tokens, facts));
    for (const std::int32_t token : plain.tokens) facts.plain_tokens.push_back(Token{token});
  }
  std::vector<std::size_t> order(setup_.contenders.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  Random random(seed);
  shuffle(std::span(order), random);
  for (std::size_t i = 0; i < order.size(); ++i) {
    PACELINE_TRY(auto run, sample(setup_.contenders[order[i]], prompt, prompt.max_tokens, facts));
    run.order = i;
    block.samples.push_back(std::move(run));
  }
  return {};
}

Result<void> Run::add_comparisons(record::Block& block, const PreparedPrompt& prompt) {
  const auto sample_of = [&](const std::string& arm) {
    return std::ranges::find(block.samples, arm, &record::Sample::arm);
  };
  for (const Contender& contender : setup_.contenders) {
    if (!contender.arm.baseline) continue;
    const auto baseline = std::ranges::find(setup_.contenders, *contender.arm.baseline,
                                            [](const Contender& c) { return c.arm.id; });
    const Deadline deadline(std::chrono::duration<double>(record_.plan.run_time_limit_seconds),
                            stop_);
    auto comparison = compare({contender, *sample_of(contender.arm.id)},
                              {*baseline, *sample_of(baseline->arm.id)}, prompt, *setup_.vocabulary,
                              deadline.token());
    if (!comparison && comparison.error().code == ErrorCode::cancelled && deadline.expired()) {
      return fail(
          ErrorCode::timed_out,
          std::format("putting the passes of arm {} through again took longer than {:.1f} s",
                      contender.arm.id, record_.plan.run_time_limit_seconds));
    }
    if (!comparison) return comparison.error();
    block.comparisons.push_back(*std::move(comparison));
  }
  return {};
}

Result<record::Block> Run::block(const Cell& cell) {
  const PreparedPrompt& prompt = setup_.prompts[cell.prompt];
  record::Block block;
  block.fixture = prompt.fixture;
  block.content_class = prompt.content_class;
  block.prompt = prompt.id;
  block.repetition = cell.repetition;
  if (!prompt.unusable.empty()) {
    block.status = record::CellStatus::skipped;
    block.reason = prompt.unusable;
    return block;
  }
  block.host_before = host::read_host_state();
  auto filled =
      fill(block, prompt, random_at(record_.plan.order_seed, 1000 * cell.prompt + cell.repetition));
  if (filled) filled = add_comparisons(block, prompt);
  block.host_after = host::read_host_state();
  if (filled) return block;
  if (ends_everything(filled.error())) {
    return filled.error().in(std::format("prompt {}", prompt.id));
  }
  block.status = record::CellStatus::failed;
  block.reason = filled.error().message;
  block.comparisons.clear();
  return block;
}

Result<Run::End> Run::blocks() {
  const std::vector<Cell> order = make_order(setup_.prompts, record_.plan.order_seed);
  const auto is_done = [&](const Cell& cell) {
    const PreparedPrompt& prompt = setup_.prompts[cell.prompt];
    return std::ranges::any_of(record_.blocks, [&](const record::Block& block) {
      return block.fixture == prompt.fixture && block.prompt == prompt.id &&
             block.repetition == cell.repetition;
    });
  };
  const double begin = elapsed();
  std::size_t done = 0;
  std::size_t measured = 0;
  for (const Cell& cell : order) {
    if (is_done(cell)) {
      ++done;
      continue;
    }
    std::optional<double> seconds_left;
    if (measured > 0) {
      seconds_left = (elapsed() - begin) / static_cast<double>(measured) *
                         static_cast<double>(order.size() - done) +
                     setup_.sustained_seconds;
      if (record_.plan.time_limit_seconds) seconds_left = std::min(*seconds_left, left());
    }
    report("measuring", done, order.size(), seconds_left);
    if (left() <= 0) return End::time_up;
    PACELINE_TRY(record::Block finished, block(cell));
    // A block that the whole run's limit broke off was not given its time: it is not a failure.
    if (finished.status == record::CellStatus::failed && left() <= 0) return End::time_up;
    record_.blocks.push_back(std::move(finished));
    ++done;
    ++measured;
    PACELINE_TRY_VOID(save());
  }
  report("measuring", done, order.size(), setup_.sustained_seconds);
  return End::done;
}

Result<std::string> Run::sustain() {
  std::string ended_early;
  record::Sustained sustained;
  sustained.requested_seconds = setup_.sustained_seconds;
  sustained.last_window_seconds = setup_.last_window_seconds;
  sustained.started_at_unix_seconds = clock_.unix_seconds();
  const double begin = elapsed();
  std::vector<const PreparedPrompt*> usable;
  for (const PreparedPrompt& prompt : setup_.prompts) {
    if (prompt.unusable.empty()) usable.push_back(&prompt);
  }
  Random random(record_.plan.order_seed + 1);
  for (std::size_t turn = 0; !usable.empty() && elapsed() - begin < setup_.sustained_seconds;
       ++turn) {
    const double gone = elapsed() - begin;
    report("sustained", static_cast<std::size_t>(gone),
           static_cast<std::size_t>(setup_.sustained_seconds), setup_.sustained_seconds - gone);
    record::Block block;
    auto filled = fill(block, *usable[turn % usable.size()], random.bits());
    if (!filled && ends_everything(filled.error())) return filled.error();
    if (!filled) {
      ended_early = std::format("the sustained window ended early: {}", filled.error().message);
      break;
    }
    std::ranges::move(block.samples, std::back_inserter(sustained.samples));
  }
  sustained.ended_at_unix_seconds = clock_.unix_seconds();
  record_.sustained = std::move(sustained);
  return ended_early;
}

Result<void> Run::all() {
  if (!record_.host_at_start) record_.host_at_start = host::read_host_state();
  const auto incomplete = [&](std::string reason) {
    record_.complete = false;
    record_.incomplete_reason = std::move(reason);
  };
  incomplete("the run was broken off");
  PACELINE_TRY_VOID(save());
  const auto work = [&]() -> Result<void> {
    if (setup_.contenders.empty()) {
      incomplete("no arm could be run");
      return {};
    }
    PACELINE_TRY_VOID(warm_up());
    PACELINE_TRY(const End end, blocks());
    if (end == End::time_up) {
      incomplete(std::format("the time limit of {:.0f} s was reached after {} blocks",
                             *record_.plan.time_limit_seconds, record_.blocks.size()));
      return {};
    }
    std::string missing;
    if (setup_.sustained_seconds > 0) {
      PACELINE_TRY(missing, sustain());
    }
    incomplete(std::move(missing));
    record_.complete = record_.incomplete_reason.empty();
    return {};
  };
  const auto worked = work();
  if (!worked) {
    incomplete(worked.error().code == ErrorCode::cancelled ? "the run was cancelled"
                                                           : worked.error().message);
  }
  const auto saved = save();
  return worked ? saved : worked;
}

}  // namespace

Result<void> run(const Setup& setup, record::Record& record, Clock& clock, std::stop_token stop) {
  return Run(setup, record, clock, stop).all();
}

}  // namespace paceline::bench
