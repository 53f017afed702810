#include "core/text.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/random.hpp"

namespace paceline {
namespace {

const std::string k_replacement = "\xef\xbf\xbd";

/// The encoding of one code point, by the definition (RFC 3629, section 3).
std::string encode(char32_t point) {
  const auto byte = [](char32_t bits) {
    return static_cast<char>(static_cast<unsigned char>(bits));
  };
  if (point < 0x80) return {byte(point)};
  if (point < 0x800) return {byte(0xc0 | (point >> 6)), byte(0x80 | (point & 0x3f))};
  if (point < 0x10000) {
    return {byte(0xe0 | (point >> 12)), byte(0x80 | ((point >> 6) & 0x3f)),
            byte(0x80 | (point & 0x3f))};
  }
  return {byte(0xf0 | (point >> 18)), byte(0x80 | ((point >> 12) & 0x3f)),
          byte(0x80 | ((point >> 6) & 0x3f)), byte(0x80 | (point & 0x3f))};
}

enum class Kind { beginning, character };

/// Every character there is and every proper beginning of one.
const std::unordered_map<std::string, Kind>& all_characters() {
  static const auto table = [] {
    std::unordered_map<std::string, Kind> made;
    for (char32_t point = 0; point <= 0x10ffff; ++point) {
      if (point >= 0xd800 && point <= 0xdfff) continue;
      const std::string character = encode(point);
      for (std::size_t n = 1; n < character.size(); ++n) {
        made.emplace(character.substr(0, n), Kind::beginning);
      }
      made.emplace(character, Kind::character);
    }
    return made;
  }();
  return table;
}

struct Expected {
  std::string text;
  std::size_t whole = 0;
};

/// Reads from the front: a character, else the longest beginning of one (or one byte) is replaced.
Expected reference(std::string_view bytes) {
  Expected expected;
  bool cut = false;
  for (std::size_t at = 0; at < bytes.size();) {
    std::size_t length = 1;
    bool character = false;
    bool beginning = false;
    for (std::size_t n = 1; n <= 4 && at + n <= bytes.size(); ++n) {
      const auto found = all_characters().find(std::string(bytes.substr(at, n)));
      if (found == all_characters().end()) break;
      length = n;
      character = found->second == Kind::character;
      beginning = !character;
    }
    if (beginning && at + length == bytes.size()) cut = true;
    if (!cut) expected.whole = at + length;
    expected.text += character ? std::string(bytes.substr(at, length)) : k_replacement;
    at += length;
  }
  return expected;
}

void expect_as_reference(const std::string& bytes) {
  const Expected expected = reference(bytes);
  ASSERT_EQ(whole_utf8_prefix(bytes), expected.whole) << escape(bytes);
  ASSERT_EQ(to_valid_utf8(bytes), expected.text) << escape(bytes);
}

// One byte of each kind that the rules tell apart, and the borders between the kinds.
constexpr std::string_view k_border_bytes =
    "\x41\x7f\x80\x8f\x90\x9f\xa0\xbf\xc0\xc1\xc2\xdf\xe0\xe1\xec\xed\xee\xef\xf0\xf1\xf3\xf4\xf5"
    "\xff";

void for_all_strings(std::string_view alphabet, std::size_t length,
                     const std::function<void(const std::string&)>& visit) {
  std::string bytes(length, '\0');
  std::vector<std::size_t> digits(length);
  while (true) {
    for (std::size_t i = 0; i < length; ++i) bytes[i] = alphabet[digits[i]];
    visit(bytes);
    std::size_t i = 0;
    while (i < length && ++digits[i] == alphabet.size()) digits[i++] = 0;
    if (i == length) return;
  }
}

TEST(Utf8, EveryStringOfUpToFourBorderBytesIsReadAsTheReferenceReadsIt) {
  for (std::size_t length = 0; length <= 4; ++length) {
    for_all_strings(k_border_bytes, length, expect_as_reference);
    if (testing::Test::HasFatalFailure()) return;
  }
}

TEST(Utf8, EveryPairOfBytesIsReadAsTheReferenceReadsIt) {
  std::string all;
  for (int i = 0; i < 256; ++i) all.push_back(static_cast<char>(static_cast<unsigned char>(i)));
  for_all_strings(all, 2, expect_as_reference);
}

TEST(Utf8, LongRandomStringsAreReadAsTheReferenceReadsThem) {
  Random random(1);
  for (int i = 0; i < 20000; ++i) {
    std::string bytes;
    while (bytes.size() < 12) bytes += k_border_bytes[random.below(k_border_bytes.size())];
    expect_as_reference(bytes);
    if (testing::Test::HasFatalFailure()) return;
  }
}

TEST(Utf8, EveryCharacterIsKeptAndHeldBackUntilItIsWhole) {
  for (char32_t point = 0; point <= 0x10ffff; point += point < 0x3000 ? 1 : 97) {
    if (point >= 0xd800 && point <= 0xdfff) continue;
    const std::string character = encode(point);
    ASSERT_EQ(to_valid_utf8(character), character);
    ASSERT_EQ(whole_utf8_prefix("x" + character), 1 + character.size());
    for (std::size_t n = 1; n < character.size(); ++n) {
      ASSERT_EQ(whole_utf8_prefix("x" + character.substr(0, n)), 1U) << escape(character);
    }
  }
}

TEST(Utf8, PiecesCutAtWholePrefixesGiveTheTextOfTheWhole) {
  Random random(2);
  for (int i = 0; i < 20000; ++i) {
    std::string bytes;
    const std::size_t length = random.below(10);
    while (bytes.size() < length) bytes += k_border_bytes[random.below(k_border_bytes.size())];
    std::string text;
    std::string held;
    for (std::size_t at = 0; at < bytes.size();) {
      const std::size_t n = 1 + random.below(3);
      held += bytes.substr(at, n);
      at += n;
      const std::size_t whole = whole_utf8_prefix(held);
      text += to_valid_utf8(held.substr(0, whole));
      held.erase(0, whole);
      ASSERT_LE(held.size(), 3U);
    }
    text += to_valid_utf8(held);
    ASSERT_EQ(text, to_valid_utf8(bytes)) << escape(bytes);
  }
}

TEST(Escape, ShowsWhatCannotBeSeen) {
  EXPECT_EQ(escape("a\nb\tc\rd"), "a\\nb\\tc\\rd");
  EXPECT_EQ(escape("say \"hi\" \\o/"), "say \\\"hi\\\" \\\\o/");
  EXPECT_EQ(escape(std::string_view("\0\x1b[31m\x7f", 7)), "\\x00\\x1b[31m\\x7f");
  EXPECT_EQ(escape("gr\xc3\xbc\xc3\x9f"), "gr\xc3\xbc\xc3\x9f");
  EXPECT_EQ(escape(""), "");
}

TEST(Escape, HidesWhatTerminalsObey) {
  EXPECT_EQ(escape("a\xc2\x9b"
                   "2J"),
            "a\\x9b2J");                                   // CSI as one character
  EXPECT_EQ(escape("a\u202egpj.exe"), "a\\u202egpj.exe");  // reads backwards
  EXPECT_EQ(escape("a\u2066b\u2069"), "a\\u2066b\\u2069");
}

TEST(Printable, LeavesQuotesAndIsTheSameTwice) {
  EXPECT_EQ(printable("\"gr\xc3\xbc\xc3\x9f\" \\o/"), "\"gr\xc3\xbc\xc3\x9f\" \\o/");
  EXPECT_EQ(printable(std::string_view("\0\x1b[31m\x7f\n\xff", 9)),
            "\\x00\\x1b[31m\\x7f\\n" + k_replacement);
  Random random(3);
  for (int i = 0; i < 20000; ++i) {
    std::string bytes;
    const std::size_t length = random.below(12);
    while (bytes.size() < length) bytes += static_cast<char>(random.below(256));
    const std::string once = printable(bytes);
    EXPECT_EQ(printable(once), once);
    EXPECT_EQ(to_valid_utf8(once), once);
    for (const char c : once) EXPECT_GE(static_cast<unsigned char>(c), 0x20U) << bytes;
  }
}

TEST(Escape, ReplacesBytesThatAreNoText) {
  EXPECT_EQ(escape("a\xff"
                   "b"),
            "a" + k_replacement + "b");
}

TEST(Escape, MarksWhatItCutOff) {
  EXPECT_EQ(escape("abcdef", 6), "abcdef");
  EXPECT_EQ(escape("abcdefg", 6), "abcdef...");
}

TEST(Escape, NeverCutsInsideACharacterOrAnEscape) {
  const std::vector<std::string> texts{"\xc3\xbc\xc3\xbc\xc3\xbc\xc3\xbc",
                                       "x\xf0\x9f\x99\x82y\xf0\x9f\x99\x82z",
                                       "a\nb\nc\nd",
                                       "\xff\xff\xff\xff",
                                       "\x01\x02\x03",
                                       "\xf0\x9f\xf0\x9f"};
  for (const std::string& text : texts) {
    const std::string whole = escape(text);
    for (std::size_t limit = 0; limit <= whole.size(); ++limit) {
      const std::string cut = escape(text, limit);
      EXPECT_EQ(to_valid_utf8(cut), cut) << limit;
      if (cut == whole) continue;
      ASSERT_TRUE(cut.ends_with("...")) << cut;
      const std::string kept = cut.substr(0, cut.size() - 3);
      EXPECT_LE(kept.size(), limit);
      EXPECT_TRUE(whole.starts_with(kept)) << kept;
      EXPECT_NE(kept.empty() ? '\0' : kept.back(), '\\') << kept;
    }
    EXPECT_EQ(escape(text, whole.size()), whole);
  }
}

TEST(Split, KeepsEmptyParts) {
  using Parts = std::vector<std::string_view>;
  EXPECT_EQ(split("a,b,,c", ','), (Parts{"a", "b", "", "c"}));
  EXPECT_EQ(split("", ','), (Parts{""}));
  EXPECT_EQ(split(",", ','), (Parts{"", ""}));
  EXPECT_EQ(split("abc", ','), (Parts{"abc"}));
}

TEST(Trim, TakesWhiteSpaceFromBothEnds) {
  EXPECT_EQ(trim(" \t a b\r\n"), "a b");
  EXPECT_EQ(trim(" \n "), "");
  EXPECT_EQ(trim(""), "");
  EXPECT_EQ(trim("x"), "x");
}

TEST(Join, IsTheInverseOfSplit) {
  EXPECT_EQ(join({}, ", "), "");
  EXPECT_EQ(join({"a"}, ", "), "a");
  EXPECT_EQ(join({"a", "", "c"}, ", "), "a, , c");
}

}  // namespace
}  // namespace paceline
