#include "runtime/toy/toy.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <format>
#include <string>
#include <tuple>
#include <vector>

#include "core/random.hpp"
#include "support/matchers.hpp"

namespace paceline::runtime {
namespace {

using test::FailsWith;
using test::IsOk;
using test::value_of;
using testing::ElementsAre;
using testing::HasSubstr;

std::unique_ptr<Runtime> make_runtime(std::string_view name, const RuntimeLimits& limits) {
  return value_of(make_toy_model(value_of(parse_toy_name(name)))->create_runtime(limits));
}

const RuntimeLimits k_limits{
    .sequences = 3, .context = 200, .rows = 64, .leaves = 16, .features = true};
constexpr Wants k_everything = Wants::argmax | Wants::logits | Wants::feature;

std::vector<Token> random_text(std::size_t length, std::uint64_t seed, std::size_t vocabulary) {
  Random random(seed);
  std::vector<Token> text(length);
  for (Token& token : text) token = to_token(random.below(vocabulary));
  return text;
}

std::vector<float> copy(std::span<const float> values) { return {values.begin(), values.end()}; }

/// Commits a text in chunks and gives the logits after it.
std::vector<float> put_through(Runtime& runtime, SequenceId sequence, std::span<const Token> text,
                               std::size_t chunk) {
  std::vector<float> logits;
  for (std::size_t at = 0; at < text.size(); at += chunk) {
    std::vector<Row> rows;
    std::vector<std::int32_t> path;
    for (const Token token : text.subspan(at, std::min(chunk, text.size() - at))) {
      const auto index = static_cast<std::int32_t>(rows.size());
      rows.push_back({sequence, token, index - 1, Wants::logits});
      path.push_back(index);
    }
    EXPECT_THAT(runtime.forward(rows, {}), IsOk());
    logits = copy(runtime.logits(rows.size() - 1));
    EXPECT_THAT(runtime.accept(sequence, path), IsOk());
  }
  return logits;
}

TEST(ToyRuntime, GivesEqualBitsForEveryChunking) {
  const auto text = random_text(50, 1, 64);
  std::vector<float> expected;
  for (std::size_t chunk = 1; chunk <= 50; ++chunk) {
    const auto runtime = make_runtime("toy:5,vocab=64", k_limits);
    const auto logits = put_through(*runtime, value_of(runtime->create_sequence()), text, chunk);
    if (expected.empty()) expected = logits;
    ASSERT_EQ(logits, expected) << chunk;
  }
}

TEST(ToyRuntime, GivesEqualBitsInTrees) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    Random random(seed);
    const auto runtime = make_runtime("toy:5,vocab=64", k_limits);
    const SequenceId tree = value_of(runtime->create_sequence());
    const SequenceId single = value_of(runtime->create_sequence());
    const auto prompt = random_text(10, seed, 64);
    put_through(*runtime, tree, prompt, 10);
    std::vector<Row> rows;
    std::vector<std::vector<Token>> contexts;
    for (std::size_t i = 0; i < 12; ++i) {
      const auto parent = static_cast<std::int32_t>(random.below(rows.size() + 1)) - 1;
      std::vector<Token> context = parent < 0 ? prompt : contexts[static_cast<std::size_t>(parent)];
      rows.push_back({tree, to_token(random.below(64)), parent, k_everything});
      context.push_back(rows.back().token);
      contexts.push_back(context);
    }
    ASSERT_THAT(runtime->forward(rows, {}), IsOk());
    std::vector<std::vector<float>> logits;
    for (std::size_t i = 0; i < rows.size(); ++i) logits.push_back(copy(runtime->logits(i)));
    for (std::size_t i = 0; i < rows.size(); ++i) {
      ASSERT_THAT(runtime->truncate(single, 0), IsOk());
      ASSERT_EQ(put_through(*runtime, single, contexts[i], 64), logits[i]) << seed << " " << i;
    }
  }
}

TEST(ToyRuntime, ChangesItsLogitsWithEveryTokenOfTheContext) {
  const auto text = random_text(30, 2, 64);
  const auto runtime = make_runtime("toy:5,vocab=64", k_limits);
  const SequenceId sequence = value_of(runtime->create_sequence());
  const auto expected = put_through(*runtime, sequence, text, 64);
  for (std::size_t i = 0; i < text.size(); ++i) {
    auto other = text;
    other[i] = to_token((to_index(other[i]) + 1) % 64);
    ASSERT_THAT(runtime->truncate(sequence, 0), IsOk());
    EXPECT_NE(put_through(*runtime, sequence, other, 64), expected) << i;
  }
  ASSERT_THAT(runtime->truncate(sequence, 0), IsOk());
  EXPECT_NE(put_through(*runtime, sequence, std::span(text).first(29), 64), expected);
}

TEST(ToyRuntime, GivesTheLowestLargestLogitAsArgmaxForEverySpike) {
  for (const char* name : {"toy:3,vocab=40,spike=0", "toy:3,vocab=40,spike=0.5",
                           "toy:3,vocab=40,spike=1", "toy:3,vocab=40,spike=4"}) {
    const auto runtime = make_runtime(name, k_limits);
    const SequenceId sequence = value_of(runtime->create_sequence());
    for (int i = 0; i < 500; ++i) {
      const Row row{sequence, to_token(static_cast<std::size_t>(i) % 40), k_committed_end,
                    Wants::argmax | Wants::logits};
      ASSERT_THAT(runtime->forward(std::span(&row, 1), {}), IsOk());
      const auto logits = runtime->logits(0);
      const auto largest = std::ranges::max_element(logits);  // the first of equals
      ASSERT_EQ(to_index(runtime->argmax(0)), static_cast<std::size_t>(largest - logits.begin()))
          << name;
      ASSERT_THAT(runtime->accept(sequence, std::vector{0}), IsOk());
      if (i % 100 == 99) {
        ASSERT_THAT(runtime->truncate(sequence, 0), IsOk());
      }
    }
  }
}

TEST(ToyRuntime, CommitsOnePathAndDropsTheRest) {
  const auto runtime = make_runtime("toy:5,vocab=64", k_limits);
  const SequenceId sequence = value_of(runtime->create_sequence());
  const std::vector<Row> rows{{sequence, Token{1}, k_committed_end, Wants::nothing},
                              {sequence, Token{2}, 0, Wants::nothing},
                              {sequence, Token{3}, 0, Wants::nothing},
                              {sequence, Token{4}, 2, Wants::nothing}};
  ASSERT_THAT(runtime->forward(rows, {}), IsOk());
  EXPECT_EQ(runtime->length(sequence), 0U);  // nothing is committed by a pass
  ASSERT_THAT(runtime->accept(sequence, std::vector{0, 2}), IsOk());
  EXPECT_EQ(runtime->length(sequence), 2U);
  const auto after = put_through(*runtime, sequence, std::vector{Token{9}}, 1);
  const SequenceId fresh = value_of(runtime->create_sequence());
  EXPECT_EQ(put_through(*runtime, fresh, std::vector{Token{1}, Token{3}, Token{9}}, 3), after);
}

TEST(ToyRuntime, AcceptsRowsOnceOnly) {
  const auto runtime = make_runtime("toy:5", k_limits);
  const SequenceId sequence = value_of(runtime->create_sequence());
  const Row row{sequence, Token{1}, k_committed_end, Wants::nothing};
  EXPECT_THAT(runtime->accept(sequence, {}), IsOk());
  ASSERT_THAT(runtime->forward(std::span(&row, 1), {}), IsOk());
  ASSERT_THAT(runtime->accept(sequence, std::vector{0}), IsOk());
  EXPECT_THAT(runtime->accept(sequence, std::vector{0}), FailsWith(ErrorCode::invalid_argument));
  EXPECT_EQ(runtime->length(sequence), 1U);
  ASSERT_THAT(runtime->forward(std::span(&row, 1), {}), IsOk());
  ASSERT_THAT(runtime->truncate(sequence, 1), IsOk());
  EXPECT_THAT(runtime->accept(sequence, std::vector{0}), FailsWith(ErrorCode::invalid_argument));
}

TEST(ToyRuntime, RefusesAPathThatIsNone) {
  const auto runtime = make_runtime("toy:5", k_limits);
  const SequenceId sequence = value_of(runtime->create_sequence());
  const std::vector<Row> rows{{sequence, Token{1}, k_committed_end, Wants::nothing},
                              {sequence, Token{2}, 0, Wants::nothing}};
  ASSERT_THAT(runtime->forward(rows, {}), IsOk());
  EXPECT_THAT(runtime->accept(sequence, std::vector{1}), FailsWith(ErrorCode::invalid_argument));
  EXPECT_THAT(runtime->accept(sequence, std::vector{0, 1}), IsOk());  // it was left as it was
}

TEST(ToyRuntime, GoesBackToAnyLength) {
  const auto text = random_text(40, 3, 512);
  const auto runtime = make_runtime("toy:5", k_limits);
  const SequenceId sequence = value_of(runtime->create_sequence());
  const SequenceId fresh = value_of(runtime->create_sequence());
  for (std::size_t length = 0; length < 40; ++length) {
    ASSERT_THAT(runtime->truncate(sequence, 0), IsOk());
    put_through(*runtime, sequence, text, 64);
    ASSERT_THAT(runtime->truncate(sequence, length), IsOk());
    ASSERT_EQ(runtime->length(sequence), length);
    const auto after = put_through(*runtime, sequence, std::vector{Token{7}}, 1);
    ASSERT_THAT(runtime->truncate(fresh, 0), IsOk());
    auto expected = std::vector(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(length));
    expected.push_back(Token{7});
    ASSERT_EQ(put_through(*runtime, fresh, expected, 64), after) << length;
  }
  EXPECT_THAT(runtime->truncate(sequence, 41),
              FailsWith(ErrorCode::invalid_argument, HasSubstr("41")));
}

TEST(ToyRuntime, ForksShareTheirPastOnly) {
  const auto text = random_text(20, 4, 512);
  const auto runtime = make_runtime("toy:5", k_limits);
  const SequenceId first = value_of(runtime->create_sequence());
  put_through(*runtime, first, text, 64);
  const SequenceId second = value_of(runtime->fork(first));
  EXPECT_EQ(runtime->length(second), 20U);
  const auto after_first = put_through(*runtime, first, std::vector{Token{1}, Token{5}}, 2);
  const auto after_second = put_through(*runtime, second, std::vector{Token{2}, Token{5}}, 2);
  EXPECT_NE(after_first, after_second);
  ASSERT_THAT(runtime->truncate(second, 20), IsOk());
  EXPECT_EQ(put_through(*runtime, second, std::vector{Token{1}, Token{5}}, 2), after_first);
  ASSERT_THAT(runtime->create_sequence(), IsOk());
  EXPECT_THAT(runtime->fork(first), FailsWith(ErrorCode::busy, HasSubstr("3")));
}

TEST(ToyRuntime, GivesReleasedSequencesOutAgainEmpty) {
  const auto runtime = make_runtime("toy:5", {.sequences = 1, .context = 50, .rows = 8});
  const SequenceId first = value_of(runtime->create_sequence());
  put_through(*runtime, first, random_text(5, 1, 512), 8);
  EXPECT_THAT(runtime->create_sequence(), FailsWith(ErrorCode::busy));
  runtime->release(first);
  EXPECT_EQ(runtime->length(value_of(runtime->create_sequence())), 0U);
}

TEST(ToyRuntime, RefusesWhatDoesNotFitAndStaysAsItWas) {
  const auto runtime =
      make_runtime("toy:5,vocab=64", {.sequences = 1, .context = 4, .rows = 3, .leaves = 1});
  const SequenceId sequence = value_of(runtime->create_sequence());
  const auto text = random_text(3, 1, 64);
  const auto expected = put_through(*runtime, sequence, text, 3);
  const Row row{sequence, Token{1}, k_committed_end, Wants::nothing};
  const Row below{sequence, Token{1}, 0, Wants::nothing};
  Row unknown = row;
  unknown.token = Token{64};
  Row negative = row;
  negative.token = Token{-1};
  Row feature = row;
  feature.wants = Wants::feature;
  for (const std::vector<Row>& rows : std::vector<std::vector<Row>>{
           {row, row}, {row, below}, {row, row, row, row}, {unknown}, {negative}, {feature}}) {
    EXPECT_THAT(runtime->forward(rows, {}), FailsWith(ErrorCode::invalid_argument));
  }
  ASSERT_THAT(runtime->truncate(sequence, 2), IsOk());
  EXPECT_EQ(put_through(*runtime, sequence, std::span(text).last(1), 1), expected);
}

TEST(ToyRuntime, StopsBeforeAPassAndStaysAsItWas) {
  const auto runtime = make_runtime("toy:5", k_limits);
  const SequenceId sequence = value_of(runtime->create_sequence());
  put_through(*runtime, sequence, random_text(5, 1, 512), 5);
  std::stop_source source;
  source.request_stop();
  const Row row{sequence, Token{1}, k_committed_end, Wants::nothing};
  EXPECT_THAT(runtime->forward(std::span(&row, 1), source.get_token()),
              FailsWith(ErrorCode::cancelled));
  EXPECT_EQ(runtime->length(sequence), 5U);
  EXPECT_EQ(runtime->counters().forwards, 1U);
}

TEST(ToyRuntime, CountsPassesAndRows) {
  const auto runtime = make_runtime("toy:5", k_limits);
  put_through(*runtime, value_of(runtime->create_sequence()), random_text(10, 1, 512), 4);
  EXPECT_EQ(runtime->counters().forwards, 3U);
  EXPECT_EQ(runtime->counters().rows, 10U);
  EXPECT_EQ(runtime->counters().replayed_rows, 0U);
}

TEST(ToyRuntime, GivesFeaturesThatDependOnTheContext) {
  const auto runtime = make_runtime("toy:5", k_limits);
  const SequenceId sequence = value_of(runtime->create_sequence());
  const std::vector<Row> rows{{sequence, Token{1}, k_committed_end, Wants::feature},
                              {sequence, Token{1}, 0, Wants::feature},
                              {sequence, Token{1}, k_committed_end, Wants::feature}};
  ASSERT_THAT(runtime->forward(rows, {}), IsOk());
  EXPECT_EQ(copy(runtime->feature(0)), copy(runtime->feature(2)));
  EXPECT_NE(copy(runtime->feature(0)), copy(runtime->feature(1)));
  EXPECT_EQ(runtime->feature(0).size(), make_toy_model({.seed = 5})->info().hidden);
  for (const float x : runtime->feature(1)) EXPECT_LE(std::abs(x), 1.0f);
}

TEST(ToyRuntimeDeathTest, GivesOnlyWhatWasWanted) {
  const auto runtime = make_runtime("toy:5", k_limits);
  const SequenceId sequence = value_of(runtime->create_sequence());
  const Row row{sequence, Token{1}, k_committed_end, Wants::nothing};
  ASSERT_THAT(runtime->forward(std::span(&row, 1), {}), IsOk());
  EXPECT_DEATH(std::ignore = runtime->argmax(0), "did not want");
  EXPECT_DEATH(std::ignore = runtime->logits(0), "did not want");
  EXPECT_DEATH(std::ignore = runtime->feature(0), "did not want");
  EXPECT_DEATH(std::ignore = runtime->argmax(1), "did not want");
  EXPECT_DEATH(std::ignore = runtime->length(SequenceId{2}), "no such sequence");
}

TEST(ToyRuntime, StatesWhatItCanDo) {
  const auto chains = make_runtime("toy:1", {.context = 10, .rows = 4, .leaves = 1});
  EXPECT_TRUE(chains->capabilities().rollback);
  EXPECT_TRUE(chains->capabilities().exact_widths);
  EXPECT_FALSE(chains->capabilities().trees);
  EXPECT_FALSE(chains->capabilities().features);
  EXPECT_EQ(chains->info().context, 10U);
  EXPECT_EQ(chains->info().rows, 4U);
  EXPECT_TRUE(make_runtime("toy:1", k_limits)->capabilities().trees);
  EXPECT_TRUE(make_runtime("toy:1", k_limits)->capabilities().features);
  EXPECT_EQ(make_runtime("toy:1,context=77", {})->limits().context, 77U);
}

TEST(ToyModel, RefusesARuntimeWithoutAnything) {
  const auto model = make_toy_model({.seed = 1});
  for (const RuntimeLimits& limits :
       {RuntimeLimits{.sequences = 0}, RuntimeLimits{.rows = 0}, RuntimeLimits{.leaves = 0}}) {
    EXPECT_THAT(model->create_runtime(limits), FailsWith(ErrorCode::invalid_argument));
  }
}

TEST(ToyModel, EndsATextNowAndThen) {
  const auto runtime = make_runtime("toy:8", {.context = 8000, .rows = 1});
  const SequenceId sequence = value_of(runtime->create_sequence());
  Token token{1};
  int ends = 0;
  for (int i = 0; i < 7000; ++i) {
    const Row row{sequence, token, k_committed_end, Wants::argmax};
    ASSERT_THAT(runtime->forward(std::span(&row, 1), {}), IsOk());
    token = runtime->argmax(0);
    ends += token == Token{0} ? 1 : 0;
    ASSERT_THAT(runtime->accept(sequence, std::vector{0}), IsOk());
  }
  EXPECT_GT(ends, 10);
  EXPECT_LT(ends, 60);
}

class ToyAgreement : public testing::TestWithParam<double> {};

TEST_P(ToyAgreement, IsTheProbabilityThatWasAskedFor) {
  const double agree = GetParam();
  const RuntimeLimits limits{.context = 100, .rows = 64};
  const auto target = make_runtime("toy:9", limits);
  const auto draft = make_runtime(std::format("toy:9,agree={}", agree), limits);
  const SequenceId a = value_of(target->create_sequence());
  const SequenceId b = value_of(draft->create_sequence());
  std::size_t equal = 0;
  std::size_t total = 0;
  for (std::uint64_t seed = 0; seed < 1000; ++seed) {
    std::vector<Row> rows;
    for (const Token token : random_text(50, seed, 512)) {
      rows.push_back({a, token, static_cast<std::int32_t>(rows.size()) - 1, Wants::argmax});
    }
    ASSERT_THAT(target->forward(rows, {}), IsOk());
    for (Row& row : rows) row.sequence = b;
    ASSERT_THAT(draft->forward(rows, {}), IsOk());
    for (std::size_t i = 0; i < rows.size(); ++i) {
      if (target->argmax(i) == draft->argmax(i)) ++equal;
      ++total;
    }
  }
  EXPECT_NEAR(static_cast<double>(equal) / static_cast<double>(total), agree, 0.01);
}

INSTANTIATE_TEST_SUITE_P(Probabilities, ToyAgreement,
                         testing::Values(0.0, 0.3, 0.5, 0.8, 0.95, 1.0));

TEST(ToyModel, WithAnotherSeedDisagrees) {
  const RuntimeLimits limits{.context = 100, .rows = 64};
  const auto first = make_runtime("toy:1", limits);
  const auto second = make_runtime("toy:2", limits);
  std::size_t equal = 0;
  std::vector<Row> rows;
  for (const Token token : random_text(64, 1, 512)) {
    rows.push_back(
        {SequenceId{0}, token, static_cast<std::int32_t>(rows.size()) - 1, Wants::argmax});
  }
  ASSERT_THAT(first->create_sequence(), IsOk());
  ASSERT_THAT(second->create_sequence(), IsOk());
  ASSERT_THAT(first->forward(rows, {}), IsOk());
  ASSERT_THAT(second->forward(rows, {}), IsOk());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (first->argmax(i) == second->argmax(i)) ++equal;
  }
  EXPECT_LT(equal, 5U);
}

TEST(ToyModel, StaysInsideItsVocabulary) {
  for (const char* name : {"toy:1,vocab=4", "toy:1,vocab=4,agree=0", "toy:2,vocab=5,agree=0.5",
                           "toy:3,vocab=9,spike=0"}) {
    const auto options = value_of(parse_toy_name(name));
    const auto runtime = make_runtime(name, {.context = 2000, .rows = 1});
    const SequenceId sequence = value_of(runtime->create_sequence());
    Token token{1};
    std::vector<bool> seen(options.vocabulary);
    for (int i = 0; i < 1500; ++i) {
      const Row row{sequence, token, k_committed_end, Wants::argmax | Wants::logits};
      ASSERT_THAT(runtime->forward(std::span(&row, 1), {}), IsOk());
      ASSERT_EQ(runtime->logits(0).size(), options.vocabulary);
      token = runtime->argmax(0);
      ASSERT_LT(to_index(token), options.vocabulary);
      seen[to_index(token)] = true;
      ASSERT_THAT(runtime->accept(sequence, std::vector{0}), IsOk());
    }
    EXPECT_GT(std::ranges::count(seen, true), 2) << name;
  }
}

TEST(ToyVocabulary, TurnsBytesIntoTokensAndBack) {
  const auto model = make_toy_model({.seed = 1});
  const Vocabulary& vocabulary = model->vocabulary();
  std::string bytes;
  for (int i = 0; i < 256; ++i) bytes.push_back(static_cast<char>(static_cast<unsigned char>(i)));
  std::string back;
  for (const Token token : value_of(vocabulary.tokenize(bytes, {}))) {
    EXPECT_FALSE(vocabulary.is_end_of_text(token));
    back += vocabulary.piece(token, false);
  }
  EXPECT_EQ(back, bytes);
  EXPECT_EQ(vocabulary.size(), 512U);
  EXPECT_EQ(vocabulary.piece(Token{300}, false), " 299");
}

TEST(ToyVocabulary, GivesNothingForIdsOutOfRangeAndHidesTheEnd) {
  const auto model = make_toy_model({.seed = 1, .vocabulary = 8});
  const Vocabulary& vocabulary = model->vocabulary();
  EXPECT_EQ(vocabulary.piece(Token{8}, true), "");
  EXPECT_EQ(vocabulary.piece(Token{-1}, true), "");
  EXPECT_TRUE(vocabulary.is_end_of_text(Token{0}));
  EXPECT_FALSE(vocabulary.is_end_of_text(Token{1}));
  EXPECT_EQ(vocabulary.piece(Token{0}, false), "");
  EXPECT_EQ(vocabulary.piece(Token{0}, true), "<end>");
  for (const Token token : value_of(vocabulary.tokenize("any text \xff", {}))) {
    EXPECT_LT(to_index(token), 8U);
    EXPECT_GT(to_index(token), 0U);
  }
}

TEST(ToyVocabulary, RendersAChatThatEndsWhereTheAnswerBegins) {
  const auto model = make_toy_model({.seed = 1});
  const auto chat =
      value_of(model->vocabulary().render_chat({{"system", "Be brief."}, {"user", "Hi"}}));
  EXPECT_EQ(chat.text, "[system]\nBe brief.\n[user]\nHi\n[assistant]\n");
  EXPECT_EQ(value_of(chat_tokens(model->vocabulary(), {{"user", "Hi"}})).size(), 22U);
}

TEST(ParseToyName, ReadsEveryPart) {
  const auto plain = value_of(parse_toy_name("toy:7"));
  EXPECT_EQ(plain.seed, 7U);
  EXPECT_EQ(plain.vocabulary, 512U);
  EXPECT_FALSE(plain.agree);
  const auto full =
      value_of(parse_toy_name("toy:18446744073709551615,vocab=64,spike=2.5,agree=0.8,context=128"));
  EXPECT_EQ(full.seed, ~0ULL);
  EXPECT_EQ(full.vocabulary, 64U);
  EXPECT_EQ(full.spike, 2.5);
  EXPECT_EQ(full.agree, 0.8);
  EXPECT_EQ(full.context, 128U);
  EXPECT_TRUE(is_toy_name("toy:"));
  EXPECT_FALSE(is_toy_name("toy"));
  EXPECT_FALSE(is_toy_name("./toy:7"));
}

TEST(ParseToyName, NamesThePartTheValueAndWhatIsWanted) {
  struct Case {
    const char* name;
    std::vector<const char*> message;
  };
  const std::vector<Case> cases{
      {"tiny:7", {"tiny:7", "toy:SEED"}},
      {"toy:", {"seed", "\"\""}},
      {"toy:x", {"seed", "\"x\""}},
      {"toy:-1", {"seed", "\"-1\""}},
      {"toy:7 ", {"seed", "\"7 \""}},
      {"toy:18446744073709551616", {"seed"}},
      {"toy:7,", {"\"\"", "vocab, spike, agree and context"}},
      {"toy:7,vocab", {"vocab", "4"}},
      {"toy:7,vocab=", {"vocab", "\"\""}},
      {"toy:7,vocab=3", {"vocab", "\"3\"", "4"}},
      {"toy:7,vocab=1048577", {"vocab", "1048576"}},
      {"toy:7,vocab=64x", {"vocab", "64x"}},
      {"toy:7,spike=-1", {"spike", "-1"}},
      {"toy:7,spike=nan", {"spike", "nan"}},
      {"toy:7,spike=inf", {"spike", "inf"}},
      {"toy:7,agree=1.01", {"agree", "1.01"}},
      {"toy:7,agree=80%", {"agree", "80%"}},
      {"toy:7,context=1", {"context", "\"1\""}},
      {"toy:7,agre=0.8", {"agre", "agree"}},
      {"toy:7,VOCAB=8", {"VOCAB"}},
      {"toy:7,\x1b[31m=8", {"\\x1b[31m"}},
      {"toy:7,vocab=8,vocab=9", {"vocab", "twice"}},
  };
  for (const Case& c : cases) {
    const auto result = parse_toy_name(c.name);
    ASSERT_THAT(result, FailsWith(ErrorCode::invalid_argument)) << c.name;
    for (const char* part : c.message) {
      EXPECT_THAT(result.error().message, HasSubstr(part)) << c.name;
    }
    EXPECT_EQ(result.error().message.find('\x1b'), std::string::npos);
  }
}

}  // namespace
}  // namespace paceline::runtime
