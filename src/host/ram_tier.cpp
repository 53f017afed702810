// The published RAM tiers: pure functions of the memory in GiB, rounded up.
#include "host/host.hpp"

namespace paceline::host {

std::size_t HostInfo::memory_gib() const {
  constexpr std::uint64_t k_gib = std::uint64_t{1} << 30;
  if (!memory_bytes) return 0;
  return static_cast<std::size_t>(*memory_bytes / k_gib + (*memory_bytes % k_gib != 0 ? 1 : 0));
}

RamTier ram_tier(std::size_t memory_gib) {
  if (memory_gib <= 12) return {"8GB", 20000, 8192, 1};
  if (memory_gib <= 24) return {"16GB", 50000, 20000, 2};
  if (memory_gib <= 48) return {"32GB", 120000, 50000, 4};
  return {"64GB+", 200000, 120000, 8};
}

}  // namespace paceline::host
