// Our reading of GGUF headers, on bytes that are written here one by one.
#include "runtime/llama/gguf_header.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cstring>
#include <format>
#include <fstream>

#include "runtime/llama/gguf_file.hpp"
#include "support/gguf_builder.hpp"
#include "support/matchers.hpp"
#include "support/temporary_folder.hpp"

namespace paceline::test {
namespace {

using runtime::GgufHeader;
using runtime::GgufType;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

/// Little-endian numbers and texts behind each other.
class Bytes {
 public:
  template <typename T>
  Bytes& put(T value) {
    char raw[sizeof value];
    std::memcpy(raw, &value, sizeof value);
    if constexpr (std::endian::native == std::endian::big) std::ranges::reverse(raw);
    text_.append(raw, sizeof value);
    return *this;
  }
  Bytes& text(std::string_view text) {
    put<std::uint64_t>(text.size());
    text_ += text;
    return *this;
  }
  Bytes& key(std::string_view name, GgufType type) {
    return text(name).put(static_cast<std::uint32_t>(type));
  }
  Bytes& array(std::string_view name, GgufType element, std::uint64_t count) {
    return key(name, GgufType::array).put(static_cast<std::uint32_t>(element)).put(count);
  }
  const std::string& get() const { return text_; }

 private:
  std::string text_;
};

Bytes header(std::uint64_t keys, std::uint64_t tensors = 0, std::uint32_t version = 3) {
  Bytes bytes;
  bytes.put('G').put('G').put('U').put('F').put(version).put(tensors).put(keys);
  return bytes;
}

Result<GgufHeader> parse(const std::string& bytes) {
  return GgufHeader::parse(std::make_shared<const std::string>(bytes), bytes.size());
}

TEST(GgufHeader, GivesValuesByTypeAndNothingOtherwise) {
  Bytes bytes = header(7);
  bytes.key("u8", GgufType::u8).put<std::uint8_t>(200);
  bytes.key("i64", GgufType::i64).put<std::int64_t>(-5);
  bytes.key("flag", GgufType::boolean).put<std::uint8_t>(1);
  bytes.key("text", GgufType::string).text("words");
  bytes.array("texts", GgufType::string, 2).text("a").text("");
  bytes.array("numbers", GgufType::i32, 2).put<std::int32_t>(-1).put<std::int32_t>(7);
  bytes.array("floats", GgufType::f32, 1).put(1.5F);
  const GgufHeader h = value_of(parse(bytes.get()));
  EXPECT_EQ(h.integer("u8"), 200U);
  EXPECT_EQ(h.integer("i64"), std::nullopt) << "negative";
  EXPECT_EQ(h.integer("text"), std::nullopt);
  EXPECT_EQ(h.integer("none"), std::nullopt);
  EXPECT_EQ(h.boolean("flag"), true);
  EXPECT_EQ(h.boolean("u8"), std::nullopt);
  EXPECT_EQ(h.string("text"), "words");
  EXPECT_EQ(h.string("texts"), std::nullopt);
  EXPECT_THAT(h.strings("texts"), ElementsAre("a", ""));
  EXPECT_THAT(h.strings("numbers"), IsEmpty());
  EXPECT_THAT(h.integers("numbers"), ElementsAre(-1, 7));
  EXPECT_THAT(h.integers("texts"), IsEmpty());
  EXPECT_THAT(h.floats("floats"), ElementsAre(1.5F));
  EXPECT_THAT(h.floats("numbers"), IsEmpty());
  EXPECT_TRUE(h.has_prefix("num"));
  EXPECT_FALSE(h.has_prefix("nun"));
}

TEST(GgufHeader, ListsTensorsAndPlacesTheData) {
  Bytes bytes = header(1, 1);
  bytes.key("general.alignment", GgufType::u32).put<std::uint32_t>(64);
  bytes.text("w").put<std::uint32_t>(2).put<std::uint64_t>(3).put<std::uint64_t>(5);
  bytes.put<std::uint32_t>(0).put<std::uint64_t>(128);
  const GgufHeader h = value_of(parse(bytes.get()));
  ASSERT_EQ(h.tensors().size(), 1U);
  EXPECT_EQ(h.tensors()[0].name, "w");
  EXPECT_THAT(h.tensors()[0].extents, ElementsAre(3, 5, 1, 1));
  EXPECT_EQ(h.tensors()[0].offset, 128U);
  EXPECT_EQ(h.data_offset() % 64, 0U);
  EXPECT_GE(h.data_offset(), bytes.get().size());
}

TEST(GgufHeader, RefusesWhatItCannotTrust) {
  const auto refused = [](const Bytes& bytes, const char* why) {
    EXPECT_THAT(parse(bytes.get()), FailsWith(ErrorCode::bad_format, HasSubstr(why))) << why;
  };
  refused(header(0, 0, 1), "version is 1");
  refused(header(0, 0, 0x03000000), "other byte order");
  refused(header(1ULL << 40), "claims");
  refused(header(0, 1ULL << 40), "claims");
  refused(header(1), "needs 8 bytes");
  refused(header(1).text("k").put<std::uint32_t>(99), "type 99");
  refused(header(1).array("k", GgufType::array, 1), "array of arrays");
  refused(header(1).array("k", GgufType::u64, ~0ULL), "claims 18446744073709551615 numbers");
  refused(header(1).array("k", GgufType::string, 1ULL << 60), "texts");
  refused(header(1).key("k", GgufType::string).put<std::uint64_t>(~0ULL), "needs");
  refused(header(2)
              .key("k", GgufType::u8)
              .put<std::uint8_t>(1)
              .key("k", GgufType::u8)
              .put<std::uint8_t>(1),
          "twice");
  refused(header(1).key("general.alignment", GgufType::u32).put<std::uint32_t>(3), "power of two");
  refused(header(1).key("general.alignment", GgufType::u32).put<std::uint32_t>(0), "power of two");
  refused(header(0, 1).text("w").put<std::uint32_t>(5), "5 dimensions");
  refused(header(0, 1)
              .text("w")
              .put<std::uint32_t>(2)
              .put<std::uint64_t>(1ULL << 40)
              .put<std::uint64_t>(1ULL << 40),
          "extent");
  refused(header(0, 1)
              .text("w")
              .put<std::uint32_t>(1)
              .put<std::uint64_t>(1)
              .put<std::uint32_t>(0)
              .put<std::uint64_t>(7),
          "no multiple of 32");
}

TEST(GgufHeader, AsksForMoreWhereTheFileGoesOn) {
  Bytes bytes = header(1);
  bytes.key("k", GgufType::string).text("0123456789");
  const std::string whole = bytes.get();
  for (std::size_t length = 0; length < whole.size(); ++length) {
    const auto part = std::make_shared<const std::string>(whole.substr(0, length));
    EXPECT_THAT(GgufHeader::parse(part, whole.size()), FailsWithWord("more")) << length;
    EXPECT_THAT(GgufHeader::parse(part, length), FailsWithWord("")) << length;
  }
}

// More than the first read takes at once.
TEST(GgufHeader, OfManyMegabytesIsReadWhole) {
  const TemporaryFolder folder;
  TinyModel model;
  model.metadata["some.long.text"] = std::string(std::size_t{5} << 20, 'x') + "end";
  write_tiny(folder.path() / "m.gguf", model);
  const GgufHeader h = value_of(runtime::read_gguf_header(folder.path() / "m.gguf"));
  EXPECT_TRUE(h.string("some.long.text")->ends_with("end"));
  EXPECT_GT(h.tensors().size(), 4U);
}

TEST(GgufHeader, AgreesWithWhatLibggmlWrote) {
  const TemporaryFolder folder;
  write_tiny(folder.path() / "m.gguf", {.name = "little"});
  const auto file = value_of(runtime::read_gguf_model(folder.path() / "m.gguf"));
  EXPECT_EQ(file.header.string("general.name"), "little");
  EXPECT_EQ(file.header.integer("llama.block_count"), 2U);
  EXPECT_EQ(file.header.strings("tokenizer.ggml.tokens").size(), small_vocabulary().size());
  EXPECT_EQ(file.header.floats("tokenizer.ggml.scores")[5], -5.0F);
  EXPECT_EQ(file.header.integers("tokenizer.ggml.token_type")[1], 3);
}

TEST(GgufHeader, OfATensorThatEndsBehindTheFileIsCalledCut) {
  const TemporaryFolder folder;
  Bytes bytes = header(0, 1);
  bytes.text("w").put<std::uint32_t>(1).put<std::uint64_t>(1ULL << 55).put<std::uint32_t>(0);
  bytes.put<std::uint64_t>(1ULL << 62);
  std::ofstream(folder.path() / "far.gguf", std::ios::binary) << bytes.get();
  EXPECT_THAT(runtime::read_gguf_summary(folder.path() / "far.gguf"),
              FailsWith(ErrorCode::bad_format, HasSubstr("is cut")));
}

TEST(GgufHeader, OfAnUnknownTensorFormatIsNamed) {
  const TemporaryFolder folder;
  Bytes bytes = header(0, 1);
  bytes.text("w").put<std::uint32_t>(1).put<std::uint64_t>(32).put<std::uint32_t>(4000);
  bytes.put<std::uint64_t>(0);
  std::ofstream(folder.path() / "new.gguf", std::ios::binary) << bytes.get();
  EXPECT_THAT(runtime::read_gguf_summary(folder.path() / "new.gguf"),
              FailsWith(ErrorCode::bad_format, HasSubstr("format 4000")));
}

TEST(GgufHeader, OfAContextThatCannotBeIsRefused) {
  const TemporaryFolder folder;
  const auto path = folder.path() / "m.gguf";
  for (const std::uint32_t context : {0U, 16777217U, 4294967295U}) {
    TinyModel model;
    model.metadata["llama.context_length"] = context;
    write_tiny(path, model);
    EXPECT_THAT(
        runtime::read_gguf_summary(path),
        FailsWith(ErrorCode::bad_format,
                  HasSubstr(std::format("llama.context_length is {}, 1 to 16777216", context))));
  }
  TinyModel model;
  model.metadata["llama.context_length"] = std::string("long");
  write_tiny(path, model);
  EXPECT_THAT(runtime::read_gguf_summary(path),
              FailsWith(ErrorCode::bad_format, HasSubstr("no whole number")));
  model.metadata["llama.context_length"] = 16777216U;
  write_tiny(path, model);
  EXPECT_EQ(value_of(runtime::read_gguf_summary(path)).trained_context, 16777216U);
}

}  // namespace
}  // namespace paceline::test
