#include "engine/text_stream.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/random.hpp"
#include "core/text.hpp"

namespace paceline::engine {
namespace {

using Pieces = std::vector<std::string>;

struct Shown {
  std::string text;
  bool stopped = false;
  std::vector<std::string> parts;
};

Shown stream(const Pieces& pieces, const Pieces& stops) {
  TextStream stream(stops);
  Shown shown;
  for (const std::string& piece : pieces) {
    shown.parts.push_back(stream.push(piece));
    if (stream.stopped()) break;
  }
  if (!stream.stopped()) shown.parts.push_back(stream.finish());
  shown.stopped = stream.stopped();
  for (const std::string& part : shown.parts) shown.text += part;
  return shown;
}

/// The bytes one by one: the first moment at which the text ends with a stop.
Shown reference(const std::string& bytes, const Pieces& stops) {
  for (std::size_t end = 0; end <= bytes.size(); ++end) {
    std::size_t longest = 0;
    for (const std::string& stop : stops) {
      if (std::string_view(bytes).substr(0, end).ends_with(stop)) {
        longest = std::max(longest, stop.size());
      }
    }
    if (longest > 0) return {to_valid_utf8(bytes.substr(0, end - longest)), true, {}};
  }
  return {to_valid_utf8(bytes), false, {}};
}

std::vector<Pieces> all_cuts(const std::string& bytes) {
  std::vector<Pieces> cuts;
  for (unsigned mask = 0; mask < (1U << (bytes.size() - 1)); ++mask) {
    Pieces pieces{""};
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      pieces.back() += bytes[i];
      if (((mask >> i) & 1U) != 0) pieces.emplace_back();
    }
    cuts.push_back(pieces);
  }
  return cuts;
}

TEST(TextStream, GivesTheSameTextHoweverCharactersAreCut) {
  // 1, 2, 3 and 4 bytes; bytes that are none; a character that breaks off.
  for (const std::string& bytes : std::vector<std::string>{
           "a\xc3\xbc\xe2\x82\xac\xf0\x9f\x99\x82z", "\xff\xc3\xbc\x80z\xe2\x82", "\xf0\x9f\x99",
           "\xe2\x82z", "\xf0\x9f\x99\xf0\x9f\x99\x82", "\xc3\xc3\xbc\xed\xa0\x80"}) {
    for (const Pieces& pieces : all_cuts(bytes)) {
      const Shown shown = stream(pieces, {});
      ASSERT_EQ(shown.text, to_valid_utf8(bytes)) << escape(bytes);
      for (const std::string& part : shown.parts) ASSERT_EQ(to_valid_utf8(part), part);
    }
  }
}

TEST(TextStream, ShowsAWholeCharacterAtOnce) {
  TextStream stream({});
  EXPECT_EQ(stream.push("a\xf0\x9f"), "a");
  EXPECT_EQ(stream.push("\x99"), "");
  EXPECT_EQ(stream.push("\x82\xc3"), "\xf0\x9f\x99\x82");
  EXPECT_EQ(stream.push("x"), "\xef\xbf\xbdx");
  EXPECT_EQ(stream.finish(), "");
}

TEST(TextStream, HoldsBackWhatMayBecomeAStop) {
  TextStream stream({"stop"});
  EXPECT_EQ(stream.push("a st"), "a ");
  EXPECT_EQ(stream.push("o"), "");
  EXPECT_EQ(stream.push("re"), "store");
  EXPECT_EQ(stream.push("sto"), "");
  EXPECT_EQ(stream.finish(), "sto");
}

TEST(TextStream, ShowsNothingFromAStopOn) {
  TextStream stream({"ab"});
  EXPECT_EQ(stream.push("xaby"), "x");
  EXPECT_TRUE(stream.stopped());
  EXPECT_EQ(stream.push("more"), "");
  EXPECT_EQ(stream.finish(), "");
}

TEST(TextStream, FindsStopsWhereverTheyLieHoweverTheyAreCut) {
  struct Case {
    std::string bytes;
    Pieces stops;
    std::string text;
    bool stopped;
  };
  const std::vector<Case> cases{
      {"xxabyy", {"ab"}, "xx", true},
      {"aab", {"ab"}, "a", true},
      {"abab", {"ababab"}, "abab", false},
      {"aaab", {"aab"}, "a", true},
      {"ab", {"ab"}, "", true},                 // the whole text
      {"abcab", {"x", "cab", "b"}, "a", true},  // the one that is complete first
      {"abc", {"bc", "abc"}, "", true},         // complete at the same time: the longer
      {"abc", {"b", "abc"}, "a", true},         // complete earlier, though it begins later
      {"abcd", {"abcde"}, "abcd", false},
      {"xyz", {""}, "xyz", false},  // an empty stop is none
      {"\xc3\xbc"
       "b",
       {"\xc3\xbc"},
       "",
       true},
      {"a\xe2\x82\xac", {"\xe2\x82\xac"}, "a", true},
      {"\xe2\x82"
       "ab",
       {"ab"},
       "\xef\xbf\xbd",
       true},
      {"a\n\nb", {"\n\n"}, "a", true},
  };
  for (const Case& c : cases) {
    for (const Pieces& pieces : all_cuts(c.bytes)) {
      const Shown shown = stream(pieces, c.stops);
      ASSERT_EQ(shown.text, c.text) << escape(c.bytes) << " in " << pieces.size() << " pieces";
      ASSERT_EQ(shown.stopped, c.stopped) << escape(c.bytes);
    }
  }
}

TEST(TextStream, ReadsRandomBytesWithRandomStopsAsOneByOne) {
  const std::string alphabet = "ab\xc3\xbc\xe2\x82\xac";
  Random random(4);
  for (int i = 0; i < 30000; ++i) {
    const auto draw = [&](std::size_t length) {
      std::string bytes;
      while (bytes.size() < length) bytes += alphabet[random.below(alphabet.size())];
      return bytes;
    };
    Pieces pieces(1 + random.below(8));
    std::string bytes;
    for (std::string& piece : pieces) bytes += piece = draw(random.below(5));
    Pieces stops(random.below(4));
    for (std::string& stop : stops) stop = draw(random.below(5));
    const Shown shown = stream(pieces, stops);
    const Shown expected = reference(bytes, stops);
    ASSERT_EQ(shown.text, expected.text) << i << " " << escape(bytes);
    ASSERT_EQ(shown.stopped, expected.stopped) << i << " " << escape(bytes);
    for (const std::string& part : shown.parts) ASSERT_EQ(to_valid_utf8(part), part);
  }
}

}  // namespace
}  // namespace paceline::engine
