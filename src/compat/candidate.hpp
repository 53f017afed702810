// What may be a target or a draft, known from metadata alone: a GGUF file, a snapshot directory, or
// a model that is open already.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "compat/probe.hpp"
#include "compat/snapshot.hpp"
#include "compat/token_table.hpp"
#include "core/result.hpp"
#include "runtime/runtime.hpp"

namespace paceline::compat {

enum class CandidateKind { gguf, snapshot, open_model };
std::string_view to_string(CandidateKind kind);

/// Numbers that are not known are 0, texts empty.
struct Candidate {
  CandidateKind kind = CandidateKind::gguf;
  std::string name;                          // as the user wrote it
  std::filesystem::path path;                // file or folder; empty for open models
  std::vector<std::filesystem::path> files;  // of a GGUF model, all shards in order
  std::string architecture;
  std::uint64_t bytes = 0;  // of the weights
  std::uint64_t parameters = 0;
  std::size_t layers = 0;
  std::size_t hidden = 0;
  std::size_t key_value_heads = 0;  // of the first layer
  std::size_t key_width = 0;        // numbers per head and token
  std::size_t value_width = 0;
  std::string kv_type_k;  // of the cache that our runtime makes
  std::string kv_type_v;
  std::size_t trained_context = 0;
  std::size_t sliding_window = 0;
  std::size_t vocabulary = 0;  // rows, padding included
  bool recurrent = false;
  bool causal = true;
  std::string chat_template;
  /// None where the tokens cannot be listed; `tokens_reason` then says why.
  std::shared_ptr<const TokenTable> tokens;
  std::string tokens_reason;
  std::optional<Fingerprint> fingerprint;  // snapshots
  std::optional<Probe> probe;              // none: not asked, or it cannot be asked
};

/// Reads a GGUF file (any shard of a split one) or a snapshot directory; no weights. The probe is
/// left to the caller, who may want a child process for it.
/// Errors: not_found, bad_format, unsupported, io.
Result<Candidate> read_candidate(const std::filesystem::path& path, std::string name);

/// From an open model, which must outlive nothing: texts are copied. With its probe.
Candidate describe_open_model(const runtime::Model& model, std::string name);

}  // namespace paceline::compat
