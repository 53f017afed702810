#include "runtime/llama/gguf_header.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <format>
#include <limits>
#include <type_traits>
#include <utility>

#include "core/file.hpp"
#include "core/text.hpp"

namespace paceline::runtime {

namespace {

constexpr std::string_view k_magic = "GGUF";
constexpr std::size_t k_first_read = std::size_t{1} << 20;
constexpr std::uint64_t k_most_header_bytes = std::uint64_t{128} << 20;
constexpr std::uint64_t k_most_keys = 1U << 16;
constexpr std::uint64_t k_most_tensors = 1U << 20;
constexpr std::size_t k_most_extents = 4;
constexpr std::uint64_t k_default_alignment = 32;
constexpr const char* k_more = "more";

std::size_t size_of(GgufType type) {
  switch (type) {
    case GgufType::u8:
    case GgufType::i8:
    case GgufType::boolean:
      return 1;
    case GgufType::u16:
    case GgufType::i16:
      return 2;
    case GgufType::u32:
    case GgufType::i32:
    case GgufType::f32:
      return 4;
    case GgufType::u64:
    case GgufType::i64:
    case GgufType::f64:
      return 8;
    case GgufType::string:
    case GgufType::array:
      break;
  }
  return 0;
}

template <typename T>
T load(std::string_view bytes) {
  std::array<char, sizeof(T)> raw{};
  std::memcpy(raw.data(), bytes.data(), sizeof(T));
  if constexpr (std::endian::native == std::endian::big) std::ranges::reverse(raw);
  return std::bit_cast<T>(raw);
}

/// An integer of any width; nothing for other types.
std::optional<std::int64_t> load_integer(GgufType type, std::string_view bytes) {
  switch (type) {
    case GgufType::u8:
    case GgufType::boolean:
      return load<std::uint8_t>(bytes);
    case GgufType::i8:
      return load<std::int8_t>(bytes);
    case GgufType::u16:
      return load<std::uint16_t>(bytes);
    case GgufType::i16:
      return load<std::int16_t>(bytes);
    case GgufType::u32:
      return load<std::uint32_t>(bytes);
    case GgufType::i32:
      return load<std::int32_t>(bytes);
    case GgufType::u64: {
      const auto value = load<std::uint64_t>(bytes);
      if (!std::in_range<std::int64_t>(value)) return std::nullopt;
      return static_cast<std::int64_t>(value);
    }
    case GgufType::i64:
      return load<std::int64_t>(bytes);
    default:
      return std::nullopt;
  }
}

}  // namespace

/// Walks over the bytes once. Every step checks what is left before it looks.
class GgufParser {
 public:
  GgufParser(std::shared_ptr<const std::string> bytes, std::uint64_t file_bytes)
      : bytes_(*bytes), file_bytes_(std::max<std::uint64_t>(file_bytes, bytes->size())) {
    header_.bytes_ = std::move(bytes);
  }

  Result<GgufHeader> parse() {
    PACELINE_TRY(const std::string_view magic, take(k_magic.size(), "the magic"));
    if (magic != k_magic) {
      return broken(
          std::format("it begins with \"{}\", a GGUF file begins with \"GGUF\"", escape(magic)));
    }
    PACELINE_TRY(const auto version, number<std::uint32_t>("the version"));
    if (version != 2 && version != 3) {
      const bool swapped = (version & 0xffffU) == 0 && version != 0;
      return broken(swapped ? std::string("it is written for the other byte order")
                            : std::format("its GGUF version is {}; 2 and 3 are known", version));
    }
    PACELINE_TRY(const auto tensors, number<std::uint64_t>("the number of tensors"));
    PACELINE_TRY(const auto keys, number<std::uint64_t>("the number of keys"));
    if (tensors > k_most_tensors || keys > k_most_keys) {
      return broken(std::format("it claims {} tensors and {} keys; up to {} and {} are read",
                                tensors, keys, k_most_tensors, k_most_keys));
    }
    for (std::uint64_t i = 0; i < keys; ++i) PACELINE_TRY_VOID(read_pair());
    for (std::uint64_t i = 0; i < tensors; ++i) PACELINE_TRY_VOID(read_tensor());
    PACELINE_TRY_VOID(place_data());
    return std::move(header_);
  }

 private:
  Error broken(const std::string& why) const {
    return fail(ErrorCode::bad_format, std::format("at byte {}: {}", at_, why));
  }

  Result<std::string_view> take(std::uint64_t count, std::string_view what) {
    if (count > file_bytes_ - at_) {
      return broken(
          std::format("{} needs {} bytes, the file has {} left", what, count, file_bytes_ - at_));
    }
    if (count > bytes_.size() - at_) return fail(ErrorCode::bad_format, std::string(what), k_more);
    const std::string_view taken = bytes_.substr(at_, count);
    at_ += count;
    return taken;
  }

  template <typename T>
  Result<T> number(std::string_view what) {
    PACELINE_TRY(const std::string_view raw, take(sizeof(T), what));
    return load<T>(raw);
  }

  Result<std::string_view> text(std::string_view what) {
    PACELINE_TRY(const auto length, number<std::uint64_t>(what));
    return take(length, what);
  }

  Result<GgufType> type(std::string_view key) {
    PACELINE_TRY(const auto word, number<std::uint32_t>("a type"));
    if (word > static_cast<std::uint32_t>(GgufType::f64)) {
      return broken(
          std::format("key \"{}\" has type {}, which does not exist", escape(key, 60), word));
    }
    return static_cast<GgufType>(word);
  }

  Result<void> read_pair() {
    PACELINE_TRY(const std::string_view key, text("a key"));
    GgufHeader::Value value;
    PACELINE_TRY(value.type, type(key));
    if (value.type == GgufType::array) {
      value.is_array = true;
      PACELINE_TRY(value.type, type(key));
      if (value.type == GgufType::array) {
        return broken(std::format("key \"{}\" is an array of arrays", escape(key, 60)));
      }
      PACELINE_TRY(value.count, number<std::uint64_t>("the length of an array"));
    }
    const std::uint64_t begin = at_;
    if (value.type == GgufType::string) {
      // Each string has at least its length; so the count is bounded before the loop.
      if (value.count > (file_bytes_ - at_) / sizeof(std::uint64_t)) {
        return broken(std::format("key \"{}\" claims {} texts, the file has {} bytes left",
                                  escape(key, 60), value.count, file_bytes_ - at_));
      }
      for (std::uint64_t i = 0; i < value.count; ++i) {
        PACELINE_TRY([[maybe_unused]] const auto element, text(key));
      }
    } else {
      const std::uint64_t size = size_of(value.type);
      if (value.count > (file_bytes_ - at_) / size) {
        return broken(std::format("key \"{}\" claims {} numbers, the file has {} bytes left",
                                  escape(key, 60), value.count, file_bytes_ - at_));
      }
      PACELINE_TRY([[maybe_unused]] const auto raw, take(value.count * size, key));
    }
    value.bytes = bytes_.substr(begin, at_ - begin);
    if (!header_.values_.emplace(key, value).second) {
      return broken(std::format("key \"{}\" stands there twice", escape(key, 60)));
    }
    return {};
  }

  Result<void> read_tensor() {
    GgufTensor tensor;
    PACELINE_TRY(tensor.name, text("the name of a tensor"));
    PACELINE_TRY(const auto extents, number<std::uint32_t>("the rank of a tensor"));
    if (extents > k_most_extents) {
      return broken(std::format("tensor \"{}\" has {} dimensions; up to {} are known",
                                escape(tensor.name, 60), extents, k_most_extents));
    }
    std::uint64_t elements = 1;
    for (std::uint32_t d = 0; d < extents; ++d) {
      PACELINE_TRY(tensor.extents[d], number<std::uint64_t>("the extent of a tensor"));
      if (tensor.extents[d] == 0 || tensor.extents[d] > k_most_elements / elements) {
        return broken(std::format("tensor \"{}\" has an extent of {}", escape(tensor.name, 60),
                                  tensor.extents[d]));
      }
      elements *= tensor.extents[d];
    }
    PACELINE_TRY(tensor.type, number<std::uint32_t>("the type of a tensor"));
    PACELINE_TRY(tensor.offset, number<std::uint64_t>("the offset of a tensor"));
    header_.tensors_.push_back(tensor);
    return {};
  }

  /// The weights begin at the next multiple of the alignment.
  Result<void> place_data() {
    std::uint64_t alignment = k_default_alignment;
    if (header_.has("general.alignment")) {
      alignment = header_.integer("general.alignment").value_or(0);
      if (!std::has_single_bit(alignment) || alignment > (1U << 20)) {
        return broken("general.alignment is no power of two up to 1048576");
      }
    }
    header_.data_offset_ = (at_ + alignment - 1) / alignment * alignment;
    for (const GgufTensor& tensor : header_.tensors_) {
      if (tensor.offset % alignment != 0) {
        return broken(std::format("tensor \"{}\" begins at {}, no multiple of {}",
                                  escape(tensor.name, 60), tensor.offset, alignment));
      }
    }
    return {};
  }

  static constexpr std::uint64_t k_most_elements = std::uint64_t{1} << 56;

  GgufHeader header_;
  std::string_view bytes_;
  std::uint64_t file_bytes_;
  std::uint64_t at_ = 0;
};

Result<GgufHeader> GgufHeader::parse(std::shared_ptr<const std::string> bytes,
                                     std::uint64_t file_bytes) {
  return GgufParser(std::move(bytes), file_bytes).parse();
}

const GgufHeader::Value* GgufHeader::find(std::string_view key, bool is_array) const {
  const auto found = values_.find(key);
  return found != values_.end() && found->second.is_array == is_array ? &found->second : nullptr;
}

bool GgufHeader::has_prefix(std::string_view prefix) const {
  const auto found = values_.lower_bound(prefix);
  return found != values_.end() && found->first.starts_with(prefix);
}

std::optional<std::uint64_t> GgufHeader::integer(std::string_view key) const {
  const Value* value = find(key, false);
  if (value == nullptr) return std::nullopt;
  const auto number = load_integer(value->type, value->bytes);
  if (!number || *number < 0) return std::nullopt;
  return static_cast<std::uint64_t>(*number);
}

std::optional<double> GgufHeader::number(std::string_view key) const {
  const Value* value = find(key, false);
  if (value == nullptr) return std::nullopt;
  if (value->type == GgufType::f32) return static_cast<double>(load<float>(value->bytes));
  if (value->type == GgufType::f64) return load<double>(value->bytes);
  if (const auto whole = integer(key)) return static_cast<double>(*whole);
  return std::nullopt;
}

std::optional<bool> GgufHeader::boolean(std::string_view key) const {
  const Value* value = find(key, false);
  if (value == nullptr || value->type != GgufType::boolean) return std::nullopt;
  return value->bytes.front() != 0;
}

std::optional<std::string_view> GgufHeader::string(std::string_view key) const {
  const Value* value = find(key, false);
  if (value == nullptr || value->type != GgufType::string) return std::nullopt;
  return value->bytes.substr(sizeof(std::uint64_t));
}

std::vector<std::string_view> GgufHeader::strings(std::string_view key) const {
  std::vector<std::string_view> result;
  const Value* value = find(key, true);
  if (value == nullptr || value->type != GgufType::string) return result;
  result.reserve(value->count);
  std::string_view rest = value->bytes;
  for (std::uint64_t i = 0; i < value->count; ++i) {
    const auto length = load<std::uint64_t>(rest);
    result.push_back(rest.substr(sizeof length, length));
    rest.remove_prefix(sizeof length + length);
  }
  return result;
}

std::vector<std::int64_t> GgufHeader::integers(std::string_view key) const {
  std::vector<std::int64_t> result;
  const Value* value = find(key, true);
  if (value == nullptr) return result;
  const std::size_t size = size_of(value->type);
  if (size == 0 || size > 4 || value->type == GgufType::f32) return result;
  result.reserve(value->count);
  for (std::uint64_t i = 0; i < value->count; ++i) {
    result.push_back(load_integer(value->type, value->bytes.substr(i * size)).value_or(0));
  }
  return result;
}

std::vector<float> GgufHeader::floats(std::string_view key) const {
  std::vector<float> result;
  const Value* value = find(key, true);
  if (value == nullptr || value->type != GgufType::f32) return result;
  result.reserve(value->count);
  for (std::uint64_t i = 0; i < value->count; ++i) {
    result.push_back(load<float>(value->bytes.substr(i * sizeof(float))));
  }
  return result;
}

namespace {

/// Appends bytes of the file until `bytes` has `wanted` of them or the file ends.
Result<void> extend(int fd, std::string& bytes, std::uint64_t wanted) {
  while (bytes.size() < wanted) {
    const std::size_t before = bytes.size();
    bytes.resize(wanted);
    const ssize_t count =
        ::pread(fd, bytes.data() + before, wanted - before, static_cast<off_t>(before));
    const int number = errno;
    bytes.resize(before + static_cast<std::size_t>(std::max<ssize_t>(count, 0)));
    errno = number;
    if (count < 0 && number != EINTR) return errno_error("reading");
    if (count == 0) break;
  }
  return {};
}

Result<GgufHeader> read_header(int fd, std::uint64_t file_bytes) {
  for (std::uint64_t wanted = k_first_read;; wanted *= 4) {
    const std::uint64_t reach = std::min({wanted, file_bytes, k_most_header_bytes});
    auto bytes = std::make_shared<std::string>();
    PACELINE_TRY_VOID(extend(fd, *bytes, reach));
    const bool all = bytes->size() < reach || reach == file_bytes;
    const std::uint64_t end = all ? bytes->size() : file_bytes;
    auto header = GgufHeader::parse(std::move(bytes), end);
    if (header || header.error().word != k_more) return header;
    if (reach == k_most_header_bytes) {
      return fail(ErrorCode::bad_format,
                  std::format("its metadata is larger than {} MiB, which is the limit here",
                              k_most_header_bytes >> 20));
    }
  }
}

}  // namespace

Result<GgufHeader> read_gguf_header(const std::filesystem::path& path) {
  const std::string name = std::format("\"{}\"", path.string());
  // Not blocking: a pipe of that name would wait for its writer.
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) return errno_error(std::format("opening {}", name));
  struct stat status{};
  if (::fstat(fd, &status) != 0) {
    const Error error = errno_error(std::format("looking at {}", name));
    ::close(fd);
    return error;
  }
  if (!S_ISREG(status.st_mode)) {
    ::close(fd);
    return fail(ErrorCode::bad_format, std::format("{} is no file, a GGUF file is wanted", name));
  }
  auto header = read_header(fd, static_cast<std::uint64_t>(status.st_size));
  ::close(fd);
  if (header) return header;
  Error error = std::move(header).error();
  if (error.code == ErrorCode::bad_format) {
    return fail(
        ErrorCode::bad_format,
        std::format("{} cannot be read as GGUF, it is damaged or cut: {}", name, error.message));
  }
  return error.in(name);
}

}  // namespace paceline::runtime
