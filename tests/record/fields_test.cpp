// Every member of every struct goes to JSON and comes back: on records made of random members, and
// by counting the members against the lists.
#include "record/fields_impl.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <concepts>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/json.hpp"
#include "core/random.hpp"
#include "support/matchers.hpp"

namespace paceline::record {
namespace {

/// Fills members with random values. Small vectors, odd numbers, odd but valid text.
class RandomValues {
 public:
  explicit RandomValues(std::uint64_t seed) : random_(seed) {}

  void operator()(const char*, auto& member) { fill(member); }

 private:
  void fill(bool& value) { value = random_.below(2) == 0; }
  template <std::integral T>
  void fill(T& value) {
    using Limits = std::numeric_limits<T>;
    switch (random_.below(4)) {
      case 0:
        value = Limits::max();
        break;
      case 1:
        value = Limits::min();
        break;
      default:
        value = static_cast<T>(random_.bits());
    }
  }
  void fill(double& value) {
    constexpr double k_values[] = {0, -0.0, 1.0 / 3, 1e308, -1e-308, 5e-324, 1790000000.125};
    value =
        random_.below(2) == 0 ? k_values[random_.below(std::size(k_values))] : random_.unit() * 1e6;
  }
  void fill(std::string& text) {
    constexpr const char* k_pieces[] = {"", "a", "\"", "\\", "\n", "\x01", "\xc3\xa4", " ", "null"};
    text.clear();
    for (std::size_t i = random_.below(6); i > 0; --i) {
      text += k_pieces[random_.below(std::size(k_pieces))];
    }
  }
  void fill(ArmKind& kind) { kind = k_arm_kinds[random_.below(k_arm_kinds.size())]; }
  void fill(CellStatus& status) { status = k_cell_statuses[random_.below(3)]; }
  void fill(std::map<std::string, std::string>& entries) {
    for (std::size_t i = random_.below(3); i > 0; --i) {
      std::string key;
      fill(key);
      fill(entries[key]);
    }
  }
  template <typename T>
  void fill(std::optional<T>& value) {
    if (random_.below(3) == 0) {
      value = std::nullopt;
      return;
    }
    T inner{};
    fill(inner);
    value = std::move(inner);
  }
  template <typename T>
  void fill(std::vector<T>& values) {
    values.resize(random_.below(3));
    for (auto& value : values) fill(value);
  }
  template <typename T>
    requires std::is_class_v<T>
  void fill(T& object) {
    fields(*this, object);
  }

  Random random_;
};

Record random_record(std::uint64_t seed) {
  Record record;
  RandomValues values(seed);
  fields(values, record);
  record.schema_version = k_schema_version;
  return record;
}

TEST(RecordProperty, JsonAndBackIsTheSameRecord) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    const Record record = random_record(seed);
    const std::string text = dump_json(to_json(record));
    const Json parsed = test::value_of(parse_json(text, "record"));
    const Record again = test::value_of(from_json(parsed));
    ASSERT_TRUE(again == record) << "seed " << seed << ": " << text;
  }
}

/// Converts to anything, so that a struct can be initialised from a number of them.
struct Anything {
  template <typename T>
  operator T() const;  // NOLINT(google-explicit-constructor)
};

template <typename T, typename... Members>
consteval std::size_t member_count() {
  if constexpr (requires { T{Members{}..., Anything{}}; }) {
    return member_count<T, Members..., Anything>();
  } else {
    return sizeof...(Members);
  }
}

struct NameCounter {
  std::set<std::string> names;
  std::size_t visits = 0;
  void operator()(const char* name, const auto&) {
    names.insert(name);
    ++visits;
  }
};

template <typename T>
void expect_every_member_listed(const char* type) {
  NameCounter counter;
  const T object{};
  fields(counter, object);
  EXPECT_EQ(counter.visits, member_count<T>()) << type;
  EXPECT_EQ(counter.names.size(), counter.visits) << type << " has a name twice";
}

TEST(RecordFields, ListEveryMemberOnce) {
  expect_every_member_listed<host::HostInfo>("HostInfo");
  expect_every_member_listed<host::HostState>("HostState");
  expect_every_member_listed<Arm>("Arm");
  expect_every_member_listed<ModelEvidence>("ModelEvidence");
  expect_every_member_listed<RuntimeEvidence>("RuntimeEvidence");
  expect_every_member_listed<Sampling>("Sampling");
  expect_every_member_listed<Environment>("Environment");
  expect_every_member_listed<Round>("Round");
  expect_every_member_listed<Sample>("Sample");
  expect_every_member_listed<Comparison>("Comparison");
  expect_every_member_listed<Block>("Block");
  expect_every_member_listed<FixtureEvidence>("FixtureEvidence");
  expect_every_member_listed<Warmup>("Warmup");
  expect_every_member_listed<Sustained>("Sustained");
  expect_every_member_listed<Warning>("Warning");
  expect_every_member_listed<Plan>("Plan");
  expect_every_member_listed<Record>("Record");
}

}  // namespace
}  // namespace paceline::record
