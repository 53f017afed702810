// What this processor can do at most, compiled once per instruction set: reading memory, and the
// multiply-adds that the matrix products are made of with nothing else around them.
#include <cstddef>
#include <cstdint>

#include "runtime/native/kernels/vector_impl.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/native/kernels/vector_ceiling.cpp"
#include "hwy/cache_control.h"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
//
#include "runtime/native/kernels/lanes-inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace paceline::runtime::native::HWY_NAMESPACE {
#if PACELINE_VECTOR_TARGET
namespace {

constexpr std::size_t k_prefetch_bytes = 8192;

// The compiler must take the value for changed, in a register.
template <class V>
HWY_INLINE void settle(V& vector) {
#if HWY_ARCH_X86
  asm volatile("" : "+v"(vector.raw));
#else
  asm volatile("" : "+w"(vector.raw));
#endif
}

std::uint64_t read(const std::byte* data, std::size_t bytes) {
  constexpr std::size_t lines = 4;
  constexpr std::size_t vectors = 64 / (k_width * 4);
  const auto* at = reinterpret_cast<const std::uint8_t*>(data);
  hn::Vec<U8> seen[lines * vectors];
  HWY_UNROLL(16)
  for (std::size_t v = 0; v < lines * vectors; ++v) seen[v] = hn::Zero(U8());
  for (std::size_t done = 0; done + lines * 64 <= bytes; done += lines * 64) {
    HWY_UNROLL(4)
    for (std::size_t line = 0; line < lines; ++line) {
      hwy::Prefetch(at + done + k_prefetch_bytes + line * 64);
    }
    HWY_UNROLL(16)
    for (std::size_t v = 0; v < lines * vectors; ++v) {
      seen[v] = hn::Xor(seen[v], hn::LoadU(U8(), at + done + v * k_width * 4));
    }
  }
  auto all = seen[0];
  HWY_UNROLL(16)
  for (std::size_t v = 1; v < lines * vectors; ++v) all = hn::Xor(all, seen[v]);
  return hn::ReduceSum(U32(), hn::BitCast(U32(), all));
}

#if HWY_TARGET == HWY_AVX2

// Without a dot product: pairs into 16 bits, which hold eight of them before they are widened.
std::uint64_t multiply_adds(std::size_t repeats) {
  constexpr std::size_t sums = 5;
  constexpr std::size_t pairs = 8;
  auto a = hn::Set(U8(), 3);
  auto b = hn::Set(I8(), 2);
  settle(a);
  settle(b);
  hn::Vec<I32> wide[sums];
  HWY_UNROLL(5)
  for (std::size_t s = 0; s < sums; ++s) wide[s] = hn::Zero(I32());
  for (std::size_t r = 0; r < repeats; ++r) {
    hn::Vec<I16> narrow[sums];
    HWY_UNROLL(5)
    for (std::size_t s = 0; s < sums; ++s) narrow[s] = hn::SatWidenMulPairwiseAdd(I16(), a, b);
    HWY_UNROLL(7)
    for (std::size_t p = 1; p < pairs; ++p) {
      HWY_UNROLL(5)
      for (std::size_t s = 0; s < sums; ++s) {
        settle(a);  // or the product would be taken out of the loop
        narrow[s] = hn::Add(narrow[s], hn::SatWidenMulPairwiseAdd(I16(), a, b));
        settle(narrow[s]);
      }
    }
    HWY_UNROLL(5)
    for (std::size_t s = 0; s < sums; ++s) {
      wide[s] = hn::Add(wide[s], hn::WidenMulPairwiseAdd(I32(), narrow[s], hn::Set(I16(), 1)));
      settle(wide[s]);
    }
  }
  return std::uint64_t{repeats} * sums * pairs * k_width * 4;
}

#else

std::uint64_t multiply_adds(std::size_t repeats) {
  constexpr std::size_t sums = 12;
  auto a = hn::Set(U8(), 3);
  auto b = hn::Set(I8(), 2);
  settle(a);
  settle(b);
  hn::Vec<I32> wide[sums];
  HWY_UNROLL(12)
  for (std::size_t s = 0; s < sums; ++s) wide[s] = hn::Zero(I32());
  for (std::size_t r = 0; r < repeats; ++r) {
    HWY_UNROLL(12)
    for (std::size_t s = 0; s < sums; ++s) {
      wide[s] = hn::SumOfMulQuadAccumulate(I32(), a, b, wide[s]);
      settle(wide[s]);
    }
  }
  return std::uint64_t{repeats} * sums * k_width * 4;
}

#endif

}  // namespace

void fill_ceiling(Kernels& kernels) {
  kernels.read = read;
  kernels.multiply_adds = multiply_adds;
}
#endif  // PACELINE_VECTOR_TARGET
}  // namespace paceline::runtime::native::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
