// SHA-256 of bytes and files (OpenSSL).
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <string_view>

#include "core/result.hpp"

namespace paceline {

/// Feeds bytes in pieces. One thread.
class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(Sha256&&) noexcept;
  Sha256& operator=(Sha256&&) noexcept;

  void update(std::string_view bytes);
  /// 64 lower-case hex digits. Ends the object's life for hashing.
  std::string finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// 64 lower-case hex digits of the bytes' SHA-256.
std::string sha256_hex(std::string_view bytes);

/// SHA-256 of a file, read in pieces. `progress`, where given, is told the bytes read so far.
/// Errors: not_found, io, cancelled.
Result<std::string> sha256_file(const std::filesystem::path& path, std::stop_token stop = {},
                                const std::function<void(std::uint64_t)>& progress = {});

}  // namespace paceline
