#include "runtime/native/cache.hpp"

#include <algorithm>

namespace paceline::runtime::native {

namespace {
std::size_t round_up(std::size_t cells) { return (cells + k_lanes - 1) / k_lanes * k_lanes; }
}  // namespace

std::size_t Cache::bytes(const Shape& shape, std::size_t sequences, std::size_t cells) {
  const std::size_t each = shape.layers * shape.key_value_width() * round_up(cells);
  return 2 * sequences * each * sizeof(std::uint16_t);
}

Result<Cache> Cache::create(const Shape& shape, std::size_t sequences, std::size_t cells) {
  Cache cache;
  cache.layers_ = shape.layers;
  cache.heads_ = shape.key_value_heads;
  cache.width_ = shape.head_width;
  cache.cells_ = round_up(cells);
  PACELINE_TRY(cache.memory_, Memory::allocate(bytes(shape, sequences, cells), false,
                                               "keys and values; a shorter context needs less"));
  return cache;
}

HeadCache Cache::head(std::size_t sequence, std::size_t layer, std::size_t head) const {
  const std::size_t numbers = cells_ * width_;
  auto* const start = reinterpret_cast<std::uint16_t*>(memory_.data()) +
                      2 * numbers * ((sequence * layers_ + layer) * heads_ + head);
  return {.keys = start, .values = start + numbers};
}

void Cache::move(std::size_t sequence, std::size_t from, std::size_t to) const {
  for (std::size_t layer = 0; layer < layers_; ++layer) {
    for (std::size_t h = 0; h < heads_; ++h) {
      const HeadCache cache = head(sequence, layer, h);
      const auto key = [&](std::size_t cell) {
        return cache.keys + cell / k_lanes * width_ * k_lanes + cell % k_lanes;
      };
      for (std::size_t d = 0; d < width_; ++d) key(to)[d * k_lanes] = key(from)[d * k_lanes];
      std::copy_n(cache.values + from * width_, width_, cache.values + to * width_);
    }
  }
}

void Cache::copy(std::size_t from, std::size_t to, std::size_t cells) const {
  const std::size_t whole = round_up(cells);
  for (std::size_t layer = 0; layer < layers_; ++layer) {
    for (std::size_t h = 0; h < heads_; ++h) {
      const HeadCache source = head(from, layer, h);
      const HeadCache target = head(to, layer, h);
      std::copy_n(source.keys, whole * width_, target.keys);
      std::copy_n(source.values, cells * width_, target.values);
    }
  }
}

}  // namespace paceline::runtime::native
