#include "runtime/native/native_runtime.hpp"

#include <algorithm>
#include <format>
#include <optional>
#include <utility>
#include <vector>

#include "core/check.hpp"
#include "core/version.hpp"
#include "runtime/cores.hpp"
#include "runtime/largest.hpp"
#include "runtime/native/cache.hpp"
#include "runtime/native/forward.hpp"
#include "runtime/native/team.hpp"

namespace paceline::runtime::native {

namespace {

// A context that nobody asked for is at most this long.
constexpr std::size_t k_default_context = 8192;
constexpr std::size_t k_longest_context = std::size_t{1} << 24U;

struct Sequence {
  bool used = false;
  std::size_t length = 0;
  bool open = false;  // has rows of the last pass that are neither accepted nor dropped
};

class NativeRuntime final : public Runtime {
 public:
  NativeRuntime(std::shared_ptr<const Model> owner, const Network& network, const Kernels& kernels,
                const RuntimeLimits& limits, Cache cache)
      : owner_(std::move(owner)),
        kernels_(kernels),
        limits_(limits),
        vocabulary_(network.shape.vocabulary),
        cache_(std::move(cache)),
        team_(limits.threads),
        forward_(network, kernels, cache_, team_, limits.rows),
        sequences_(limits.sequences) {}

  const RuntimeLimits& limits() const override { return limits_; }
  Capabilities capabilities() const override {
    return {.rollback = true,
            .rollback_reason = {},
            .trees = limits_.leaves > 1,
            .features = limits_.features,
            .exact_widths = true};
  }
  RuntimeInfo info() const override {
    return {.name = "native",
            .build = std::string(k_version),
            .backend = std::format("CPU ({})", to_string(kernels_.isa)),
            .threads = limits_.threads,
            .context = limits_.context,
            .rows = limits_.rows,
            .kv_type_k = "f16",
            .kv_type_v = "f16",
            .flash_attention = "enabled"};
  }
  PassCounters counters() const override { return counters_; }

  Result<SequenceId> create_sequence() override;
  Result<SequenceId> fork(SequenceId sequence) override;
  void release(SequenceId sequence) override { at(sequence) = {}; }
  std::size_t length(SequenceId sequence) const override { return at(sequence).length; }
  Result<void> forward(std::span<const Row> rows, std::stop_token stop) override;
  Token argmax(std::size_t row) const override;
  std::span<const float> logits(std::size_t row) const override;
  std::span<const float> feature(std::size_t row) const override;
  Result<void> accept(SequenceId sequence, std::span<const std::int32_t> path) override;
  Result<void> truncate(SequenceId sequence, std::size_t length) override;

 private:
  static std::size_t index(SequenceId id) { return static_cast<std::size_t>(id); }
  const Sequence& at(SequenceId id) const {
    PACELINE_CHECK(index(id) < sequences_.size() && sequences_[index(id)].used,
                   "the sequence was not created or is released");
    return sequences_[index(id)];
  }
  Sequence& at(SequenceId id) { return const_cast<Sequence&>(std::as_const(*this).at(id)); }
  bool wanted(std::size_t row, Wants wants) const {
    return row < rows_.size() && includes(rows_[row].wants, wants);
  }
  void lay_out(const BatchShape& shape);

  std::shared_ptr<const Model> owner_;
  const Kernels& kernels_;
  RuntimeLimits limits_;
  std::size_t vocabulary_;
  Cache cache_;
  Team team_;
  Forward forward_;
  std::vector<Sequence> sequences_;
  std::vector<Row> rows_;  // of the last pass
  std::vector<PassRow> pass_rows_;
  std::vector<std::optional<std::size_t>> lengths_;
  PassCounters counters_;
};

Result<SequenceId> NativeRuntime::create_sequence() {
  const auto free = std::ranges::find(sequences_, false, &Sequence::used);
  if (free == sequences_.end()) {
    return fail(ErrorCode::busy,
                std::format("all {} sequences of the runtime are in use", sequences_.size()));
  }
  *free = {.used = true};
  return SequenceId{static_cast<std::uint32_t>(free - sequences_.begin())};
}

Result<SequenceId> NativeRuntime::fork(SequenceId sequence) {
  const std::size_t length = at(sequence).length;
  PACELINE_TRY(const SequenceId copy, create_sequence());
  cache_.copy(index(sequence), index(copy), length);
  at(copy).length = length;
  return copy;
}

// Cells of a pass stand behind the committed ones in the order of the rows.
void NativeRuntime::lay_out(const BatchShape& shape) {
  pass_rows_.resize(rows_.size());
  std::vector<std::size_t> counts(sequences_.size(), 0);
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    const Row& row = rows_[i];
    PassRow& pass = pass_rows_[i];
    pass.token = row.token;
    pass.sequence = index(row.sequence);
    pass.committed = sequences_[pass.sequence].length;
    pass.order = counts[pass.sequence]++;
    pass.position = pass.committed + shape.depth[i];
    pass.output = includes(row.wants, Wants::logits) || includes(row.wants, Wants::argmax);
    pass.feature = includes(row.wants, Wants::feature);
    pass.path.clear();
    const PassRow* const parent =
        row.parent == k_committed_end ? nullptr : &pass_rows_[static_cast<std::size_t>(row.parent)];
    // A chain's cells are its positions; others are written down.
    if (pass.order == shape.depth[i] && (parent == nullptr || parent->path.empty())) continue;
    if (parent != nullptr) {
      pass.path = parent->path;
      for (std::size_t d = pass.path.size(); d < shape.depth[i]; ++d) {
        pass.path.push_back(static_cast<std::int32_t>(d));
      }
    }
    pass.path.push_back(static_cast<std::int32_t>(pass.order));
  }
}

Result<void> NativeRuntime::forward(std::span<const Row> rows, std::stop_token stop) {
  lengths_.assign(sequences_.size(), std::nullopt);
  for (std::size_t i = 0; i < sequences_.size(); ++i) {
    if (sequences_[i].used) lengths_[i] = sequences_[i].length;
  }
  PACELINE_TRY(const BatchShape shape, check_batch(rows, limits_, vocabulary_, lengths_));
  for (const Row& row : rows) {
    if (includes(row.wants, Wants::feature) && !limits_.features) {
      return fail(ErrorCode::invalid_argument,
                  "a row wants its feature, but the runtime was made without features");
    }
  }
  for (Sequence& sequence : sequences_) sequence.open = false;
  rows_.assign(rows.begin(), rows.end());
  if (rows.empty()) return {};
  lay_out(shape);
  if (!forward_.run(pass_rows_, stop)) {
    rows_.clear();
    return fail(ErrorCode::cancelled, "the pass was stopped");
  }
  for (const Row& row : rows) sequences_[index(row.sequence)].open = true;
  counters_.forwards += 1;
  counters_.rows += rows.size();
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (!pass_rows_[i].output || forward_.largest(i).finite) continue;
    return logits_not_finite(owner_->info().path, pass_rows_[i].position, "native");
  }
  return {};
}

Token NativeRuntime::argmax(std::size_t row) const {
  PACELINE_CHECK(wanted(row, Wants::argmax), "the row did not want its argmax");
  return forward_.largest(row).token;
}

std::span<const float> NativeRuntime::logits(std::size_t row) const {
  PACELINE_CHECK(wanted(row, Wants::logits), "the row did not want its logits");
  return forward_.logits(row);
}

std::span<const float> NativeRuntime::feature(std::size_t row) const {
  PACELINE_CHECK(wanted(row, Wants::feature), "the row did not want its feature");
  return forward_.feature(row);
}

Result<void> NativeRuntime::accept(SequenceId sequence, std::span<const std::int32_t> path) {
  Sequence& state = at(sequence);
  if (!path.empty() && !state.open) {
    return fail(ErrorCode::invalid_argument,
                std::format("sequence {} has no open rows to accept", index(sequence)));
  }
  PACELINE_TRY_VOID(check_path(rows_, sequence, path));
  state.open = false;
  // A row's cell lies at or behind the place that it moves to.
  for (std::size_t i = 0; i < path.size(); ++i) {
    const std::size_t order = pass_rows_[static_cast<std::size_t>(path[i])].order;
    if (order != i) cache_.move(index(sequence), state.length + order, state.length + i);
  }
  state.length += path.size();
  return {};
}

Result<void> NativeRuntime::truncate(SequenceId sequence, std::size_t length) {
  Sequence& state = at(sequence);
  if (length > state.length) {
    return fail(ErrorCode::invalid_argument,
                std::format("cannot truncate {} tokens to {}", state.length, length));
  }
  state.open = false;
  state.length = length;
  return {};
}

Result<RuntimeLimits> limits_in_effect(const RuntimeLimits& asked, const Shape& shape) {
  if (asked.sequences == 0 || asked.rows == 0 || asked.leaves == 0) {
    return fail(ErrorCode::invalid_argument,
                std::format("{} sequences, {} rows, {} leaves: each must be at least 1",
                            asked.sequences, asked.rows, asked.leaves));
  }
  RuntimeLimits limits = asked;
  if (limits.context == 0) {
    limits.context = k_default_context;
    if (shape.trained_context > 0) {
      limits.context = std::min(limits.context, shape.trained_context);
    }
  }
  if (limits.context > k_longest_context || limits.sequences > k_longest_context ||
      limits.context * limits.sequences > k_longest_context) {
    return fail(ErrorCode::invalid_argument,
                std::format("{} sequences of {} tokens, the native runtime takes up to {} in all",
                            limits.sequences, limits.context, k_longest_context));
  }
  limits.rows = std::min(limits.rows, limits.context * limits.sequences);
  limits.results = limits.most_results();
  if (limits.threads == 0) limits.threads = available_cores();
  return limits;
}

// A tree has more rows than positions.
std::size_t cells_of(const RuntimeLimits& limits) {
  return limits.context + (limits.leaves > 1 ? limits.rows : 0);
}

}  // namespace

Result<MemoryNeed> memory_need(const Network& network, const RuntimeLimits& asked) {
  PACELINE_TRY(const RuntimeLimits limits, limits_in_effect(asked, network.shape));
  const Shape& shape = network.shape;
  MemoryNeed need{.device = "host"};
  need.kv = Cache::bytes(shape, limits.sequences, cells_of(limits));
  // Residual, projections, attention's results; and the inputs of products, quantised or not.
  const std::size_t floats =
      shape.hidden + 2 * shape.query_width() + 2 * shape.key_value_width() + 2 * shape.head_width;
  const std::size_t inputs = shape.hidden + shape.query_width() + shape.feed_forward;
  need.compute =
      limits.rows * (floats * sizeof(float) + inputs / k_block * sizeof(ActivationBlock));
  const std::size_t each = shape.vocabulary + shape.hidden;
  need.results = limits.results * each * sizeof(float);
  return need;
}

Result<std::unique_ptr<Runtime>> create_native_runtime(std::shared_ptr<const Model> owner,
                                                       const Network& network,
                                                       const Kernels& kernels,
                                                       const RuntimeLimits& asked) {
  PACELINE_TRY(const RuntimeLimits limits, limits_in_effect(asked, network.shape));
  PACELINE_TRY(Cache cache, Cache::create(network.shape, limits.sequences, cells_of(limits)));
  return std::make_unique<NativeRuntime>(std::move(owner), network, kernels, limits,
                                         std::move(cache));
}

}  // namespace paceline::runtime::native
