#include "runtime/native/memory.hpp"

#include <sys/mman.h>

#include <cstdint>
#include <format>
#include <utility>

namespace paceline::runtime::native {

namespace {
constexpr std::size_t k_huge_page = std::size_t{2} << 20U;
}

Result<Memory> Memory::allocate(std::size_t bytes, bool huge_pages, std::string_view what) {
  Memory memory;
  memory.size_ = bytes;
  memory.mapping_bytes_ = bytes + k_huge_page;
  void* const mapping = ::mmap(nullptr, memory.mapping_bytes_, PROT_READ | PROT_WRITE,
                               MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapping == MAP_FAILED) {
    return fail(ErrorCode::out_of_memory,
                std::format("{:.1f} MiB for {} are not to be had",
                            static_cast<double>(bytes) / 1048576.0, what));
  }
  memory.mapping_ = mapping;
  const auto start = reinterpret_cast<std::uintptr_t>(mapping);
  const std::uintptr_t aligned = (start + k_huge_page - 1) / k_huge_page * k_huge_page;
  memory.data_ = static_cast<std::byte*>(mapping) + (aligned - start);
#ifdef MADV_HUGEPAGE
  if (huge_pages) ::madvise(memory.data_, bytes, MADV_HUGEPAGE);
#endif
  return memory;
}

Memory::~Memory() {
  if (mapping_ != nullptr) ::munmap(mapping_, mapping_bytes_);
}

Memory::Memory(Memory&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)),
      size_(std::exchange(other.size_, 0)),
      mapping_(std::exchange(other.mapping_, nullptr)),
      mapping_bytes_(std::exchange(other.mapping_bytes_, 0)) {}

Memory& Memory::operator=(Memory&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  std::swap(mapping_, other.mapping_);
  std::swap(mapping_bytes_, other.mapping_bytes_);
  return *this;
}

}  // namespace paceline::runtime::native
