// Memory in GiB, rounded up as published.
#include <gtest/gtest.h>

#include <vector>

#include "host/host.hpp"

namespace paceline::host {
namespace {

TEST(MemoryGib, IsRoundedUp) {
  constexpr std::uint64_t k_gib = std::uint64_t{1} << 30;
  HostInfo info;
  EXPECT_EQ(info.memory_gib(), 0U);
  info.memory_bytes = 1;
  EXPECT_EQ(info.memory_gib(), 1U);
  info.memory_bytes = 8 * k_gib;
  EXPECT_EQ(info.memory_gib(), 8U);
  info.memory_bytes = 8 * k_gib + 1;
  EXPECT_EQ(info.memory_gib(), 9U);
  info.memory_bytes = ~std::uint64_t{0};
  EXPECT_EQ(info.memory_gib(), std::size_t{1} << 34);
}

TEST(PeakResident, IsAtLeastTheProgramItself) {
  const auto bytes = peak_resident_bytes();
  if (!bytes) GTEST_SKIP() << "not readable here";
  EXPECT_GT(*bytes, std::uint64_t{1} << 20);
}

TEST(Resident, GrowsWithWhatIsTouched) {
  const auto before = resident_bytes();
  if (!before) GTEST_SKIP() << "not readable here";
  constexpr std::size_t k_bytes = std::size_t{64} << 20;
  const std::vector<char> touched(k_bytes, 'x');
  EXPECT_GT(*resident_bytes(), *before + k_bytes / 2);
  EXPECT_EQ(touched.back(), 'x');
}

}  // namespace
}  // namespace paceline::host
