// The seam between decoding and whatever computes logits. A Model is weights, a Runtime is one
// place where they are run, a sequence is a committed list of tokens with its own KV cache.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include "core/result.hpp"
#include "core/token.hpp"
#include "runtime/inflation.hpp"
#include "runtime/vocabulary.hpp"

namespace paceline::runtime {

enum class SequenceId : std::uint32_t {};

/// What a row's caller will read after the pass. A bit set.
enum class Wants : std::uint8_t { nothing = 0, argmax = 1, logits = 2, feature = 4 };
constexpr Wants operator|(Wants a, Wants b) {
  return static_cast<Wants>(static_cast<std::uint8_t>(a) | static_cast<std::uint8_t>(b));
}
constexpr bool includes(Wants set, Wants wanted) {
  return (static_cast<std::uint8_t>(set) & static_cast<std::uint8_t>(wanted)) ==
         static_cast<std::uint8_t>(wanted);
}

/// `Row::parent` of rows that follow the committed end of their sequence.
inline constexpr std::int32_t k_committed_end = -1;

/// One token to compute. Its position is its parent's plus one (the sequence's length where the
/// parent is the committed end). The row attends to the committed tokens and its ancestors.
struct Row {
  SequenceId sequence{};
  Token token{};
  std::int32_t parent = k_committed_end;  // index of an earlier row of this sequence in the batch
  Wants wants = Wants::nothing;
};

/// Limits that a runtime is made for. What does not fit is refused at creation.
struct RuntimeLimits {
  std::size_t sequences = 1;
  std::size_t context = 0;  // tokens per sequence; 0: what the model was trained for, capped
  std::size_t rows = 512;   // most rows of one pass
  std::size_t results = 0;  // most rows of one pass that want something; 0: all may
  std::size_t leaves = 1;   // most leaves of one sequence's tree in a pass; 1: chains only
  std::size_t threads = 0;  // 0: cores of the affinity mask
  bool features = false;    // rows may want features

  std::size_t most_results() const { return results == 0 ? rows : std::min(results, rows); }
};

struct Capabilities {
  bool rollback = true;              // truncate and partial accept work at any length
  std::string rollback_reason = {};  // why not, where rollback is false
  bool trees = false;                // rows may branch (limits.leaves > 1)
  bool features = false;
  /// "yes": equal bits for every number of rows. "unknown": depends on back end and weights.
  bool exact_widths = false;
};

/// Facts for the record. Unknown numbers are absent.
struct RuntimeInfo {
  std::string name;     // "toy", "llama", "native"
  std::string build;    // library version
  std::string backend;  // for example "CPU (avx512_vnni)"
  std::size_t threads = 0;
  std::size_t context = 0;  // tokens per sequence in effect
  std::size_t rows = 0;
  std::string kv_type_k;
  std::string kv_type_v;
  std::string flash_attention;
};

/// Work counted since creation. Rows that were put through again to stay exact are counted too.
struct PassCounters {
  std::uint64_t forwards = 0;
  std::uint64_t rows = 0;
  std::uint64_t replayed_rows = 0;
};

/// One thread.
class Runtime {
 public:
  virtual ~Runtime() = default;

  virtual const RuntimeLimits& limits() const = 0;  // the values in effect
  virtual Capabilities capabilities() const = 0;
  virtual RuntimeInfo info() const = 0;
  virtual PassCounters counters() const = 0;

  /// A new, empty sequence. Error busy: all `limits().sequences` are in use.
  virtual Result<SequenceId> create_sequence() = 0;
  /// A new sequence with the same committed tokens. Errors: busy, unsupported.
  virtual Result<SequenceId> fork(SequenceId sequence) = 0;
  /// Forgets the sequence and frees its cells.
  virtual void release(SequenceId sequence) = 0;
  /// Number of committed tokens.
  virtual std::size_t length(SequenceId sequence) const = 0;

  /// Computes the rows. Rows of earlier passes that were not accepted are dropped first. Results
  /// live until the next call. Nothing is committed: `accept` does that.
  /// Errors: invalid_argument (too many rows or leaves, context full), cancelled (`stop` was
  /// requested; every sequence is as it was before the call), runtime_failed, and bad_format, word
  /// logits_not_finite, where a row that wants its argmax or logits has none that are numbers.
  virtual Result<void> forward(std::span<const Row> rows, std::stop_token stop) = 0;

  /// Results of row `row` of the last pass, which must have wanted them. Of equal logits the
  /// lowest token id is the argmax.
  virtual Token argmax(std::size_t row) const = 0;
  virtual std::span<const float> logits(std::size_t row) const = 0;   // [vocabulary size]
  virtual std::span<const float> feature(std::size_t row) const = 0;  // [hidden size], post-norm

  /// Commits the rows of one path from the committed end downwards (indices into the last batch,
  /// each the parent of the next) and drops the sequence's other rows. An empty path drops all.
  virtual Result<void> accept(SequenceId sequence, std::span<const std::int32_t> path) = 0;

  /// Shortens the sequence to `length` committed tokens. Error: unsupported or runtime_failed
  /// where the back end did not roll back all of it; the sequence must then be released.
  virtual Result<void> truncate(SequenceId sequence, std::size_t length) = 0;
};

/// Tokens of context beyond which a number is taken for damage, in files and in options.
inline constexpr std::size_t k_longest_context = std::size_t{1} << 24;

struct ModelInfo {
  std::string name;          // general.name, or toy:...
  std::string path;          // empty where there is no file
  std::string architecture;  // "llama", "gemma3", "toy"
  std::string file_type;     // quantisation, for example "Q4_1"
  std::uint64_t parameters = 0;
  std::uint64_t file_bytes = 0;
  std::size_t layers = 0;
  std::size_t hidden = 0;
  std::size_t trained_context = 0;
  std::size_t sliding_window = 0;  // 0: none
  bool recurrent = false;          // has layers with recurrent state
  std::vector<std::string> files;  // all shards, in order
  std::optional<Inflation> inflation = {};
};

/// Weights, shared and immutable. Const methods from any thread.
class Model {
 public:
  virtual ~Model() = default;
  virtual const Vocabulary& vocabulary() const = 0;
  virtual const ModelInfo& info() const = 0;
  /// The runtime must not outlive the model.
  virtual Result<std::unique_ptr<Runtime>> create_runtime(const RuntimeLimits& limits) const = 0;
};

/// Memory of one device that a runtime holds while it works, in bytes.
struct MemoryNeed {
  std::string device;         // "host", or the device's name
  std::uint64_t weights = 0;  // as the kernels read them
  std::uint64_t kv = 0;       // KV cache of all sequences
  std::uint64_t compute = 0;  // between the layers of a pass of `rows` rows
  std::uint64_t results = 0;  // logits and features
  /// Pages of the file that are read while loading and not afterwards: resident for a while, but
  /// the system drops them when it needs room.
  std::uint64_t droppable = 0;
  std::optional<std::uint64_t> device_free = {};  // absent for the host

  /// What must stay in memory.
  std::uint64_t held() const { return weights + kv + compute + results; }
};

/// A model that was opened for its sizes only.
class MemoryEstimator {
 public:
  virtual ~MemoryEstimator() = default;
  virtual const ModelInfo& info() const = 0;
  /// What a runtime of these limits will need, the host first. Nothing is allocated.
  /// Errors: those of `Model::create_runtime`.
  virtual Result<std::vector<MemoryNeed>> need(const RuntimeLimits& limits) const = 0;
};

/// Checks what `Runtime::forward` demands of every batch, the same for all runtimes: row count,
/// parents, known sequences (`length_of` gives none for unknown ones), context room, leaves.
/// Errors: invalid_argument.
struct BatchShape {
  std::vector<std::size_t> depth;  // [rows] rows between a row and its committed end
};
Result<BatchShape> check_batch(std::span<const Row> rows, const RuntimeLimits& limits,
                               std::size_t vocabulary_size,
                               const std::vector<std::optional<std::size_t>>& length_of_sequence);

/// Checks a path for `Runtime::accept`: in range, of this sequence, each the parent of the next.
Result<void> check_path(std::span<const Row> rows, SequenceId sequence,
                        std::span<const std::int32_t> path);

}  // namespace paceline::runtime
