// Fixture files of users: what is read, and what the errors say.
#include <gmock/gmock.h>
#include <sys/stat.h>

#include <filesystem>
#include <format>
#include <fstream>
#include <utility>

#include "core/hash.hpp"
#include "support/temporary_folder.hpp"
#include "workload/fixture.hpp"

namespace paceline::workload {
namespace {

namespace fs = std::filesystem;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

class FixtureFile : public testing::Test {
 protected:
  std::string write(const std::string& name, std::string_view bytes) const {
    const fs::path path = folder_.path() / name;
    std::ofstream(path, std::ios::binary) << bytes;
    return path.string();
  }
  Result<Fixture> load(const std::string& name, std::string_view bytes) const {
    return load_fixture(write(name, bytes));
  }
  std::string path(const std::string& name) const { return (folder_.path() / name).string(); }

  /// The message of the error that these bytes give; the code is checked.
  std::string error(const std::string& name, std::string_view bytes,
                    ErrorCode code = ErrorCode::bad_format) const {
    const auto fixture = load(name, bytes);
    if (fixture) return "no error";
    EXPECT_EQ(fixture.error().code, code) << fixture.error().message;
    EXPECT_THAT(fixture.error().message, HasSubstr(name));
    return fixture.error().message;
  }

 private:
  test::TemporaryFolder folder_;
};

constexpr std::string_view k_user = R"({"messages":[{"role":"user","content":"Hello"}]})";

/// A request with one more member.
std::string with(std::string_view member) {
  return std::format(R"({{"messages":[{{"role":"user","content":"Hello"}}],{}}})", member);
}
std::string with_message(std::string_view message) {
  return std::format(R"({{"messages":[{}]}})", message);
}

TEST_F(FixtureFile, TextIsOneUserMessage) {
  const std::string bytes = "Tell me about\nrivers.\n\n";
  const auto fixture = load("my rivers.txt", bytes);
  ASSERT_TRUE(fixture) << fixture.error().message;
  EXPECT_EQ(fixture->id, "my rivers");
  EXPECT_EQ(fixture->content_class, ContentClass::custom);
  EXPECT_EQ(fixture->source, path("my rivers.txt"));
  EXPECT_EQ(fixture->sha256, sha256_hex(bytes));
  ASSERT_EQ(fixture->prompts.size(), 1U);
  EXPECT_EQ(fixture->prompts[0].id, "my rivers");
  ASSERT_EQ(fixture->prompts[0].messages.size(), 1U);
  EXPECT_EQ(fixture->prompts[0].messages[0].role, "user");
  EXPECT_EQ(fixture->prompts[0].messages[0].content, "Tell me about\nrivers.");
}

TEST_F(FixtureFile, TextMayHaveAByteOrderMarkAndWindowsLineEnds) {
  const auto fixture = load("a.md", "\xef\xbb\xbfone\r\ntwo\r\n");
  ASSERT_TRUE(fixture);
  EXPECT_EQ(fixture->prompts[0].messages[0].content, "one\ntwo");
}

TEST_F(FixtureFile, TextMustHaveText) {
  EXPECT_THAT(error("a.txt", ""), HasSubstr("is empty"));
  EXPECT_THAT(error("a.txt", "\xef\xbb\xbf"), HasSubstr("is empty"));
  EXPECT_THAT(error("a.txt", " \n\t\r\n"), HasSubstr("only white space"));
  EXPECT_THAT(error("a.json", ""), HasSubstr("is empty"));
  EXPECT_THAT(error("a.jsonl", "\n\n"), HasSubstr("only white space"));
}

TEST_F(FixtureFile, BytesThatAreNoTextAreRefusedWithTheirLine) {
  EXPECT_THAT(error("a.txt", std::string_view("one\ntwo\0three", 13)),
              AllOf(HasSubstr("line 2"), HasSubstr("NUL")));
  EXPECT_THAT(error("a.txt", "one\ntwo\nth\xffree"), AllOf(HasSubstr("line 3"), HasSubstr("0xff")));
  EXPECT_THAT(error("a.jsonl", "\n\n\xc3"), AllOf(HasSubstr("line 3"), HasSubstr("0xc3")));
  EXPECT_THAT(error("a.txt", std::string_view("\xff\xfeh\0i\0", 6)), HasSubstr("UTF-16"));
}

TEST_F(FixtureFile, AnExistingReplacementCharacterIsText) {
  EXPECT_TRUE(load("a.txt", "what is \xef\xbf\xbd?"));
}

TEST_F(FixtureFile, WrapperGivesIdModelsAndSettings) {
  const auto fixture = load("x.json", R"({
    "fixture_id": "mine-v2", "class": "code", "target_model": "a/b", "draft_model": "a/c",
    "request": {"messages": [{"role": "system", "content": "S"}, {"role": "user", "content": "U"}],
                "temperature": 0.5, "top_p": 0.9, "max_tokens": 12, "stream": true,
                "stop": ["\n\n", "END"], "response_format": {"type": "text"}},
    "canary": {"acceptance_criteria": "AC-1"}})");
  ASSERT_TRUE(fixture) << fixture.error().message;
  EXPECT_EQ(fixture->id, "mine-v2");
  EXPECT_EQ(fixture->content_class, ContentClass::code);
  EXPECT_EQ(fixture->target_model, "a/b");
  EXPECT_EQ(fixture->draft_model, "a/c");
  EXPECT_EQ(fixture->temperature, 0.5);
  EXPECT_EQ(fixture->top_p, 0.9);
  EXPECT_EQ(fixture->max_tokens, 12U);
  EXPECT_TRUE(fixture->stream);
  EXPECT_THAT(fixture->stop, ElementsAre("\n\n", "END"));
  EXPECT_EQ(fixture->prompts.at(0).id, "mine-v2");
  EXPECT_EQ(fixture->prompts.at(0).messages.size(), 2U);
}

TEST_F(FixtureFile, FlatBodyIsNamedAfterItsFile) {
  const auto fixture = load("flat.json", with(R"("model":"gpt","stop":"X","max_tokens":null)"));
  ASSERT_TRUE(fixture) << fixture.error().message;
  EXPECT_EQ(fixture->id, "flat");
  EXPECT_EQ(fixture->prompts.at(0).id, "flat");
  EXPECT_THAT(fixture->stop, ElementsAre("X"));
  EXPECT_FALSE(fixture->max_tokens);
  EXPECT_FALSE(fixture->target_model);
}

TEST_F(FixtureFile, RawPromptIsKeptAsItIs) {
  const auto fixture =
      load("raw.json", R"({"prompt": " def f(x):\n", "max_completion_tokens": 7})");
  ASSERT_TRUE(fixture) << fixture.error().message;
  EXPECT_EQ(fixture->prompts.at(0).raw_text, " def f(x):\n");
  EXPECT_THAT(fixture->prompts.at(0).messages, IsEmpty());
  EXPECT_EQ(fixture->max_tokens, 7U);
}

TEST_F(FixtureFile, ArraysAndLinesGiveOnePromptEach) {
  const auto array = load("many.json", std::format(R"([{}, {{"id":"b","prompt":"p"}}])", k_user));
  ASSERT_TRUE(array) << array.error().message;
  ASSERT_EQ(array->prompts.size(), 2U);
  EXPECT_EQ(array->prompts[0].id, "many-01");
  EXPECT_EQ(array->prompts[1].id, "b");

  const auto lines =
      load("many.jsonl", std::format("\xef\xbb\xbf\r\n{}\r\n\n{{\"prompt\":\"p\"}}", k_user));
  ASSERT_TRUE(lines) << lines.error().message;
  EXPECT_EQ(lines->id, "many");
  ASSERT_EQ(lines->prompts.size(), 2U);
  EXPECT_EQ(lines->prompts[1].id, "many-02");
}

TEST_F(FixtureFile, FilesWithoutExtensionAreReadByContent) {
  EXPECT_EQ(load("one", k_user)->prompts.at(0).messages.at(0).content, "Hello");
  EXPECT_EQ(load("lines", std::format("{0}\n{0}\n", k_user))->prompts.size(), 2U);
  EXPECT_EQ(load("text", "{not json")->prompts.at(0).messages.at(0).content, "{not json");
  EXPECT_EQ(load("list", "[1] is a footnote")->prompts.size(), 1U);
}

TEST_F(FixtureFile, TheNamesOfClassesComeBeforeFiles) {
  // A path with a slash is always a file, so that both can be reached.
  EXPECT_EQ(load_fixture(write("code", "a file"))->prompts.size(), 1U);
  EXPECT_EQ(load_fixture("code")->source, "built-in");
}

TEST_F(FixtureFile, MissingFilesAndFolders) {
  EXPECT_EQ(load_fixture(path("none.json")).error().code, ErrorCode::not_found);
  EXPECT_THAT(load_fixture(path(".")).error().message, HasSubstr("folder"));
  EXPECT_EQ(load_fixture(std::string_view("a\0b", 3)).error().code, ErrorCode::invalid_argument);
  EXPECT_EQ(load_fixture(std::string(5000, 'x')).error().code, ErrorCode::not_found);
}

TEST_F(FixtureFile, FilesOver16MiBAreRefused) {
  EXPECT_THAT(error("big.txt", std::string((16U << 20U) + 1, 'x')), HasSubstr("16777216"));
  EXPECT_TRUE(load("fits.txt", std::string(16U << 20U, 'x')));
}

TEST_F(FixtureFile, MessagesOfErrorsSayWhere) {
  EXPECT_THAT(error("a.jsonl", std::format("{}\n\n{{\"messages\":[]}}", k_user)),
              AllOf(HasSubstr("line 3"), HasSubstr("messages"), HasSubstr("empty")));
  EXPECT_THAT(error("a.json", std::format("[{},{}]", k_user, with(R"("temperature":"hot")"))),
              AllOf(HasSubstr("[1].temperature"), HasSubstr("from 0 to 2"), HasSubstr("\"hot\"")));
  EXPECT_THAT(error("a.json", R"({"fixture_id":"a","request":{"messages":[{"role":"bot"}]}})"),
              AllOf(HasSubstr("request.messages[0].role"), HasSubstr("\"assistant\""),
                    HasSubstr("\"bot\"")));
}

TEST_F(FixtureFile, MessagesAreChecked) {
  const auto refuse = [&](std::string_view message, std::string_view why,
                          ErrorCode code = ErrorCode::bad_format) {
    EXPECT_THAT(error("a.json", with_message(message), code), HasSubstr(std::string(why)));
  };
  refuse(R"("Hello")", "an object with role and content");
  refuse(R"({"content":"x"})", "\"role\" is missing");
  refuse(R"({"role":"tool","content":"x"})", "\"tool\"");
  refuse(R"({"role":5,"content":"x"})", "found 5");
  refuse(R"({"role":"user"})", "\"content\" is missing");
  refuse(R"({"role":"user","content":null})", "\"content\" is missing");
  refuse(R"({"role":"user","content":7})", "a string is wanted, found 7");
  refuse(R"({"role":"user","content":" \n"})", "empty");
  refuse(R"({"role":"user","content":"a\u0000b"})", "NUL");
  refuse(R"({"role":"user","content":[{"type":"image_url"}]})", "images", ErrorCode::unsupported);
  refuse(R"({"role":"user","content":"a"},{"role":"assistant","content":"b"})",
         "the last message must be the user's");
  refuse(R"({"role":"assistant","content":"a","tool_calls":[{"id":"1"}]},)"
         R"({"role":"user","content":"b"})",
         "tools", ErrorCode::unsupported);
}

TEST_F(FixtureFile, ShapesAreChecked) {
  EXPECT_THAT(error("a.json", "5"), HasSubstr("an object with messages or a prompt is wanted"));
  EXPECT_THAT(error("a.json", "[]"), HasSubstr("the array is empty"));
  EXPECT_THAT(error("a.json", "[\"p\"]"), HasSubstr("[0]"));
  EXPECT_THAT(error("a.json", "{}"), HasSubstr("\"messages\" and \"prompt\""));
  EXPECT_THAT(error("a.json", with(R"("prompt":"x")")), HasSubstr("only one"));
  EXPECT_THAT(error("a.json", R"({"prompt":["a"]})"), HasSubstr("found array"));
  EXPECT_THAT(error("a.json", R"({"messages":"x"})"), HasSubstr("an array of messages"));
  EXPECT_THAT(error("a.json", R"({"fixture_id":"a"})"), HasSubstr("\"request\" is missing"));
  EXPECT_THAT(error("a.json", R"({"request":[]})"), HasSubstr("found array"));
  EXPECT_THAT(error("a.json", R"([{"role":"user","content":"x"}])"), HasSubstr("wrap it"));
  EXPECT_THAT(error("a.json", std::format("{0}\n{0}", k_user)), HasSubstr(".jsonl"));
  EXPECT_THAT(error("a.jsonl", "{\"prompt\":\"x\"}\n{\"prompt\":"), HasSubstr("line 2"));
}

TEST_F(FixtureFile, SettingsAreChecked) {
  const auto refuse = [&](std::string_view member, std::string_view why) {
    EXPECT_THAT(error("a.json", with(member)), HasSubstr(std::string(why)));
  };
  refuse(R"("temperature":-0.1)", "temperature: a number from 0 to 2 is wanted, found -0.1");
  refuse(R"("temperature":2.5)", "found 2.5");
  refuse(R"("temperature":true)", "found true");
  refuse(R"("temperature":1e999)", "1e999");
  refuse(R"("top_p":0)", "top_p");
  refuse(R"("top_p":1.01)", "top_p");
  refuse(R"("max_tokens":0)", "max_tokens: an integer from 1");
  refuse(R"("max_tokens":-4)", "found -4");
  refuse(R"("max_tokens":2.5)", "found 2.5");
  refuse(R"("max_tokens":"9")", "found \"9\"");
  refuse(R"("max_tokens":18446744073709551615)", "found 18446744073709551615");
  refuse(R"("max_tokens":9,"max_completion_tokens":9)", "given as well");
  refuse(R"("stream":1)", "true or false");
  refuse(R"("stop":5)", "found 5");
  refuse(R"("stop":[""])", "stop[0]");
  refuse(R"("stop":["a",null])", "stop[1]");
  refuse(R"("stop":["1","2","3","4","5","6","7","8","9","a","b","c","d","e","f","g","h"])", "17");
  refuse(R"("id":5)", "id: a string");
  refuse(R"("id":" ")", "empty");
  refuse(R"("id":"a\nb")", "one line");
  refuse(R"("class":"poetry")", "multilingual");
  refuse(R"("target_model":{})", "target_model");
  EXPECT_THAT(error("a.json", with(std::format(R"("id":"{}")", std::string(201, 'x')))),
              HasSubstr("found 201"));
}

TEST_F(FixtureFile, MembersThatChangeTheOutputAreRefusedUnlessNeutral) {
  for (const char* const member :
       {R"("frequency_penalty":0.5)", R"("n":2)", R"("logprobs":true)", R"("top_k":40)",
        R"("tools":[{"type":"function"}])", R"("logit_bias":{"5":1})", R"("min_p":0.1)",
        R"("response_format":{"type":"json_object"})", R"("tool_choice":{"type":"function"})"}) {
    EXPECT_THAT(error("a.json", with(member), ErrorCode::unsupported), HasSubstr("fixtures"))
        << member;
  }
  for (const char* const member :
       {R"("frequency_penalty":0.0)", R"("n":1)", R"("logprobs":null)", R"("logprobs":false)",
        R"("tools":[])", R"("logit_bias":{})", R"("tool_choice":"none")", R"("top_k":0)",
        R"("response_format":{"type":"text"})", R"("repetition_penalty":1.0)",
        R"("modalities":["text"])", R"("functions":[])", R"("suffix":"")", R"("audio":null)"}) {
    const auto fixture = load("a.json", with(member));
    EXPECT_TRUE(fixture) << member << ": " << fixture.error().message;
  }
}

TEST_F(FixtureFile, MembersWithoutEffectAreNamedInTheLog) {
  testing::internal::CaptureStderr();
  ASSERT_TRUE(load("a.jsonl", with(R"("task_id":7,"entry_point":"f","seed":3)")));
  EXPECT_THAT(testing::internal::GetCapturedStderr(),
              HasSubstr("members without effect: entry_point, seed, task_id"));
}

TEST_F(FixtureFile, IdsMayNotRepeat) {
  EXPECT_THAT(error("a.jsonl", R"({"id":"x","prompt":"1"}
{"id":"y","prompt":"2"}
{"id":"x","prompt":"3"})"),
              AllOf(HasSubstr("line 3"), HasSubstr("\"x\""), HasSubstr("request 1")));
  // An id that looks like one of ours does not collide.
  const auto fixture = load("a.jsonl", "{\"id\":\"a-02\",\"prompt\":\"1\"}\n{\"prompt\":\"2\"}");
  ASSERT_TRUE(fixture);
  EXPECT_NE(fixture->prompts[0].id, fixture->prompts[1].id);
}

TEST_F(FixtureFile, RequestsOfOneFileShareTheirSettings) {
  const auto refuse = [&](std::string_view member) {
    EXPECT_THAT(error("a.jsonl", std::format("{}\n{}", k_user, with(member))),
                AllOf(HasSubstr("line 2"), HasSubstr("same as in the first")));
  };
  refuse(R"("temperature":1)");
  refuse(R"("top_p":0.5)");
  refuse(R"("max_tokens":5)");
  refuse(R"("stream":true)");
  refuse(R"("stop":"x")");
  refuse(R"("class":"code")");
  refuse(R"("target_model":"m")");
  refuse(R"("draft_model":"m")");
}

TEST_F(FixtureFile, DeepNestingIsAnErrorAndNoCrash) {
  const std::string deep(200'000, '[');
  const std::string closed = deep + std::string(deep.size(), ']');
  for (const std::string& text : {deep, closed, with(R"("response_format":)" + closed),
                                  with(R"("tools":[)" + closed + "]")}) {
    EXPECT_THAT(error("a.json", text), HasSubstr("nested deeper than 512 levels"));
  }
  const std::string allowed = std::string(500, '[') + std::string(500, ']');
  EXPECT_THAT(error("a.json", allowed), HasSubstr("found array"));
  EXPECT_THAT(error("a.json", with(R"("tools":[)" + allowed + "]"), ErrorCode::unsupported),
              HasSubstr("tools"));
}

TEST_F(FixtureFile, MessagesOfErrorsStayShort) {
  const std::string long_text(100'000, 'x');
  EXPECT_LT(error("a.json", "{\"" + long_text).size(), 1000U);
  EXPECT_LT(error("a.json", with("\"stream\":\"" + long_text + "\"")).size(), 1000U);
}

TEST_F(FixtureFile, IsQuotedOnceInMessages) {
  for (const auto& [name, bytes] : {std::pair("a.jsonl", "{\"prompt\": \"x\"}\nnot json\n"),
                                    std::pair("b.json", "{\"prompt\": \"x\" \"y\"}"),
                                    std::pair("c.jsonl", "{\"prompt\": 2}\n")}) {
    EXPECT_THAT(error(name, bytes),
                AllOf(HasSubstr(std::format("{}\"", name)), Not(HasSubstr("\\"))));
  }
}

TEST_F(FixtureFile, ThatIsNoFileIsNamedWithoutWaiting) {
  ASSERT_EQ(::mkfifo(path("pipe").c_str(), 0600), 0);
  const auto pipe = load_fixture(path("pipe"));
  ASSERT_FALSE(pipe);
  EXPECT_THAT(pipe.error().message, HasSubstr("is a pipe, a regular file is wanted"));
}

}  // namespace
}  // namespace paceline::workload
