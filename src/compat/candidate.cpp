#include "compat/candidate.hpp"

#include <format>
#include <system_error>
#include <utility>

#include "runtime/llama/gguf_file.hpp"
#include "runtime/llama/llama_backend.hpp"

namespace paceline::compat {

namespace fs = std::filesystem;

namespace {

void read_attention(const runtime::GgufHeader& header, Candidate& candidate) {
  const auto number = [&](std::string_view key) -> std::size_t {
    const std::string name = std::format("{}.attention.{}", candidate.architecture, key);
    if (const auto value = header.integer(name)) return *value;
    const auto layers = header.integers(name);  // one number per layer
    return layers.empty() || layers.front() < 0 ? 0 : static_cast<std::size_t>(layers.front());
  };
  const std::size_t heads = number("head_count");
  candidate.key_value_heads = number("head_count_kv");
  if (candidate.key_value_heads == 0) candidate.key_value_heads = heads;
  const std::size_t width = heads > 0 ? candidate.hidden / heads : 0;
  candidate.key_width = number("key_length");
  candidate.value_width = number("value_length");
  if (candidate.key_width == 0) candidate.key_width = width;
  if (candidate.value_width == 0) candidate.value_width = width;
}

Result<Candidate> read_gguf(const fs::path& path) {
  PACELINE_TRY(const runtime::GgufModelFile file, runtime::read_gguf_model(path));
  const runtime::GgufSummary& summary = file.summary;
  if (summary.architecture.empty()) {
    return fail(ErrorCode::bad_format, std::format("\"{}\" names no architecture "
                                                   "(general.architecture)",
                                                   path.string()));
  }
  Candidate candidate;
  candidate.kind = CandidateKind::gguf;
  candidate.files = summary.files;
  candidate.architecture = summary.architecture;
  candidate.bytes = summary.file_bytes;
  candidate.parameters = summary.parameters;
  candidate.layers = summary.layers;
  candidate.hidden = summary.hidden;
  candidate.trained_context = summary.trained_context;
  candidate.sliding_window = summary.sliding_window;
  candidate.recurrent = summary.recurrent;
  candidate.causal = summary.causal;
  candidate.chat_template = file.header.string("tokenizer.chat_template").value_or("");
  read_attention(file.header, candidate);
  const runtime::KvCacheTypes types = runtime::kv_cache_types();
  candidate.kv_type_k = types.key;
  candidate.kv_type_v = types.value;
  auto tokens = token_table(file.header);
  if (tokens) {
    candidate.vocabulary = tokens->size();
    candidate.tokens = std::make_shared<const TokenTable>(*std::move(tokens));
  } else {
    candidate.tokens_reason = tokens.error().message;
  }
  return candidate;
}

Result<Candidate> read_snapshot(const fs::path& folder) {
  if (!is_snapshot(folder)) {
    return fail(ErrorCode::bad_format,
                std::format("\"{}\" is a folder without config.json and tokenizer files, so no "
                            "snapshot of a model; `paceline check FOLDER` lists what a folder "
                            "holds",
                            folder.string()));
  }
  PACELINE_TRY(SnapshotFacts facts, read_snapshot_facts(folder));
  Candidate candidate;
  candidate.kind = CandidateKind::snapshot;
  candidate.architecture = std::move(facts.architecture);
  candidate.bytes = facts.weight_bytes;
  candidate.layers = facts.layers;
  candidate.hidden = facts.hidden;
  candidate.trained_context = facts.trained_context;
  candidate.sliding_window = facts.sliding_window;
  candidate.recurrent = facts.recurrent;
  candidate.vocabulary = facts.vocabulary;
  candidate.chat_template = std::move(facts.chat_template);
  PACELINE_TRY(candidate.fingerprint, tokenizer_fingerprint(folder));
  auto tokens = read_snapshot_tokens(folder);
  if (tokens) {
    if (candidate.vocabulary == 0) candidate.vocabulary = tokens->size();
    candidate.tokens = std::make_shared<const TokenTable>(*std::move(tokens));
  } else {
    candidate.tokens_reason = tokens.error().message;
  }
  return candidate;
}

}  // namespace

std::string_view to_string(CandidateKind kind) {
  switch (kind) {
    case CandidateKind::gguf:
      return "gguf";
    case CandidateKind::snapshot:
      return "snapshot";
    case CandidateKind::open_model:
      return "open_model";
  }
  return "";
}

Result<Candidate> read_candidate(const fs::path& path, std::string name) {
  std::error_code code;
  auto candidate = fs::is_directory(path, code) ? read_snapshot(path) : read_gguf(path);
  if (!candidate) return candidate;
  candidate->name = std::move(name);
  candidate->path = path;
  return candidate;
}

Candidate describe_open_model(const runtime::Model& model, std::string name) {
  const runtime::ModelInfo& info = model.info();
  Candidate candidate;
  candidate.kind = CandidateKind::open_model;
  candidate.name = std::move(name);
  candidate.path = info.path;
  candidate.architecture = info.architecture;
  candidate.bytes = info.file_bytes;
  candidate.parameters = info.parameters;
  candidate.layers = info.layers;
  candidate.hidden = info.hidden;
  candidate.trained_context = info.trained_context;
  candidate.sliding_window = info.sliding_window;
  candidate.recurrent = info.recurrent;
  candidate.vocabulary = model.vocabulary().size();
  candidate.chat_template = model.vocabulary().chat_template();
  candidate.tokens = std::make_shared<const TokenTable>(token_table(model.vocabulary()));
  candidate.probe = probe(model.vocabulary());
  candidate.probe->recurrent = info.recurrent;
  return candidate;
}

}  // namespace paceline::compat
