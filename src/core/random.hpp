// Deterministic random numbers, the same on every platform: SplitMix64 (Steele, Lea, Flood 2014,
// "Fast splittable pseudorandom number generators").
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

namespace paceline {

/// SplitMix64's output function: a bijection on 64 bits that mixes well.
constexpr std::uint64_t mix64(std::uint64_t x) {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

/// 64 random bits for a place in a stream: a pure function of seed and index.
constexpr std::uint64_t random_at(std::uint64_t seed, std::uint64_t index) {
  return mix64(mix64(seed + 0x9e3779b97f4a7c15ULL) + (index + 1) * 0x9e3779b97f4a7c15ULL);
}

/// A double in [0, 1) from 64 random bits.
constexpr double to_unit(std::uint64_t bits) { return static_cast<double>(bits >> 11) * 0x1.0p-53; }

/// A sequential generator. One thread.
class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(mix64(seed + 0x9e3779b97f4a7c15ULL)) {}

  std::uint64_t bits() { return mix64(state_ += 0x9e3779b97f4a7c15ULL); }
  /// In [0, 1).
  double unit() { return to_unit(bits()); }
  /// In [0, n), n > 0. The bias of the remainder is below n / 2^64.
  std::size_t below(std::size_t n) { return static_cast<std::size_t>(bits() % n); }

 private:
  std::uint64_t state_;
};

/// Fisher-Yates.
template <typename T>
void shuffle(std::span<T> items, Random& random) {
  for (std::size_t i = items.size(); i > 1; --i) {
    std::swap(items[i - 1], items[random.below(i)]);
  }
}

}  // namespace paceline
