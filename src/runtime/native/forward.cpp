#include "runtime/native/forward.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "runtime/native/kernels/pack.hpp"

namespace paceline::runtime::native {

namespace {

// Sequences with at most so many rows have their chunks spread over units; with more, their rows.
constexpr std::size_t k_few_rows = 16;
// Rows of one unit of attention.
constexpr std::size_t k_unit_rows = 16;
constexpr std::size_t k_small_unit_rows = 4;
// With so few rows per sequence a barrier costs more than a unit that does all for one head.
constexpr std::size_t k_rows_stored_along = 2;

std::size_t padded(std::size_t rows) {
  return (rows + k_row_block - 1) / k_row_block * k_row_block;
}

template <typename T>
void grow(std::vector<T>& values, std::size_t size) {
  if (values.size() < size) values.resize(size);
}

}  // namespace

Forward::Forward(const Network& network, const Kernels& kernels, const Cache& cache, Team& team,
                 std::size_t rows)
    : network_(network),
      kernels_(kernels),
      cache_(cache),
      team_(team),
      key_offset_(padded(network.shape.query_width())),
      value_offset_(key_offset_ + padded(network.shape.key_value_width())),
      logit_stride_(padded(network.shape.vocabulary)),
      scratch_(team.threads()) {
  query_stride_ = value_offset_ + padded(network.shape.key_value_width());
  const Shape& shape = network.shape;
  const std::size_t stride = k_chunk + (rows + k_lanes - 1) / k_lanes * k_lanes + k_lanes;
  for (Scratch& scratch : scratch_) {
    scratch.row.resize(std::max(shape.hidden, shape.query_width()));
    scratch.scores.resize(k_most_queries * stride);
    scratch.chunk_values.resize(k_most_queries * shape.head_width);
    scratch.sum_values.resize(k_most_queries * shape.head_width);
  }
}

// --- what a pass is made of
// -----------------------------------------------------------------------

// Of nearly equal width: 12 columns are 6 and 6.
std::vector<Forward::Tile> Forward::tiles_of(std::size_t columns) {
  std::vector<Tile> tiles;
  const std::size_t count = (columns + k_most_columns - 1) / k_most_columns;
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t first = columns * i / count;
    tiles.push_back({first, columns * (i + 1) / count - first});
  }
  return tiles;
}

void Forward::set_rows(std::span<const PassRow> rows) {
  rows_ = rows;
  sequences_.clear();
  sequence_of_.clear();
  outputs_.clear();
  output_of_.assign(rows.size(), 0);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const PassRow& row = rows[i];
    auto found = std::ranges::find(sequences_, row.sequence, &PassSequence::sequence);
    if (found == sequences_.end()) {
      sequences_.push_back({.sequence = row.sequence, .committed = row.committed});
      found = std::prev(sequences_.end());
    }
    sequence_of_.push_back(static_cast<std::size_t>(found - sequences_.begin()));
    found->rows.push_back(i);
    if (row.output || row.feature) {
      output_of_[i] = outputs_.size();
      outputs_.push_back(i);
    }
  }
}

void Forward::plan_attention() {
  const Shape& shape = network_.shape;
  attention_.clear();
  spread_.assign(rows_.size(), 0);
  most_chunks_ = 0;
  gather_apart_ = shape.head_width % k_block != 0;
  store_apart_ = false;
  for (const PassSequence& sequence : sequences_) {
    if (sequence.rows.size() > k_rows_stored_along) store_apart_ = true;
  }
  const std::size_t unit_rows = rows_.size() <= k_few_rows ? k_small_unit_rows : k_unit_rows;
  for (std::size_t s = 0; s < sequences_.size(); ++s) {
    const std::vector<std::size_t>& rows = sequences_[s].rows;
    std::size_t length = 0;
    for (const std::size_t row : rows) length = std::max(length, rows_[row].position + 1);
    const std::size_t chunks = (length + k_chunk - 1) / k_chunk;
    const bool spread = rows.size() <= k_few_rows && chunks > 1;
    if (spread) {
      most_chunks_ = std::max(most_chunks_, chunks);
      gather_apart_ = true;
      store_apart_ = true;
    }
    for (const std::size_t row : rows) spread_[row] = spread ? 1 : 0;
    for (std::size_t h = 0; h < shape.key_value_heads; ++h) {
      if (spread) {
        for (std::size_t chunk = 0; chunk < chunks; ++chunk) {
          attention_.push_back({s, h, 0, rows.size(), chunk, 1, true});
        }
        continue;
      }
      for (std::size_t first = 0; first < rows.size(); first += unit_rows) {
        const std::size_t count = std::min(unit_rows, rows.size() - first);
        attention_.push_back({s, h, first, count, 0, chunks, false});
      }
    }
  }
  if (most_chunks_ > 0) {
    const std::size_t partials = rows_.size() * shape.heads * most_chunks_;
    grow(partials_, partials);
    grow(partial_values_, partials * shape.head_width);
  }
}

void Forward::plan_phases() {
  phases_.clear();
  units_.clear();
  const auto add = [&](Kind kind, std::size_t layer, std::size_t units) {
    phases_.push_back({kind, layer});
    units_.push_back(units);
  };
  const std::size_t rows = rows_.size();
  add(Kind::embed, 0, rows);
  for (std::size_t i = 0; i < network_.layers.size(); ++i) {
    const Layer& layer = network_.layers[i];
    add(Kind::query_key_value, i,
        layer.query.row_blocks() + layer.key.row_blocks() + layer.value.row_blocks());
    if (store_apart_) add(Kind::store, i, rows);
    add(Kind::attend, i, attention_.size());
    if (gather_apart_) add(Kind::gather, i, rows);
    add(Kind::attention_output, i, layer.output.row_blocks());
    add(Kind::middle_norm, i, rows);
    add(Kind::gate_up, i, layer.gate.row_blocks());
    add(Kind::down, i, layer.down.row_blocks());
    add(Kind::next_norm, i, i + 1 < network_.layers.size() ? rows : outputs_.size());
  }
  if (outputs_.empty()) return;
  add(Kind::head, 0, network_.output.row_blocks());
  add(Kind::choose, 0, outputs_.size());
}

void Forward::prepare(Activations& activations, std::span<const Matrix* const> readers,
                      std::size_t columns) {
  activations.want_quantised = false;
  activations.want_values = false;
  for (const Matrix* const matrix : readers) {
    activations.blocks = matrix->blocks();
    (is_float(matrix->format) ? activations.want_values : activations.want_quantised) = true;
  }
  if (activations.want_quantised) grow(activations.quantised, columns * activations.blocks);
  if (activations.want_values) grow(activations.values, columns * activations.blocks * k_block);
}

bool Forward::run(std::span<const PassRow> rows, const std::stop_token& stop) {
  const Shape& shape = network_.shape;
  set_rows(rows);
  plan_attention();
  plan_phases();
  tiles_ = tiles_of(rows.size());
  output_tiles_ = tiles_of(outputs_.size());
  grow(residual_, rows.size() * shape.hidden);
  grow(projected_, rows.size() * query_stride_);
  grow(attended_, rows.size() * shape.query_width());
  grow(rotations_, rows.size() * 2 * network_.rotation.frequencies.size());
  // Layers may differ in their weights' types, so each use wants what any layer wants.
  std::vector<const Matrix*> inputs;
  std::vector<const Matrix*> outputs;
  std::vector<const Matrix*> downs;
  for (const Layer& layer : network_.layers) {
    for (const Matrix* matrix : {&layer.query, &layer.key, &layer.value, &layer.gate, &layer.up}) {
      inputs.push_back(matrix);
    }
    outputs.push_back(&layer.output);
    downs.push_back(&layer.down);
  }
  prepare(normed_, inputs, rows.size());
  prepare(attended_activations_, outputs, rows.size());
  prepare(gated_, downs, rows.size());
  prepare(final_, std::array{static_cast<const Matrix*>(&network_.output)}, outputs_.size());
  grow(features_, outputs_.size() * shape.hidden);
  grow(logits_, outputs_.size() * logit_stride_);
  grow(choices_, outputs_.size());
  return team_.run(*this, units_, stop);
}

std::span<const float> Forward::logits(std::size_t row) const {
  return {logits_.data() + output_of_[row] * logit_stride_, network_.shape.vocabulary};
}
std::span<const float> Forward::feature(std::size_t row) const {
  return {features_.data() + output_of_[row] * network_.shape.hidden, network_.shape.hidden};
}

// --- units
// ----------------------------------------------------------------------------------------

void Forward::run(std::size_t phase, std::size_t unit, std::size_t thread) {
  const std::size_t index = phases_[phase].layer;
  const Layer& layer = network_.layers[index];
  switch (phases_[phase].kind) {
    case Kind::embed:
      embed(unit, thread);
      break;
    case Kind::query_key_value:
      query_key_value(layer, unit);
      break;
    case Kind::store:
      for (std::size_t h = 0; h < network_.shape.key_value_heads; ++h) store(index, unit, h);
      break;
    case Kind::attend:
      attend(index, attention_[unit], thread);
      break;
    case Kind::gather:
      gather(unit, thread);
      break;
    case Kind::attention_output:
      add_product(layer.output, unit, attended_activations_);
      break;
    case Kind::middle_norm:
      norm(unit, layer.feed_forward_norm, thread);
      break;
    case Kind::gate_up:
      gate_up(layer, unit);
      break;
    case Kind::down:
      add_product(layer.down, unit, gated_);
      break;
    case Kind::next_norm:
      if (index + 1 < network_.layers.size()) {
        norm(unit, network_.layers[index + 1].attention_norm, thread);
      } else {
        last_norm(unit, thread);
      }
      break;
    case Kind::head:
      head(unit);
      break;
    case Kind::choose:
      if (rows_[outputs_[unit]].output) choices_[unit] = find_largest(logits(outputs_[unit]));
      break;
  }
}

ActivationTile Forward::tile_of(const Activations& activations, const Tile& tile) const {
  ActivationTile result;
  result.blocks = activations.blocks;
  result.columns = tile.columns;
  if (activations.want_quantised) {
    result.quantised = activations.quantised.data() + tile.first * activations.blocks;
  }
  if (activations.want_values) {
    result.values = activations.values.data() + tile.first * activations.blocks * k_block;
  }
  return result;
}

// Blocks `first_block` and on of one column, where its tile has them.
void Forward::write(Activations& activations, const std::vector<Tile>& tiles, std::size_t column,
                    std::size_t first_block, std::size_t blocks, const float* x) const {
  const auto after = std::ranges::upper_bound(tiles, column, {}, &Tile::first);
  const Tile& tile = *std::prev(after);
  const std::size_t start = tile.first * activations.blocks;
  const std::size_t inside = column - tile.first;
  if (activations.want_quantised) {
    kernels_.quantise(x, blocks,
                      activations.quantised.data() + start + first_block * tile.columns + inside,
                      tile.columns);
  }
  if (!activations.want_values) return;
  float* to = activations.values.data() + start * k_block + inside;
  for (std::size_t k = 0; k < blocks * k_block; ++k) {
    to[(first_block * k_block + k) * tile.columns] = x[k];
  }
}

void Forward::multiply(const Matrix& matrix, std::size_t row_block, const Activations& x,
                       const std::vector<Tile>& tiles, float* out, std::size_t stride) const {
  const Kernels::Matmul matmul = kernels_.matmul[static_cast<std::size_t>(matrix.format)];
  const std::byte* const weights = matrix.row_block(row_block);
  for (const Tile& tile : tiles) {
    matmul(weights, tile_of(x, tile), out + tile.first * stride, stride);
  }
}

void Forward::embed(std::size_t row, std::size_t thread) {
  const Matrix& embedding = network_.embedding;
  const std::size_t token = to_index(rows_[row].token);
  unpack_row(embedding.format, embedding.row_block(token / k_row_block), token % k_row_block,
             embedding.blocks(), residual_.data() + row * network_.shape.hidden);
  const std::vector<double>& frequencies = network_.rotation.frequencies;
  const std::size_t pairs = frequencies.size();
  float* const cosines = rotations_.data() + row * 2 * pairs;
  for (std::size_t i = 0; i < pairs; ++i) {
    const double angle = static_cast<double>(rows_[row].position) * frequencies[i];
    cosines[i] = static_cast<float>(std::cos(angle));
    cosines[i + pairs] = static_cast<float>(std::sin(angle));
  }
  norm(row, network_.layers.front().attention_norm, thread);
}

void Forward::query_key_value(const Layer& layer, std::size_t unit) {
  std::size_t offset = 0;
  const Matrix* matrix = &layer.query;
  if (unit >= matrix->row_blocks()) {
    unit -= matrix->row_blocks();
    matrix = &layer.key;
    offset = key_offset_;
    if (unit >= matrix->row_blocks()) {
      unit -= matrix->row_blocks();
      matrix = &layer.value;
      offset = value_offset_;
    }
  }
  multiply(*matrix, unit, normed_, tiles_, projected_.data() + offset + unit * k_row_block,
           query_stride_);
}

// The queries of one head of keys are made ready, its key and value are written.
void Forward::store(std::size_t layer_index, std::size_t index, std::size_t head) {
  const Shape& shape = network_.shape;
  const Layer& layer = network_.layers[layer_index];
  const PassRow& row = rows_[index];
  const std::size_t width = shape.head_width;
  const std::size_t group = shape.heads / shape.key_value_heads;
  const std::size_t pairs = network_.rotation.frequencies.size();
  const float* const cosines = rotations_.data() + index * 2 * pairs;
  float* const projected = projected_.data() + index * query_stride_;
  const auto add_bias = [&](float* x, const Matrix& matrix, std::size_t which) {
    if (matrix.bias != nullptr) kernels_.add(x, matrix.bias + which * width, width);
  };
  const auto turn = [&](float* x, const float* norm) {
    if (norm != nullptr) kernels_.rms_norm(x, norm, shape.epsilon, width, x);
    kernels_.rotate(x, cosines, cosines + pairs, pairs, network_.rotation.halves);
  };
  const float scale = 1.0F / std::sqrt(static_cast<float>(width));
  for (std::size_t h = head * group; h < (head + 1) * group; ++h) {
    float* const query = projected + h * width;
    add_bias(query, layer.query, h);
    turn(query, layer.query_norm);
    kernels_.scale(query, scale, width);
  }
  float* const key = projected + key_offset_ + head * width;
  float* const value = projected + value_offset_ + head * width;
  add_bias(key, layer.key, head);
  add_bias(value, layer.value, head);
  turn(key, layer.key_norm);
  kernels_.store(key, value, width, row.committed + row.order,
                 cache_.head(row.sequence, layer_index, head));
}

void Forward::attend(std::size_t layer, const AttentionUnit& unit, std::size_t thread) {
  const Shape& shape = network_.shape;
  const PassSequence& sequence = sequences_[unit.sequence];
  Scratch& scratch = scratch_[thread];
  const std::size_t group = shape.heads / shape.key_value_heads;
  if (!store_apart_) {  // then this unit has all rows of the sequence
    for (const std::size_t row : sequence.rows) store(layer, row, unit.head);
  }
  AttendJob job;
  job.cache = cache_.head(sequence.sequence, layer, unit.head);
  job.width = shape.head_width;
  job.committed = sequence.committed;
  job.cells = sequence.committed + sequence.rows.size();
  job.scores = scratch.scores.data();
  job.score_stride = scratch.scores.size() / k_most_queries;
  std::array<Query, k_most_queries> queries;
  std::array<Partial, k_most_queries> partials;
  std::array<Partial, k_most_queries> sums;
  job.queries = queries.data();
  job.partials = partials.data();
  job.values = scratch.chunk_values.data();
  const std::size_t total = unit.rows * group;
  for (std::size_t first = 0; first < total; first += k_most_queries) {
    job.query_count = std::min(k_most_queries, total - first);
    std::size_t longest = 0;
    const auto row_of = [&](std::size_t query) {
      return sequence.rows[unit.first_row + (first + query) / group];
    };
    const auto head_of = [&](std::size_t query) {
      return unit.head * group + (first + query) % group;
    };
    for (std::size_t i = 0; i < job.query_count; ++i) {
      const PassRow& row = rows_[row_of(i)];
      queries[i].q = projected_.data() + row_of(i) * query_stride_ + head_of(i) * shape.head_width;
      queries[i].path = row.path.empty() ? nullptr : row.path.data();
      queries[i].length = row.position + 1;
      longest = std::max(longest, queries[i].length);
      sums[i] = {};
    }
    for (std::size_t c = 0; c < unit.chunks; ++c) {
      job.chunk = unit.first_chunk + c;
      if (job.chunk * k_chunk >= longest && !unit.partial) break;
      kernels_.attend(job);
      for (std::size_t i = 0; i < job.query_count; ++i) {
        const float* const values = scratch.chunk_values.data() + i * shape.head_width;
        if (!unit.partial) {
          kernels_.merge(sums[i], scratch.sum_values.data() + i * shape.head_width, partials[i],
                         values, shape.head_width);
          continue;
        }
        const std::size_t slot = (row_of(i) * shape.heads + head_of(i)) * most_chunks_ + job.chunk;
        partials_[slot] = partials[i];
        std::copy_n(values, shape.head_width, partial_values_.data() + slot * shape.head_width);
      }
    }
    for (std::size_t i = 0; i < job.query_count && !unit.partial; ++i) {
      const float* const values = scratch.sum_values.data() + i * shape.head_width;
      float* const out =
          attended_.data() + row_of(i) * shape.query_width() + head_of(i) * shape.head_width;
      const float inverse = 1.0F / sums[i].weight;
      for (std::size_t d = 0; d < shape.head_width; ++d) out[d] = values[d] * inverse;
      if (gather_apart_) continue;
      const std::size_t blocks = shape.head_width / k_block;
      write(attended_activations_, tiles_, row_of(i), head_of(i) * blocks, blocks, out);
    }
  }
}

// Chunks that were spread over units become one, and the row is ready for the next product.
void Forward::gather(std::size_t row, std::size_t thread) {
  const Shape& shape = network_.shape;
  float* const out = attended_.data() + row * shape.query_width();
  const std::size_t chunks = rows_[row].position / k_chunk + 1;
  for (std::size_t h = 0; spread_[row] != 0 && h < shape.heads; ++h) {
    float* const sum = scratch_[thread].sum_values.data();
    Partial total;
    for (std::size_t chunk = 0; chunk < chunks; ++chunk) {
      const std::size_t slot = (row * shape.heads + h) * most_chunks_ + chunk;
      kernels_.merge(total, sum, partials_[slot], partial_values_.data() + slot * shape.head_width,
                     shape.head_width);
    }
    const float inverse = 1.0F / total.weight;
    for (std::size_t d = 0; d < shape.head_width; ++d) {
      out[h * shape.head_width + d] = sum[d] * inverse;
    }
  }
  write(attended_activations_, tiles_, row, 0, attended_activations_.blocks, out);
}

void Forward::add_product(const Matrix& matrix, std::size_t unit, const Activations& x) {
  const Kernels::Matmul matmul = kernels_.matmul[static_cast<std::size_t>(matrix.format)];
  const std::size_t hidden = network_.shape.hidden;
  alignas(64) std::array<float, k_most_columns * k_row_block> product;
  for (const Tile& tile : tiles_) {
    matmul(matrix.row_block(unit), tile_of(x, tile), product.data(), k_row_block);
    for (std::size_t c = 0; c < tile.columns; ++c) {
      kernels_.add(residual_.data() + (tile.first + c) * hidden + unit * k_row_block,
                   product.data() + c * k_row_block, k_row_block);
    }
  }
}

void Forward::norm(std::size_t row, const float* weight, std::size_t thread) {
  const Shape& shape = network_.shape;
  float* const normed = scratch_[thread].row.data();
  kernels_.rms_norm(residual_.data() + row * shape.hidden, weight, shape.epsilon, shape.hidden,
                    normed);
  write(normed_, tiles_, row, 0, normed_.blocks, normed);
}

void Forward::gate_up(const Layer& layer, std::size_t unit) {
  const Kernels::Matmul gate_matmul = kernels_.matmul[static_cast<std::size_t>(layer.gate.format)];
  const Kernels::Matmul up_matmul = kernels_.matmul[static_cast<std::size_t>(layer.up.format)];
  alignas(64) std::array<float, k_most_columns * k_row_block> gate;
  alignas(64) std::array<float, k_most_columns * k_row_block> up;
  for (const Tile& tile : tiles_) {
    const ActivationTile x = tile_of(normed_, tile);
    gate_matmul(layer.gate.row_block(unit), x, gate.data(), k_row_block);
    up_matmul(layer.up.row_block(unit), x, up.data(), k_row_block);
    kernels_.swiglu(gate.data(), up.data(), tile.columns * k_row_block);
    for (std::size_t c = 0; c < tile.columns; ++c) {
      write(gated_, tiles_, tile.first + c, unit, 1, gate.data() + c * k_row_block);
    }
  }
}

void Forward::last_norm(std::size_t output, std::size_t thread) {
  (void)thread;
  const Shape& shape = network_.shape;
  float* const feature = features_.data() + output * shape.hidden;
  kernels_.rms_norm(residual_.data() + outputs_[output] * shape.hidden, network_.output_norm,
                    shape.epsilon, shape.hidden, feature);
  write(final_, output_tiles_, output, 0, final_.blocks, feature);
}

void Forward::head(std::size_t unit) {
  multiply(network_.output, unit, final_, output_tiles_, logits_.data() + unit * k_row_block,
           logit_stride_);
}

}  // namespace paceline::runtime::native
