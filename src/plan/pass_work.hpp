// What a pass of a model has to do at least, from its file, and how long the machine needs for it.
#pragma once

#include <cstddef>
#include <filesystem>

#include "core/result.hpp"

namespace paceline::plan {

struct PassWork {
  double body_bytes = 0;  // weights of the layers, as the file holds them
  double body_multiply_adds = 0;
  double head_bytes = 0;  // the output matrix, for rows that want a result
  double head_multiply_adds = 0;

  bool operator==(const PassWork&) const = default;
};

/// The matrices of a GGUF file. Errors: unsupported (experts: what a pass reads depends on the
/// text; recurrent layers), those of GgufTensors::open.
Result<PassWork> read_pass_work(const std::filesystem::path& path);

/// The least time of a pass, in ms: reading all weights once, or all multiply-adds, whichever is
/// longer. Attention is left out. Speeds are per second.
double bound_ms(const PassWork& work, std::size_t rows, std::size_t results, double read_speed,
                double multiply_add_speed);

}  // namespace paceline::plan
