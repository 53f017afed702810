// Large memory from the system, zero until it is written, aligned to pages.
#pragma once

#include <cstddef>
#include <string_view>

#include "core/result.hpp"

namespace paceline::runtime::native {

class Memory {
 public:
  /// `what` is named in the error. With `huge_pages` the system is asked for pages of 2 MiB, which
  /// makes whole ones resident. Error: out_of_memory.
  static Result<Memory> allocate(std::size_t bytes, bool huge_pages, std::string_view what);
  Memory() = default;
  ~Memory();
  Memory(Memory&& other) noexcept;
  Memory& operator=(Memory&& other) noexcept;

  std::byte* data() const { return data_; }
  std::size_t size() const { return size_; }

 private:
  std::byte* data_ = nullptr;  // aligned to 2 MiB where huge pages were asked for
  std::size_t size_ = 0;
  void* mapping_ = nullptr;
  std::size_t mapping_bytes_ = 0;
};

}  // namespace paceline::runtime::native
