// Damaged fixture files: bytes flipped, cut, doubled and swapped in valid ones. Whatever comes, the
// parser returns a fixture that keeps its promises, or an error with a message.
#include <gtest/gtest.h>

#include <set>

#include "core/log.hpp"
#include "core/random.hpp"
#include "workload/fixture.hpp"

namespace paceline::workload {
namespace {

struct Seed {
  FileKind kind;
  std::string bytes;
};

std::vector<Seed> seeds() {
  return {
      {FileKind::text, "\xef\xbb\xbfWhat is \xe2\x82\xac 5?\r\nThanks\r\n"},
      {FileKind::json,
       R"({"fixture_id":"f-1","class":"code","target_model":"a/b","draft_model":"a/c","request":)"
       R"({"messages":[{"role":"system","content":"S"},{"role":"user","content":"na\u00efve \"x\""}],)"
       R"("temperature":0.5,"top_p":0.9,"max_tokens":12,"stream":true,"stop":["\n","END"],)"
       R"("response_format":{"type":"text"},"n":1},"canary":{"a":[1,{"b":null}]}})"},
      {FileKind::json,
       R"([{"prompt":"one","id":"1"},{"messages":[{"role":"user","content":"two"}],"stop":null}])"},
      {FileKind::jsonl,
       "{\"id\":\"a\",\"messages\":[{\"role\":\"user\",\"content\":\"\xe6\x97\xa5\xe6\x9c\xac\"}]}"
       "\n"
       "\r\n{\"id\":\"b\",\"prompt\":\"raw \\ud83d\\ude00\"}\n{\"prompt\":\"c\",\"tools\":[]}\n"},
  };
}

void mutate(std::string& bytes, Random& random) {
  constexpr std::string_view k_special = "{}[]\",:\\0-1eE.\n\r\t ntf\xff\xc3\xed";
  if (bytes.empty()) return;
  const std::size_t at = random.below(bytes.size());
  const std::size_t length = 1 + random.below(std::min<std::size_t>(bytes.size() - at, 24));
  switch (random.below(6)) {
    case 0:
      bytes[at] = static_cast<char>(random.below(256));
      break;
    case 1:
      bytes[at] = k_special[random.below(k_special.size())];
      break;
    case 2:
      bytes.erase(at, length);
      break;
    case 3:
      bytes.insert(random.below(bytes.size()), bytes.substr(at, length));
      break;
    case 4:
      bytes.resize(at);
      break;
    default:
      bytes.insert(at, 1, k_special[random.below(k_special.size())]);
  }
}

void expect_sound(const Fixture& fixture) {
  ASSERT_FALSE(fixture.prompts.empty());
  std::set<std::string> ids;
  for (const Prompt& prompt : fixture.prompts) {
    EXPECT_TRUE(ids.insert(prompt.id).second);
    EXPECT_NE(prompt.messages.empty(), prompt.raw_text.empty());
    if (!prompt.messages.empty()) {
      EXPECT_EQ(prompt.messages.back().role, "user");
    }
  }
  EXPECT_TRUE(fixture.temperature >= 0 && fixture.temperature <= 2);
  EXPECT_TRUE(fixture.top_p > 0 && fixture.top_p <= 1);
  EXPECT_GE(fixture.max_tokens.value_or(1), 1U);
}

TEST(FixtureMutation, DamagedFilesGiveAFixtureOrAnError) {
  constexpr int k_iterations = 20'000;
  set_log_level(LogLevel::error);
  Random random(20'260);
  std::size_t parsed = 0;
  const std::vector<Seed> all = seeds();
  for (int i = 0; i < k_iterations; ++i) {
    const Seed& seed = all[random.below(all.size())];
    std::string bytes = seed.bytes;
    for (std::size_t count = 1 + random.below(4); count > 0; --count) mutate(bytes, random);
    const auto kind = random.below(8) == 0 ? file_kind("noextension", bytes) : seed.kind;
    const auto fixture = parse_fixture(bytes, {.kind = kind, .source = "m", .id = "m"});
    if (fixture) {
      ++parsed;
      expect_sound(*fixture);
    } else {
      ASSERT_FALSE(fixture.error().message.empty());
      ASSERT_LT(fixture.error().message.size(), 2000U);
    }
    ASSERT_FALSE(HasFatalFailure() || HasNonfatalFailure()) << "iteration " << i << ": " << bytes;
  }
  set_log_level(LogLevel::info);
  // Both outcomes have to be common, else the mutations test nothing.
  EXPECT_GT(parsed, std::size_t{k_iterations / 20});
  EXPECT_LT(parsed, std::size_t{k_iterations * 19 / 20});
}

}  // namespace
}  // namespace paceline::workload
