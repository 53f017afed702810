#include "core/hash.hpp"

#include <gtest/gtest.h>

#include <string>

#include "core/file.hpp"
#include "support/matchers.hpp"
#include "support/temporary_folder.hpp"

namespace paceline {
namespace {

using test::FailsWith;
using test::IsOk;
using test::TemporaryFolder;

// FIPS 180-2, appendix B, and the empty message.
constexpr const char* k_empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
constexpr const char* k_abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
constexpr const char* k_two_blocks =
    "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1";
constexpr const char* k_million_a =
    "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0";

TEST(Sha256Hex, GivesThePublishedAnswers) {
  EXPECT_EQ(sha256_hex(""), k_empty);
  EXPECT_EQ(sha256_hex("abc"), k_abc);
  EXPECT_EQ(sha256_hex("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"), k_two_blocks);
  EXPECT_EQ(sha256_hex(std::string(1'000'000, 'a')), k_million_a);
}

TEST(Sha256, DoesNotDependOnHowTheBytesAreCut) {
  const std::string bytes(300, 'x');
  for (std::size_t step = 1; step < 130; ++step) {
    Sha256 hash;
    for (std::size_t at = 0; at < bytes.size(); at += step) {
      hash.update(std::string_view(bytes).substr(at, step));
    }
    ASSERT_EQ(hash.finish(), sha256_hex(bytes)) << step;
  }
}

TEST(Sha256, GoesOnAfterAMove) {
  Sha256 first;
  first.update("ab");
  Sha256 second = std::move(first);
  second.update("c");
  EXPECT_EQ(second.finish(), k_abc);
}

TEST(Sha256File, HashesTheContentsAndTellsItsProgress) {
  const TemporaryFolder folder;
  ASSERT_THAT(replace_file(folder.path() / "a", std::string(1'000'000, 'a')), IsOk());
  std::uint64_t told = 0;
  const auto hash = sha256_file(folder.path() / "a", {}, [&](std::uint64_t bytes) {
    EXPECT_GE(bytes, told);
    told = bytes;
  });
  ASSERT_THAT(hash, IsOk());
  EXPECT_EQ(*hash, k_million_a);
  EXPECT_EQ(told, 1'000'000U);
}

TEST(Sha256File, OfAnEmptyFileIsTheEmptyHash) {
  const TemporaryFolder folder;
  ASSERT_THAT(replace_file(folder.path() / "a", ""), IsOk());
  EXPECT_EQ(test::value_of(sha256_file(folder.path() / "a")), k_empty);
}

TEST(Sha256File, NamesWhatIsMissing) {
  EXPECT_THAT(sha256_file("/nowhere/x"),
              FailsWith(ErrorCode::not_found, testing::HasSubstr("/nowhere/x")));
}

TEST(Sha256File, RefusesAFolder) { EXPECT_THAT(sha256_file("/"), FailsWith(ErrorCode::io)); }

TEST(Sha256File, StopsWhenAsked) {
  const TemporaryFolder folder;
  ASSERT_THAT(replace_file(folder.path() / "a", "x"), IsOk());
  std::stop_source source;
  source.request_stop();
  EXPECT_THAT(sha256_file(folder.path() / "a", source.get_token()),
              FailsWith(ErrorCode::cancelled));
}

}  // namespace
}  // namespace paceline
