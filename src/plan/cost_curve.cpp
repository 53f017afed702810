#include "plan/cost_curve.hpp"

#include <algorithm>
#include <chrono>
#include <thread>

#include "core/check.hpp"
#include "core/random.hpp"

namespace paceline::plan {

namespace {

using Clock = std::chrono::steady_clock;

// Short passes are repeated until they have taken this long together.
constexpr std::chrono::milliseconds k_least_time{20};
// Worker threads of libllama spin for about 10 ms after a pass and would slow the next runtime.
constexpr std::chrono::milliseconds k_rest{25};
constexpr std::size_t k_prompt_chunk = 256;

double median(std::vector<double> values) {
  PACELINE_CHECK(!values.empty(), "a median of nothing");
  std::ranges::sort(values);
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

/// One subject with its sequences.
class Bench {
 public:
  Bench(Subject& subject, std::size_t sequences) : subject_(subject), sequences_(sequences) {}

  /// Brings every sequence to this many committed tokens.
  Result<void> fill(std::size_t context, std::stop_token stop) {
    runtime::Runtime& runtime = *subject_.runtime;
    while (ids_.size() < sequences_) {
      PACELINE_TRY(const auto id, runtime.create_sequence());
      ids_.push_back(id);
    }
    for (const runtime::SequenceId id : ids_) {
      if (runtime.length(id) > context) PACELINE_TRY_VOID(runtime.truncate(id, context));
      while (runtime.length(id) < context) {
        const std::size_t rows =
            std::min({context - runtime.length(id), k_prompt_chunk, runtime.limits().rows});
        rows_.clear();
        add_chain(id, rows, rows);
        PACELINE_TRY_VOID(runtime.forward(rows_, stop));
        std::vector<std::int32_t> path(rows);
        for (std::size_t i = 0; i < rows; ++i) path[i] = static_cast<std::int32_t>(i);
        PACELINE_TRY_VOID(runtime.accept(id, path));
      }
    }
    return {};
  }

  /// Milliseconds per pass of this many rows, behind one that does not count.
  Result<double> time(std::size_t rows, std::stop_token stop) {
    runtime::Runtime& runtime = *subject_.runtime;
    rows_.clear();
    const std::size_t used = std::min(rows, ids_.size());
    for (std::size_t s = 0; s < used; ++s) {
      const std::size_t first = rows * s / used;
      add_chain(ids_[s], rows * (s + 1) / used - first, 0);
    }
    if (rows <= k_most_verified_rows) {
      for (runtime::Row& row : rows_) row.wants = runtime::Wants::argmax;
    } else {
      rows_.back().wants = runtime::Wants::argmax;
    }
    PACELINE_TRY_VOID(runtime.forward(rows_, stop));
    Clock::duration elapsed{};
    std::size_t passes = 0;
    while (elapsed < k_least_time) {
      const auto start = Clock::now();
      PACELINE_TRY_VOID(runtime.forward(rows_, stop));
      elapsed += Clock::now() - start;
      ++passes;
    }
    for (std::size_t s = 0; s < used; ++s) PACELINE_TRY_VOID(runtime.accept(ids_[s], {}));
    return std::chrono::duration<double, std::milli>(elapsed).count() / static_cast<double>(passes);
  }

 private:
  // The last row wants its argmax where it is row number `last_wants` (1 and on).
  void add_chain(runtime::SequenceId id, std::size_t count, std::size_t last_wants) {
    for (std::size_t i = 0; i < count; ++i) {
      const std::size_t position = subject_.runtime->length(id) + i;
      rows_.push_back(
          {.sequence = id,
           .token = subject_.text[position % subject_.text.size()],
           .parent =
               i == 0 ? runtime::k_committed_end : static_cast<std::int32_t>(rows_.size()) - 1,
           .wants = i + 1 == last_wants ? runtime::Wants::argmax : runtime::Wants::nothing});
    }
  }

  Subject& subject_;
  std::size_t sequences_;
  std::vector<runtime::SequenceId> ids_;
  std::vector<runtime::Row> rows_;
};

// What one turn of a repeat measures.
struct Turn {
  std::size_t who = 0;    // subject, or behind them a meter
  std::size_t point = 0;  // of the curve
};

/// The curves of one context, measured repeat by repeat.
class ContextRun {
 public:
  ContextRun(std::span<Subject> subjects, std::vector<Bench>& benches,
             std::span<runtime::CeilingMeter> meters, const CurveSettings& settings,
             std::size_t context)
      : benches_(benches), meters_(meters), ceilings_(meters.size()) {
    for (std::size_t s = 0; s < subjects.size(); ++s) {
      Curve curve{.subject = s, .context = context, .points = {}};
      for (const std::size_t rows : settings.rows) {
        if (!subjects[s].draft) add_point(curve, rows);
      }
      if (subjects[s].draft) add_point(curve, 1);
      for (std::size_t p = 0; p < curve.points.size(); ++p) turns_.push_back({s, p});
      curves_.push_back(std::move(curve));
    }
    for (std::size_t m = 0; m < meters.size(); ++m) turns_.push_back({subjects.size() + m, 0});
  }

  /// A repeat that was broken off leaves nothing.
  Result<void> repeat(Random& random, std::stop_token stop) {
    shuffle(std::span(turns_), random);
    std::vector<double> values(turns_.size());
    std::vector<double> speeds(turns_.size());
    for (std::size_t i = 0; i < turns_.size(); ++i) {
      const Turn& turn = turns_[i];
      if (i == 0 || turns_[i - 1].who != turn.who) std::this_thread::sleep_for(k_rest);
      if (stop.stop_requested()) return fail(ErrorCode::cancelled, "the measurement was stopped");
      if (turn.who < benches_.size()) {
        const std::size_t rows = curves_[turn.who].points[turn.point].rows;
        PACELINE_TRY(values[i], benches_[turn.who].time(rows, stop));
      } else {
        runtime::CeilingMeter& meter = meters_[turn.who - benches_.size()];
        values[i] = meter.read_speed();
        speeds[i] = meter.multiply_add_speed();
      }
    }
    for (std::size_t i = 0; i < turns_.size(); ++i) {
      const Turn& turn = turns_[i];
      if (turn.who < benches_.size()) {
        curves_[turn.who].points[turn.point].ms.push_back(values[i]);
      } else {
        Ceiling& ceiling = ceilings_[turn.who - benches_.size()];
        ceiling.read_bytes_per_second.push_back(values[i]);
        ceiling.multiply_adds_per_second.push_back(speeds[i]);
      }
    }
    return {};
  }

  void give_to(Measured& measured) {
    for (Curve& curve : curves_) measured.curves.push_back(std::move(curve));
    for (std::size_t m = 0; m < meters_.size(); ++m) {
      const auto append = [](std::vector<double>& to, const std::vector<double>& from) {
        to.insert(to.end(), from.begin(), from.end());
      };
      append(measured.ceilings[m].read_bytes_per_second, ceilings_[m].read_bytes_per_second);
      append(measured.ceilings[m].multiply_adds_per_second, ceilings_[m].multiply_adds_per_second);
    }
  }

 private:
  static void add_point(Curve& curve, std::size_t rows) {
    curve.points.push_back(
        {.rows = rows, .results = rows <= k_most_verified_rows ? rows : 1, .ms = {}});
  }

  std::vector<Bench>& benches_;
  std::span<runtime::CeilingMeter> meters_;
  std::vector<Curve> curves_;  // one per subject
  std::vector<Ceiling> ceilings_;
  std::vector<Turn> turns_;
};

}  // namespace

double Point::median_ms() const { return median(ms); }
double Point::least_ms() const { return std::ranges::min(ms); }

const Point* Curve::at(std::size_t rows) const {
  const auto found = std::ranges::find(points, rows, &Point::rows);
  return found == points.end() ? nullptr : &*found;
}

double Ceiling::read_speed() const { return std::ranges::max(read_bytes_per_second); }
double Ceiling::multiply_add_speed() const { return std::ranges::max(multiply_adds_per_second); }

runtime::RuntimeLimits limits_for(const CurveSettings& settings, std::size_t threads) {
  const std::size_t widest = std::ranges::max(settings.rows);
  std::size_t results = 1;
  for (const std::size_t rows : settings.rows) {
    if (rows <= k_most_verified_rows) results = std::max(results, rows);
  }
  return {.sequences = settings.sequences,
          .context = std::ranges::max(settings.contexts) + widest,
          .rows = std::max(widest, k_prompt_chunk),
          .results = results,
          .leaves = 1,
          .threads = threads,
          .features = false};
}

Result<Measured> measure_curves(std::span<Subject> subjects,
                                std::span<runtime::CeilingMeter> meters,
                                const CurveSettings& settings, std::stop_token stop,
                                const std::function<void(const Progress&)>& progress) {
  PACELINE_CHECK(!settings.rows.empty() && !settings.contexts.empty() && settings.repeats > 0,
                 "nothing to measure");
  Measured measured;
  for (const runtime::CeilingMeter& meter : meters) {
    measured.ceilings.push_back({.isa = std::string(runtime::native::to_string(meter.isa())),
                                 .threads = meter.threads(),
                                 .buffer_bytes = meter.bytes(),
                                 .read_bytes_per_second = {},
                                 .multiply_adds_per_second = {}});
  }
  std::vector<Bench> benches;
  for (Subject& subject : subjects) benches.emplace_back(subject, settings.sequences);
  Random random(settings.seed);
  std::vector<std::size_t> contexts = settings.contexts;
  std::ranges::sort(contexts);
  for (const std::size_t context : contexts) {
    std::size_t done = 0;
    ContextRun run(subjects, benches, meters, settings, context);
    const auto measure = [&]() -> Result<void> {
      for (Bench& bench : benches) {
        if (progress) progress({context, 0, settings.repeats});
        PACELINE_TRY_VOID(bench.fill(context, stop));
      }
      while (done < settings.repeats) {
        if (progress) progress({context, done + 1, settings.repeats});
        PACELINE_TRY_VOID(run.repeat(random, stop));
        ++done;
      }
      return {};
    };
    const auto result = measure();
    if (done > 0) {
      run.give_to(measured);
      measured.repeats = measured.repeats == 0 ? done : std::min(measured.repeats, done);
    }
    if (!result) {
      if (result.error().code == ErrorCode::cancelled && measured.repeats > 0) return measured;
      return result.error();
    }
  }
  measured.complete = true;
  return measured;
}

}  // namespace paceline::plan
