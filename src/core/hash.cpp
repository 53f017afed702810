#include "core/hash.hpp"

#include <openssl/evp.h>

#include <array>
#include <cstdio>
#include <format>
#include <vector>

#include "core/check.hpp"
#include "core/file.hpp"

namespace paceline {

struct Sha256::State {
  std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context{EVP_MD_CTX_new(),
                                                                  &EVP_MD_CTX_free};
};

Sha256::Sha256() : state_(std::make_unique<State>()) {
  PACELINE_CHECK(EVP_DigestInit_ex(state_->context.get(), EVP_sha256(), nullptr) == 1,
                 "libcrypto has no SHA-256");
}
Sha256::~Sha256() = default;
Sha256::Sha256(Sha256&&) noexcept = default;
Sha256& Sha256::operator=(Sha256&&) noexcept = default;

void Sha256::update(std::string_view bytes) {
  PACELINE_CHECK(EVP_DigestUpdate(state_->context.get(), bytes.data(), bytes.size()) == 1,
                 "SHA-256 update failed");
}

std::string Sha256::finish() {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned int size = 0;
  PACELINE_CHECK(EVP_DigestFinal_ex(state_->context.get(), digest.data(), &size) == 1,
                 "SHA-256 finish failed");
  std::string hex;
  for (unsigned int i = 0; i < size; ++i) hex += std::format("{:02x}", digest[i]);
  return hex;
}

std::string sha256_hex(std::string_view bytes) {
  Sha256 hash;
  hash.update(bytes);
  return hash.finish();
}

Result<std::string> sha256_file(const std::filesystem::path& path, std::stop_token stop,
                                const std::function<void(std::uint64_t)>& progress) {
  PACELINE_TRY(const FilePointer file, open_regular_file(path));
  Sha256 hash;
  std::vector<char> buffer(std::size_t{1} << 20);
  std::uint64_t total = 0;
  while (true) {
    if (stop.stop_requested()) {
      return fail(ErrorCode::cancelled, std::format("hashing \"{}\" was stopped", path.string()));
    }
    const std::size_t count = std::fread(buffer.data(), 1, buffer.size(), file.get());
    hash.update({buffer.data(), count});
    total += count;
    if (progress) progress(total);
    if (count < buffer.size()) break;
  }
  if (std::ferror(file.get()) != 0) {
    return errno_error(std::format("reading \"{}\"", path.string()));
  }
  return hash.finish();
}

}  // namespace paceline
