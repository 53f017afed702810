#include "runtime/llama/gguf_tensors.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <format>
#include <utility>

#include "core/file.hpp"
#include "runtime/llama/gguf_metadata_impl.hpp"

namespace paceline::runtime {

namespace {

class Mapping {
 public:
  static Result<Mapping> open(const std::filesystem::path& path, std::size_t bytes) {
    errno = 0;
    const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (file < 0) return errno_error(std::format("opening \"{}\"", path.string()));
    void* const start = ::mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE, file, 0);
    const int code = errno;
    ::close(file);
    if (start == MAP_FAILED) {
      errno = code;
      return errno_error(std::format("mapping \"{}\"", path.string()));
    }
    return Mapping(static_cast<std::byte*>(start), bytes);
  }
  Mapping(Mapping&& other) noexcept
      : start_(std::exchange(other.start_, nullptr)), bytes_(other.bytes_) {}
  Mapping& operator=(Mapping&& other) noexcept {
    std::swap(start_, other.start_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~Mapping() {
    if (start_ != nullptr) ::munmap(start_, bytes_);
  }
  std::byte* start() const { return start_; }

 private:
  Mapping(std::byte* start, std::size_t bytes) : start_(start), bytes_(bytes) {}

  std::byte* start_;
  std::size_t bytes_;
};

std::vector<std::size_t> extents_of(const gguf_context* gguf, std::int64_t tensor) {
  const std::int64_t* const extents = gguf_get_tensor_ne(gguf, tensor);
  std::size_t count = GGML_MAX_DIMS;
  while (count > 1 && extents[count - 1] == 1) --count;
  std::vector<std::size_t> result(count);
  std::transform(extents, extents + count, result.begin(),
                 [](std::int64_t extent) { return static_cast<std::size_t>(extent); });
  return result;
}

}  // namespace

struct GgufTensors::Impl {
  gguf_context_ptr metadata;
  std::vector<Mapping> mappings;
};

GgufTensors::GgufTensors() : impl_(std::make_unique<Impl>()) {}
GgufTensors::~GgufTensors() = default;
GgufTensors::GgufTensors(GgufTensors&&) noexcept = default;
GgufTensors& GgufTensors::operator=(GgufTensors&&) noexcept = default;

Result<GgufTensors> GgufTensors::open(const std::filesystem::path& path) {
  GgufTensors result;
  PACELINE_TRY(result.summary_, read_gguf_summary(path));
  for (const std::filesystem::path& file : result.summary_.files) {
    PACELINE_TRY(gguf_context_ptr gguf, open_gguf_metadata(file));
    std::error_code error;
    const auto bytes = static_cast<std::size_t>(std::filesystem::file_size(file, error));
    if (error) {
      return fail(ErrorCode::io, std::format("size of \"{}\": {}", file.string(), error.message()));
    }
    PACELINE_TRY(Mapping mapping, Mapping::open(file, bytes));
    const std::byte* const data = mapping.start() + gguf_get_data_offset(gguf.get());
    for (std::int64_t i = 0; i < gguf_get_n_tensors(gguf.get()); ++i) {
      result.tensors_.push_back({.name = gguf_get_tensor_name(gguf.get(), i),
                                 .type = ggml_type_name(gguf_get_tensor_type(gguf.get(), i)),
                                 .extents = extents_of(gguf.get(), i),
                                 .data = {data + gguf_get_tensor_offset(gguf.get(), i),
                                          gguf_get_tensor_size(gguf.get(), i)}});
    }
    result.impl_->mappings.push_back(std::move(mapping));
    if (result.impl_->metadata == nullptr) result.impl_->metadata = std::move(gguf);
  }
  return result;
}

const GgufTensor* GgufTensors::find(std::string_view name) const {
  const auto found = std::ranges::find(tensors_, name, &GgufTensor::name);
  return found == tensors_.end() ? nullptr : &*found;
}

void GgufTensors::release(const GgufTensor& tensor) const {
  // Whole pages only; what the neighbours share stays.
  const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto begin = reinterpret_cast<std::uintptr_t>(tensor.data.data());
  const std::uintptr_t first = (begin + page - 1) / page * page;
  const std::uintptr_t end = (begin + tensor.data.size()) / page * page;
  if (first < end) ::madvise(reinterpret_cast<void*>(first), end - first, MADV_DONTNEED);
}

std::optional<std::uint64_t> GgufTensors::integer(const std::string& key) const {
  return gguf_integer(impl_->metadata.get(), key);
}

std::optional<double> GgufTensors::number(const std::string& key) const {
  const gguf_context* const gguf = impl_->metadata.get();
  const std::int64_t id = gguf_find_key(gguf, key.c_str());
  if (id < 0) return std::nullopt;
  switch (gguf_get_kv_type(gguf, id)) {
    case GGUF_TYPE_FLOAT32:
      return static_cast<double>(gguf_get_val_f32(gguf, id));
    case GGUF_TYPE_FLOAT64:
      return gguf_get_val_f64(gguf, id);
    default:
      break;
  }
  if (const auto whole = integer(key)) return static_cast<double>(*whole);
  return std::nullopt;
}

std::optional<std::string> GgufTensors::string(const std::string& key) const {
  const gguf_context* const gguf = impl_->metadata.get();
  const std::int64_t id = gguf_find_key(gguf, key.c_str());
  if (id < 0 || gguf_get_kv_type(gguf, id) != GGUF_TYPE_STRING) return std::nullopt;
  return gguf_get_val_str(gguf, id);
}

bool GgufTensors::has(const std::string& key) const {
  return gguf_find_key(impl_->metadata.get(), key.c_str()) >= 0;
}

}  // namespace paceline::runtime
