// Every instruction set against the plain C++, bit for bit.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <format>
#include <limits>
#include <string>
#include <vector>

#include "core/random.hpp"
#include "runtime/native/kernels/half.hpp"
#include "runtime/native/kernels/kernels.hpp"
#include "runtime/native/kernels/pack.hpp"
#include "runtime/native/kernels/unpack.hpp"

namespace paceline::runtime::native {
namespace {

std::vector<Isa> vector_isas() {
  std::vector<Isa> isas;
  for (const Kernels* kernels : available_kernels()) {
    if (kernels->isa != Isa::scalar) isas.push_back(kernels->isa);
  }
  return isas;
}

float uniform(Random& random, float low, float high) {
  return low + (high - low) * static_cast<float>(random.unit());
}
std::vector<float> floats(Random& random, std::size_t count, float size) {
  std::vector<float> values(count);
  for (float& value : values) value = uniform(random, -size, size);
  return values;
}
bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

void put_half(std::vector<std::byte>& data, std::size_t offset, float value) {
  const std::uint16_t bits = to_half(value);
  std::memcpy(&data[offset], &bits, sizeof bits);
}

// A row block with every integer possible and plausible scales.
std::vector<std::byte> random_row_block(Format format, std::size_t blocks, Random& random) {
  std::vector<std::byte> data(row_block_bytes(format, blocks));
  for (std::byte& byte : data) byte = static_cast<std::byte>(random.below(256));
  const BlockLayout layout = layout_of(format);
  if (is_float(format)) {
    for (std::size_t i = 0; i < blocks * k_block * k_row_block; ++i) {
      const float value = uniform(random, -1, 1);
      if (format == Format::f32) {
        std::memcpy(&data[4 * i], &value, 4);
      } else {
        const auto bits =
            format == Format::f16
                ? to_half(value)
                : static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(value) >> 16U);
        std::memcpy(&data[2 * i], &bits, 2);
      }
    }
    return data;
  }
  for (std::size_t block = 0; block < blocks; ++block) {
    for (std::size_t row = 0; row < k_row_block; ++row) {
      const std::size_t at = has_super_blocks(format) ? super_offset(format, block)
                                                      : block_offset(format, block) + layout.d;
      put_half(data, at + 2 * row, uniform(random, -0.1F, 0.1F));
      if (has_min(format)) put_half(data, at + 2 * k_row_block + 2 * row, uniform(random, -1, 1));
    }
  }
  return data;
}

std::string name_of(Format format) { return std::string(gguf_type_of(format)); }

class VectorKernels : public testing::TestWithParam<Isa> {
 protected:
  const Kernels& kernels_ = *find_kernels(GetParam());
  const Kernels& reference_ = scalar_kernels();
};

INSTANTIATE_TEST_SUITE_P(Isas, VectorKernels, testing::ValuesIn(vector_isas()),
                         [](const auto& one) { return std::string(to_string(one.param)); });
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(VectorKernels);

TEST_P(VectorKernels, ProductsEqualTheReferenceForEveryFormatAndWidth) {
  for (std::size_t f = 0; f < k_formats; ++f) {
    const auto format = static_cast<Format>(f);
    Random random(f + 1);
    constexpr std::size_t blocks = 16;
    const auto weights = random_row_block(format, blocks, random);
    for (std::size_t columns = 1; columns <= k_most_columns; ++columns) {
      SCOPED_TRACE(std::format("{}, {} columns", name_of(format), columns));
      std::vector<ActivationBlock> quantised(blocks * columns);
      std::vector<float> values(blocks * k_block * columns);
      for (std::size_t c = 0; c < columns; ++c) {
        const auto x = floats(random, blocks * k_block, 3.0F);
        reference_.quantise(x.data(), blocks, quantised.data() + c, columns);
        for (std::size_t k = 0; k < x.size(); ++k) values[k * columns + c] = x[k];
      }
      const ActivationTile tile{quantised.data(), values.data(), blocks, columns};
      std::vector<float> out(columns * 40, -1.0F);
      std::vector<float> expected(columns * 40, -1.0F);
      kernels_.matmul[f](weights.data(), tile, out.data(), 40);
      reference_.matmul[f](weights.data(), tile, expected.data(), 40);
      EXPECT_TRUE(same_bits(out, expected));
      EXPECT_TRUE(std::ranges::all_of(expected, [](float x) { return std::isfinite(x); }));
    }
  }
}

TEST_P(VectorKernels, ExtremeIntegersDoNotOverflow) {
  for (std::size_t f = 0; f < static_cast<std::size_t>(Format::f16); ++f) {
    const auto format = static_cast<Format>(f);
    SCOPED_TRACE(name_of(format));
    Random random(1);
    auto weights = random_row_block(format, 8, random);
    const BlockLayout layout = layout_of(format);
    for (std::size_t block = 0; block < 8; ++block) {  // all bits of all integers
      std::fill_n(weights.begin() + static_cast<std::ptrdiff_t>(block_offset(format, block)),
                  layout.d, block % 2 == 0 ? std::byte{0xff} : std::byte{0});
    }
    std::vector<ActivationBlock> x(8 * 8);
    for (std::size_t i = 0; i < x.size(); ++i) {
      std::array<float, k_block> values;
      values.fill(i % 3 == 0 ? -5.0F : 5.0F);
      reference_.quantise(values.data(), 1, &x[i], 1);
    }
    const ActivationTile tile{x.data(), nullptr, 8, 8};
    std::vector<float> out(8 * 32);
    std::vector<float> expected(8 * 32);
    kernels_.matmul[f](weights.data(), tile, out.data(), 32);
    reference_.matmul[f](weights.data(), tile, expected.data(), 32);
    EXPECT_TRUE(same_bits(out, expected));
  }
}

TEST_P(VectorKernels, SmallOperationsEqualTheReference) {
  Random random(7);
  for (const std::size_t n : {16U, 32U, 96U, 576U}) {
    SCOPED_TRACE(n);
    const auto x = floats(random, n, 9.0F);
    const auto y = floats(random, n, 2.0F);
    std::vector<float> a(n);
    std::vector<float> b(n);
    kernels_.rms_norm(x.data(), y.data(), 1e-5F, n, a.data());
    reference_.rms_norm(x.data(), y.data(), 1e-5F, n, b.data());
    EXPECT_TRUE(same_bits(a, b));
    a = b = floats(random, n, 100.0F);  // far into both ends of the sigmoid
    kernels_.swiglu(a.data(), y.data(), n);
    reference_.swiglu(b.data(), y.data(), n);
    EXPECT_TRUE(same_bits(a, b));
    kernels_.add(a.data(), y.data(), n);
    reference_.add(b.data(), y.data(), n);
    EXPECT_TRUE(same_bits(a, b));
    kernels_.scale(a.data(), 0.3F, n);
    reference_.scale(b.data(), 0.3F, n);
    EXPECT_TRUE(same_bits(a, b));
    for (const bool halves : {false, true}) {
      for (const std::size_t pairs : {n / 2, n / 4 - 1}) {  // all, and a part that is not even
        kernels_.rotate(a.data(), x.data(), y.data(), pairs, halves);
        reference_.rotate(b.data(), x.data(), y.data(), pairs, halves);
        EXPECT_TRUE(same_bits(a, b));
      }
    }
  }
}

TEST_P(VectorKernels, QuantisingEqualsTheReference) {
  Random random(3);
  auto x = floats(random, 64 * k_block, 1.0F);
  std::fill_n(x.begin(), k_block, 0.0F);
  for (std::size_t i = 0; i < k_block; ++i) x[k_block + i] = static_cast<float>(i) - 15.5F;  // ties
  std::vector<ActivationBlock> a(64 * 3);
  std::vector<ActivationBlock> b(64 * 3);
  kernels_.quantise(x.data(), 64, a.data(), 3);
  reference_.quantise(x.data(), 64, b.data(), 3);
  for (std::size_t i = 0; i < a.size(); i += 3) {
    EXPECT_EQ(std::memcmp(&a[i], &b[i], sizeof a[i]), 0) << "block " << i / 3;
  }
  EXPECT_EQ(a[0].scale, 0.0F);
  EXPECT_EQ(a[0].zero, 0);
}

// A number that is none must not become one on its way to the logits.
void expect_nan_to_stay(const Kernels& kernels) {
  for (const float bad :
       {std::numeric_limits<float>::quiet_NaN(), -std::numeric_limits<float>::quiet_NaN(),
        std::numeric_limits<float>::infinity()}) {
    for (std::size_t at = 0; at < k_block; at += 5) {
      std::vector<float> x(k_block, 1.0F);
      x[at] = bad;
      ActivationBlock block;
      kernels.quantise(x.data(), 1, &block, 1);
      EXPECT_FALSE(std::isfinite(block.scale)) << at;
      x = std::vector<float>(k_block, 0.5F);
      x[at] = bad;
      const std::vector<float> up(k_block, 1.0F);
      kernels.swiglu(x.data(), up.data(), k_block);
      EXPECT_FALSE(std::isfinite(x[at])) << at;
    }
    // One score among 20 that is no number, or one that leaves no number for the others.
    constexpr std::size_t width = 16;
    std::vector<std::uint16_t> keys(32 * width, to_half(1.0F));
    std::vector<std::uint16_t> values(32 * width, to_half(1.0F));
    for (std::size_t d = 0; d < width; ++d) keys[d * k_lanes + 7] = to_half(bad);
    const std::vector<float> q(width, 1.0F);
    const Query query{.q = q.data(), .path = nullptr, .length = 20};
    std::vector<float> scores(k_most_queries * (k_chunk + 2 * k_lanes));
    Partial partial;
    std::vector<float> out(width);
    kernels.attend({.cache = {keys.data(), values.data()},
                    .width = width,
                    .committed = 19,
                    .cells = 20,
                    .chunk = 0,
                    .queries = &query,
                    .query_count = 1,
                    .scores = scores.data(),
                    .score_stride = k_chunk + 2 * k_lanes,
                    .partials = &partial,
                    .values = out.data()});
    EXPECT_FALSE(std::isfinite(out[0] / partial.weight));
  }
}

TEST_P(VectorKernels, KeepWhatIsNoNumber) { expect_nan_to_stay(kernels_); }
TEST(ReferenceKernels, KeepWhatIsNoNumber) { expect_nan_to_stay(scalar_kernels()); }

// Caches of one head, both filled by the reference and by the kernels.
struct TwoCaches {
  std::vector<std::uint16_t> keys;
  std::vector<std::uint16_t> values;

  TwoCaches(std::size_t cells, std::size_t width) : keys(cells * width), values(cells * width) {}
  HeadCache head() { return {keys.data(), values.data()}; }
};

TEST_P(VectorKernels, AttentionEqualsTheReferenceForChainsAndTrees) {
  Random random(5);
  for (const std::size_t width : {16U, 48U, 64U, 128U}) {
    for (const std::size_t committed : {0U, 5U, 60U, 250U, 256U, 300U, 511U}) {
      for (const bool tree : {false, true}) {
        SCOPED_TRACE(std::format("width {}, {} committed, tree {}", width, committed, tree));
        constexpr std::size_t rows = 11;
        const std::size_t cells = (committed + rows + k_lanes) / k_lanes * k_lanes;
        TwoCaches ours(cells, width);
        TwoCaches theirs(cells, width);
        for (std::size_t cell = 0; cell < committed + rows; ++cell) {
          const auto key = floats(random, width, 1.0F);
          const auto value = floats(random, width, 1.0F);
          kernels_.store(key.data(), value.data(), width, cell, ours.head());
          reference_.store(key.data(), value.data(), width, cell, theirs.head());
        }
        ASSERT_EQ(ours.keys, theirs.keys);
        ASSERT_EQ(ours.values, theirs.values);
        std::vector<std::vector<std::int32_t>> paths(rows);
        std::vector<std::vector<float>> q;
        std::vector<Query> queries;
        for (std::size_t row = 0; row < rows; ++row) {
          if (row > 0 && random.below(3) != 0) paths[row] = paths[random.below(row)];
          if (!tree && row > 0) paths[row] = paths[row - 1];
          paths[row].push_back(static_cast<std::int32_t>(row));
          q.push_back(floats(random, width, 2.0F));
        }
        for (std::size_t row = 0; row < rows; ++row) {
          // A path that is the order of the cells may be left out, beside others that are not.
          const bool in_order = paths[row].size() == row + 1;
          queries.push_back({q[row].data(), in_order ? nullptr : paths[row].data(),
                             committed + paths[row].size()});
        }
        for (std::size_t chunk = 0; chunk < 3; ++chunk) {
          const std::size_t stride = k_chunk + 2 * k_lanes + rows;
          std::vector<float> scores(rows * stride);
          const auto run = [&](const Kernels& kernels, TwoCaches& cache,
                               std::vector<Partial>& partials) {
            std::vector<float> values(rows * width);
            kernels.attend({.cache = cache.head(),
                            .width = width,
                            .committed = committed,
                            .cells = committed + rows,
                            .chunk = chunk,
                            .queries = queries.data(),
                            .query_count = rows,
                            .scores = scores.data(),
                            .score_stride = stride,
                            .partials = partials.data(),
                            .values = values.data()});
            return values;
          };
          std::vector<Partial> a(rows);
          std::vector<Partial> b(rows);
          const auto ours_out = run(kernels_, ours, a);
          const auto theirs_out = run(reference_, theirs, b);
          for (std::size_t row = 0; row < rows; ++row) {
            EXPECT_EQ(a[row].weight, b[row].weight);
            if (a[row].weight == 0.0F) continue;
            EXPECT_EQ(a[row].max, b[row].max);
            EXPECT_EQ(std::memcmp(&ours_out[row * width], &theirs_out[row * width], 4 * width), 0)
                << "row " << row << ", chunk " << chunk;
          }
        }
      }
    }
  }
}

TEST_P(VectorKernels, MergingEqualsTheReference) {
  Random random(9);
  const auto from = floats(random, 64, 1.0F);
  auto a = floats(random, 64, 1.0F);
  auto b = a;
  Partial pa{.max = 1.5F, .weight = 3.0F};
  Partial pb = pa;
  for (const Partial added : {Partial{2.0F, 4.0F}, Partial{-1.0F, 2.0F}, Partial{0.0F, 0.0F}}) {
    kernels_.merge(pa, a.data(), added, from.data(), 64);
    reference_.merge(pb, b.data(), added, from.data(), 64);
    EXPECT_TRUE(same_bits(a, b));
    EXPECT_EQ(pa.max, pb.max);
    EXPECT_EQ(pa.weight, pb.weight);
  }
  Partial empty{};
  kernels_.merge(empty, a.data(), {1.0F, 2.0F}, from.data(), 64);
  EXPECT_TRUE(same_bits(a, from));
}

TEST(ReferenceKernels, TheExponentialIsThatOfTheLibrary) {
  // swiglu(x) with up = 1 is x / (1 + exp(-x)).
  for (float x = -80.0F; x < 80.0F; x += 0.37F) {
    std::array<float, 16> gate;
    std::array<float, 16> up;
    gate.fill(x);
    up.fill(1.0F);
    scalar_kernels().swiglu(gate.data(), up.data(), 16);
    const double expected = static_cast<double>(x) / (1.0 + std::exp(-static_cast<double>(x)));
    EXPECT_NEAR(gate[0], expected, 1e-6 * std::abs(expected)) << x;
  }
}

TEST(Packing, KeepsEveryValueOfARow) {
  for (std::size_t f = 0; f < k_formats; ++f) {
    const auto format = static_cast<Format>(f);
    SCOPED_TRACE(name_of(format));
    // Rows that are alike in the file are alike after packing; missing rows are zero.
    Random random(f);
    const std::size_t columns = 512;
    const std::size_t row_bytes = source_row_bytes(format, columns);
    std::vector<std::byte> row(row_bytes);
    for (std::byte& byte : row)
      byte = static_cast<std::byte>(random.below(60));  // scales stay finite
    std::vector<std::byte> rows;
    for (int i = 0; i < 20; ++i) rows.insert(rows.end(), row.begin(), row.end());
    std::vector<std::byte> packed(row_block_bytes(format, columns / k_block), std::byte{0x55});
    pack_row_block(format, rows.data(), 20, columns, packed.data());
    std::vector<float> first(columns);
    std::vector<float> last(columns);
    std::vector<float> missing(columns);
    unpack_row(format, packed.data(), 0, columns / k_block, first.data());
    unpack_row(format, packed.data(), 19, columns / k_block, last.data());
    unpack_row(format, packed.data(), 20, columns / k_block, missing.data());
    EXPECT_TRUE(same_bits(first, last));
    EXPECT_TRUE(std::ranges::all_of(missing, [](float x) { return x == 0.0F; }));
    EXPECT_TRUE(std::ranges::any_of(first, [](float x) { return x != 0.0F; }));
  }
}

TEST(Packing, SaysWhereAWeightIsNoNumber) {
  for (std::size_t f = 0; f < k_formats; ++f) {
    const auto format = static_cast<Format>(f);
    SCOPED_TRACE(name_of(format));
    const std::size_t columns = 512;
    std::vector<std::byte> rows(3 * source_row_bytes(format, columns), std::byte{1});
    std::vector<std::byte> packed(row_block_bytes(format, columns / k_block));
    EXPECT_TRUE(pack_row_block(format, rows.data(), 3, columns, packed.data()));
    // The last block of the last row: its factor, or its values, become NaN.
    std::fill(rows.end() - static_cast<std::ptrdiff_t>(source_row_bytes(format, columns) / 2),
              rows.end(), std::byte{0xff});
    EXPECT_FALSE(pack_row_block(format, rows.data(), 3, columns, packed.data()));
  }
}

}  // namespace
}  // namespace paceline::runtime::native
