#include "runtime/llama/gguf_tensors.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <format>
#include <utility>

#include "core/file.hpp"
#include "core/text.hpp"
#include "runtime/llama/llama_version.hpp"

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
  std::size_t bytes() const { return bytes_; }

 private:
  Mapping(std::byte* start, std::size_t bytes) : start_(start), bytes_(bytes) {}

  std::byte* start_;
  std::size_t bytes_;
};

std::vector<std::size_t> extents_of(const GgufTensor& tensor) {
  std::size_t count = tensor.extents.size();
  while (count > 1 && tensor.extents[count - 1] == 1) --count;
  return {tensor.extents.begin(), tensor.extents.begin() + static_cast<std::ptrdiff_t>(count)};
}

}  // namespace

struct GgufTensors::Impl {
  GgufHeader metadata;
  std::vector<Mapping> mappings;
};

GgufTensors::GgufTensors() : impl_(std::make_unique<Impl>()) {}
GgufTensors::~GgufTensors() = default;
GgufTensors::GgufTensors(GgufTensors&&) noexcept = default;
GgufTensors& GgufTensors::operator=(GgufTensors&&) noexcept = default;

Result<GgufTensors> GgufTensors::open(const std::filesystem::path& path) {
  GgufTensors result;
  PACELINE_TRY(GgufModelFile model, read_gguf_model(path));
  result.summary_ = std::move(model.summary);
  result.impl_->metadata = std::move(model.header);
  for (const std::filesystem::path& file : result.summary_.files) {
    PACELINE_TRY(const GgufHeader header, read_gguf_header(file));
    std::error_code error;
    const auto bytes = static_cast<std::size_t>(std::filesystem::file_size(file, error));
    if (error) {
      return fail(ErrorCode::io, std::format("size of \"{}\": {}", file.string(), error.message()));
    }
    PACELINE_TRY(Mapping mapping, Mapping::open(file, bytes));
    for (const GgufTensor& tensor : header.tensors()) {
      const auto size = gguf_tensor_bytes(tensor);
      const std::uint64_t begin = header.data_offset() + tensor.offset;
      if (!size || begin > bytes || *size > bytes - begin) {  // the file changed since it was read
        return fail(ErrorCode::bad_format, std::format("tensor \"{}\" lies outside of \"{}\"",
                                                       escape(tensor.name, 60), file.string()));
      }
      result.tensors_.push_back({.name = std::string(tensor.name),
                                 .type = ggml_type_name(static_cast<ggml_type>(tensor.type)),
                                 .extents = extents_of(tensor),
                                 .data = {mapping.start() + begin, *size}});
    }
    result.impl_->mappings.push_back(std::move(mapping));
  }
  return result;
}

const MappedTensor* GgufTensors::find(std::string_view name) const {
  const auto found = std::ranges::find(tensors_, name, &MappedTensor::name);
  return found == tensors_.end() ? nullptr : &*found;
}

void GgufTensors::release() const {
  for (const Mapping& mapping : impl_->mappings) {
    ::madvise(mapping.start(), mapping.bytes(), MADV_DONTNEED);
  }
}

void GgufTensors::release(const MappedTensor& tensor) const {
  // A fault maps what the page cache holds around it too (Linux 6.18: up to 2 MiB), also pages of
  // neighbours that were released before. So the range is wider than the tensor; what a neighbour
  // still needs of it is mapped again.
  constexpr std::size_t k_around = std::size_t{2} << 20;
  for (const Mapping& mapping : impl_->mappings) {
    const std::byte* const begin = tensor.data.data();
    if (begin < mapping.start() || begin >= mapping.start() + mapping.bytes()) continue;
    const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
    const auto offset = static_cast<std::size_t>(begin - mapping.start());
    const std::size_t first = (offset - std::min(offset, k_around)) / page * page;
    const std::size_t end = std::min(mapping.bytes(), offset + tensor.data.size() + k_around);
    ::madvise(mapping.start() + first, end - first, MADV_DONTNEED);
  }
}

std::optional<std::uint64_t> GgufTensors::integer(std::string_view key) const {
  return impl_->metadata.integer(key);
}

std::optional<double> GgufTensors::number(std::string_view key) const {
  return impl_->metadata.number(key);
}

std::optional<std::string> GgufTensors::string(std::string_view key) const {
  const auto text = impl_->metadata.string(key);
  if (!text) return std::nullopt;
  return std::string(*text);
}

bool GgufTensors::has(std::string_view key) const { return impl_->metadata.has(key); }

}  // namespace paceline::runtime
