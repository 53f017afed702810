// The life of libllama in this process, what it is built of, and where its log goes.
#pragma once

#include <string>

namespace paceline::runtime {

/// Loads ggml's back ends and routes libllama's log into core/log at level debug. Made once, in
/// main, before any model and destroyed after the last. One thread.
class LlamaBackend {
 public:
  LlamaBackend();
  ~LlamaBackend();
  LlamaBackend(const LlamaBackend&) = delete;
  LlamaBackend& operator=(const LlamaBackend&) = delete;
};

/// Library versions for records: "libllama 0.7.0, ggml 0.27.0 (commit)".
std::string llama_build();

/// The devices that compute and the CPU code in use: "CPU libggml-cpu-zen4 (AVX2 AVX512_VNNI)".
/// Needs a LlamaBackend.
std::string llama_backend_name();

/// ggml's names of the types that new runtimes cache keys and values in, for example f16 and bf16.
/// Needs a LlamaBackend.
struct KvCacheTypes {
  std::string key;
  std::string value;
};
KvCacheTypes kv_cache_types();

}  // namespace paceline::runtime
