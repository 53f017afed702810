#include "core/file_lock.hpp"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <optional>
#include <string>

#include "core/file.hpp"
#include "support/matchers.hpp"
#include "support/temporary_folder.hpp"

namespace paceline {
namespace {

namespace fs = std::filesystem;
using test::FailsWith;
using test::IsOk;
using test::TemporaryFolder;
using test::value_of;
using testing::HasSubstr;

class Locked : public testing::Test {
 protected:
  TemporaryFolder folder;
  fs::path file = folder.path() / "result.json";
  fs::path lock_file = folder.path() / "result.json.lock";
};

TEST_F(Locked, IsHeldOnceAndThenFreeAgain) {
  {
    const auto lock = FileLock::take(file);
    ASSERT_THAT(lock, IsOk());
    EXPECT_THAT(FileLock::take(file), FailsWith(ErrorCode::busy, HasSubstr("result.json")));
    EXPECT_FALSE(fs::exists(file)) << "the file itself is not touched";
  }
  EXPECT_FALSE(fs::exists(lock_file));
  EXPECT_THAT(FileLock::take(file), IsOk());
}

TEST_F(Locked, StaysHeldWhileTheFileIsReplaced) {
  const auto lock = FileLock::take(file);
  ASSERT_THAT(replace_file(file, "one"), IsOk());
  ASSERT_THAT(replace_file(file, "two"), IsOk());
  EXPECT_THAT(FileLock::take(file), FailsWith(ErrorCode::busy));
}

TEST_F(Locked, MovesWithItsOwner) {
  FileLock owner;
  {
    auto lock = FileLock::take(file);
    ASSERT_THAT(lock, IsOk());
    owner = *std::move(lock);
  }
  EXPECT_THAT(FileLock::take(file), FailsWith(ErrorCode::busy));
  owner = FileLock();
  EXPECT_THAT(FileLock::take(file), IsOk());
}

TEST_F(Locked, IsFreeAfterItsProcessWasKilled) {
  int ready[2] = {};
  ASSERT_EQ(::pipe(ready), 0);
  const pid_t child = ::fork();
  if (child == 0) {
    const auto lock = FileLock::take(file);
    const char sign = lock ? 'y' : 'n';
    static_cast<void>(!::write(ready[1], &sign, 1));
    while (true) ::pause();
  }
  char sign = 'n';
  ASSERT_EQ(::read(ready[0], &sign, 1), 1);
  ASSERT_EQ(sign, 'y');
  EXPECT_THAT(FileLock::take(file), FailsWith(ErrorCode::busy));
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  EXPECT_TRUE(fs::exists(lock_file)) << "killed before it could remove it";
  EXPECT_THAT(FileLock::take(file), IsOk());
  EXPECT_FALSE(fs::exists(lock_file));
  ::close(ready[0]);
  ::close(ready[1]);
}

}  // namespace
}  // namespace paceline
