// The hash that a draft is bound to: files, directories, hub caches, and what is refused.
#include "compat/artifact.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "core/hash.hpp"
#include "support/gguf_builder.hpp"
#include "support/matchers.hpp"
#include "support/temporary_folder.hpp"

namespace paceline::test {
namespace {

namespace fs = std::filesystem;
using compat::artifact_sha256;
using testing::HasSubstr;

constexpr const char* k_unverified = "draft_model_unverified_artifact";
// Of the files a ("one\n") and sub/.b (empty); computed apart, from the published format.
constexpr const char* k_two_files =
    "f18d3b9a4a54642786abd3eee4a07c722b801b384810ecbb11c8014e21b3404c";

class Artifact : public testing::Test {
 protected:
  static void write(const fs::path& path, const std::string& text) {
    fs::create_directories(path.parent_path());
    std::ofstream(path, std::ios::binary) << text;
  }
  fs::path plain_folder() {
    write(root() / "plain/a", "one\n");
    write(root() / "plain/sub/.b", "");
    return root() / "plain";
  }
  /// The same files as a hub cache keeps them: links into blobs.
  fs::path hub_snapshot() {
    const fs::path cache = root() / "models--org--x";
    write(cache / "blobs/1", "one\n");
    write(cache / "blobs/2", "");
    const fs::path snapshot = cache / "snapshots/rev";
    fs::create_directories(snapshot / "sub");
    fs::create_symlink("../../blobs/1", snapshot / "a");
    fs::create_symlink("../../../blobs/2", snapshot / "sub/.b");
    return snapshot;
  }
  fs::path root() const { return folder_.path(); }

 private:
  TemporaryFolder folder_;
};

TEST_F(Artifact, OfAFileIsItsHash) {
  write(root() / "m.bin", "abc");
  EXPECT_EQ(value_of(artifact_sha256(root() / "m.bin")), sha256_hex("abc"));
  EXPECT_THAT(artifact_sha256(root() / "none"), FailsWith(ErrorCode::not_found));
}

TEST_F(Artifact, OfASplitModelCoversAllShardsFromAnyOfThem) {
  const auto shards = write_tiny_shards(root() / "part", 2);
  const std::string both = value_of(artifact_sha256(shards[0]));
  EXPECT_EQ(value_of(artifact_sha256(shards[1])), both);
  std::string bytes(1, '\0');
  std::fstream file(shards[1], std::ios::binary | std::ios::in | std::ios::out);
  file.seekp(-1, std::ios::end);
  file.write("\x55", 1);
  file.close();
  EXPECT_NE(value_of(artifact_sha256(shards[0])), both);
}

TEST_F(Artifact, OfADirectoryIsThePublishedHash) {
  EXPECT_EQ(value_of(artifact_sha256(plain_folder())), k_two_files);
  EXPECT_EQ(value_of(artifact_sha256(plain_folder() / "")), k_two_files)
      << "with a slash behind it";
}

TEST_F(Artifact, OfAHubSnapshotIsThatOfItsCopy) {
  EXPECT_EQ(value_of(artifact_sha256(hub_snapshot())), k_two_files);
}

TEST_F(Artifact, RefusesLinksThatLeaveTheCachesOwnBlobs) {
  const fs::path snapshot = hub_snapshot();
  write(root() / "outside", "secret");
  write(root() / "models--org--y/blobs/9", "other repository");
  for (const fs::path& end : {root() / "outside", root() / "models--org--y/blobs/9",
                              fs::path("../../refs"), fs::path("/dev/null"), fs::path("sub"),
                              fs::path("nowhere"), fs::path("c"), fs::path("../../blobs")}) {
    fs::create_symlink(end, snapshot / "c");
    EXPECT_THAT(artifact_sha256(snapshot), FailsWithWord(k_unverified)) << end;
    fs::remove(snapshot / "c");
  }
  EXPECT_THAT(artifact_sha256(snapshot), IsOk());
  // A blob that is itself a link out of the cache.
  fs::remove(root() / "models--org--x/blobs/2");
  fs::create_symlink(root() / "outside", root() / "models--org--x/blobs/2");
  EXPECT_THAT(artifact_sha256(snapshot), FailsWithWord(k_unverified));
}

TEST_F(Artifact, RefusesABlobsFolderThatIsALink) {
  const fs::path snapshot = hub_snapshot();
  fs::rename(root() / "models--org--x/blobs", root() / "elsewhere");
  fs::create_directory_symlink(root() / "elsewhere", root() / "models--org--x/blobs");
  EXPECT_THAT(artifact_sha256(snapshot), FailsWithWord(k_unverified));
}

TEST_F(Artifact, RefusesWhatThePublishedRulesRefuse) {
  const fs::path folder = plain_folder();
  fs::create_directory_symlink(folder, root() / "link");
  EXPECT_THAT(artifact_sha256(root() / "link"), FailsWithWord(k_unverified));
  EXPECT_THAT(artifact_sha256(root() / "link" / ""), FailsWithWord(k_unverified));

  fs::create_symlink("a", folder / "c");
  EXPECT_THAT(artifact_sha256(folder), FailsWithWord(k_unverified));
  fs::remove(folder / "c");

  fs::create_hard_link(folder / "a", root() / "second name");
  EXPECT_THAT(artifact_sha256(folder), FailsWith(ErrorCode::bad_format, HasSubstr("2 hard links")));
  fs::remove(root() / "second name");

  ASSERT_EQ(::mkfifo((folder / "pipe").c_str(), 0600), 0);
  EXPECT_THAT(artifact_sha256(folder), FailsWith(ErrorCode::bad_format, HasSubstr("regular file")));
  fs::remove(folder / "pipe");

  write(folder / "new\nline", "");
  EXPECT_THAT(artifact_sha256(folder), FailsWithWord(k_unverified));
}

TEST_F(Artifact, IsVerifiedAgainstTheWantedHash) {
  const fs::path folder = plain_folder();
  EXPECT_THAT(compat::verify_artifact(folder, k_two_files), IsOk());
  const std::string other = sha256_hex("other");
  EXPECT_THAT(compat::verify_artifact(folder, other), FailsWithWord(k_unverified));
  EXPECT_THAT(compat::verify_artifact(folder, other),
              FailsWith(ErrorCode::invalid_argument,
                        testing::AllOf(HasSubstr(k_two_files), HasSubstr(other))));
}

TEST_F(Artifact, TakesHashesOfTheRightFormOnly) {
  EXPECT_THAT(compat::check_artifact_sha256(std::string(64, 'a')), IsOk());
  for (const std::string& bad : {std::string(), std::string(63, 'a'), std::string(65, 'a'),
                                 std::string(64, 'A'), std::string(64, 'g')}) {
    EXPECT_THAT(compat::check_artifact_sha256(bad),
                FailsWith(ErrorCode::invalid_argument,
                          HasSubstr("draft_model_artifact_sha256 must be 64 lowercase hex")));
  }
}

TEST_F(Artifact, CanBeStopped) {
  std::stop_source stop;
  stop.request_stop();
  EXPECT_THAT(artifact_sha256(plain_folder(), {.stop = stop.get_token(), .progress = {}}),
              FailsWith(ErrorCode::cancelled));
}

}  // namespace
}  // namespace paceline::test
