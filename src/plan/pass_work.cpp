#include "plan/pass_work.hpp"

#include <algorithm>
#include <format>

#include "core/text.hpp"
#include "runtime/llama/gguf_tensors.hpp"

namespace paceline::plan {

namespace {

constexpr std::string_view k_embedding = "token_embd.weight";
constexpr std::string_view k_output = "output.weight";

}  // namespace

Result<PassWork> read_pass_work(const std::filesystem::path& path) {
  PACELINE_TRY(const auto file, runtime::GgufTensors::open(path));
  if (file.summary().recurrent) {
    return fail(ErrorCode::unsupported, "the model has recurrent layers");
  }
  const bool tied = file.find(k_output) == nullptr;
  PassWork work;
  for (const runtime::MappedTensor& tensor : file.tensors()) {
    if (tensor.extents.size() > 2) {
      return fail(ErrorCode::unsupported,
                  std::format("the model has experts ({}): which of them a pass reads depends on "
                              "the text",
                              escape(tensor.name)));
    }
    if (tensor.extents.size() < 2) continue;
    if (tensor.name == k_embedding && !tied) continue;  // one row per token is read
    const double elements =
        static_cast<double>(tensor.extents[0]) * static_cast<double>(tensor.extents[1]);
    const bool head = tensor.name == (tied ? k_embedding : k_output);
    (head ? work.head_bytes : work.body_bytes) += static_cast<double>(tensor.data.size());
    (head ? work.head_multiply_adds : work.body_multiply_adds) += elements;
  }
  return work;
}

double bound_ms(const PassWork& work, std::size_t rows, std::size_t results, double read_speed,
                double multiply_add_speed) {
  const double bytes = work.body_bytes + (results > 0 ? work.head_bytes : 0);
  const double multiply_adds = work.body_multiply_adds * static_cast<double>(rows) +
                               work.head_multiply_adds * static_cast<double>(results);
  return 1000 * std::max(bytes / read_speed, multiply_adds / multiply_add_speed);
}

}  // namespace paceline::plan
