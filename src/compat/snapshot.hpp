// Snapshot directories, as published on model hubs (safetensors beside tokenizer files): their
// facts and the published SPEC-028 tokenizer fingerprint, byte for byte.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "compat/token_table.hpp"
#include "core/result.hpp"

namespace paceline::compat {

/// "fast" where tokenizer.json exists, else "slow"; it decides which files count.
enum class TokenizerLayout { fast, slow };
std::string_view to_string(TokenizerLayout layout);

struct FingerprintFile {
  std::string name;
  std::string sha256;      // of the content as it counts
  std::uint64_t size = 0;  // bytes of it
};

struct Fingerprint {
  TokenizerLayout layout = TokenizerLayout::slow;
  std::vector<FingerprintFile> files;  // in the published order, absent ones left out
  std::optional<std::string> sha256;   // nothing: no file is there, which matches nothing
};

/// Computes the fingerprint of a directory. tokenizer_config.json counts without its top-level
/// chat_template, as compact JSON with sorted keys; all other files as they are. Links are
/// followed, folders count as absent. Errors: bad_format (tokenizer_config.json is no JSON), io.
Result<Fingerprint> tokenizer_fingerprint(const std::filesystem::path& folder);

/// One sentence for each file that keeps two fingerprints apart, naming what differs in it. Reads
/// the files again.
std::vector<std::string> explain_mismatch(const std::filesystem::path& target_folder,
                                          const Fingerprint& target,
                                          const std::filesystem::path& draft_folder,
                                          const Fingerprint& draft);

/// What config.json says; numbers that it does not give are 0.
struct SnapshotFacts {
  std::string architecture;  // model_type
  std::size_t layers = 0;
  std::size_t hidden = 0;
  std::size_t vocabulary = 0;  // rows of the embedding, padding included
  std::size_t trained_context = 0;
  std::size_t sliding_window = 0;
  bool recurrent = false;
  std::uint64_t weight_bytes = 0;  // all *.safetensors
  std::string chat_template;
};
/// Error bad_format: config.json is there and no JSON object.
Result<SnapshotFacts> read_snapshot_facts(const std::filesystem::path& folder);

/// Tokens by id, from tokenizer.json or vocab.json and added_tokens.json. Error unsupported: only
/// tokenizer.model is there.
Result<TokenTable> read_snapshot_tokens(const std::filesystem::path& folder);

/// A folder that holds config.json or files of a tokenizer.
bool is_snapshot(const std::filesystem::path& folder);

/// The parsing of config.json and of the fingerprint's JSON, for text that is at hand.
Result<SnapshotFacts> snapshot_facts(std::string_view config_json);
Result<std::string> normalised_tokenizer_config(std::string_view text);

}  // namespace paceline::compat
