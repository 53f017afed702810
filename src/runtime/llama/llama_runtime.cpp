#include "runtime/llama/llama_runtime.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <format>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "core/check.hpp"
#include "runtime/largest.hpp"
#include "runtime/llama/context_impl.hpp"
#include "runtime/llama/llama_backend.hpp"
#include "runtime/llama/llama_backend_impl.hpp"
#include "runtime/llama/llama_version.hpp"
#include "runtime/llama/row_batch.hpp"

namespace paceline::runtime {

namespace {

// Stands for an exception beside llama_decode's own codes.
constexpr int k_threw = -1000;

// One sequence of ours. In libllama it is `limits.leaves` sequences that share the committed
// cells; a row of a tree belongs to those of the leaves below it.
struct Sequence {
  bool used = false;
  bool broken = false;           // the cells are not what `length` says; only release helps
  std::size_t length = 0;        // committed tokens, `replay` included
  std::vector<Token> replay;     // the last committed tokens, whose cells are still to be made
  std::size_t pass_rows = 0;     // rows of the last pass that are neither accepted nor dropped
  std::int32_t first_leaf = -1;  // used while a batch is built
  std::size_t leaf_count = 0;

  std::size_t cells() const { return length - replay.size(); }
};

class LlamaRuntime final : public Runtime {
 public:
  LlamaRuntime(std::shared_ptr<const Model> owner, OpenContext opened)
      : owner_(std::move(owner)),
        context_(std::move(opened.context)),
        memory_(llama_get_memory(context_.get())),
        limits_(opened.limits),
        attention_(opened.attention),
        vocabulary_size_(owner_->vocabulary().size()),
        hidden_size_(
            static_cast<std::size_t>(output_embedding_size(llama_get_model(context_.get())))),
        recurrent_(owner_->info().recurrent),
        batch_(opened.batch_capacity, limits_.leaves),
        sequences_(limits_.sequences),
        lengths_(limits_.sequences) {
    // A recurrent state that a pass has begun to change cannot be restored: let it run to its end.
    if (!recurrent_) llama_set_abort_callback(context_.get(), on_abort_poll, this);
  }

  const RuntimeLimits& limits() const override { return limits_; }
  Capabilities capabilities() const override;
  RuntimeInfo info() const override;
  PassCounters counters() const override { return counters_; }

  Result<SequenceId> create_sequence() override;
  Result<SequenceId> fork(SequenceId sequence) override;
  void release(SequenceId sequence) override;
  std::size_t length(SequenceId sequence) const override { return at(sequence).length; }
  Result<void> forward(std::span<const Row> rows, std::stop_token stop) override;
  Token argmax(std::size_t row) const override;
  std::span<const float> logits(std::size_t row) const override;
  std::span<const float> feature(std::size_t row) const override;
  Result<void> accept(SequenceId sequence, std::span<const std::int32_t> path) override;
  Result<void> truncate(SequenceId sequence, std::size_t length) override;

 private:
  struct RowResult {
    Wants wants = Wants::nothing;
    Token argmax{};
    const float* logits = nullptr;
    const float* feature = nullptr;
  };

  static bool on_abort_poll(void* self) {
    return static_cast<const LlamaRuntime*>(self)->stop_.stop_requested();
  }

  static std::size_t index(SequenceId id) { return static_cast<std::size_t>(id); }
  Sequence& at(SequenceId id) {
    PACELINE_CHECK(index(id) < sequences_.size() && sequences_[index(id)].used,
                   "the sequence was not created or is released");
    return sequences_[index(id)];
  }
  const Sequence& at(SequenceId id) const { return const_cast<LlamaRuntime*>(this)->at(id); }
  llama_seq_id llama_id(std::size_t sequence, std::size_t leaf) const {
    return static_cast<llama_seq_id>(sequence * limits_.leaves + leaf);
  }
  Result<void> usable(std::size_t sequence) const;

  Result<void> remove_from(std::size_t sequence, llama_seq_id id, std::size_t position);
  Result<void> keep_rows(std::size_t sequence, std::size_t kept);
  Result<void> drop_open_rows();
  Result<void> check_rows(std::span<const Row> rows, BatchShape& shape);
  Result<void> replay_alone();
  void add_replay(std::size_t sequence, std::size_t count);
  void add_rows(std::span<const Row> rows, const BatchShape& shape);
  void add_leaf_ids(std::span<const Row> rows);
  Result<void> decode();
  Result<void> restore_after(int code);
  Result<void> read_results(std::span<const Row> rows, const BatchShape& shape);
  const RowResult& result(std::size_t row, Wants wanted) const;

  std::shared_ptr<const Model> owner_;  // before the context: destroyed after it
  llama_context_ptr context_;
  llama_memory_t memory_;
  RuntimeLimits limits_;
  Attention attention_;
  std::size_t vocabulary_size_;
  std::size_t hidden_size_;
  bool recurrent_;
  RowBatch batch_;
  std::vector<Sequence> sequences_;
  std::vector<std::optional<std::size_t>> lengths_;  // for check_batch
  std::vector<std::uint8_t> in_batch_ = std::vector<std::uint8_t>(sequences_.size());
  std::vector<std::uint8_t> has_child_;
  std::vector<Row> rows_;       // of the last pass
  std::size_t row_offset_ = 0;  // rows of the last pass that were put through again, in front
  std::vector<RowResult> results_;
  PassCounters counters_;
  std::stop_token stop_;
};

Capabilities LlamaRuntime::capabilities() const {
  Capabilities result;
  result.rollback = !recurrent_;
  if (recurrent_) {
    result.rollback_reason =
        std::format("architecture \"{}\" keeps a recurrent state, which cannot go back",
                    owner_->info().architecture);
  }
  result.trees = limits_.leaves > 1;
  result.features = limits_.features;
  result.exact_widths = false;
  return result;
}

RuntimeInfo LlamaRuntime::info() const {
  return {.name = "llama",
          .build = llama_build(),
          .backend = llama_backend_name(),
          .threads = limits_.threads,
          .context = limits_.context,
          .rows = limits_.rows,
          .kv_type_k = ggml_type_name(attention_.key_type),
          .kv_type_v = ggml_type_name(attention_.value_type),
          .flash_attention = llama_flash_attn_type_name(attention_.flash)};
}

Result<void> LlamaRuntime::usable(std::size_t sequence) const {
  if (!sequences_[sequence].broken) return {};
  return fail(
      ErrorCode::runtime_failed,
      std::format("sequence {} lost its cache in a failed pass and must be released", sequence));
}

Result<SequenceId> LlamaRuntime::create_sequence() {
  const auto free = std::ranges::find(sequences_, false, &Sequence::used);
  if (free == sequences_.end()) {
    return fail(ErrorCode::busy,
                std::format("all {} sequences of the runtime are in use", sequences_.size()));
  }
  *free = Sequence{};
  free->used = true;
  return SequenceId{static_cast<std::uint32_t>(free - sequences_.begin())};
}

Result<SequenceId> LlamaRuntime::fork(SequenceId sequence) {
  const Sequence& source = at(sequence);
  PACELINE_TRY_VOID(usable(index(sequence)));
  if (recurrent_ && source.pass_rows > 0) {
    return fail(ErrorCode::unsupported,
                "a recurrent sequence can only be forked when all its rows are accepted");
  }
  PACELINE_TRY(const SequenceId copy, create_sequence());
  Sequence& target = at(copy);
  target.length = source.length;
  target.replay = source.replay;
  if (source.cells() == 0) return copy;
  const llama_seq_id from = llama_id(index(sequence), 0);
  if (limits_.leaves == 1) {
    // Another stream: only whole sequences can be copied, open rows go along and are removed there.
    llama_memory_seq_cp(memory_, from, llama_id(index(copy), 0), -1, -1);
  } else {
    for (std::size_t leaf = 0; leaf < limits_.leaves; ++leaf) {
      llama_memory_seq_cp(memory_, from, llama_id(index(copy), leaf), 0,
                          static_cast<llama_pos>(source.cells()));
    }
  }
  for (std::size_t leaf = 0; leaf < limits_.leaves && !recurrent_; ++leaf) {
    const llama_seq_id id = llama_id(index(copy), leaf);
    if (auto removed = remove_from(index(copy), id, target.cells()); !removed) {
      release(copy);
      return std::move(removed).error();
    }
  }
  return copy;
}

void LlamaRuntime::release(SequenceId sequence) {
  at(sequence) = Sequence{};
  for (std::size_t leaf = 0; leaf < limits_.leaves; ++leaf) {
    llama_memory_seq_rm(memory_, llama_id(index(sequence), leaf), -1, -1);
  }
}

// Removes a libllama sequence's cells from `position` on and checks that they are gone.
Result<void> LlamaRuntime::remove_from(std::size_t sequence, llama_seq_id id,
                                       std::size_t position) {
  const auto first = static_cast<llama_pos>(position);
  const bool removed = llama_memory_seq_rm(memory_, id, first, -1);
  const llama_pos last = llama_memory_seq_pos_max(memory_, id);
  if (removed && last == first - 1) return {};
  sequences_[sequence].broken = true;
  return fail(ErrorCode::runtime_failed,
              std::format("sequence {} was to go back to {} tokens, libllama kept {}", sequence,
                          position, last + 1));
}

// Of the open rows keeps the first `kept`, which are a chain, and shares them with all leaves.
Result<void> LlamaRuntime::keep_rows(std::size_t sequence, std::size_t kept) {
  Sequence& state = sequences_[sequence];
  state.pass_rows = 0;
  const std::size_t first = state.cells();
  const std::size_t end = first + kept;
  std::span<const llama_seq_id> holders;  // those that have the kept rows already
  if (kept > 0) {
    std::size_t row = 0;
    for (std::size_t seen = 0; seen < kept; ++row) {
      if (index(rows_[row].sequence) == sequence) ++seen;
    }
    holders = batch_.ids(row_offset_ + row - 1);
  }
  for (std::size_t leaf = 0; leaf < limits_.leaves; ++leaf) {
    const llama_seq_id id = llama_id(sequence, leaf);
    const bool holds = std::ranges::find(holders, id) != holders.end();
    PACELINE_TRY_VOID(remove_from(sequence, id, holds ? end : first));
  }
  for (std::size_t leaf = 0; leaf < limits_.leaves; ++leaf) {
    const llama_seq_id id = llama_id(sequence, leaf);
    if (kept == 0 || std::ranges::find(holders, id) != holders.end()) continue;
    llama_memory_seq_cp(memory_, holders.front(), id, static_cast<llama_pos>(first),
                        static_cast<llama_pos>(end));
  }
  return {};
}

// Rows of the last pass that nobody accepted.
Result<void> LlamaRuntime::drop_open_rows() {
  for (std::size_t i = 0; i < sequences_.size(); ++i) {
    if (sequences_[i].pass_rows == 0 || sequences_[i].broken) continue;
    if (recurrent_) {
      sequences_[i].broken = true;
      return fail(ErrorCode::unsupported,
                  std::format("rows of sequence {} were not accepted, and {}", i,
                              capabilities().rollback_reason));
    }
    PACELINE_TRY_VOID(keep_rows(i, 0));
  }
  return {};
}

Result<void> LlamaRuntime::check_rows(std::span<const Row> rows, BatchShape& shape) {
  for (std::size_t i = 0; i < sequences_.size(); ++i) {
    lengths_[i].reset();
    if (sequences_[i].used) lengths_[i] = sequences_[i].length;
  }
  PACELINE_TRY(shape, check_batch(rows, limits_, vocabulary_size_, lengths_));
  std::ranges::fill(in_batch_, std::uint8_t{0});
  for (const Row& row : rows) {
    in_batch_[index(row.sequence)] = 1;
    if (includes(row.wants, Wants::feature) && !limits_.features) {
      return fail(ErrorCode::invalid_argument,
                  "a row wants its feature, but the runtime was made without features");
    }
  }
  for (std::size_t i = 0; i < sequences_.size(); ++i) {
    if (in_batch_[i] != 0) PACELINE_TRY_VOID(usable(i));
  }
  return {};
}

Result<void> LlamaRuntime::forward(std::span<const Row> rows, std::stop_token stop) {
  BatchShape shape;
  PACELINE_TRY_VOID(check_rows(rows, shape));
  if (recurrent_ && stop.stop_requested()) {
    return fail(ErrorCode::cancelled, "the pass was cancelled before it began");
  }
  results_.clear();
  PACELINE_TRY_VOID(drop_open_rows());
  rows_.assign(rows.begin(), rows.end());
  row_offset_ = 0;
  if (rows.empty()) return {};

  stop_ = std::move(stop);
  std::size_t replayed = 0;
  for (std::size_t i = 0; i < sequences_.size(); ++i) {
    if (in_batch_[i] != 0) replayed += sequences_[i].replay.size();
  }
  if (replayed + rows.size() > batch_.capacity()) {
    PACELINE_TRY_VOID(replay_alone());
    replayed = 0;
  }
  batch_.clear();
  for (std::size_t i = 0; i < sequences_.size(); ++i) {
    if (in_batch_[i] != 0) add_replay(i, sequences_[i].replay.size());
  }
  row_offset_ = replayed;
  add_rows(rows, shape);
  PACELINE_TRY_VOID(decode());
  counters_.replayed_rows += replayed;
  for (std::size_t i = 0; i < sequences_.size(); ++i) {
    if (in_batch_[i] != 0) sequences_[i].replay.clear();
  }
  for (const Row& row : rows) ++sequences_[index(row.sequence)].pass_rows;
  return read_results(rows, shape);
}

// Makes the missing cells of the sequences in the batch, where they do not fit beside its rows.
Result<void> LlamaRuntime::replay_alone() {
  for (std::size_t i = 0; i < sequences_.size(); ++i) {
    Sequence& state = sequences_[i];
    while (in_batch_[i] != 0 && !state.replay.empty()) {
      const std::size_t count = std::min(state.replay.size(), batch_.capacity());
      batch_.clear();
      add_replay(i, count);
      PACELINE_TRY_VOID(decode());
      counters_.replayed_rows += count;
      state.replay.erase(state.replay.begin(),
                         state.replay.begin() + static_cast<std::ptrdiff_t>(count));
    }
  }
  return {};
}

void LlamaRuntime::add_replay(std::size_t sequence, std::size_t count) {
  const Sequence& state = sequences_[sequence];
  for (std::size_t i = 0; i < count; ++i) {
    batch_.add(state.replay[i], state.cells() + i, false);
    for (std::size_t leaf = 0; leaf < limits_.leaves; ++leaf) {
      batch_.add_id(batch_.size() - 1, llama_id(sequence, leaf));
    }
  }
}

void LlamaRuntime::add_rows(std::span<const Row> rows, const BatchShape& shape) {
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const Row& row = rows[i];
    batch_.add(row.token, sequences_[index(row.sequence)].length + shape.depth[i],
               row.wants != Wants::nothing);
  }
  if (limits_.leaves == 1) {
    for (std::size_t i = 0; i < rows.size(); ++i) {
      batch_.add_id(row_offset_ + i, llama_id(index(rows[i].sequence), 0));
    }
  } else {
    add_leaf_ids(rows);
  }
}

// Numbers the leaves of each sequence in the order of their rows and puts each row into the
// libllama sequences of the leaves below it. The first leaf also takes the numbers that this tree
// leaves over, so that a chain is in all of them and need not be shared when it is accepted.
void LlamaRuntime::add_leaf_ids(std::span<const Row> rows) {
  has_child_.assign(rows.size(), 0);
  for (const Row& row : rows) {
    if (row.parent != k_committed_end) has_child_[static_cast<std::size_t>(row.parent)] = 1;
    sequences_[index(row.sequence)].leaf_count = 0;
    sequences_[index(row.sequence)].first_leaf = k_committed_end;
  }
  const auto add_to_branch = [&](std::int32_t leaf_row, llama_seq_id id) {
    for (std::int32_t i = leaf_row; i != k_committed_end;
         i = rows[static_cast<std::size_t>(i)].parent) {
      batch_.add_id(row_offset_ + static_cast<std::size_t>(i), id);
    }
  };
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (has_child_[i] != 0) continue;
    Sequence& state = sequences_[index(rows[i].sequence)];
    const auto row = static_cast<std::int32_t>(i);
    if (state.leaf_count == 0) state.first_leaf = row;
    add_to_branch(row, llama_id(index(rows[i].sequence), state.leaf_count++));
  }
  for (std::size_t i = 0; i < sequences_.size(); ++i) {
    if (in_batch_[i] == 0) continue;
    for (std::size_t leaf = sequences_[i].leaf_count; leaf < limits_.leaves; ++leaf) {
      add_to_branch(sequences_[i].first_leaf, llama_id(i, leaf));
    }
  }
}

// One llama_decode. Where it does not come to its end, every sequence is as it was before.
Result<void> LlamaRuntime::decode() {
  const CapturedErrors errors;
  int code = 0;
  std::string reason;
  try {
    code = llama_decode(context_.get(), batch_.view());
  } catch (const std::exception& error) {
    code = k_threw;
    reason = error.what();
  }
  if (code == 0) {
    ++counters_.forwards;
    counters_.rows += batch_.size();
    return {};
  }
  if (reason.empty()) reason = errors.text("no reason given");
  PACELINE_TRY_VOID(restore_after(code));
  switch (code) {
    case 1:
      return fail(ErrorCode::runtime_failed,
                  std::format("no room in the cache for {} rows: {}", batch_.size(), reason));
    case 2:
      return fail(ErrorCode::cancelled, "the pass was cancelled");
    default:
      return fail(ErrorCode::runtime_failed,
                  std::format("llama_decode failed ({}): {}", code, reason));
  }
}

// libllama leaves the cells of what it computed before it stopped.
Result<void> LlamaRuntime::restore_after(int code) {
  const bool untouched = code == 1 || code == -1;
  for (std::size_t i = 0; i < sequences_.size(); ++i) {
    if (in_batch_[i] == 0) continue;
    if (recurrent_) {
      sequences_[i].broken = !untouched;
      continue;
    }
    for (std::size_t leaf = 0; leaf < limits_.leaves; ++leaf) {
      PACELINE_TRY_VOID(remove_from(i, llama_id(i, leaf), sequences_[i].cells()));
    }
  }
  return {};
}

Result<void> LlamaRuntime::read_results(std::span<const Row> rows, const BatchShape& shape) {
  results_.resize(rows.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    RowResult& result = results_[i];
    result = {.wants = rows[i].wants};
    if (result.wants == Wants::nothing) continue;
    const auto batch_row = static_cast<std::int32_t>(row_offset_ + i);
    if (includes(result.wants, Wants::logits) || includes(result.wants, Wants::argmax)) {
      result.logits = llama_get_logits_ith(context_.get(), batch_row);
      if (result.logits == nullptr) {
        return fail(ErrorCode::runtime_failed, std::format("no logits for row {}", i));
      }
      const Largest largest = find_largest({result.logits, vocabulary_size_});
      if (!largest.finite) {
        const std::size_t committed = sequences_[index(rows[i].sequence)].length;
        return logits_not_finite(owner_->info().path, committed + shape.depth[i], "llama");
      }
      result.argmax = largest.token;
    }
    if (includes(result.wants, Wants::feature)) {
      result.feature = llama_get_embeddings_ith(context_.get(), batch_row);
      if (result.feature == nullptr) {
        return fail(ErrorCode::runtime_failed, std::format("no feature for row {}", i));
      }
    }
  }
  return {};
}

const LlamaRuntime::RowResult& LlamaRuntime::result(std::size_t row, Wants wanted) const {
  PACELINE_CHECK(row < results_.size() && includes(results_[row].wants, wanted),
                 "the row of the last pass did not want this result");
  return results_[row];
}

Token LlamaRuntime::argmax(std::size_t row) const { return result(row, Wants::argmax).argmax; }

std::span<const float> LlamaRuntime::logits(std::size_t row) const {
  return {result(row, Wants::logits).logits, vocabulary_size_};
}

std::span<const float> LlamaRuntime::feature(std::size_t row) const {
  return {result(row, Wants::feature).feature, hidden_size_};
}

Result<void> LlamaRuntime::accept(SequenceId sequence, std::span<const std::int32_t> path) {
  Sequence& state = at(sequence);
  PACELINE_TRY_VOID(usable(index(sequence)));
  if (state.pass_rows == 0) {
    if (path.empty()) return {};
    return fail(ErrorCode::invalid_argument,
                std::format("sequence {} has no open rows to accept", index(sequence)));
  }
  PACELINE_TRY_VOID(check_path(rows_, sequence, path));
  // The accepted rows that lie where plain decoding would have put them: the first rows in order.
  std::size_t in_place = 0;
  for (std::size_t row = 0; row < rows_.size() && in_place < path.size(); ++row) {
    if (rows_[row].sequence != sequence) continue;
    if (path[in_place] != static_cast<std::int32_t>(row)) break;
    ++in_place;
  }
  if (in_place == state.pass_rows) {
    state.length += in_place;
    state.pass_rows = 0;
    return {};
  }
  if (recurrent_) {
    return fail(ErrorCode::unsupported,
                std::format("{} of {} rows accepted, but {}", path.size(), state.pass_rows,
                            capabilities().rollback_reason));
  }
  PACELINE_TRY_VOID(keep_rows(index(sequence), in_place));
  for (const std::int32_t row : path.subspan(in_place)) {
    state.replay.push_back(rows_[static_cast<std::size_t>(row)].token);
  }
  state.length += path.size();
  return {};
}

Result<void> LlamaRuntime::truncate(SequenceId sequence, std::size_t length) {
  Sequence& state = at(sequence);
  PACELINE_TRY_VOID(usable(index(sequence)));
  if (length > state.length) {
    return fail(ErrorCode::invalid_argument,
                std::format("cannot shorten sequence {} of {} tokens to {}", index(sequence),
                            state.length, length));
  }
  if (recurrent_ && length > 0) {
    if (length == state.length && state.pass_rows == 0) return {};
    return fail(ErrorCode::unsupported,
                std::format("cannot shorten sequence {} to {} tokens: {}", index(sequence), length,
                            capabilities().rollback_reason));
  }
  const std::size_t cells = std::min(length, state.cells());
  if (state.pass_rows > 0 || cells < state.cells()) {
    for (std::size_t leaf = 0; leaf < limits_.leaves; ++leaf) {
      PACELINE_TRY_VOID(remove_from(index(sequence), llama_id(index(sequence), leaf), cells));
    }
  }
  state.replay.resize(length - cells);
  state.length = length;
  state.pass_rows = 0;
  return {};
}

}  // namespace

KvCacheTypes kv_cache_types() {
  const Attention attention = choose_attention();
  return {ggml_type_name(attention.key_type), ggml_type_name(attention.value_type)};
}

Result<std::unique_ptr<Runtime>> create_llama_runtime(std::shared_ptr<const Model> owner,
                                                      llama_model* model,
                                                      const RuntimeLimits& asked) {
  PACELINE_TRY(OpenContext opened, open_context(model, owner->info(), asked));
  return std::make_unique<LlamaRuntime>(std::move(owner), std::move(opened));
}

}  // namespace paceline::runtime
