#include "runtime/native/ceiling.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <format>
#include <utility>
#include <vector>

#include "runtime/native/memory.hpp"
#include "runtime/native/team.hpp"

namespace paceline::runtime {

namespace {

constexpr std::size_t k_part = std::size_t{1} << 20;  // bytes that a thread takes at once
constexpr std::size_t k_units = 64;                   // of multiply-adds
constexpr std::size_t k_repeats = 2000;               // in a unit

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

struct CeilingMeter::Impl final : native::Phases {
  enum class Work { write, read, multiply };

  Impl(const native::Kernels& chosen, std::size_t threads) : kernels(chosen), team(threads) {}

  void run(std::size_t /*phase*/, std::size_t unit, std::size_t /*thread*/) override {
    if (work == Work::multiply) {
      result += kernels.multiply_adds(k_repeats);
      return;
    }
    std::byte* const part = memory.data() + unit * k_part;
    const std::size_t size = std::min(k_part, memory.size() - unit * k_part);
    if (work == Work::write) {
      std::memset(part, static_cast<int>(unit % 251), size);
    } else {
      result += kernels.read(part, size);
    }
  }

  /// Seconds.
  double time(Work wanted) {
    work = wanted;
    result = 0;
    const std::size_t units =
        work == Work::multiply ? k_units : (memory.size() + k_part - 1) / k_part;
    const auto start = std::chrono::steady_clock::now();
    team.run(*this, {units}, {});
    return seconds_since(start);
  }

  const native::Kernels& kernels;
  native::Memory memory;
  native::Team team;
  Work work = Work::write;
  std::atomic<std::uint64_t> result = 0;  // multiply-adds done; of reading, what keeps it alive
};

CeilingMeter::CeilingMeter(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
CeilingMeter::CeilingMeter(CeilingMeter&&) noexcept = default;
CeilingMeter& CeilingMeter::operator=(CeilingMeter&&) noexcept = default;
CeilingMeter::~CeilingMeter() = default;

Result<CeilingMeter> CeilingMeter::create(std::size_t threads, std::optional<native::Isa> isa,
                                          std::size_t bytes) {
  if (bytes == 0) return fail(ErrorCode::invalid_argument, "the read speed needs some memory");
  const native::Kernels* const kernels =
      isa ? native::find_kernels(*isa) : native::available_kernels().front();
  if (kernels == nullptr) {
    return fail(ErrorCode::unsupported,
                std::format("this processor has no {}", native::to_string(*isa)));
  }
  auto impl = std::make_unique<Impl>(*kernels, threads);
  PACELINE_TRY(impl->memory, native::Memory::allocate(bytes, true, "memory to read"));
  impl->time(Impl::Work::write);
  return CeilingMeter(std::move(impl));
}

native::Isa CeilingMeter::isa() const { return impl_->kernels.isa; }
std::size_t CeilingMeter::threads() const { return impl_->team.threads(); }
std::size_t CeilingMeter::bytes() const { return impl_->memory.size(); }

double CeilingMeter::read_speed() {
  return static_cast<double>(impl_->memory.size()) / impl_->time(Impl::Work::read);
}

double CeilingMeter::multiply_add_speed() {
  const double seconds = impl_->time(Impl::Work::multiply);
  return static_cast<double>(impl_->result.load()) / seconds;
}

}  // namespace paceline::runtime
