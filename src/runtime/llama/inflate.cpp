#include "runtime/llama/inflate.hpp"

#include <fcntl.h>
#include <ggml-cpp.h>
#include <gguf.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cmath>
#include <cstring>
#include <format>
#include <numbers>
#include <span>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include "core/check.hpp"
#include "core/file.hpp"
#include "core/hash.hpp"
#include "core/random.hpp"
#include "core/text.hpp"
#include "runtime/llama/gguf_tensors.hpp"
#include "runtime/llama/llama_version.hpp"

namespace paceline::runtime {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t k_slab_bytes = std::size_t{8} << 20;  // of the output, written at once

/// A file under a temporary name, which is removed unless `finish` was reached. One thread.
class NewFile {
 public:
  static Result<NewFile> create(const fs::path& path) {
    const std::string temporary = std::format("{}.{}.tmp", path.string(), ::getpid());
    const int file = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    if (file < 0) return errno_error(std::format("creating \"{}\"", temporary));
    return NewFile(path, temporary, file);
  }
  NewFile(NewFile&& other) noexcept
      : path_(std::move(other.path_)),
        temporary_(std::move(other.temporary_)),
        file_(std::exchange(other.file_, -1)) {}
  NewFile& operator=(NewFile&&) = delete;
  ~NewFile() {
    if (file_ < 0) return;
    ::close(file_);
    ::unlink(temporary_.c_str());
  }

  Result<void> write(std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
      const ssize_t written = ::write(file_, bytes.data(), bytes.size());
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) return errno_error(std::format("writing \"{}\"", path_.string()));
      bytes = bytes.subspan(static_cast<std::size_t>(written));
    }
    return {};
  }
  /// Gives the file its name.
  Result<void> finish() {
    if (::fsync(file_) != 0 || ::rename(temporary_.c_str(), path_.c_str()) != 0) {
      return errno_error(std::format("writing \"{}\"", path_.string()));
    }
    ::close(std::exchange(file_, -1));
    return {};
  }

 private:
  NewFile(fs::path path, std::string temporary, int file)
      : path_(std::move(path)), temporary_(std::move(temporary)), file_(file) {}

  fs::path path_;
  std::string temporary_;
  int file_;
};

Result<ggml_type> type_by_name(std::string_view name) {
  for (int i = 0; i < GGML_TYPE_COUNT; ++i) {
    const auto type = static_cast<ggml_type>(i);
    if (ggml_blck_size(type) > 0 && name == ggml_type_name(type)) return type;
  }
  return fail(ErrorCode::unsupported,
              std::format("{} does not know the type {}", library_versions(), name));
}

llama_ftype file_type_of(const WeightTypes& types) {
  using Entry = std::pair<std::string_view, llama_ftype>;
  static constexpr std::array k_known = {
      Entry{"F32", LLAMA_FTYPE_ALL_F32},          Entry{"F16", LLAMA_FTYPE_MOSTLY_F16},
      Entry{"BF16", LLAMA_FTYPE_MOSTLY_BF16},     Entry{"Q8_0", LLAMA_FTYPE_MOSTLY_Q8_0},
      Entry{"Q4_0", LLAMA_FTYPE_MOSTLY_Q4_0},     Entry{"Q4_1", LLAMA_FTYPE_MOSTLY_Q4_1},
      Entry{"Q5_0", LLAMA_FTYPE_MOSTLY_Q5_0},     Entry{"Q5_1", LLAMA_FTYPE_MOSTLY_Q5_1},
      Entry{"Q4_K", LLAMA_FTYPE_MOSTLY_Q4_K_S},   Entry{"Q5_K", LLAMA_FTYPE_MOSTLY_Q5_K_S},
      Entry{"Q6_K", LLAMA_FTYPE_MOSTLY_Q6_K},     Entry{"Q4_K_M", LLAMA_FTYPE_MOSTLY_Q4_K_M},
      Entry{"Q5_K_M", LLAMA_FTYPE_MOSTLY_Q5_K_M},
  };
  const auto* const found = std::ranges::find(k_known, types.name, &Entry::first);
  PACELINE_CHECK(found != k_known.end(), "every name of weight types has a number");
  return found->second;
}

/// The sizes in a source's metadata.
Result<LlamaShape> read_shape(const GgufTensors& file) {
  const std::string& architecture = file.summary().architecture;
  constexpr std::array<std::string_view, 3> k_known = {"llama", "qwen2", "qwen3"};
  if (!std::ranges::contains(k_known, architecture)) {
    return fail(ErrorCode::unsupported,
                std::format("architecture \"{}\" cannot be inflated; llama, qwen2 and qwen3 can",
                            escape(architecture, 60)));
  }
  const auto key = [&](std::string_view name) { return std::format("{}.{}", architecture, name); };
  if (const auto experts = file.integer(key("expert_count")).value_or(0); experts > 0) {
    return fail(ErrorCode::unsupported,
                std::format("a model with {} experts per layer cannot be inflated", experts));
  }
  Error missing;
  const auto size = [&](std::string_view name) -> std::size_t {
    const auto value = file.integer(key(name));
    if (value && *value > 0 && *value < 1U << 24U) return static_cast<std::size_t>(*value);
    missing = fail(ErrorCode::bad_format, std::format("{} is {}, a size is wanted", key(name),
                                                      value ? std::to_string(*value) : "missing"));
    return 0;
  };
  LlamaShape shape;
  shape.layers = size("block_count");
  shape.hidden = size("embedding_length");
  shape.feed_forward = size("feed_forward_length");
  shape.heads = size("attention.head_count");
  shape.key_value_heads =
      file.has(key("attention.head_count_kv")) ? size("attention.head_count_kv") : shape.heads;
  if (!file.number(key("attention.layer_norm_rms_epsilon"))) {
    return fail(ErrorCode::bad_format,
                std::format("{} is missing", key("attention.layer_norm_rms_epsilon")));
  }
  if (!missing.message.empty()) return missing;
  if (shape.heads % shape.key_value_heads != 0) {
    return fail(ErrorCode::bad_format, std::format("{} heads cannot share {} heads of keys",
                                                   shape.heads, shape.key_value_heads));
  }
  shape.head_width = static_cast<std::size_t>(
      file.integer(key("attention.key_length")).value_or(shape.hidden / shape.heads));
  const auto value_width = file.integer(key("attention.value_length")).value_or(shape.head_width);
  if (value_width != shape.head_width || shape.head_width == 0) {
    return fail(ErrorCode::unsupported,
                std::format("heads are {} wide for keys and {} for values; only one width for "
                            "both can be inflated",
                            shape.head_width, value_width));
  }
  return shape;
}

std::vector<SourceTensor> list_tensors(const GgufTensors& file) {
  std::vector<SourceTensor> tensors;
  for (const MappedTensor& tensor : file.tensors()) {
    std::size_t rows = 1;
    for (std::size_t i = 1; i < tensor.extents.size(); ++i) rows *= tensor.extents[i];
    tensors.push_back({tensor.name, rows, tensor.extents.front()});
  }
  return tensors;
}

/// One hash for all files of a model: of the file, or of the shards' hashes in order.
Result<std::string> hash_of(const std::vector<fs::path>& files, std::stop_token stop) {
  std::string sums;
  for (const fs::path& file : files) {
    PACELINE_TRY(const std::string sum, sha256_file(file, stop));
    if (files.size() == 1) return sum;
    sums += sum + "\n";
  }
  return sha256_hex(sums);
}

/// Fills rows of one tensor. Const methods from any thread.
class RowMaker {
 public:
  static Result<RowMaker> create(const TensorPlan& plan, const MappedTensor* source,
                                 const InflateOptions& options);

  std::size_t row_bytes() const { return zero_row_.size(); }
  /// Writes rows [begin, end) of the new tensor to `out`.
  void make(std::size_t begin, std::size_t end, std::span<std::byte> out) const;

 private:
  RowMaker(const TensorPlan& plan, const MappedTensor* source) : plan_(plan), source_(source) {}

  /// The source's row that stands at a row of the new tensor; none where nothing does.
  std::optional<std::size_t> source_row(std::size_t row) const;
  void read_source(std::size_t row, std::span<float> values) const;
  float noise_at(std::size_t index) const;

  const TensorPlan& plan_;
  const MappedTensor* source_;  // null: nothing is real
  ggml_type type_ = GGML_TYPE_F32;
  ggml_type source_type_ = GGML_TYPE_F32;
  std::size_t real_columns_ = 0;     // columns behind them are padding, by whole blocks
  std::vector<std::byte> zero_row_;  // a row of padding
  double noise_ = 0;
  bool random_ = false;
  std::uint64_t seed_ = 0;
};

void quantise(ggml_type type, std::span<const float> values, std::byte* out) {
  ggml_quantize_chunk(type, values.data(), out, 0, 1, static_cast<std::int64_t>(values.size()),
                      nullptr);
}

Result<RowMaker> RowMaker::create(const TensorPlan& plan, const MappedTensor* source,
                                  const InflateOptions& options) {
  RowMaker maker(plan, source);
  PACELINE_TRY(maker.type_, type_by_name(plan.type));
  if (source != nullptr) {
    PACELINE_TRY(maker.source_type_, type_by_name(source->type));
    if (maker.source_type_ != GGML_TYPE_F32 &&
        ggml_get_type_traits(maker.source_type_)->to_float == nullptr) {
      return fail(ErrorCode::unsupported,
                  std::format("tensor {} is of type {}, which cannot be turned into numbers",
                              plan.name, source->type));
    }
  }
  const auto block = static_cast<std::size_t>(ggml_blck_size(maker.type_));
  if (plan.columns % block != 0) {
    return fail(ErrorCode::unsupported,
                std::format("tensor {} has rows of {} numbers, type {} wants a multiple of {}; "
                            "choose another --type or shape",
                            plan.name, plan.columns, plan.type, block));
  }
  for (const Run& run : plan.column_runs) {
    maker.real_columns_ = std::max(maker.real_columns_, run.to + run.count);
  }
  maker.random_ = options.random && !plan.is_vector;
  if (maker.random_) maker.real_columns_ = plan.columns;
  maker.real_columns_ = (maker.real_columns_ + block - 1) / block * block;
  maker.noise_ = plan.noisy ? options.noise : 0.0;
  maker.seed_ = mix64(options.seed);
  for (const char c : plan.name) {
    maker.seed_ = mix64(maker.seed_ ^ static_cast<unsigned char>(c));
  }
  const std::vector<float> padding(plan.columns, plan.padding);
  maker.zero_row_.resize(ggml_row_size(maker.type_, static_cast<std::int64_t>(plan.columns)));
  quantise(maker.type_, padding, maker.zero_row_.data());
  return maker;
}

std::optional<std::size_t> RowMaker::source_row(std::size_t row) const {
  if (source_ == nullptr) return std::nullopt;
  for (const Run& run : plan_.row_runs) {
    if (row >= run.to && row < run.to + run.count) return run.from + (row - run.to);
  }
  return std::nullopt;
}

void RowMaker::read_source(std::size_t row, std::span<float> values) const {
  const std::size_t bytes = ggml_row_size(source_type_, static_cast<std::int64_t>(values.size()));
  const std::byte* const begin = source_->data.data() + row * bytes;
  if (source_type_ == GGML_TYPE_F32) {
    std::memcpy(values.data(), begin, bytes);
  } else {
    ggml_get_type_traits(source_type_)
        ->to_float(begin, values.data(), static_cast<std::int64_t>(values.size()));
  }
}

float RowMaker::noise_at(std::size_t index) const {  // Box-Muller
  const double u = to_unit(random_at(seed_, 2 * index));
  const double v = to_unit(random_at(seed_, 2 * index + 1));
  const double normal = std::sqrt(-2.0 * std::log(1.0 - u)) * std::cos(2.0 * std::numbers::pi * v);
  return static_cast<float>(1.0 + noise_ * normal);
}

void RowMaker::make(std::size_t begin, std::size_t end, std::span<std::byte> out) const {
  std::vector<float> values(real_columns_);
  std::vector<float> read(source_ == nullptr ? 0 : source_->extents.front());
  for (std::size_t row = begin; row < end; ++row, out = out.subspan(row_bytes())) {
    std::memcpy(out.data(), zero_row_.data(), row_bytes());
    if (random_) {
      // Uniform, with a mean square of 1 / columns.
      const double range = std::sqrt(3.0 / static_cast<double>(plan_.columns));
      for (std::size_t i = 0; i < values.size(); ++i) {
        const double unit = to_unit(random_at(seed_, row * plan_.columns + i));
        values[i] = static_cast<float>(range * (2.0 * unit - 1.0));
      }
    } else if (const auto from = source_row(row)) {
      read_source(*from, read);
      std::ranges::fill(values, plan_.padding);
      for (const Run& run : plan_.column_runs) {
        for (std::size_t i = 0; i < run.count; ++i) {
          const std::size_t column = run.from + i;
          const float noise = noise_ > 0 ? noise_at(*from * read.size() + column) : 1.0F;
          values[run.to + i] = read[column] * plan_.scale * noise;
        }
      }
    } else {
      continue;
    }
    quantise(type_, values, out.data());  // behind its blocks the padding stays
  }
}

/// Calls `work(begin, end)` for parts of [0, count), one on each thread.
void in_parallel(std::size_t count, std::size_t threads,
                 const std::function<void(std::size_t, std::size_t)>& work) {
  std::vector<std::jthread> helpers;
  for (std::size_t i = 1; i < threads; ++i) {
    helpers.emplace_back(work, count * i / threads, count * (i + 1) / threads);
  }
  work(0, count / threads);
}

/// The metadata of the new file and the places of its tensors.
class NewHeader {
 public:
  NewHeader(gguf_context_ptr gguf, std::string architecture)
      : gguf_(std::move(gguf)), architecture_(std::move(architecture)) {}

  /// All keys of the source but those of the shape, the layout and the label.
  static Result<NewHeader> create(const GgufTensors& source);
  void describe(const LlamaShape& source, const LlamaShape& shape, double epsilon);
  void label(const Inflation& inflation, const WeightTypes& types, const std::string& name);
  Result<void> add(const std::vector<TensorPlan>& tensors);

  std::vector<std::byte> bytes() const {
    std::vector<std::byte> result(gguf_get_meta_size(gguf_.get()));
    gguf_get_meta_data(gguf_.get(), result.data());
    return result;
  }
  std::uint64_t file_bytes() const;
  /// Bytes between a tensor's last one and the next tensor's first.
  std::size_t gap_behind(std::size_t tensor) const {
    const std::size_t alignment = gguf_get_alignment(gguf_.get());
    const std::size_t bytes = gguf_get_tensor_size(gguf_.get(), static_cast<std::int64_t>(tensor));
    return (alignment - bytes % alignment) % alignment;
  }

 private:
  void set(std::string_view key, std::size_t value) {
    gguf_set_val_u32(gguf_.get(), std::format("{}.{}", architecture_, key).c_str(),
                     static_cast<std::uint32_t>(value));
  }

  gguf_context_ptr gguf_;
  std::string architecture_;
};

Result<NewHeader> NewHeader::create(const GgufTensors& source) {
  const std::string first = source.summary().files.front().string();
  const gguf_context_ptr old(
      gguf_init_from_file(first.c_str(), {.no_alloc = true, .ctx = nullptr}));
  if (old == nullptr) {
    return fail(ErrorCode::bad_format,
                std::format("{} cannot read the metadata of \"{}\"", library_versions(), first));
  }
  NewHeader header(gguf_context_ptr(gguf_init_empty()), source.summary().architecture);
  gguf_set_kv(header.gguf_.get(), old.get());
  for (const char* key : {"split.no", "split.count", "split.tensors.count", "general.alignment"}) {
    gguf_remove_key(header.gguf_.get(), key);
  }
  return header;
}

void NewHeader::describe(const LlamaShape& source, const LlamaShape& shape, double epsilon) {
  set("block_count", shape.layers);
  set("embedding_length", shape.hidden);
  set("feed_forward_length", shape.feed_forward);
  set("attention.head_count", shape.heads);
  set("attention.head_count_kv", shape.key_value_heads);
  // Left out, they would follow from the widths.
  set("attention.key_length", shape.head_width);
  set("attention.value_length", shape.head_width);
  const std::string turned = architecture_ + ".rope.dimension_count";
  if (gguf_find_key(gguf_.get(), turned.c_str()) < 0) set("rope.dimension_count", shape.head_width);
  const double part = static_cast<double>(source.hidden) / static_cast<double>(shape.hidden);
  gguf_set_val_f32(gguf_.get(), (architecture_ + ".attention.layer_norm_rms_epsilon").c_str(),
                   static_cast<float>(epsilon * part));
  if (shape != source) gguf_remove_key(gguf_.get(), "general.size_label");
}

void NewHeader::label(const Inflation& inflation, const WeightTypes& types,
                      const std::string& name) {
  gguf_set_val_str(gguf_.get(), "general.name", name.c_str());
  gguf_set_val_u32(gguf_.get(), "general.file_type",
                   static_cast<std::uint32_t>(file_type_of(types)));
  gguf_set_val_u32(gguf_.get(), "general.quantization_version", GGML_QNT_VERSION);
  gguf_set_val_str(gguf_.get(), "paceline.inflated.source", inflation.source.c_str());
  gguf_set_val_str(gguf_.get(), "paceline.inflated.source_sha256", inflation.source_sha256.c_str());
  gguf_set_val_str(gguf_.get(), "paceline.inflated.shape", inflation.shape.c_str());
  gguf_set_val_f64(gguf_.get(), "paceline.inflated.noise", inflation.noise);
  gguf_set_val_bool(gguf_.get(), "paceline.inflated.random", inflation.random);
  gguf_set_val_u64(gguf_.get(), "paceline.inflated.seed", inflation.seed);
}

Result<void> NewHeader::add(const std::vector<TensorPlan>& tensors) {
  const ggml_context_ptr memory(
      ggml_init({.mem_size = ggml_tensor_overhead() * (tensors.size() + 1),
                 .mem_buffer = nullptr,
                 .no_alloc = true}));
  for (const TensorPlan& plan : tensors) {
    PACELINE_TRY(const ggml_type type, type_by_name(plan.type));
    const auto columns = static_cast<std::int64_t>(plan.columns);
    ggml_tensor* const tensor =
        plan.is_vector
            ? ggml_new_tensor_1d(memory.get(), type, columns)
            : ggml_new_tensor_2d(memory.get(), type, columns, static_cast<std::int64_t>(plan.rows));
    ggml_set_name(tensor, plan.name.c_str());
    gguf_add_tensor(gguf_.get(), tensor);
  }
  return {};
}

std::uint64_t NewHeader::file_bytes() const {
  std::uint64_t bytes = gguf_get_meta_size(gguf_.get());
  for (std::int64_t i = 0; i < gguf_get_n_tensors(gguf_.get()); ++i) {
    bytes += gguf_get_tensor_size(gguf_.get(), i) + gap_behind(static_cast<std::size_t>(i));
  }
  return bytes;
}

Result<void> check_options(const fs::path& output, const InflateOptions& options) {
  std::error_code code;
  if (fs::exists(fs::symlink_status(output, code))) {
    return fail(
        ErrorCode::invalid_argument,
        std::format("\"{}\" exists already; choose another name or remove it", output.string()));
  }
  if (!(options.noise >= 0.0 && options.noise <= 10.0)) {
    return fail(ErrorCode::invalid_argument,
                std::format("noise is {}, a number from 0 to 10 is wanted", options.noise));
  }
  if (options.random && options.noise > 0.0) {
    return fail(ErrorCode::invalid_argument,
                std::format("noise {} on random weights means nothing; choose one of the two",
                            options.noise));
  }
  return check_writable(output);
}

Result<void> check_space(const fs::path& output, std::uint64_t bytes) {
  std::error_code code;
  const fs::path folder = output.has_parent_path() ? output.parent_path() : fs::path(".");
  const fs::space_info space = fs::space(folder, code);
  if (code || space.available >= bytes) return {};  // the write itself will tell
  return fail(ErrorCode::io,
              std::format("\"{}\" will have {:.2f} GB, there is room for {:.2f} GB in \"{}\"",
                          output.string(), static_cast<double>(bytes) / 1e9,
                          static_cast<double>(space.available) / 1e9, folder.string()));
}

std::string name_of(const Inflation& inflation) {
  if (inflation.random) {
    return std::format("random weights in {} shape, vocabulary of {}", inflation.shape,
                       inflation.source);
  }
  return std::format("{} in {} shape{}", inflation.source, inflation.shape,
                     inflation.noise > 0 ? std::format(", noise {}", inflation.noise) : "");
}

Result<void> write_tensors(const GgufTensors& source, const std::vector<TensorPlan>& tensors,
                           const NewHeader& header, const InflateOptions& options, NewFile& file) {
  const std::uint64_t total = header.file_bytes();
  const std::vector<std::byte> start = header.bytes();
  PACELINE_TRY_VOID(file.write(start));
  std::uint64_t done = start.size();
  std::vector<std::byte> slab;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    const TensorPlan& plan = tensors[i];
    // Divisors of positions are no weights: they stay where all else is random.
    const bool is_real =
        !plan.row_runs.empty() && (!options.random || plan.name == "rope_freqs.weight");
    const MappedTensor* const real = is_real ? source.find(plan.name) : nullptr;
    PACELINE_TRY(const RowMaker maker, RowMaker::create(plan, real, options));
    const std::size_t row_bytes = maker.row_bytes();
    const std::size_t step = std::max<std::size_t>(1, k_slab_bytes / row_bytes);
    for (std::size_t row = 0; row < plan.rows; row += step) {
      if (options.stop.stop_requested()) {
        return fail(ErrorCode::cancelled, "inflating was cancelled");
      }
      const std::size_t count = std::min(step, plan.rows - row);
      slab.resize(count * row_bytes);
      in_parallel(count, std::max<std::size_t>(1, options.threads),
                  [&](std::size_t begin, std::size_t end) {
                    maker.make(
                        row + begin, row + end,
                        std::span(slab).subspan(begin * row_bytes, (end - begin) * row_bytes));
                  });
      PACELINE_TRY_VOID(file.write(slab));
      done += slab.size();
      if (options.progress) options.progress(done, total);
    }
    const std::vector<std::byte> gap(header.gap_behind(i));
    PACELINE_TRY_VOID(file.write(gap));
    done += gap.size();
    if (real != nullptr) source.release(*real);
  }
  return {};
}

Result<InflatedFile> inflate(const GgufTensors& source, const fs::path& output,
                             const InflateOptions& options) {
  InflatedFile result;
  PACELINE_TRY(const WeightTypes types, weight_types(options.type));
  PACELINE_TRY(result.source, read_shape(source));
  if (options.own_shape) {
    result.shape = *options.own_shape;
  } else {
    PACELINE_TRY(result.shape, inflated_shape(options.shape, result.source));
  }
  if (source.summary().architecture == "qwen2" &&
      result.shape.query_width() != result.shape.hidden) {
    return fail(ErrorCode::unsupported,
                std::format("{} heads of {} do not fill {} columns, as libllama wants of qwen2; "
                            "choose another shape",
                            result.shape.heads, result.shape.head_width, result.shape.hidden));
  }
  PACELINE_TRY(const auto tensors,
               plan_inflation(result.source, result.shape, list_tensors(source), types));

  const GgufSummary& summary = source.summary();
  Inflation inflation{
      .source = summary.name.empty() ? summary.files.front().stem().string() : summary.name,
      .shape = options.shape,
      .noise = options.noise,
      .random = options.random,
      .seed = options.seed};
  PACELINE_TRY(inflation.source_sha256, hash_of(summary.files, options.stop));
  PACELINE_TRY(NewHeader header, NewHeader::create(source));
  header.describe(
      result.source, result.shape,
      source.number(summary.architecture + ".attention.layer_norm_rms_epsilon").value_or(0));
  header.label(inflation, types, name_of(inflation));
  PACELINE_TRY_VOID(header.add(tensors));
  result.bytes = header.file_bytes();
  for (const TensorPlan& plan : tensors) result.parameters += plan.rows * plan.columns;
  PACELINE_TRY_VOID(check_space(output, result.bytes));
  for (const TensorPlan& plan : tensors) {  // before anything is written
    PACELINE_TRY(
        [[maybe_unused]] const RowMaker maker,
        RowMaker::create(plan, plan.row_runs.empty() ? nullptr : source.find(plan.name), options));
  }
  PACELINE_TRY(NewFile file, NewFile::create(output));
  PACELINE_TRY_VOID(write_tensors(source, tensors, header, options, file));
  PACELINE_TRY_VOID(file.finish());
  return result;
}

}  // namespace

Result<InflatedFile> inflate_model(const fs::path& source, const fs::path& output,
                                   const InflateOptions& options) {
  PACELINE_TRY_VOID(check_options(output, options));
  PACELINE_TRY(const GgufTensors file, GgufTensors::open(source));
  auto result = inflate(file, output, options);
  if (!result && !result.error().message.contains(output.string())) {
    return result.error().in(std::format("inflating \"{}\"", source.string()));
  }
  return result;
}

}  // namespace paceline::runtime
