// Records from JSON, strictly: every member, no other, each of its type and range.
#include <algorithm>
#include <concepts>
#include <format>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/json.hpp"
#include "core/text.hpp"
#include "record/fields_impl.hpp"
#include "record/record.hpp"

namespace paceline::record {

namespace {

constexpr std::size_t k_shown_bytes = 60;  // of a wrong value in a message

/// Where in the document a value stands, and the first thing that was wrong.
struct Place {
  std::string path;
  std::optional<Error>* error;

  bool failed() const { return error->has_value(); }
  void fail_with(std::string message) const {
    if (!failed()) *error = fail(ErrorCode::bad_format, std::format("{}: {}", path, message));
  }
  void wants(std::string_view wanted, const Json& seen) const {
    std::string text = dump_json(seen);
    if (text.size() > k_shown_bytes) text = text.substr(0, k_shown_bytes) + "...";
    fail_with(std::format("{} is wanted, found {}", wanted, to_valid_utf8(text)));
  }
  Place member(std::string_view key) const { return {std::format("{}.{}", path, key), error}; }
  Place element(std::size_t index) const { return {std::format("{}[{}]", path, index), error}; }
};

void read_value(const Json& json, const Place& place, bool& value) {
  if (!json.is_boolean()) return place.wants("true or false", json);
  value = json.get<bool>();
}

template <std::integral T>
void read_value(const Json& json, const Place& place, T& value) {
  using Limits = std::numeric_limits<T>;
  const bool fits = json.is_number_unsigned()
                        ? std::in_range<T>(json.get<std::uint64_t>())
                        : json.is_number_integer() && std::in_range<T>(json.get<std::int64_t>());
  if (!fits) {
    return place.wants(std::format("a whole number from {} to {}", Limits::min(), Limits::max()),
                       json);
  }
  value = json.get<T>();
}

void read_value(const Json& json, const Place& place, double& value) {
  if (!json.is_number()) return place.wants("a number", json);
  value = json.get<double>();
}

void read_value(const Json& json, const Place& place, std::string& value) {
  if (!json.is_string()) return place.wants("a text", json);
  value = json.get<std::string>();
}

template <typename T>
void read_word(const Json& json, const Place& place, std::span<const T> known, T& value) {
  std::vector<std::string> words;
  for (const T candidate : known) {
    words.emplace_back(to_string(candidate));
    if (json == words.back()) {
      value = candidate;
      return;
    }
  }
  place.wants("one of " + join(words, ", "), json);
}

void read_value(const Json& json, const Place& place, ArmKind& kind) {
  read_word<ArmKind>(json, place, k_arm_kinds, kind);
}

void read_value(const Json& json, const Place& place, CellStatus& status) {
  read_word<CellStatus>(json, place, k_cell_statuses, status);
}

void read_value(const Json& json, const Place& place, std::map<std::string, std::string>& entries);
void read_value(const Json& json, const Place& place, std::vector<Round>& rounds);
template <typename T>
void read_value(const Json& json, const Place& place, std::optional<T>& value);
template <typename T>
void read_value(const Json& json, const Place& place, std::vector<T>& values);
template <typename T>
  requires std::is_class_v<T>
void read_value(const Json& json, const Place& place, T& object);

/// Hands out an object's members by name and remembers which were asked for.
class Members {
 public:
  Members(const Json& object, const Place& place) : object_(object), place_(place) {
    if (!object.is_object()) place.wants("an object", object);
  }

  const Json* find(const char* key) {
    if (place_.failed()) return nullptr;
    known_.emplace_back(key);
    const auto member = object_.find(key);
    if (member != object_.end()) return &*member;
    place_.fail_with(std::format("the member \"{}\" is missing", key));
    return nullptr;
  }

  void refuse_others() const {
    if (place_.failed()) return;
    for (const auto& [key, value] : object_.items()) {
      if (!std::ranges::contains(known_, key)) {
        return place_.fail_with(std::format("unknown member \"{}\"", escape(key)));
      }
    }
  }

 private:
  const Json& object_;
  const Place& place_;
  std::vector<std::string> known_;
};

struct MemberReader {
  Members members;
  const Place& place;
  void operator()(const char* key, auto& value) {
    if (const Json* json = members.find(key)) read_value(*json, place.member(key), value);
  }
};

/// One row of the columns of `members`.
struct RowReader {
  const Json& columns;
  const Place& place;
  std::size_t row;
  void operator()(const char* key, auto& value) {
    if (place.failed()) return;
    read_value(columns[key][row], place.member(key).element(row), value);
  }
};

struct ColumnLengths {
  Members members;
  const Place& place;
  std::optional<std::size_t> length;
  void operator()(const char* key, const auto&) {
    const Json* column = members.find(key);
    if (column == nullptr) return;
    if (!column->is_array()) return place.member(key).wants("an array", *column);
    if (!length) length = column->size();
    if (column->size() != *length) {
      place.member(key).fail_with(std::format(
          "{} entries are wanted, as in the other columns, found {}", *length, column->size()));
    }
  }
};

void read_value(const Json& json, const Place& place, std::map<std::string, std::string>& entries) {
  if (!json.is_object()) return place.wants("an object", json);
  for (const auto& [key, value] : json.items()) {
    read_value(value, place.member(key), entries[key]);
  }
}

void read_value(const Json& json, const Place& place, std::vector<Round>& rounds) {
  ColumnLengths lengths{Members(json, place), place, {}};
  const Round any;
  fields(lengths, any);
  lengths.members.refuse_others();
  if (place.failed()) return;
  rounds.resize(lengths.length.value_or(0));
  for (std::size_t i = 0; i < rounds.size(); ++i) {
    RowReader reader{json, place, i};
    fields(reader, rounds[i]);
  }
}

template <typename T>
void read_value(const Json& json, const Place& place, std::optional<T>& value) {
  if (json.is_null()) {
    value = std::nullopt;
    return;
  }
  T inner{};
  read_value(json, place, inner);
  value = std::move(inner);
}

template <typename T>
void read_value(const Json& json, const Place& place, std::vector<T>& values) {
  if (!json.is_array()) return place.wants("an array", json);
  values.resize(json.size());
  for (std::size_t i = 0; i < values.size() && !place.failed(); ++i) {
    read_value(json[i], place.element(i), values[i]);
  }
}

template <typename T>
  requires std::is_class_v<T>
void read_value(const Json& json, const Place& place, T& object) {
  MemberReader reader{Members(json, place), place};
  fields(reader, object);
  reader.members.refuse_others();
}

/// Before all else, so that a newer record is not blamed for its new members.
Result<void> check_schema_version(const Json& json) {
  PACELINE_TRY(const auto version, read<Json>(json, "schema_version", "record"));
  std::optional<Error> error;
  std::int64_t number = 0;
  read_value(version, Place{"record.schema_version", &error}, number);
  if (error) return *std::move(error);
  if (number > k_schema_version) {
    return fail(ErrorCode::unsupported,
                std::format("record.schema_version: {} is newer than {}, the newest that this "
                            "version of paceline reads; use a newer paceline",
                            number, k_schema_version),
                "record_schema_newer");
  }
  if (number < 1) {
    return fail(ErrorCode::bad_format,
                std::format("record.schema_version: 1 to {} is wanted, found {}", k_schema_version,
                            number));
  }
  return {};
}

}  // namespace

Result<Record> from_json(const Json& json) {
  PACELINE_TRY_VOID(check_schema_version(json));
  Record record;
  std::optional<Error> error;
  read_value(json, Place{"record", &error}, record);
  if (error) return *std::move(error);
  return record;
}

}  // namespace paceline::record
