#include "support/golden.hpp"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <format>

#include "core/file.hpp"
#include "core/json.hpp"
#include "core/text.hpp"

namespace paceline::test {

namespace {

constexpr std::size_t k_shown_places = 5;

std::filesystem::path golden_path(std::string_view name) {
  return std::filesystem::path(PACELINE_GOLDEN_FOLDER) / name;
}

bool updates() {
  const char* value = std::getenv("PACELINE_UPDATE_GOLDEN");
  return value != nullptr && std::string_view(value) == "1";
}

testing::AssertionResult update(std::string_view name, std::string_view text) {
  if (const char* ci = std::getenv("CI"); ci != nullptr && *ci != '\0') {
    return testing::AssertionFailure() << "golden files are not written where CI is set";
  }
  const auto written = replace_file(golden_path(name), text);
  if (!written) return testing::AssertionFailure() << written.error().message;
  return testing::AssertionSuccess();
}

std::string hint(std::string_view name) {
  return std::format("\nIf the change is meant: PACELINE_UPDATE_GOLDEN=1 writes tests/golden/{}.",
                     name);
}

std::string first_difference(std::string_view wanted, std::string_view found) {
  const auto a = split(wanted, '\n');
  const auto b = split(found, '\n');
  for (std::size_t i = 0; i < std::max(a.size(), b.size()); ++i) {
    const std::string_view left = i < a.size() ? a[i] : "(end)";
    const std::string_view right = i < b.size() ? b[i] : "(end)";
    if (left != right) return std::format("line {}:\n- {}\n+ {}", i + 1, left, right);
  }
  return "no line differs";
}

}  // namespace

testing::AssertionResult matches_golden(std::string_view name, std::string_view text) {
  if (updates()) return update(name, text);
  const auto wanted = read_file(golden_path(name));
  if (!wanted) return testing::AssertionFailure() << wanted.error().message << hint(name);
  if (*wanted == text) return testing::AssertionSuccess();
  return testing::AssertionFailure()
         << name << ", " << first_difference(*wanted, text) << hint(name);
}

testing::AssertionResult matches_golden_json(std::string_view name, std::string_view text) {
  if (updates()) return update(name, text);
  const auto wanted_text = read_file(golden_path(name));
  if (!wanted_text) return testing::AssertionFailure() << wanted_text.error().message << hint(name);
  const auto wanted = parse_json(*wanted_text, name);
  const auto found = parse_json(text, "the text under test");
  if (!wanted) return testing::AssertionFailure() << wanted.error().message;
  if (!found) return testing::AssertionFailure() << found.error().message;
  const Json changes = Json::diff(*wanted, *found);
  if (changes.empty()) return testing::AssertionSuccess();
  auto failure = testing::AssertionFailure()
                 << name << " differs in " << changes.size() << " places, for example";
  for (std::size_t i = 0; i < std::min(changes.size(), k_shown_places); ++i) {
    failure << "\n" << dump_json(changes[i]);
  }
  return failure << hint(name);
}

}  // namespace paceline::test
