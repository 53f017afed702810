#include "support/golden.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <format>
#include <string>
#include <vector>

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

bool same_value(const Json& wanted, const Json& found) {
  constexpr double k_relative = 1e-9;  // libraries differ in the last bits of exp and log
  if (!wanted.is_number_float() || !found.is_number_float()) return wanted == found;
  const double a = wanted.get<double>();
  const double b = found.get<double>();
  return std::abs(a - b) <= k_relative * std::max(std::abs(a), std::abs(b));
}

/// Adds a line for every place where the two differ.
void compare(const Json& wanted, const Json& found, const std::string& place,
             std::vector<std::string>& places) {
  if (wanted.is_object() && found.is_object()) {
    for (const auto& [key, value] : wanted.items()) {
      const auto other = found.find(key);
      const Json absent = "(absent)";
      compare(value, other == found.end() ? absent : *other, place + "/" + key, places);
    }
    for (const auto& [key, value] : found.items()) {
      if (!wanted.contains(key)) places.push_back(place + "/" + key + ": not wanted");
    }
  } else if (wanted.is_array() && found.is_array() && wanted.size() == found.size()) {
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      compare(wanted[i], found[i], std::format("{}/{}", place, i), places);
    }
  } else if (!same_value(wanted, found)) {
    places.push_back(
        std::format("{}: {} is wanted, found {}", place, dump_json(wanted), dump_json(found)));
  }
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
  if (!wanted_text) {
    return testing::AssertionFailure() << wanted_text.error().message << hint(name);
  }
  const auto wanted = parse_json(*wanted_text, name);
  const auto found = parse_json(text, "the text under test");
  if (!wanted) return testing::AssertionFailure() << wanted.error().message;
  if (!found) return testing::AssertionFailure() << found.error().message;
  std::vector<std::string> places;
  compare(*wanted, *found, "", places);
  if (places.empty()) return testing::AssertionSuccess();
  auto failure = testing::AssertionFailure()
                 << name << " differs in " << places.size() << " places, for example";
  for (std::size_t i = 0; i < std::min(places.size(), k_shown_places); ++i) {
    failure << "\n" << places[i];
  }
  return failure << hint(name);
}

}  // namespace paceline::test
