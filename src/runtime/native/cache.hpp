// Keys and values of all sequences of a runtime.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/result.hpp"
#include "runtime/native/kernels/kernels.hpp"
#include "runtime/native/memory.hpp"
#include "runtime/native/network.hpp"

namespace paceline::runtime::native {

/// F16, memory for every sequence at its full length, resident once it is used. One thread, but
/// different cells of `head` may be used by different threads.
class Cache {
 public:
  /// `cells` per sequence. Error: out_of_memory.
  static Result<Cache> create(const Shape& shape, std::size_t sequences, std::size_t cells);

  static std::size_t bytes(const Shape& shape, std::size_t sequences, std::size_t cells);

  HeadCache head(std::size_t sequence, std::size_t layer, std::size_t head) const;
  /// Copies cell `from` to cell `to` of the same sequence.
  void move(std::size_t sequence, std::size_t from, std::size_t to) const;
  /// Copies the first `cells` cells of a sequence to another.
  void copy(std::size_t from, std::size_t to, std::size_t cells) const;

 private:
  std::size_t layers_ = 0;
  std::size_t heads_ = 0;
  std::size_t width_ = 0;
  std::size_t cells_ = 0;  // a multiple of 16
  Memory memory_;
};

}  // namespace paceline::runtime::native
