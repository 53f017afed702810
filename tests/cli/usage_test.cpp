// Messages about arguments, and what numbers the options take.
#include "cli/usage.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "cli/validators.hpp"

namespace paceline::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

std::string empty_argument(const std::vector<const char*>& arguments) {
  return cli::find_empty_argument(arguments).value_or("none");
}

TEST(EmptyArgument, IsNamedByItsOption) {
  EXPECT_EQ(empty_argument({"bench", "-t", "toy:1", "-o", "-"}), "none");
  EXPECT_THAT(empty_argument({"bench", "-o", ""}), HasSubstr("the value of -o is empty"));
  EXPECT_THAT(empty_argument({"bench", "--output="}), HasSubstr("the value of --output is empty"));
  EXPECT_THAT(empty_argument({"check", ""}), HasSubstr("an argument is empty"));
  EXPECT_THAT(empty_argument({""}), HasSubstr("an argument is empty"));
}

/// The message for a line that must be refused.
std::string message(const std::string& line) {
  CLI::App app("", "paceline");
  app.require_subcommand(1);
  app.add_subcommand("bench")->add_option("--depth")->check(cli::count_between(1, 16));
  app.add_subcommand("canary");
  app.add_subcommand("secret")->group("");
  CLI::App* models = app.add_subcommand("models");
  models->add_subcommand("fetch")->add_option("NAME")->required();
  models->add_subcommand("verify");
  try {
    app.parse(line);
  } catch (const CLI::ParseError& error) {
    return cli::usage_message(app, error);
  }
  return "accepted";
}

TEST(UsageMessage, NamesAnUnknownCommandAndTheNearest) {
  EXPECT_THAT(message("nonsense"),
              AllOf(HasSubstr("no command \"nonsense\""), HasSubstr("bench, canary, models"),
                    HasSubstr("paceline --help"), Not(HasSubstr("did you mean")),
                    Not(HasSubstr("secret"))));
  EXPECT_THAT(message("benhc --depth 3"),
              AllOf(HasSubstr("\"benhc\""), HasSubstr("did you mean \"bench\"?")));
  EXPECT_THAT(message("models fatch x"),
              AllOf(HasSubstr("\"fatch\""), HasSubstr("did you mean \"fetch\"?"),
                    HasSubstr("paceline models --help")));
  EXPECT_THAT(message(""), HasSubstr("a command is wanted: bench, canary, models"));
}

TEST(UsageMessage, OfACommandLeadsToItsHelp) {
  EXPECT_THAT(message("bench --depth 17"),
              AllOf(HasSubstr("--depth"), HasSubstr("1 to 16"), HasSubstr("\"17\""),
                    HasSubstr("paceline bench --help")));
  EXPECT_THAT(message("bench --nope"), HasSubstr("--nope"));
  EXPECT_THAT(message("bench more"), HasSubstr("more"));
  EXPECT_THAT(message("models fetch"),
              AllOf(HasSubstr("NAME"), HasSubstr("paceline models fetch --help")));
}

TEST(EditDistance, CountsLetters) {
  EXPECT_EQ(cli::edit_distance("", ""), 0U);
  EXPECT_EQ(cli::edit_distance("", "abc"), 3U);
  EXPECT_EQ(cli::edit_distance("bench", "bench"), 0U);
  EXPECT_EQ(cli::edit_distance("benhc", "bench"), 2U);
  EXPECT_EQ(cli::edit_distance("kitten", "sitting"), 3U);
}

bool takes(const CLI::Validator& validator, std::string text) { return validator(text).empty(); }

TEST(NumberBetween, TakesNumbersOfTheRangeOnly) {
  const auto validator = cli::number_between(0, 100);
  for (const char* good : {"0", "100", "0.5", "1e1", "-0"})
    EXPECT_TRUE(takes(validator, good)) << good;
  for (const char* bad :
       {"nan", "-nan", "NaN", "inf", "-inf", "-0.1", "100.1", "1e999", "", "x", "5x"}) {
    EXPECT_FALSE(takes(validator, bad)) << bad;
  }
}

TEST(CountBetween, TakesWholeNumbersOfTheRangeOnly) {
  const auto validator = cli::count_between(1, 16);
  for (const char* good : {"1", "16", "9"}) EXPECT_TRUE(takes(validator, good)) << good;
  for (const char* bad :
       {"0", "17", "-1", "1.5", "nan", "", "18446744073709551617", "4294967297"}) {
    EXPECT_FALSE(takes(validator, bad)) << bad;
  }
}

}  // namespace
}  // namespace paceline::test
