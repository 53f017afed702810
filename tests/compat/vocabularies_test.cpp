// May a draft's tokens stand for the target's?
#include "compat/compare.hpp"

#include <gtest/gtest.h>

#include "support/fake_runtime.hpp"
#include "support/matchers.hpp"

namespace paceline::test {
namespace {

using compat::check_vocabularies;
using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

const std::vector<std::string> k_pieces{"<end>", "a", "b", "long\nword", "d"};

FakeVocabulary padded(std::size_t padding) {
  std::vector<std::string> pieces = k_pieces;
  for (std::size_t i = 0; i < padding; ++i) pieces.push_back("<pad " + std::to_string(i) + ">");
  return FakeVocabulary(pieces, {Token{0}});
}

TEST(Vocabularies, MayBeTheSame) { EXPECT_THAT(check_vocabularies(padded(0), padded(0)), IsOk()); }

// A1
TEST(Vocabularies, ThatDifferAreRefusedWithTheFirstDifferingTokenAndBothTexts) {
  auto pieces = k_pieces;
  pieces[3] = "other";
  pieces[4] = "e";
  const auto result = check_vocabularies(padded(0), FakeVocabulary(pieces, {Token{0}}));
  EXPECT_THAT(result, FailsWithWord("draft_model_tokenizer_mismatch"));
  EXPECT_THAT(result,
              FailsWith(ErrorCode::unsupported,
                        AllOf(HasSubstr("token 3 is \"long\\nword\" in the target and \"other\" in "
                                        "the draft"),
                              HasSubstr("--lookup"), Not(HasSubstr("token 4")))));
}

// A4: 151 936 and 152 064 rows of one family.
TEST(Vocabularies, MayBePaddedUpTo128RowsOnEitherSide) {
  EXPECT_THAT(check_vocabularies(padded(0), padded(128)), IsOk());
  EXPECT_THAT(check_vocabularies(padded(128), padded(0)), IsOk());
  EXPECT_THAT(
      check_vocabularies(padded(129), padded(0)),
      FailsWith(ErrorCode::unsupported, AllOf(HasSubstr("the target has 134 tokens, the draft 5"),
                                              HasSubstr("up to 128"))));
  EXPECT_THAT(check_vocabularies(padded(0), padded(129)),
              FailsWithWord("draft_model_tokenizer_mismatch"));
}

TEST(Vocabularies, WhoseTextsEndAtOtherTokensAreRefused) {
  const FakeVocabulary one(k_pieces, {Token{0}});
  const FakeVocabulary two(k_pieces, {Token{0}, Token{2}});
  EXPECT_THAT(check_vocabularies(one, two),
              FailsWith(ErrorCode::unsupported,
                        HasSubstr("token 2 (\"b\") ends the text in the draft only")));
  EXPECT_THAT(check_vocabularies(two, one),
              FailsWith(ErrorCode::unsupported, HasSubstr("in the target only")));
}

}  // namespace
}  // namespace paceline::test
