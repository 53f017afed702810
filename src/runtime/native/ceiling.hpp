// What this machine can do at most with an instruction set: the yardstick of a pass. A pass has to
// read the weights once and to do its multiply-adds; it cannot take less than the longer of both.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>

#include "core/result.hpp"
#include "runtime/native/kernels/kernels.hpp"

namespace paceline::runtime {

/// Measures with threads of its own, which sleep in between. One thread.
class CeilingMeter {
 public:
  /// `bytes` of memory are taken, in huge pages where the system has them, and written once; they
  /// should be several times what the caches hold. `isa`: none, the best of this processor.
  /// Errors: unsupported (an instruction set that is not here), invalid_argument (no bytes),
  /// out_of_memory.
  static Result<CeilingMeter> create(std::size_t threads, std::optional<native::Isa> isa,
                                     std::size_t bytes);
  CeilingMeter(CeilingMeter&&) noexcept;
  CeilingMeter& operator=(CeilingMeter&&) noexcept;
  ~CeilingMeter();

  native::Isa isa() const;
  std::size_t threads() const;
  std::size_t bytes() const;
  /// Bytes per second, all threads, once through the memory.
  double read_speed();
  /// Multiply-adds of 8-bit integers per second, all threads, in a few milliseconds.
  double multiply_add_speed();

 private:
  struct Impl;
  explicit CeilingMeter(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace paceline::runtime
