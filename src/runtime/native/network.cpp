#include "runtime/native/network.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <format>
#include <optional>
#include <set>
#include <span>
#include <string_view>
#include <thread>

#include "core/text.hpp"
#include "runtime/native/kernels/pack.hpp"

namespace paceline::runtime::native {

namespace {

Error not_native(std::string_view what) {
  return Error(
      ErrorCode::unsupported,
      std::format("{}; the native runtime does not compute this, use --runtime llama", what));
}

// Reads what the file says and keeps the first thing that is wrong.
class Reader {
 public:
  explicit Reader(const GgufTensors& file)
      : file_(file), architecture_(file.summary().architecture) {}

  Result<Network> read(std::size_t vocabulary);

 private:
  std::string key(std::string_view name) const { return std::format("{}.{}", architecture_, name); }
  Result<std::size_t> size(std::string_view name) const {
    const auto value = file_.integer(key(name));
    if (!value || *value == 0 || *value > 1U << 24U) {
      return fail(ErrorCode::bad_format, std::format("{} is {}, a size is wanted", key(name),
                                                     value ? std::to_string(*value) : "missing"));
    }
    return static_cast<std::size_t>(*value);
  }
  Result<void> check_kind() const;
  Result<void> read_shape(Shape& shape) const;
  Result<void> read_rotation(const Shape& shape, Rotation& rotation);
  Result<const MappedTensor*> tensor(const std::string& name, std::size_t rows,
                                     std::size_t columns);
  Result<Matrix> matrix(const std::string& name, std::size_t rows, std::size_t columns);
  Result<Layer> layer(std::size_t index, const Shape& shape);
  Result<void> check_vector(const std::string& name, std::size_t size);

  const GgufTensors& file_;
  std::string architecture_;
  std::set<std::string, std::less<>> used_;
};

Result<void> Reader::check_kind() const {
  if (architecture_ != "llama" && architecture_ != "qwen2" && architecture_ != "qwen3") {
    return not_native(
        std::format("architecture \"{}\" is none of llama, qwen2 and qwen3", architecture_));
  }
  if (file_.integer(key("expert_count")).value_or(0) > 0) {
    return not_native(
        std::format("the file has {} experts per layer", *file_.integer(key("expert_count"))));
  }
  if (const auto window = file_.integer(key("attention.sliding_window")).value_or(0); window > 0) {
    return not_native(std::format("attention sees a sliding window of {} tokens", window));
  }
  return {};
}

Result<void> Reader::read_shape(Shape& shape) const {
  PACELINE_TRY(shape.layers, size("block_count"));
  PACELINE_TRY(shape.hidden, size("embedding_length"));
  PACELINE_TRY(shape.feed_forward, size("feed_forward_length"));
  PACELINE_TRY(shape.heads, size("attention.head_count"));
  shape.key_value_heads = shape.heads;
  if (file_.has(key("attention.head_count_kv"))) {
    PACELINE_TRY(shape.key_value_heads, size("attention.head_count_kv"));
  }
  shape.head_width = shape.hidden / shape.heads;
  if (file_.has(key("attention.key_length"))) {
    PACELINE_TRY(shape.head_width, size("attention.key_length"));
  }
  const auto value_width = file_.integer(key("attention.value_length")).value_or(shape.head_width);
  shape.trained_context = file_.summary().trained_context;
  const auto epsilon = file_.number(key("attention.layer_norm_rms_epsilon"));
  if (!epsilon) {
    return fail(ErrorCode::bad_format,
                std::format("{} is missing", key("attention.layer_norm_rms_epsilon")));
  }
  shape.epsilon = static_cast<float>(*epsilon);
  if (!(shape.epsilon >= 0.0F && shape.epsilon < 1.0F)) {
    return fail(ErrorCode::bad_format,
                std::format("{} is {}, a number from 0 up to 1 is wanted",
                            key("attention.layer_norm_rms_epsilon"), *epsilon));
  }
  if (shape.heads % shape.key_value_heads != 0) {
    return fail(ErrorCode::bad_format, std::format("{} heads cannot share {} heads of keys",
                                                   shape.heads, shape.key_value_heads));
  }
  if (value_width != shape.head_width || shape.head_width % k_lanes != 0) {
    return not_native(
        std::format("heads are {} wide for keys and {} for values, not the same "
                    "multiple of {}",
                    shape.head_width, value_width, k_lanes));
  }
  for (const std::size_t width : {shape.hidden, shape.feed_forward, shape.query_width()}) {
    if (width % k_block != 0) {
      return not_native(std::format("a width of {} is no multiple of {}", width, k_block));
    }
  }
  return {};
}

Result<void> Reader::read_rotation(const Shape& shape, Rotation& rotation) {
  const std::size_t turned = static_cast<std::size_t>(
      file_.integer(key("rope.dimension_count")).value_or(shape.head_width));
  if (turned == 0 || turned > shape.head_width || turned % 2 != 0) {
    return fail(ErrorCode::bad_format,
                std::format("{} is {}, heads are {} wide", key("rope.dimension_count"), turned,
                            shape.head_width));
  }
  const double base = file_.number(key("rope.freq_base")).value_or(10000.0);
  if (!(base > 0.0 && std::isfinite(base))) {
    return fail(ErrorCode::bad_format,
                std::format("{} is {}, a number above 0 is wanted", key("rope.freq_base"), base));
  }
  double factor = 1.0;
  const std::string scaling = file_.string(key("rope.scaling.type")).value_or("none");
  if (scaling == "linear") {
    factor = file_.number(key("rope.scaling.factor")).value_or(1.0);
    if (!(factor > 0.0 && std::isfinite(factor))) {
      return fail(ErrorCode::bad_format, std::format("{} is {}, a number above 0 is wanted",
                                                     key("rope.scaling.factor"), factor));
    }
  } else if (scaling != "none") {
    return not_native(std::format("positions are scaled by \"{}\"", scaling));
  }
  rotation.halves = architecture_ != "llama";
  for (std::size_t i = 0; i < turned / 2; ++i) {
    rotation.frequencies.push_back(
        std::pow(base, -2.0 * static_cast<double>(i) / static_cast<double>(turned)) / factor);
  }
  // Llama 3.1 and later: a divisor for each frequency.
  if (file_.find("rope_freqs.weight") != nullptr) {
    PACELINE_TRY_VOID(check_vector("rope_freqs.weight", turned / 2));
    const MappedTensor& divisors = *file_.find("rope_freqs.weight");
    for (std::size_t i = 0; i < turned / 2; ++i) {
      float divisor = 1.0F;
      std::memcpy(&divisor, divisors.data.data() + 4 * i, sizeof divisor);
      if (!(divisor > 0.0F && std::isfinite(divisor))) {
        return fail(ErrorCode::bad_format,
                    std::format("rope_freqs.weight holds {}, numbers above 0 are wanted", divisor));
      }
      rotation.frequencies[i] /= static_cast<double>(divisor);
    }
  }
  return {};
}

Result<const MappedTensor*> Reader::tensor(const std::string& name, std::size_t rows,
                                           std::size_t columns) {
  const MappedTensor* const found = file_.find(name);
  if (found == nullptr) {
    return fail(ErrorCode::bad_format, std::format("tensor {} is missing", name));
  }
  used_.insert(name);
  const std::size_t seen_rows = found->extents.size() > 1 ? found->extents[1] : 1;
  if (found->extents.size() > 2 || found->extents[0] != columns || seen_rows != rows) {
    return fail(ErrorCode::bad_format,
                std::format("tensor {} has {} rows of {}, {} rows of {} are wanted", name,
                            seen_rows, found->extents[0], rows, columns));
  }
  return found;
}

Result<Matrix> Reader::matrix(const std::string& name, std::size_t rows, std::size_t columns) {
  PACELINE_TRY(const MappedTensor* const found, tensor(name, rows, columns));
  const auto format = format_of(found->type);
  if (!format || columns % column_step(*format) != 0) {
    return not_native(
        std::format("tensor {} is of type {} with {} columns", name, found->type, columns));
  }
  Matrix result;
  result.format = *format;
  result.rows = rows;
  result.columns = columns;
  return result;
}

Result<void> Reader::check_vector(const std::string& name, std::size_t size) {
  PACELINE_TRY(const MappedTensor* const found, tensor(name, 1, size));
  if (found->type != "f32") {
    return not_native(std::format("tensor {} is of type {}, not f32", name, found->type));
  }
  return {};
}

std::string block(std::size_t layer, std::string_view name) {
  return std::format("blk.{}.{}", layer, name);
}

Result<Layer> Reader::layer(std::size_t index, const Shape& shape) {
  Layer result;
  const auto name = [&](std::string_view part) { return block(index, part); };
  PACELINE_TRY_VOID(check_vector(name("attn_norm.weight"), shape.hidden));
  PACELINE_TRY_VOID(check_vector(name("ffn_norm.weight"), shape.hidden));
  PACELINE_TRY(result.query, matrix(name("attn_q.weight"), shape.query_width(), shape.hidden));
  PACELINE_TRY(result.key, matrix(name("attn_k.weight"), shape.key_value_width(), shape.hidden));
  PACELINE_TRY(result.value, matrix(name("attn_v.weight"), shape.key_value_width(), shape.hidden));
  PACELINE_TRY(result.output,
               matrix(name("attn_output.weight"), shape.hidden, shape.query_width()));
  PACELINE_TRY(result.gate, matrix(name("ffn_gate.weight"), shape.feed_forward, shape.hidden));
  PACELINE_TRY(result.up, matrix(name("ffn_up.weight"), shape.feed_forward, shape.hidden));
  PACELINE_TRY(result.down, matrix(name("ffn_down.weight"), shape.hidden, shape.feed_forward));
  for (const auto& [part, matrix] : {std::pair{"attn_q.bias", &result.query},
                                     {"attn_k.bias", &result.key},
                                     {"attn_v.bias", &result.value}}) {
    if (file_.find(name(part)) == nullptr) continue;
    PACELINE_TRY_VOID(check_vector(name(part), matrix->rows));
  }
  const bool norms = file_.find(name("attn_q_norm.weight")) != nullptr;
  if (norms != (architecture_ == "qwen3")) {
    return fail(ErrorCode::bad_format, std::format("architecture \"{}\" with{} {}", architecture_,
                                                   norms ? "" : "out", name("attn_q_norm.weight")));
  }
  for (const char* part : {"attn_q_norm.weight", "attn_k_norm.weight"}) {
    if (norms) PACELINE_TRY_VOID(check_vector(name(part), shape.head_width));
  }
  return result;
}

Result<Network> Reader::read(std::size_t vocabulary) {
  PACELINE_TRY_VOID(check_kind());
  Network network;
  Shape& shape = network.shape;
  PACELINE_TRY_VOID(read_shape(shape));
  PACELINE_TRY_VOID(read_rotation(shape, network.rotation));
  shape.vocabulary = vocabulary;
  PACELINE_TRY(network.embedding, matrix("token_embd.weight", vocabulary, shape.hidden));
  if (file_.find("output.weight") != nullptr) {
    PACELINE_TRY(network.output, matrix("output.weight", vocabulary, shape.hidden));
  } else {
    network.output = network.embedding;
  }
  PACELINE_TRY_VOID(check_vector("output_norm.weight", shape.hidden));
  for (std::size_t i = 0; i < shape.layers; ++i) {
    PACELINE_TRY(Layer read, layer(i, shape));
    network.layers.push_back(read);
  }
  // A tensor that is not read here would change what the others compute.
  for (const MappedTensor& tensor : file_.tensors()) {
    if (!used_.contains(tensor.name)) {
      return not_native(
          std::format("tensor {} is not one of architecture \"{}\" as it is known "
                      "here",
                      tensor.name, architecture_));
    }
  }
  return network;
}

// Hands out the memory, first only counting it.
class Packer {
 public:
  Packer(Network& network, const GgufTensors& file) : network_(network), file_(file) {}

  /// Places everything from `start` on; gives the bytes needed.
  std::size_t place(std::byte* start);
  /// Errors: cancelled, bad_format (weights that are no numbers).
  Result<void> pack(const PackOptions& options);

 private:
  struct Job {
    const MappedTensor* tensor;
    Matrix matrix;
    std::size_t first_unit;  // one per row block
  };

  std::byte* take(std::size_t bytes) {
    std::byte* const taken = start_ == nullptr ? nullptr : start_ + used_;
    used_ += (bytes + 63) / 64 * 64;
    return taken;
  }
  void place_matrix(const std::string& name, Matrix& matrix, const std::string& bias = {});
  void place_vector(const std::string& name, const float*& vector);
  void pack_unit(std::size_t unit);

  Network& network_;
  const GgufTensors& file_;
  std::byte* start_ = nullptr;
  std::size_t used_ = 0;
  std::size_t units_ = 0;
  std::vector<Job> jobs_;
  std::vector<std::atomic<std::size_t>> left_;  // [jobs] row blocks not packed yet
  std::vector<std::atomic<bool>> damaged_;      // [jobs] holds NaN or infinities
  std::string damaged_vector_;                  // the first one's name, empty: none
};

void Packer::place_matrix(const std::string& name, Matrix& matrix, const std::string& bias) {
  matrix.data = take(matrix.row_blocks() * row_block_bytes(matrix.format, matrix.blocks()));
  if (!bias.empty()) place_vector(bias, matrix.bias);
  if (start_ == nullptr) return;
  jobs_.push_back({file_.find(name), matrix, units_});
  units_ += matrix.row_blocks();
}

void Packer::place_vector(const std::string& name, const float*& vector) {
  const MappedTensor* const tensor = file_.find(name);
  if (tensor == nullptr) return;
  std::byte* const to = take(tensor->data.size());
  vector = reinterpret_cast<const float*>(to);
  if (to == nullptr) return;
  std::memcpy(to, tensor->data.data(), tensor->data.size());
  const std::span<const float> copied(vector, tensor->data.size() / sizeof(float));
  if (damaged_vector_.empty() &&
      !std::ranges::all_of(copied, [](float value) { return std::isfinite(value); })) {
    damaged_vector_ = name;
  }
}

std::size_t Packer::place(std::byte* start) {
  start_ = start;
  used_ = 0;
  place_matrix("token_embd.weight", network_.embedding);
  for (std::size_t i = 0; i < network_.layers.size(); ++i) {
    Layer& layer = network_.layers[i];
    place_vector(block(i, "attn_norm.weight"), layer.attention_norm);
    place_vector(block(i, "ffn_norm.weight"), layer.feed_forward_norm);
    place_vector(block(i, "attn_q_norm.weight"), layer.query_norm);
    place_vector(block(i, "attn_k_norm.weight"), layer.key_norm);
    place_matrix(block(i, "attn_q.weight"), layer.query, block(i, "attn_q.bias"));
    place_matrix(block(i, "attn_k.weight"), layer.key, block(i, "attn_k.bias"));
    place_matrix(block(i, "attn_v.weight"), layer.value, block(i, "attn_v.bias"));
    place_matrix(block(i, "attn_output.weight"), layer.output);
    place_matrix(block(i, "ffn_gate.weight"), layer.gate);
    place_matrix(block(i, "ffn_up.weight"), layer.up);
    place_matrix(block(i, "ffn_down.weight"), layer.down);
  }
  place_vector("output_norm.weight", network_.output_norm);
  if (file_.find("output.weight") != nullptr) {
    place_matrix("output.weight", network_.output);
  } else {
    network_.output = network_.embedding;
  }
  return used_;
}

void Packer::pack_unit(std::size_t unit) {
  const auto after = std::ranges::upper_bound(jobs_, unit, {}, &Job::first_unit);
  const auto job = static_cast<std::size_t>(after - jobs_.begin()) - 1;
  const Matrix& matrix = jobs_[job].matrix;
  const std::size_t index = unit - jobs_[job].first_unit;
  const std::size_t first_row = index * k_row_block;
  const std::size_t row_bytes = source_row_bytes(matrix.format, matrix.columns);
  std::byte* const to =
      start_ + (matrix.row_block(index) - start_);  // the same place, to be written
  if (!pack_row_block(matrix.format, jobs_[job].tensor->data.data() + first_row * row_bytes,
                      std::min(k_row_block, matrix.rows - first_row), matrix.columns, to)) {
    damaged_[job] = true;
  }
  if (left_[job].fetch_sub(1) == 1) file_.release(*jobs_[job].tensor);
}

Result<void> Packer::pack(const PackOptions& options) {
  const auto damaged = [](const std::string& name) {
    return fail(ErrorCode::bad_format,
                std::format("tensor {} holds weights that are no numbers (NaN or infinite): the "
                            "file is damaged; compare its checksum with its source and fetch it "
                            "again",
                            escape(name, 60)));
  };
  if (!damaged_vector_.empty()) return damaged(damaged_vector_);
  damaged_ = std::vector<std::atomic<bool>>(jobs_.size());
  left_ = std::vector<std::atomic<std::size_t>>(jobs_.size());
  for (std::size_t i = 0; i < jobs_.size(); ++i) left_[i] = jobs_[i].matrix.row_blocks();
  std::atomic<std::size_t> next = 0;
  std::atomic<bool> cancelled = false;
  const auto work = [&] {
    for (std::size_t unit = next++; unit < units_ && !cancelled; unit = next++) pack_unit(unit);
  };
  std::vector<std::jthread> helpers;
  for (std::size_t i = 1; i < options.threads; ++i) helpers.emplace_back(work);
  std::size_t reported = 0;
  for (std::size_t unit = next++; unit < units_ && !cancelled; unit = next++) {
    pack_unit(unit);
    if (!options.progress || (unit - reported) * 100 < units_) continue;
    reported = unit;
    const float part = static_cast<float>(unit) / static_cast<float>(units_);
    if (!options.progress(part)) cancelled = true;
  }
  helpers.clear();
  if (!cancelled && options.progress && !options.progress(1.0F)) cancelled = true;
  if (cancelled) return fail(ErrorCode::cancelled, "loading was cancelled");
  const auto first = std::ranges::find_if(damaged_, [](const auto& is) { return is.load(); });
  if (first == damaged_.end()) return {};
  return damaged(jobs_[static_cast<std::size_t>(first - damaged_.begin())].tensor->name);
}

}  // namespace

Result<Network> describe_network(const GgufTensors& file, std::size_t vocabulary) {
  return Reader(file).read(vocabulary);
}

std::size_t packed_bytes(const Network& network, const GgufTensors& file) {
  Network copy;
  copy.embedding = network.embedding;
  copy.output = network.output;
  copy.layers = network.layers;
  return Packer(copy, file).place(nullptr);
}

Result<void> pack_weights(Network& network, const GgufTensors& file, const PackOptions& options) {
  if (options.progress && !options.progress(0.0F)) {
    return fail(ErrorCode::cancelled, "loading was cancelled");
  }
  Packer packer(network, file);
  PACELINE_TRY(network.memory, Memory::allocate(packer.place(nullptr), true, "the weights"));
  packer.place(network.memory.data());
  file.release();  // copying the vectors has mapped much of the file
  return packer.pack(options);
}

}  // namespace paceline::runtime::native
