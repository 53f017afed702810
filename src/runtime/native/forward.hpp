// One pass through the network for a set of rows, cut into phases and units for a team of threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <stop_token>
#include <vector>

#include "core/token.hpp"
#include "runtime/largest.hpp"
#include "runtime/native/cache.hpp"
#include "runtime/native/kernels/kernels.hpp"
#include "runtime/native/network.hpp"
#include "runtime/native/team.hpp"

namespace paceline::runtime::native {

/// A row of a pass. Its cell is `committed + order`.
struct PassRow {
  Token token{};
  std::size_t sequence = 0;
  std::size_t committed = 0;  // tokens of its sequence
  std::size_t order = 0;      // among the rows of its sequence
  std::size_t position = 0;
  std::vector<std::int32_t> path = {};  // orders of its ancestors and itself; empty: 0, 1, ...
  bool output = false;                  // logits are wanted
  bool feature = false;
};

/// Buffers for passes of up to `rows` rows. One thread.
class Forward final : public Phases {
 public:
  Forward(const Network& network, const Kernels& kernels, const Cache& cache, Team& team,
          std::size_t rows);

  /// False where `stop` was requested meanwhile; nothing but cells behind the committed ones has
  /// then changed.
  bool run(std::span<const PassRow> rows, const std::stop_token& stop);

  /// Of rows that were outputs: [vocabulary].
  std::span<const float> logits(std::size_t row) const;
  /// Of rows that wanted it.
  /// Of rows with an output.
  const Largest& largest(std::size_t row) const { return choices_[output_of_[row]]; }
  /// Of rows that wanted it: [hidden].
  std::span<const float> feature(std::size_t row) const;

  void run(std::size_t phase, std::size_t unit, std::size_t thread) override;

 private:
  enum class Kind : std::uint8_t {
    embed,
    query_key_value,
    store,
    attend,
    gather,
    attention_output,
    middle_norm,
    gate_up,
    down,
    next_norm,
    head,
    choose,
  };
  struct Phase {
    Kind kind;
    std::size_t layer;
  };
  struct Tile {
    std::size_t first;
    std::size_t columns;
  };
  // A quantised (or float) copy of vectors that a matrix product reads.
  struct Activations {
    std::vector<ActivationBlock> quantised;
    std::vector<float> values;
    std::size_t blocks = 0;
    bool want_quantised = false;
    bool want_values = false;
  };
  // Rows of one sequence, by index into rows_, in their order.
  struct PassSequence {
    std::size_t sequence = 0;
    std::size_t committed = 0;
    std::vector<std::size_t> rows = {};
  };
  struct AttentionUnit {
    std::size_t sequence;  // index into sequences_
    std::size_t head;      // of keys and values
    std::size_t first_row;
    std::size_t rows;
    std::size_t first_chunk;
    std::size_t chunks;
    bool partial;  // one chunk of rows whose chunks are spread over units
  };
  struct Scratch {
    std::vector<float> row;
    std::vector<float> scores;
    std::vector<float> chunk_values;
    std::vector<float> sum_values;
  };

  void set_rows(std::span<const PassRow> rows);
  void plan_attention();
  void plan_phases();
  static std::vector<Tile> tiles_of(std::size_t columns);
  void prepare(Activations& activations, std::span<const Matrix* const> readers,
               std::size_t columns);
  ActivationTile tile_of(const Activations& activations, const Tile& tile) const;
  void write(Activations& activations, const std::vector<Tile>& tiles, std::size_t column,
             std::size_t first_block, std::size_t blocks, const float* x) const;
  void multiply(const Matrix& matrix, std::size_t row_block, const Activations& x,
                const std::vector<Tile>& tiles, float* out, std::size_t stride) const;

  void embed(std::size_t row, std::size_t thread);
  void query_key_value(const Layer& layer, std::size_t unit);
  void store(std::size_t layer, std::size_t row, std::size_t head);
  void attend(std::size_t layer, const AttentionUnit& unit, std::size_t thread);
  void gather(std::size_t row, std::size_t thread);
  void add_product(const Matrix& matrix, std::size_t unit, const Activations& x);
  void norm(std::size_t row, const float* weight, std::size_t thread);
  void gate_up(const Layer& layer, std::size_t unit);
  void last_norm(std::size_t output, std::size_t thread);
  void head(std::size_t unit);

  const Network& network_;
  const Kernels& kernels_;
  const Cache& cache_;
  Team& team_;
  std::size_t query_stride_;  // of a row in projected_
  std::size_t key_offset_;
  std::size_t value_offset_;
  std::size_t logit_stride_;

  std::span<const PassRow> rows_;
  std::vector<PassSequence> sequences_;
  std::vector<std::size_t> sequence_of_;  // [rows] index into sequences_
  std::vector<AttentionUnit> attention_;
  bool store_apart_ = false;     // keys and values are written in a phase of their own
  bool gather_apart_ = false;    // attention's results become activations in a phase of their own
  std::size_t most_chunks_ = 0;  // of rows whose chunks are spread
  std::vector<std::uint8_t> spread_;    // [rows]
  std::vector<std::size_t> outputs_;    // rows whose logits or feature are wanted
  std::vector<std::size_t> output_of_;  // [rows] index into outputs_
  std::vector<Phase> phases_;
  std::vector<std::size_t> units_;
  std::vector<Tile> tiles_;
  std::vector<Tile> output_tiles_;

  std::vector<float> residual_;   // [rows][hidden]
  std::vector<float> projected_;  // [rows][queries, keys, values]
  std::vector<float> attended_;   // [rows][queries]
  std::vector<float> rotations_;  // [rows][cosines, sines][pairs]
  std::vector<Partial> partials_;
  std::vector<float> partial_values_;
  Activations normed_;
  Activations attended_activations_;
  Activations gated_;
  Activations final_;
  std::vector<float> features_;   // [outputs][hidden]
  std::vector<float> logits_;     // [outputs][vocabulary, padded]
  std::vector<Largest> choices_;  // [outputs]
  std::vector<Scratch> scratch_;  // [threads]
};

}  // namespace paceline::runtime::native
