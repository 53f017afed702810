// Records as JSON.
#include <cmath>
#include <concepts>
#include <map>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/json.hpp"
#include "core/text.hpp"
#include "record/fields_impl.hpp"
#include "record/record.hpp"

namespace paceline::record {

namespace {

Json value_of(bool value) { return value; }
Json value_of(std::integral auto value) { return value; }
Json value_of(double value) { return std::isfinite(value) ? Json(value) : Json(nullptr); }
Json value_of(const std::string& text) { return to_valid_utf8(text); }
Json value_of(ArmKind kind) { return to_string(kind); }
Json value_of(CellStatus status) { return to_string(status); }
Json value_of(const std::map<std::string, std::string>& entries);
Json value_of(const std::vector<Round>& rounds);
template <typename T>
Json value_of(const std::optional<T>& value);
template <typename T>
Json value_of(const std::vector<T>& values);
template <typename T>
  requires std::is_class_v<T>
Json value_of(const T& object);

struct MemberWriter {
  Json object = Json::object();
  void operator()(const char* key, const auto& member) { object[key] = value_of(member); }
};

struct ColumnWriter {
  Json object = Json::object();
  void operator()(const char* key, const auto& cell) { object[key].push_back(cell); }
};

struct EmptyColumns {
  Json object = Json::object();
  void operator()(const char* key, const auto&) { object[key] = Json::array(); }
};

Json value_of(const std::map<std::string, std::string>& entries) {
  Json object = Json::object();
  for (const auto& [key, text] : entries) object[to_valid_utf8(key)] = to_valid_utf8(text);
  return object;
}

Json value_of(const std::vector<Round>& rounds) {
  EmptyColumns empty;
  const Round any;
  fields(empty, any);
  ColumnWriter columns{std::move(empty.object)};
  for (const Round& round : rounds) fields(columns, round);
  return std::move(columns.object);
}

template <typename T>
Json value_of(const std::optional<T>& value) {
  return value ? value_of(*value) : Json(nullptr);
}

template <typename T>
Json value_of(const std::vector<T>& values) {
  Json array = Json::array();
  for (const auto& value : values) array.push_back(value_of(value));
  return array;
}

template <typename T>
  requires std::is_class_v<T>
Json value_of(const T& object) {
  MemberWriter writer;
  fields(writer, object);
  return std::move(writer.object);
}

}  // namespace

Json to_json(const Record& record) { return value_of(record); }
Json to_json(const host::HostInfo& info) { return value_of(info); }
Json to_json(const host::HostState& state) { return value_of(state); }
Json to_json(const ModelEvidence& model) { return value_of(model); }
Json to_json(const RuntimeEvidence& runtime) { return value_of(runtime); }
Json to_json(const Sample& sample) { return value_of(sample); }
Json to_json(const Inflation& inflation) { return value_of(inflation); }

}  // namespace paceline::record
