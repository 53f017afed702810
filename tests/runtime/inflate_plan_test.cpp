// Where an inflated model's numbers stand: arithmetic on names and sizes.
#include "runtime/llama/inflate_plan.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <format>
#include <string>
#include <vector>

#include "support/matchers.hpp"

namespace paceline::test {
namespace {

using runtime::inflated_shape;
using runtime::LlamaShape;
using runtime::plan_inflation;
using Piece = runtime::Run;  // a test has a Run already
using runtime::SourceTensor;
using runtime::TensorPlan;
using runtime::weight_types;
using runtime::WeightTypes;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr LlamaShape k_small = {.layers = 30,
                                .hidden = 576,
                                .feed_forward = 1536,
                                .heads = 9,
                                .key_value_heads = 3,
                                .head_width = 64};
constexpr std::size_t k_vocabulary = 1000;

std::vector<SourceTensor> tensors_of(const LlamaShape& shape, bool tied = true) {
  std::vector<SourceTensor> tensors = {{"token_embd.weight", k_vocabulary, shape.hidden},
                                       {"output_norm.weight", 1, shape.hidden}};
  if (!tied) tensors.push_back({"output.weight", k_vocabulary, shape.hidden});
  for (std::size_t i = 0; i < shape.layers; ++i) {
    const auto add = [&](const char* name, std::size_t rows, std::size_t columns) {
      tensors.push_back({std::format("blk.{}.{}", i, name), rows, columns});
    };
    add("attn_norm.weight", 1, shape.hidden);
    add("ffn_norm.weight", 1, shape.hidden);
    add("attn_q.weight", shape.query_width(), shape.hidden);
    add("attn_k.weight", shape.key_value_width(), shape.hidden);
    add("attn_v.weight", shape.key_value_width(), shape.hidden);
    add("attn_output.weight", shape.hidden, shape.query_width());
    add("ffn_gate.weight", shape.feed_forward, shape.hidden);
    add("ffn_up.weight", shape.feed_forward, shape.hidden);
    add("ffn_down.weight", shape.hidden, shape.feed_forward);
  }
  return tensors;
}

std::vector<TensorPlan> plan_of(const LlamaShape& target, const char* type, bool tied = true) {
  return value_of(
      plan_inflation(k_small, target, tensors_of(k_small, tied), value_of(weight_types(type))));
}

const TensorPlan& named(const std::vector<TensorPlan>& plan, std::string_view name) {
  const auto found = std::ranges::find(plan, name, &TensorPlan::name);
  if (found != plan.end()) return *found;
  ADD_FAILURE() << name << " is not in the plan";
  static const TensorPlan none;
  return none;
}

TEST(InflatedShape, HasTheNamedCostAndTheSourcesHeads) {
  const LlamaShape shape = value_of(inflated_shape("7b", k_small));
  EXPECT_EQ(shape, (LlamaShape{.layers = 32,
                               .hidden = 4096,
                               .feed_forward = 14336,
                               .heads = 64,
                               .key_value_heads = 16,
                               .head_width = 64}));
  EXPECT_EQ(value_of(inflated_shape("source", k_small)), k_small);
  for (const std::string& name : runtime::inflated_shape_names()) {
    EXPECT_THAT(inflated_shape(name, k_small), IsOk()) << name;
  }
  EXPECT_THAT(inflated_shape("8b", k_small),
              FailsWith(ErrorCode::invalid_argument, AllOf(HasSubstr("8b"), HasSubstr("7b"))));
}

TEST(InflatedShape, NeverMakesAGroupSmaller) {
  LlamaShape wide = k_small;
  wide.heads = 24;  // 8 to each head of keys, a 7b has 4
  const LlamaShape shape = value_of(inflated_shape("7b", wide));
  EXPECT_EQ(shape.group(), 8U);
  EXPECT_EQ(shape.query_width(), 4096U);
  LlamaShape odd = k_small;  // 6 to each of 2 heads of keys: 32 heads go into 4 groups of 8
  odd.head_width = 128;
  odd.heads = 12;
  odd.key_value_heads = 2;
  const LlamaShape other = value_of(inflated_shape("7b", odd));
  EXPECT_EQ(other.group(), 8U);
  EXPECT_EQ(other.key_value_heads, 4U);
  EXPECT_EQ(other.query_width(), 4096U);
}

TEST(InflatedShape, RefusesWhatIsTooLargeAndNamesIt) {
  struct Case {
    LlamaShape source;
    const char* what;
  };
  const auto with = [](auto change) {
    LlamaShape shape = k_small;
    change(shape);
    return shape;
  };
  for (const Case& one :
       {Case{with([](LlamaShape& s) { s.layers = 40; }), "40 layers"},
        {with([](LlamaShape& s) { s.hidden = 2000; }), "2000 columns"},
        {with([](LlamaShape& s) { s.feed_forward = 5000; }), "5000 feed-forward neurons"},
        {with([](LlamaShape& s) { s.heads = s.key_value_heads = 9; }), "9 heads of keys"}}) {
    EXPECT_THAT(
        inflated_shape("0.5b", one.source),
        FailsWith(ErrorCode::invalid_argument, AllOf(HasSubstr(one.what), HasSubstr("0.5b"))));
  }
}

TEST(InflationPlan, HeadsOfQueriesGoToTheGroupOfTheirHeadOfKeys) {
  const auto plan = plan_of(value_of(inflated_shape("7b", k_small)), "Q4_0");  // 4 to 1, was 3 to 1
  const auto& query = named(plan, "blk.0.attn_q.weight");
  EXPECT_EQ(query.rows, 4096U);
  EXPECT_THAT(query.row_runs,
              ElementsAre(Piece{0, 0, 192}, Piece{192, 256, 192}, Piece{384, 512, 192}));
  EXPECT_THAT(query.column_runs, ElementsAre(Piece{0, 0, 576}));
  EXPECT_EQ(named(plan, "blk.0.attn_output.weight").column_runs, query.row_runs);
  EXPECT_THAT(named(plan, "blk.0.attn_k.weight").row_runs, ElementsAre(Piece{0, 0, 192}));
}

TEST(InflationPlan, NormsAreScaledForTheLongerMean) {
  LlamaShape target = k_small;
  target.hidden = 4 * 576;
  const auto plan = plan_of(target, "F32");
  for (const char* name :
       {"output_norm.weight", "blk.3.attn_norm.weight", "blk.3.ffn_norm.weight"}) {
    EXPECT_FLOAT_EQ(named(plan, name).scale, 0.5F) << name;
    EXPECT_EQ(named(plan, name).type, "f32");
  }
  EXPECT_EQ(named(plan, "blk.3.attn_q.weight").scale, 1.0F);
}

TEST(InflationPlan, FurtherLayersHoldNothing) {
  const auto plan = plan_of(value_of(inflated_shape("7b", k_small)), "Q4_0");
  EXPECT_THAT(named(plan, "blk.29.ffn_up.weight").row_runs, ElementsAre(Piece{0, 0, 1536}));
  EXPECT_THAT(named(plan, "blk.30.ffn_up.weight").row_runs, IsEmpty());
  EXPECT_EQ(named(plan, "blk.31.ffn_down.weight").columns, 14336U);
}

TEST(InflationPlan, TheHeadIsFinerThanTheRest) {
  const LlamaShape large = value_of(inflated_shape("0.5b", k_small));
  EXPECT_EQ(named(plan_of(large, "Q4_0"), "token_embd.weight").type, "q6_K");
  EXPECT_EQ(named(plan_of(k_small, "Q4_0"), "token_embd.weight").type, "q8_0");  // 576 / 256
  EXPECT_EQ(named(plan_of(large, "F16"), "token_embd.weight").type, "f16");
  const auto untied = plan_of(large, "Q4_0", false);
  EXPECT_EQ(named(untied, "token_embd.weight").type, "q4_0");
  EXPECT_EQ(named(untied, "output.weight").type, "q6_K");
  EXPECT_EQ(named(untied, "blk.0.attn_v.weight").type, "q4_0");
}

TEST(InflationPlan, TheMixesGiveSomeLayersMoreBits) {
  const auto plan = plan_of(value_of(inflated_shape("7b", k_small)), "Q4_K_M");
  std::string types;
  for (std::size_t i = 0; i < 32; ++i) {
    const std::string type = named(plan, std::format("blk.{}.ffn_down.weight", i)).type;
    EXPECT_EQ(named(plan, std::format("blk.{}.attn_v.weight", i)).type, type);
    EXPECT_EQ(named(plan, std::format("blk.{}.attn_k.weight", i)).type, "q4_K");
    types += type == "q6_K" ? '6' : type == "q4_K" ? '4' : '?';
  }
  EXPECT_EQ(types, "66664464464464464464464464466666");
}

TEST(InflationPlan, OnlyTheLayersMatricesAreNoisy) {
  const auto plan = plan_of(k_small, "F32");
  for (const TensorPlan& tensor : plan) {
    EXPECT_EQ(tensor.noisy, tensor.name.starts_with("blk.") && !tensor.is_vector) << tensor.name;
  }
}

TEST(InflationPlan, RefusesTensorsThatItDoesNotKnowLacksOrThatHaveAnotherSize) {
  const WeightTypes types = value_of(weight_types("F32"));
  auto tensors = tensors_of(k_small);
  tensors.push_back({"blk.0.ffn_gate_inp.weight", 8, 576});
  EXPECT_THAT(plan_inflation(k_small, k_small, tensors, types),
              FailsWith(ErrorCode::unsupported, HasSubstr("blk.0.ffn_gate_inp.weight")));
  tensors = tensors_of(k_small);
  tensors.erase(tensors.begin() + 5);
  EXPECT_THAT(plan_inflation(k_small, k_small, tensors, types),
              FailsWith(ErrorCode::bad_format, HasSubstr("missing")));
  tensors = tensors_of(k_small);
  tensors[4].rows = 100;
  EXPECT_THAT(plan_inflation(k_small, k_small, tensors, types),
              FailsWith(ErrorCode::bad_format, HasSubstr("100 rows of 576, 576 rows of 576")));
}

TEST(InflationPlan, RefusesUnknownTypes) {
  EXPECT_THAT(weight_types("Q9"), FailsWith(ErrorCode::invalid_argument, HasSubstr("Q4_K_M")));
}

}  // namespace
}  // namespace paceline::test
