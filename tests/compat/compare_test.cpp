// Every component of two models that may differ: how much it weighs, and what is said.
#include "compat/compare.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <set>

#include "core/json.hpp"
#include "runtime/toy/toy.hpp"
#include "support/matchers.hpp"

namespace paceline::test {
namespace {

using compat::Candidate;
using compat::compare;
using compat::Difference;
using compat::Probe;
using compat::Severity;
using compat::TokenTable;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

TokenTable table() {
  TokenTable table;
  table.tokenizer = "gpt2";
  table.pre_tokenizer = "smollm";
  table.texts = {"<unk>", "<s>", "</s>", "a", "b", "ab", "<0x0A>", "[PAD7]"};
  table.kinds = {2, 3, 3, 1, 1, 1, 6, 5};
  table.scores = {0, 0, 0, -1, -2, -3, -4, -5};
  table.merges = {"a b", "b a"};
  table.special_ids = {{"bos", 1}, {"eos", 2}, {"padding", 7}, {"fim_pre", 0}};
  table.flags = {{"add_bos_token", true}};
  return table;
}

Probe equal_probe() {
  Probe probe;
  for (std::size_t i = 0; i < compat::probe_texts().size(); ++i) {
    const auto id = static_cast<std::int32_t>(i);
    probe.plain.push_back(i == 0 ? std::vector<std::int32_t>{} : std::vector<std::int32_t>{id});
    probe.special.push_back(*probe.plain.back());
    probe.special.back()->insert(probe.special.back()->begin(), 1);
  }
  probe.ends = {2};
  probe.tokens = 8;
  return probe;
}

Candidate candidate(const std::function<void(TokenTable&)>& change = {}) {
  Candidate candidate;
  candidate.architecture = "llama";
  candidate.parameters = 1000;
  candidate.trained_context = 2048;
  candidate.chat_template = "{{ messages }}";
  TokenTable tokens = table();
  if (change) change(tokens);
  tokens.storage = std::make_shared<int>();  // no two are the same table
  candidate.tokens = std::make_shared<const TokenTable>(std::move(tokens));
  candidate.probe = equal_probe();
  return candidate;
}

Candidate draft(const std::function<void(TokenTable&)>& change = {}) {
  Candidate small = candidate(change);
  small.parameters = 100;
  return small;
}

/// The only difference of a draft that was changed so; an empty one where there are others.
Difference only(const Candidate& other) {
  const auto list = compare(candidate(), other);
  std::string seen;
  for (const Difference& d : list) seen += d.component + ": " + d.message + "\n";
  EXPECT_EQ(list.size(), 1U) << seen;
  return list.size() == 1 ? list.front() : Difference{};
}

Difference only(const std::function<void(TokenTable&)>& change) { return only(draft(change)); }

TEST(Compare, FindsNothingBetweenEqualModels) {
  EXPECT_THAT(compare(candidate(), draft()), IsEmpty());
}

// A1
TEST(Compare, NamesTheFirstOtherTokenWithBothTextsAndTheirNumber) {
  const Difference d = only([](TokenTable& t) {
    t.texts[4] = "x\ny";
    t.texts[5] = "z";
  });
  EXPECT_EQ(d.component, "token_texts");
  EXPECT_EQ(d.severity, Severity::hard);
  EXPECT_EQ(d.word, "draft_model_tokenizer_mismatch");
  EXPECT_THAT(d.message,
              HasSubstr(R"(token 4 is "b" in the target and "x\ny" in the draft; 2 of 8)"));
  EXPECT_THAT(d.advice, HasSubstr("--lookup"));
  ASSERT_TRUE(d.token);
  EXPECT_EQ(d.token->id, 4U);
  EXPECT_EQ(d.token->target_text, "b");
  EXPECT_EQ(d.token->draft_text, "x\ny");
  EXPECT_EQ(d.count, 2U);
}

TEST(Compare, TakesTheTwoSpellingsOfASpaceForOne) {
  const Candidate target = candidate([](TokenTable& t) { t.texts[5] = "\u2581\u2581b"; });
  EXPECT_THAT(compare(target, draft([](TokenTable& t) { t.texts[5] = "  b"; })), IsEmpty());
  EXPECT_THAT(compare(target, draft([](TokenTable& t) { t.texts[5] = " b"; })), Not(IsEmpty()));
}

// A4: 151 936 and 152 064 rows of one family.
TEST(Compare, AllowsPaddingUpToTheLimitAndReportsIt) {
  const auto pad = [](std::size_t rows) {
    return [rows](TokenTable& t) {
      t.texts.insert(t.texts.end(), rows, "[PAD9]");
      t.kinds.insert(t.kinds.end(), rows, 5);
      t.scores.insert(t.scores.end(), rows, 0);
    };
  };
  const Difference allowed = only(pad(128));
  EXPECT_EQ(allowed.component, "vocabulary_size");
  EXPECT_EQ(allowed.severity, Severity::cosmetic);
  EXPECT_THAT(allowed.message,
              HasSubstr("the target has 8 tokens, the draft 136; 0 of the 128 rows more are used"));
  EXPECT_EQ(only(pad(129)).severity, Severity::hard);
  const auto other_side = compare(candidate(pad(64)), draft());
  EXPECT_THAT(other_side, ElementsAre(testing::Field(&Difference::severity, Severity::cosmetic)));
}

TEST(Compare, TellsTokensThatTheOtherDoesNotHaveFromPadding) {
  const Difference more = only([](TokenTable& t) {
    t.texts.emplace_back("new");
    t.kinds.push_back(1);
    t.scores.push_back(0);
  });
  EXPECT_EQ(more.severity, Severity::soft);
  EXPECT_THAT(more.advice, HasSubstr("thrown away"));
  const Difference inside = only([](TokenTable& t) {
    t.texts[7] = "used";
    t.kinds[7] = 1;
  });
  EXPECT_EQ(inside.component, "unused_tokens");
  EXPECT_EQ(inside.severity, Severity::soft);
  EXPECT_THAT(inside.message, HasSubstr("1 of the draft's tokens are padding in the target"));
}

TEST(Compare, CountsManyTokensThatOneSideDoesNotUseAsHard) {
  const auto many = [](std::string_view text, std::int32_t kind) {
    return [=](TokenTable& t) {
      t.texts.insert(t.texts.end(), 129, text);
      t.kinds.insert(t.kinds.end(), 129, kind);
      t.scores.insert(t.scores.end(), 129, 0);
    };
  };
  const auto list = compare(candidate(many("word", 1)), draft(many("[PAD1]", 5)));
  ASSERT_THAT(list, testing::SizeIs(1));
  EXPECT_EQ(list[0].component, "unused_tokens");
  EXPECT_EQ(list[0].severity, Severity::hard);
}

TEST(Compare, WeighsTokenTypes) {
  const Difference control = only([](TokenTable& t) { t.kinds[3] = 3; });
  EXPECT_EQ(control.component, "token_types");
  EXPECT_EQ(control.severity, Severity::soft);
  EXPECT_THAT(control.message, HasSubstr("normal in the target and control in the draft"));
  EXPECT_EQ(only([](TokenTable& t) { t.kinds[6] = 1; }).severity, Severity::hard);
}

TEST(Compare, LeavesSegmentationToTheProbe) {
  const std::vector<std::pair<std::function<void(TokenTable&)>, std::string>> changes = {
      {[](TokenTable& t) { t.pre_tokenizer = "qwen2"; }, "pre_tokenizer"},
      {[](TokenTable& t) { t.scores[4] = -9; }, "scores"},
      {[](TokenTable& t) { t.merges[1] = "b b"; }, "merges"},
      {[](TokenTable& t) { t.merges.pop_back(); }, "merges"},
  };
  for (const auto& [change, component] : changes) {
    const Difference d = only(change);
    EXPECT_EQ(d.component, component);
    EXPECT_EQ(d.severity, Severity::soft);
    Candidate other = draft(change);
    (*other.probe->plain[3])[0] = 77;
    const auto list = compare(candidate(), other);
    ASSERT_EQ(list.size(), 2U);
    EXPECT_EQ(list[0].component, "probe");
    EXPECT_EQ(list[0].severity, Severity::hard);
    EXPECT_THAT(list[0].message, HasSubstr("\"request\": 3 in the target and 77 in the draft"));
  }
}

TEST(Compare, RefusesAnotherKindOfTokenizer) {
  const Difference d = only([](TokenTable& t) { t.tokenizer = "llama"; });
  EXPECT_EQ(d.component, "tokenizer_type");
  EXPECT_EQ(d.severity, Severity::hard);
}

TEST(Compare, WeighsSpecialIdsByTheirUse) {
  EXPECT_EQ(only([](TokenTable& t) { t.special_ids["eos"] = 3; }).severity, Severity::soft);
  EXPECT_EQ(only([](TokenTable& t) { t.special_ids["bos"] = 3; }).severity, Severity::soft);
  EXPECT_EQ(only([](TokenTable& t) { t.special_ids["padding"] = 3; }).severity, Severity::cosmetic);
  EXPECT_EQ(only([](TokenTable& t) { t.special_ids.erase("fim_pre"); }).severity,
            Severity::cosmetic);
  EXPECT_THAT(only([](TokenTable& t) { t.special_ids["eos"] = 99; }).message,
              HasSubstr("2 (\"</s>\") in the target and 99 (no such token)"));
  // A begin-of-text that neither adds has no use.
  const auto never = [](TokenTable& t) { t.flags["add_bos_token"] = false; };
  const auto list = compare(candidate(never), draft([&](TokenTable& t) {
                              never(t);
                              t.special_ids["bos"] = 3;
                            }));
  EXPECT_THAT(list, ElementsAre(testing::Field(&Difference::severity, Severity::cosmetic)));
}

// A6: the draft adds a begin of text, the target does not.
TEST(Compare, NamesFlagsAndWhatTheyAdd) {
  Candidate other = draft([](TokenTable& t) { t.flags["add_bos_token"] = false; });
  other.probe->special = other.probe->plain;
  const auto list = compare(candidate(), other);
  ASSERT_EQ(list.size(), 2U);
  EXPECT_EQ(list[0].component, "add_bos_token");
  EXPECT_THAT(list[0].message, HasSubstr("true in the target and false in the draft"));
  EXPECT_THAT(list[0].advice, HasSubstr("tokenises once, with the target"));
  EXPECT_EQ(list[1].component, "added_tokens");
  EXPECT_THAT(list[1].message, HasSubstr("adds 1 to a text, the draft's nothing"));
  EXPECT_EQ(compat::first_hard(list), nullptr);
  EXPECT_EQ(only([](TokenTable& t) { t.flags.clear(); }).severity, Severity::cosmetic);
}

TEST(Compare, RefusesOtherEndsOfText) {
  Candidate other = draft();
  other.probe->ends = {2, 5};
  const Difference d = only(other);
  EXPECT_EQ(d.severity, Severity::hard);
  EXPECT_THAT(d.message, HasSubstr("token 5 (\"ab\") ends the text in the draft only"));
}

TEST(Compare, FindsTextsThatOnlyTokeniseApartWithSpecialTokens) {
  Candidate other = draft();
  other.probe->special[4]->push_back(5);
  const Difference d = only(other);
  EXPECT_EQ(d.component, "probe");
  EXPECT_THAT(d.message, HasSubstr("\"end-of-text\": 1 4 in the target and 1 4 5 in the draft"));
  other = draft();
  other.probe->plain[2] = std::nullopt;
  EXPECT_THAT(only(other).message, HasSubstr("an error in the draft"));
}

// A13, A14, C4
TEST(Compare, RefusesModelsThatCannotGoBack) {
  Candidate other = draft();
  other.architecture = "mamba";
  other.recurrent = true;
  auto list = compare(candidate(), other);
  ASSERT_FALSE(list.empty());
  EXPECT_EQ(list[0].word, "draft_model_no_rollback");
  EXPECT_THAT(list[0].message, HasSubstr("\"mamba\""));
  list = compat::check_alone(other, false);
  ASSERT_EQ(list.size(), 1U);
  EXPECT_EQ(list[0].word, "target_no_rollback");
  EXPECT_THAT(list[0].advice, HasSubstr("plainly"));
  // libllama knows better than the file's keys.
  Candidate hybrid = draft();
  hybrid.probe->recurrent = true;
  EXPECT_EQ(only(hybrid).word, "draft_model_no_rollback");
}

// C8, A16, B21 and what has no effect
TEST(Compare, ListsWhatElseDiffers) {
  const auto change = [](const std::function<void(Candidate&)>& apply) {
    Candidate other = draft();
    apply(other);
    return only(other);
  };
  EXPECT_EQ(change([](Candidate& c) { c.architecture = "qwen2"; }).severity, Severity::cosmetic);
  const Difference context = change([](Candidate& c) { c.trained_context = 512; });
  EXPECT_EQ(context.severity, Severity::soft);
  EXPECT_THAT(context.advice, HasSubstr("drafting ends 512 tokens into a text"));
  EXPECT_EQ(change([](Candidate& c) { c.trained_context = 9999; }).severity, Severity::cosmetic);
  EXPECT_EQ(change([](Candidate& c) { c.sliding_window = 64; }).component, "sliding_window");
  const Difference chat = change([](Candidate& c) { c.chat_template.clear(); });
  EXPECT_EQ(chat.component, "chat_template");
  EXPECT_EQ(chat.severity, Severity::soft);
  EXPECT_THAT(chat.message, HasSubstr("and none"));
  const Difference size = change([](Candidate& c) { c.parameters = 1500; });
  EXPECT_EQ(size.component, "size");
  EXPECT_THAT(size.message, HasSubstr("1.50 times"));
  Candidate target = candidate();
  Candidate other = draft();
  target.kv_type_k = target.kv_type_v = other.kv_type_k = "f16";
  other.kv_type_v = "q4_0";
  EXPECT_THAT(compare(target, other),
              ElementsAre(testing::Field(&Difference::component, "kv_types")));
}

TEST(Compare, PutsHardDifferencesFirst) {
  Candidate other = draft([](TokenTable& t) {
    t.texts[3] = "?";
    t.merges.clear();
  });
  other.architecture = "other";
  const auto list = compare(candidate(), other);
  ASSERT_EQ(list.size(), 3U);
  EXPECT_EQ(list[0].severity, Severity::hard);
  EXPECT_EQ(list[1].severity, Severity::soft);
  EXPECT_EQ(list[2].severity, Severity::cosmetic);
  EXPECT_EQ(compat::first_hard(list), &list[0]);
}

TEST(Compare, DoesNotCompareFilesWithOpenVocabularies) {
  const auto toy = runtime::make_toy_model({});
  const auto list = compare(candidate(), compat::describe_open_model(*toy, "toy:0"));
  ASSERT_NE(compat::first_hard(list), nullptr);
  EXPECT_THAT(compat::first_hard(list)->message, HasSubstr("spelled differently"));
}

TEST(Probe, OfAToyGoesThroughJsonUnchanged) {
  const auto toy = runtime::make_toy_model({.seed = 3});
  const Probe probe = compat::probe(toy->vocabulary());
  EXPECT_EQ(probe.plain.size(), compat::probe_texts().size());
  EXPECT_EQ(probe.tokens, toy->vocabulary().size());
  EXPECT_FALSE(probe.ends.empty());
  const Probe back = value_of(compat::probe_from_json(compat::to_json(probe)));
  EXPECT_EQ(back.plain, probe.plain);
  EXPECT_EQ(back.special, probe.special);
  EXPECT_EQ(back.ends, probe.ends);
  EXPECT_EQ(back.tokens, probe.tokens);
}

TEST(Probe, HasTheTextsThatTokenizersPartAt) {
  std::set<std::string_view> names;
  for (const auto& text : compat::probe_texts()) names.insert(text.name);
  for (const char* name : {"empty", "emoji", "crlf", "code", "digits", "cjk", "turns", "json"}) {
    EXPECT_TRUE(names.contains(name)) << name;
  }
}

}  // namespace
}  // namespace paceline::test
