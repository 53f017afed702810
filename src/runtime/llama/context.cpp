#include "runtime/llama/context_impl.hpp"

#include <algorithm>
#include <exception>
#include <format>
#include <limits>
#include <string>
#include <utility>

#include "runtime/cores.hpp"
#include "runtime/llama/llama_backend_impl.hpp"

namespace paceline::runtime {

namespace {

// A context that nobody asked for is at most this long: the cache of a 128k model would not fit.
constexpr std::size_t k_default_context = 8192;
// libllama rounds the cells of a sequence up to this.
constexpr std::size_t k_cell_rounding = 256;
// Room in a batch for rows that are put through again. More of them take a pass of their own.
constexpr std::size_t k_most_replayed_in_pass = 64;
constexpr std::size_t k_longest_context = std::numeric_limits<std::int32_t>::max() / 2;

std::size_t round_up(std::size_t value, std::size_t step) {
  return (value + step - 1) / step * step;
}

Result<RuntimeLimits> limits_in_effect(const RuntimeLimits& asked, const llama_model* model,
                                       const ModelInfo& info) {
  if (asked.sequences == 0 || asked.rows == 0 || asked.leaves == 0) {
    return fail(ErrorCode::invalid_argument,
                std::format("{} sequences, {} rows, {} leaves: each must be at least 1",
                            asked.sequences, asked.rows, asked.leaves));
  }
  const std::size_t most_ids = llama_max_parallel_sequences();
  if (asked.sequences > most_ids / asked.leaves) {
    return fail(ErrorCode::invalid_argument,
                std::format("{} sequences of {} leaves each, libllama has room for {} in all",
                            asked.sequences, asked.leaves, most_ids));
  }
  if (asked.leaves > 1 && info.recurrent) {
    return fail(ErrorCode::unsupported,
                std::format("no draft trees: architecture \"{}\" keeps a recurrent state",
                            info.architecture));
  }
  RuntimeLimits limits = asked;
  if (limits.context == 0) {
    const std::int32_t trained = llama_model_n_ctx_train(model);
    limits.context = k_default_context;
    if (trained > 0) limits.context = std::min(limits.context, static_cast<std::size_t>(trained));
  }
  if (limits.context > k_longest_context / limits.sequences) {
    return fail(ErrorCode::invalid_argument,
                std::format("{} sequences of {} tokens, libllama counts up to {} in all",
                            limits.sequences, limits.context, k_longest_context));
  }
  limits.rows = std::min(limits.rows, limits.context * limits.sequences);
  limits.results = limits.most_results();
  if (limits.threads == 0) limits.threads = available_cores();
  return limits;
}

llama_context_params context_params(const RuntimeLimits& limits, const Attention& attention,
                                    std::size_t batch_capacity) {
  const bool trees = limits.leaves > 1;
  llama_context_params params = llama_context_default_params();
  // Chains: a cache of its own for each sequence, laid out as if it were alone. Trees: one cache
  // whose cells the leaves share, with room for the rows that do not count towards the context.
  params.kv_unified = trees;
  params.n_seq_max = static_cast<std::uint32_t>(limits.sequences * limits.leaves);
  params.n_ctx = static_cast<std::uint32_t>(
      trees ? round_up(limits.context * limits.sequences + batch_capacity, k_cell_rounding)
            : round_up(limits.context, k_cell_rounding) * limits.sequences);
  params.n_batch = static_cast<std::uint32_t>(batch_capacity);
  params.n_ubatch = params.n_batch;
  params.n_outputs_max = static_cast<std::uint32_t>(limits.results);
  params.n_threads = static_cast<std::int32_t>(limits.threads);
  params.n_threads_batch = params.n_threads;
  params.type_k = attention.key_type;
  params.type_v = attention.value_type;
  params.flash_attn_type = attention.flash;
  params.pooling_type = LLAMA_POOLING_TYPE_NONE;
  params.embeddings = limits.features;
  params.swa_full = true;  // else what a sliding window has dropped cannot come back
  params.no_perf = true;
  return params;
}

}  // namespace

Attention choose_attention() {
  if (only_cpu_computes()) {
    return {LLAMA_FLASH_ATTN_TYPE_ENABLED, GGML_TYPE_F16, GGML_TYPE_BF16};
  }
  return {LLAMA_FLASH_ATTN_TYPE_AUTO, GGML_TYPE_F16, GGML_TYPE_F16};
}

Result<OpenContext> open_context(llama_model* model, const ModelInfo& info,
                                 const RuntimeLimits& asked) {
  OpenContext opened;
  PACELINE_TRY(opened.limits, limits_in_effect(asked, model, info));
  const RuntimeLimits& limits = opened.limits;
  opened.batch_capacity =
      limits.rows + (limits.leaves > 1 ? std::min(limits.rows, k_most_replayed_in_pass) : 0);
  opened.attention = choose_attention();
  const CapturedErrors errors;
  std::string reason;
  try {
    opened.context.reset(llama_init_from_model(
        model, context_params(limits, opened.attention, opened.batch_capacity)));
  } catch (const std::exception& error) {
    reason = error.what();
  }
  if (opened.context == nullptr) {
    if (reason.empty()) reason = errors.text("no reason given");
    const bool memory = reason.find("alloc") != std::string::npos;
    return fail(
        memory ? ErrorCode::out_of_memory : ErrorCode::runtime_failed,
        std::format("no context of {} x {} tokens: {}", limits.sequences, limits.context, reason));
  }
  if (llama_get_memory(opened.context.get()) == nullptr) {
    return fail(ErrorCode::unsupported, "the model keeps no cache of past tokens (an encoder?)");
  }
  if (llama_n_batch(opened.context.get()) < opened.batch_capacity ||
      llama_n_ubatch(opened.context.get()) < opened.batch_capacity) {
    return fail(ErrorCode::runtime_failed,
                std::format("libllama takes {} rows per pass, {} are wanted",
                            llama_n_ubatch(opened.context.get()), opened.batch_capacity));
  }
  return opened;
}

}  // namespace paceline::runtime
