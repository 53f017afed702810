// The inner loops of the native runtime, one thread, weights and activations in the caches.
// Compare lines of one run with each other; `peak` is what the products are held against.
#include <benchmark/benchmark.h>

#include <array>
#include <format>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "runtime/native/kernels/kernels.hpp"
#include "runtime/native/kernels/pack.hpp"

namespace paceline::runtime::native {
namespace {

constexpr std::size_t k_blocks = 64;          // 2048 input columns
constexpr std::size_t k_some_row_blocks = 4;  // one after the other, as in a pass
constexpr std::size_t k_some_rows = 16;
constexpr std::size_t k_head_width = 64;

// Every byte alike: halves are then about 0.07, and no number is special.
std::vector<std::byte> some_weights(Format format) {
  return std::vector<std::byte>(k_some_row_blocks * row_block_bytes(format, k_blocks),
                                std::byte{0x2c});
}

std::vector<float> some_floats(std::size_t count) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) {
    values[i] = 0.01F * static_cast<float>(i % 97) - 0.4F;
  }
  return values;
}

benchmark::Counter rate(double count) {
  return {count, benchmark::Counter::kIsIterationInvariantRate, benchmark::Counter::kIs1000};
}

void matmul(benchmark::State& state, const Kernels& kernels, Format format) {
  const auto columns = static_cast<std::size_t>(state.range(0));
  const std::vector<std::byte> weights = some_weights(format);
  const std::vector<float> x = some_floats(k_blocks * k_block * columns);
  std::vector<ActivationBlock> quantised(k_blocks * columns);
  kernels.quantise(x.data(), quantised.size(), quantised.data(), 1);
  const ActivationTile tile{
      .quantised = quantised.data(), .values = x.data(), .blocks = k_blocks, .columns = columns};
  std::vector<float> out(k_some_row_blocks * k_row_block * columns);
  for (auto _ : state) {
    for (std::size_t i = 0; i < k_some_row_blocks; ++i) {
      kernels.matmul[static_cast<std::size_t>(format)](
          weights.data() + i * row_block_bytes(format, k_blocks), tile,
          out.data() + i * k_row_block, k_some_row_blocks * k_row_block);
    }
    benchmark::DoNotOptimize(out.data());
    benchmark::ClobberMemory();
  }
  const double rows = k_some_row_blocks * k_row_block;
  state.counters["multiply-adds"] = rate(rows * static_cast<double>(columns) * k_blocks * k_block);
  state.counters["weight-bytes"] = rate(static_cast<double>(weights.size()));
}

void peak(benchmark::State& state, const Kernels& kernels) {
  double done = 0;
  for (auto _ : state) done = static_cast<double>(kernels.multiply_adds(2000));
  state.counters["multiply-adds"] = rate(done);
}

void quantise(benchmark::State& state, const Kernels& kernels) {
  const std::vector<float> x = some_floats(k_blocks * k_block);
  std::vector<ActivationBlock> out(k_blocks * k_most_columns);
  for (auto _ : state) {
    kernels.quantise(x.data(), k_blocks, out.data(), k_most_columns);
    benchmark::ClobberMemory();
  }
  state.counters["blocks"] = rate(k_blocks);
}

void rms_norm(benchmark::State& state, const Kernels& kernels) {
  const std::vector<float> x = some_floats(k_blocks * k_block);
  std::vector<float> out(x.size());
  for (auto _ : state) {
    kernels.rms_norm(x.data(), x.data(), 1e-5F, x.size(), out.data());
    benchmark::ClobberMemory();
  }
  state.counters["values"] = rate(static_cast<double>(x.size()));
}

void swiglu(benchmark::State& state, const Kernels& kernels) {
  const std::vector<float> up = some_floats(k_blocks * k_block);
  std::vector<float> gate = up;
  for (auto _ : state) {
    kernels.swiglu(gate.data(), up.data(), up.size());
    benchmark::ClobberMemory();
  }
  state.counters["values"] = rate(static_cast<double>(up.size()));
}

// `range(0)` queries of one head over `range(1)` cells.
void attend(benchmark::State& state, const Kernels& kernels) {
  const auto count = static_cast<std::size_t>(state.range(0));
  const auto cells = static_cast<std::size_t>(state.range(1));
  std::vector<std::uint16_t> keys((cells + k_lanes) * k_head_width, 0x2c2c);
  std::vector<std::uint16_t> values = keys;
  const std::vector<float> q = some_floats(k_head_width);
  std::array<Query, k_most_queries> queries;
  queries.fill({.q = q.data(), .path = nullptr, .length = cells});
  std::array<Partial, k_most_queries> partials;
  const std::size_t stride = k_chunk + 2 * k_lanes;
  std::vector<float> scores(k_most_queries * stride);
  std::vector<float> out(k_most_queries * k_head_width);
  AttendJob job;
  job.cache = {.keys = keys.data(), .values = values.data()};
  job.width = k_head_width;
  job.committed = cells;
  job.cells = cells;
  job.queries = queries.data();
  job.query_count = count;
  job.scores = scores.data();
  job.score_stride = stride;
  job.partials = partials.data();
  job.values = out.data();
  for (auto _ : state) {
    kernels.attend(job);
    benchmark::ClobberMemory();
  }
  state.counters["pairs"] = rate(static_cast<double>(count * cells));
}

void store(benchmark::State& state, const Kernels& kernels) {
  std::vector<std::uint16_t> keys(k_chunk * k_head_width);
  std::vector<std::uint16_t> values(k_chunk * k_head_width);
  const std::vector<float> x = some_floats(k_head_width);
  const HeadCache cache{.keys = keys.data(), .values = values.data()};
  for (auto _ : state) {
    for (std::size_t cell = 0; cell < k_some_rows; ++cell) {
      kernels.store(x.data(), x.data(), k_head_width, cell, cache);
    }
    benchmark::ClobberMemory();
  }
  state.counters["cells"] = rate(k_some_rows);
}

void add_all() {
  for (const Kernels* kernels : available_kernels()) {
    if (kernels->isa == Isa::scalar) continue;
    const auto name = [&](std::string_view what) {
      return std::format("{}/{}", to_string(kernels->isa), what);
    };
    const auto add = [&](std::string_view what, auto function) {
      return benchmark::RegisterBenchmark(
          name(what), [=](benchmark::State& state) { function(state, *kernels); });
    };
    add("peak", peak);
    for (std::size_t f = 0; f < k_formats; ++f) {
      const auto format = static_cast<Format>(f);
      add(std::format("matmul_{}", gguf_type_of(format)),
          [format](benchmark::State& state, const Kernels& k) { matmul(state, k, format); })
          ->Arg(1)
          ->Arg(2)
          ->Arg(4)
          ->Arg(8)
          ->Arg(16);
    }
    add("quantise", quantise);
    add("rms_norm", rms_norm);
    add("swiglu", swiglu);
    add("attend", attend)->Args({3, 64})->Args({12, 64})->Args({12, 256});
    add("store", store);
  }
}

}  // namespace
}  // namespace paceline::runtime::native

int main(int argc, char** argv) {
  paceline::runtime::native::add_all();
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}
