#include "core/file.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "support/matchers.hpp"
#include "support/temporary_folder.hpp"

namespace paceline {
namespace {

namespace fs = std::filesystem;
using test::FailsWith;
using test::IsOk;
using test::TemporaryFolder;
using test::value_of;
using testing::ElementsAre;
using testing::HasSubstr;

std::vector<std::string> names_in(const fs::path& folder) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) {
    names.push_back(entry.path().filename().string());
  }
  std::ranges::sort(names);
  return names;
}

TEST(ReadFile, GivesAllBytes) {
  const TemporaryFolder folder;
  const std::string bytes = std::string(70000, 'x') + std::string("\0\r\n\xff", 4);
  ASSERT_THAT(replace_file(folder.path() / "a", bytes), IsOk());
  EXPECT_EQ(value_of(read_file(folder.path() / "a")), bytes);
}

TEST(ReadFile, NamesAMissingFile) {
  EXPECT_THAT(read_file("/nowhere/x"), FailsWith(ErrorCode::not_found, HasSubstr("/nowhere/x")));
}

TEST(ReadFile, NamesAMissingFileBelowAFile) {
  const TemporaryFolder folder;
  ASSERT_THAT(replace_file(folder.path() / "a", "x"), IsOk());
  EXPECT_THAT(read_file(folder.path() / "a" / "b"), FailsWith(ErrorCode::not_found));
}

TEST(ReadFile, RefusesAFolder) {
  EXPECT_THAT(read_file("/"), FailsWith(ErrorCode::io, HasSubstr("folder")));
}

// Nobody writes into the pipe: whoever opened it plainly would wait for ever.
TEST(ReadFile, RefusesWhatIsNoFileWithoutWaiting) {
  const TemporaryFolder folder;
  const fs::path pipe = folder.path() / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_THAT(read_file(pipe), FailsWith(ErrorCode::io, HasSubstr("/pipe\" is a pipe")));
  EXPECT_THAT(read_file("/dev/zero"),
              FailsWith(ErrorCode::io, HasSubstr("\"/dev/zero\" is a character device")));
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  const fs::path socket = folder.path() / "socket";
  ASSERT_LT(socket.string().size(), sizeof name.sun_path);
  std::ranges::copy(socket.string(), name.sun_path);
  const int fd = ::socket(AF_UNIX, SOCK_STREAM, 0);
  ASSERT_EQ(::bind(fd, reinterpret_cast<const sockaddr*>(&name), sizeof name), 0);
  EXPECT_THAT(read_file(socket), FailsWith(ErrorCode::io, HasSubstr("is a socket")));
  ::close(fd);
}

TEST(ReadFile, RefusesFilesOverTheLimitOnly) {
  const TemporaryFolder folder;
  ASSERT_THAT(replace_file(folder.path() / "a", "12345"), IsOk());
  EXPECT_THAT(read_file(folder.path() / "a", 5), IsOk());
  EXPECT_THAT(read_file(folder.path() / "a", 4), FailsWith(ErrorCode::bad_format, HasSubstr("4")));
}

TEST(ReplaceFile, WritesReplacesAndLeavesNothingElse) {
  const TemporaryFolder folder;
  ASSERT_THAT(replace_file(folder.path() / "a", "old and long"), IsOk());
  ASSERT_THAT(replace_file(folder.path() / "a", "new"), IsOk());
  EXPECT_EQ(value_of(read_file(folder.path() / "a")), "new");
  EXPECT_THAT(names_in(folder.path()), ElementsAre("a"));
}

TEST(ReplaceFile, NeverShortensTheOldFile) {
  const TemporaryFolder folder;
  ASSERT_THAT(replace_file(folder.path() / "a", "old"), IsOk());
  const int reader = ::open((folder.path() / "a").c_str(), O_RDONLY);
  ASSERT_THAT(replace_file(folder.path() / "a", "new"), IsOk());
  char bytes[8] = {};
  EXPECT_EQ(::read(reader, bytes, sizeof bytes), 3);
  EXPECT_STREQ(bytes, "old");  // who had it open sees the old one, whole
  ::close(reader);
}

TEST(ReplaceFile, FailsWhereTheFolderIsMissing) {
  const TemporaryFolder folder;
  EXPECT_THAT(replace_file(folder.path() / "no" / "a", "x"),
              FailsWith(ErrorCode::not_found, HasSubstr("no/a")));
}

TEST(ReplaceFile, FailsOnAFolderAndLeavesItAlone) {
  const TemporaryFolder folder;
  fs::create_directory(folder.path() / "a");
  ASSERT_THAT(replace_file(folder.path() / "a" / "inside", "x"), IsOk());
  EXPECT_THAT(replace_file(folder.path() / "a", "x"), FailsWith(ErrorCode::io));
  EXPECT_THAT(names_in(folder.path()), ElementsAre("a"));
  EXPECT_THAT(names_in(folder.path() / "a"), ElementsAre("inside"));
}

/// No file of this process may grow beyond so many bytes: a disk that is full, for root too.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) {
    ::getrlimit(RLIMIT_FSIZE, &old_);
    const rlimit limit{.rlim_cur = bytes, .rlim_max = old_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    handler_ = std::signal(SIGXFSZ, SIG_IGN);
  }
  ~FileSizeLimit() {
    ::setrlimit(RLIMIT_FSIZE, &old_);
    std::signal(SIGXFSZ, handler_);
  }
  FileSizeLimit(const FileSizeLimit&) = delete;
  FileSizeLimit& operator=(const FileSizeLimit&) = delete;

 private:
  rlimit old_{};
  void (*handler_)(int) = nullptr;
};

TEST(ReplaceFile, KeepsTheOldFileWhenTheDiskIsFull) {
  const TemporaryFolder folder;
  ASSERT_THAT(replace_file(folder.path() / "a", "old"), IsOk());
  {
    const FileSizeLimit limit(100);
    EXPECT_THAT(replace_file(folder.path() / "a", std::string(1000, 'x')),
                FailsWith(ErrorCode::io, HasSubstr("/a\"")));
  }
  EXPECT_EQ(value_of(read_file(folder.path() / "a")), "old");
  EXPECT_THAT(names_in(folder.path()), ElementsAre("a"));
}

TEST(ReplaceFile, FollowsALinkAndKeepsIt) {
  const TemporaryFolder folder;
  fs::create_directory(folder.path() / "b");
  ASSERT_THAT(replace_file(folder.path() / "b" / "file", "old"), IsOk());
  fs::create_symlink("b/file", folder.path() / "link");
  fs::create_symlink("link", folder.path() / "link to link");
  ASSERT_THAT(replace_file(folder.path() / "link to link", "new"), IsOk());
  EXPECT_TRUE(fs::is_symlink(folder.path() / "link to link"));
  EXPECT_TRUE(fs::is_symlink(folder.path() / "link"));
  EXPECT_FALSE(fs::is_symlink(folder.path() / "b" / "file"));
  EXPECT_EQ(value_of(read_file(folder.path() / "b" / "file")), "new");
}

TEST(ReplaceFile, MakesTheFileThatALinkNames) {
  const TemporaryFolder folder;
  fs::create_symlink("file", folder.path() / "link");
  ASSERT_THAT(replace_file(folder.path() / "link", "new"), IsOk());
  EXPECT_TRUE(fs::is_symlink(folder.path() / "link"));
  EXPECT_EQ(value_of(read_file(folder.path() / "file")), "new");
}

TEST(ReplaceFile, FailsOnALinkThatNamesItself) {
  const TemporaryFolder folder;
  fs::create_symlink("link", folder.path() / "link");
  EXPECT_THAT(replace_file(folder.path() / "link", "new"), FailsWith(ErrorCode::io));
  EXPECT_TRUE(fs::is_symlink(folder.path() / "link"));
}

// As root, renaming over /dev/null would take the device away from everybody.
TEST(ReplaceFile, WritesIntoADeviceInsteadOfReplacingIt) {
  const TemporaryFolder folder;
  fs::create_symlink("/dev/null", folder.path() / "link");
  ASSERT_THAT(replace_file(folder.path() / "link", "new"), IsOk());
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
  EXPECT_THAT(names_in(folder.path()), ElementsAre("link"));
  EXPECT_THAT(replace_file("/dev/full", "new"), FailsWith(ErrorCode::io, HasSubstr("/dev/full")));
}

TEST(ReplaceFile, RefusesAPipeWithoutWaiting) {
  const TemporaryFolder folder;
  const fs::path pipe = folder.path() / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_THAT(replace_file(pipe, "new"), FailsWith(ErrorCode::io, HasSubstr("is a pipe")));
  EXPECT_THAT(check_writable(pipe), FailsWith(ErrorCode::io, HasSubstr("is a pipe")));
  EXPECT_TRUE(fs::is_fifo(pipe));
  EXPECT_THAT(names_in(folder.path()), ElementsAre("pipe"));
}

TEST(CreateFile, LeavesAloneWhatHasTheName) {
  const TemporaryFolder folder;
  EXPECT_TRUE(value_of(create_file(folder.path() / "a", "first")));
  EXPECT_FALSE(value_of(create_file(folder.path() / "a", "second")));
  EXPECT_EQ(value_of(read_file(folder.path() / "a")), "first");
  fs::create_symlink("nowhere", folder.path() / "link");
  EXPECT_FALSE(value_of(create_file(folder.path() / "link", "x")));
  EXPECT_THAT(create_file(folder.path() / "no" / "a", "x"), FailsWith(ErrorCode::not_found));
}

TEST(CreateFile, LeavesNothingWhereTheDiskIsFull) {
  const TemporaryFolder folder;
  {
    const FileSizeLimit limit(100);
    EXPECT_THAT(create_file(folder.path() / "a", std::string(1000, 'x')), FailsWith(ErrorCode::io));
  }
  EXPECT_THAT(names_in(folder.path()), ElementsAre());
}

TEST(RandomNamePart, IsAnotherEachTime) {
  EXPECT_EQ(random_name_part().size(), 16U);
  EXPECT_NE(random_name_part(), random_name_part());
}

TEST(ReplaceFile, KeepsTheRightsOfTheOldFile) {
  const TemporaryFolder folder;
  ASSERT_THAT(replace_file(folder.path() / "a", "old"), IsOk());
  fs::permissions(folder.path() / "a", fs::perms{0600});
  ASSERT_THAT(replace_file(folder.path() / "a", "new"), IsOk());
  EXPECT_EQ(fs::status(folder.path() / "a").permissions(), fs::perms{0600});
}

TEST(CheckWritable, TouchesNothing) {
  const TemporaryFolder folder;
  ASSERT_THAT(replace_file(folder.path() / "a", "old"), IsOk());
  EXPECT_THAT(check_writable(folder.path() / "a"), IsOk());
  EXPECT_THAT(check_writable(folder.path() / "b"), IsOk());
  EXPECT_EQ(value_of(read_file(folder.path() / "a")), "old");
  EXPECT_THAT(names_in(folder.path()), ElementsAre("a"));
}

TEST(CheckWritable, SaysWhatReplaceFileWouldStumbleOver) {
  const TemporaryFolder folder;
  EXPECT_THAT(check_writable(folder.path() / "no" / "a"),
              FailsWith(ErrorCode::not_found, HasSubstr("/no\"")));
  EXPECT_THAT(check_writable(folder.path()), FailsWith(ErrorCode::io, HasSubstr("folder")));
  fs::create_symlink("gone/file", folder.path() / "link");
  EXPECT_THAT(check_writable(folder.path() / "link"), FailsWith(ErrorCode::not_found));
  EXPECT_THAT(check_writable(""), FailsWith(ErrorCode::invalid_argument));
}

TEST(CheckWritable, FindsAFullDisk) {
  const TemporaryFolder folder;
  {
    const FileSizeLimit limit(100);
    EXPECT_THAT(check_writable(folder.path() / "a"),
                FailsWith(ErrorCode::io, HasSubstr("cannot be written")));
  }
  EXPECT_THAT(names_in(folder.path()), ElementsAre());
}

TEST(CheckWritable, AllowsADevice) { EXPECT_THAT(check_writable("/dev/null"), IsOk()); }

/// Sets an environment variable, or unsets it (null), until the end of the scope.
class Environment {
 public:
  Environment(const char* name, const char* value) : name_(name) {
    if (const char* old = std::getenv(name)) old_ = old;
    value != nullptr ? ::setenv(name, value, 1) : ::unsetenv(name);
  }
  ~Environment() { old_ ? ::setenv(name_, old_->c_str(), 1) : ::unsetenv(name_); }
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;

 private:
  const char* name_;
  std::optional<std::string> old_;
};

TEST(UserDirectories, FollowTheVariables) {
  const Environment home("HOME", "/h");
  const Environment cache("XDG_CACHE_HOME", "/c");
  const Environment state("XDG_STATE_HOME", nullptr);
  EXPECT_EQ(value_of(cache_directory()), "/c/paceline");
  EXPECT_EQ(value_of(state_directory()), "/h/.local/state/paceline");
}

TEST(UserDirectories, IgnoreARelativeVariable) {
  const Environment home("HOME", "/h");
  const Environment cache("XDG_CACHE_HOME", "relative");
  EXPECT_EQ(value_of(cache_directory()), "/h/.cache/paceline");
}

TEST(UserDirectories, SayWhatToSet) {
  const Environment home("HOME", nullptr);
  const Environment cache("XDG_CACHE_HOME", nullptr);
  EXPECT_THAT(cache_directory(), FailsWith(ErrorCode::not_found, HasSubstr("XDG_CACHE_HOME")));
}

}  // namespace
}  // namespace paceline
