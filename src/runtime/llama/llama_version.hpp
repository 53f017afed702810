// What differs between versions of llama.cpp and ggml. Written for libllama 0.7 and ggml 0.27; when
// a later one moves something, the change goes here.
#pragma once

#include <llama-cpp.h>

#include <cstddef>
#include <cstdint>
#include <format>
#include <map>
#include <string>

// Exported by libllama for its own tools, but in no installed header. A change of its signature
// ends in a link error; a change of the struct is noticed where the sums are compared with the
// file.
struct llama_memory_breakdown_data {
  std::size_t model = 0;
  std::size_t context = 0;
  std::size_t compute = 0;
};
std::map<ggml_backend_buffer_type_t, llama_memory_breakdown_data> llama_get_memory_breakdown(
    const llama_context* context);

namespace paceline::runtime {

/// Model parameters that map the file into memory.
inline llama_model_params mapped_model_params() {
  llama_model_params params = llama_model_default_params();
  params.load_mode = LLAMA_LOAD_MODE_MMAP;  // 0.6 and before: use_mmap
  params.check_tensors = true;              // NaN in quantised products would pass unseen
  return params;
}

/// Model parameters for sizes alone: nothing is read but metadata, nothing is allocated.
inline llama_model_params simulated_model_params() {
  llama_model_params params = llama_model_default_params();
  params.no_alloc = true;
  params.load_mode = LLAMA_LOAD_MODE_NONE;
  return params;
}

/// Size of the hidden state that llama_get_embeddings_ith gives.
inline std::int32_t output_embedding_size(const llama_model* model) {
  return llama_model_n_embd_out(model);
}

/// "Q4_1": the file type's name without its kind of guess.
inline std::string file_type_name(llama_ftype type) {
  const char* name = llama_ftype_name(type);
  return name != nullptr ? name : "unknown";
}

/// "libllama 0.7.0, ggml 0.27.0 (commit)".
inline std::string library_versions() {
  return std::format("libllama {}, ggml {} ({})", llama_version(), ggml_version(), ggml_commit());
}

}  // namespace paceline::runtime
