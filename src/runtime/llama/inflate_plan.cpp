#include "runtime/llama/inflate_plan.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <format>
#include <set>
#include <utility>

#include "core/text.hpp"

namespace paceline::runtime {

namespace {

/// 7b is Mistral 7B's; the others have the widths of such models at 30 layers, which the 135M
/// model that is usually put into them needs.
struct NamedShape {
  std::string_view name;
  std::size_t layers;
  std::size_t hidden;
  std::size_t feed_forward;
  std::size_t query_width;
  std::size_t key_value_width;
};
constexpr std::array k_shapes = {
    NamedShape{"0.5b", 30, 1024, 3584, 1024, 256},
    NamedShape{"1.5b", 30, 2048, 6144, 2048, 512},
    NamedShape{"3b", 30, 3072, 8192, 3072, 1024},
    NamedShape{"7b", 32, 4096, 14336, 4096, 1024},
};
constexpr std::string_view k_source_shape = "source";

struct NamedTypes {
  std::string_view name;
  std::string_view usual;
  std::string_view more_bits = {};
};
constexpr std::array k_types = {
    NamedTypes{"F32", "f32"},
    NamedTypes{"F16", "f16"},
    NamedTypes{"BF16", "bf16"},
    NamedTypes{"Q8_0", "q8_0"},
    NamedTypes{"Q4_0", "q4_0"},
    NamedTypes{"Q4_1", "q4_1"},
    NamedTypes{"Q5_0", "q5_0"},
    NamedTypes{"Q5_1", "q5_1"},
    NamedTypes{"Q4_K", "q4_K"},
    NamedTypes{"Q5_K", "q5_K"},
    NamedTypes{"Q6_K", "q6_K"},
    NamedTypes{"Q4_K_M", "q4_K", "q6_K"},
    NamedTypes{"Q5_K_M", "q5_K", "q6_K"},
};

std::vector<std::string> names_of(const auto& entries) {
  std::vector<std::string> names;
  for (const auto& entry : entries) names.emplace_back(entry.name);
  return names;
}

/// What a tensor's rows or columns run over.
enum class Axis { one, vocabulary, hidden, feed_forward, query, key_value, head, rotation };

struct Role {
  std::string_view name;  // in a layer: behind "blk.N."
  Axis rows;
  Axis columns;
  bool required = true;
  bool is_rms_norm = false;  // over `hidden`
};

// In the order in which they are written.
constexpr std::array k_model_roles = {
    Role{"token_embd.weight", Axis::vocabulary, Axis::hidden},
    Role{"output.weight", Axis::vocabulary, Axis::hidden, false},  // missing: tied
    Role{"output_norm.weight", Axis::one, Axis::hidden, true, true},
    Role{"rope_freqs.weight", Axis::one, Axis::rotation, false},
};
constexpr std::array k_layer_roles = {
    Role{"attn_norm.weight", Axis::one, Axis::hidden, true, true},
    Role{"attn_q.weight", Axis::query, Axis::hidden},
    Role{"attn_q.bias", Axis::one, Axis::query, false},
    Role{"attn_q_norm.weight", Axis::one, Axis::head, false},
    Role{"attn_k.weight", Axis::key_value, Axis::hidden},
    Role{"attn_k.bias", Axis::one, Axis::key_value, false},
    Role{"attn_k_norm.weight", Axis::one, Axis::head, false},
    Role{"attn_v.weight", Axis::key_value, Axis::hidden},
    Role{"attn_v.bias", Axis::one, Axis::key_value, false},
    Role{"attn_output.weight", Axis::hidden, Axis::query},
    Role{"ffn_norm.weight", Axis::one, Axis::hidden, true, true},
    Role{"ffn_gate.weight", Axis::feed_forward, Axis::hidden},
    Role{"ffn_up.weight", Axis::feed_forward, Axis::hidden},
    Role{"ffn_down.weight", Axis::hidden, Axis::feed_forward},
};

class Planner {
 public:
  Planner(const LlamaShape& source, const LlamaShape& target,
          const std::vector<SourceTensor>& tensors, const WeightTypes& types)
      : source_(source), target_(target), tensors_(tensors), types_(types) {}

  Result<std::vector<TensorPlan>> plan();

 private:
  const SourceTensor* find(std::string_view name) const {
    const auto found = std::ranges::find(tensors_, name, &SourceTensor::name);
    return found == tensors_.end() ? nullptr : &*found;
  }
  /// In the source: of `tensor`, where the shape does not say.
  static std::size_t extent(Axis axis, const LlamaShape& shape, std::size_t otherwise);
  std::vector<Run> runs(Axis axis, std::size_t extent) const;
  std::string type_of(const Role& role, std::size_t layer) const;
  Result<void> add(const Role& role, const std::string& name, const std::string& source_name,
                   std::size_t layer);

  const LlamaShape& source_;
  const LlamaShape& target_;
  const std::vector<SourceTensor>& tensors_;
  const WeightTypes& types_;
  std::set<std::string, std::less<>> used_;
  std::vector<TensorPlan> plan_;
};

std::size_t Planner::extent(Axis axis, const LlamaShape& shape, std::size_t otherwise) {
  switch (axis) {
    case Axis::one:
      return 1;
    case Axis::hidden:
      return shape.hidden;
    case Axis::feed_forward:
      return shape.feed_forward;
    case Axis::query:
      return shape.query_width();
    case Axis::key_value:
      return shape.key_value_width();
    case Axis::head:
      return shape.head_width;
    case Axis::vocabulary:
    case Axis::rotation:
      break;
  }
  return otherwise;
}

/// Heads of queries go to the group of their head of keys; everything else keeps its place.
std::vector<Run> Planner::runs(Axis axis, std::size_t extent) const {
  if (axis != Axis::query || source_.group() == target_.group()) return {{0, 0, extent}};
  std::vector<Run> result;
  const std::size_t from_step = source_.group() * source_.head_width;
  const std::size_t to_step = target_.group() * source_.head_width;
  for (std::size_t group = 0; group < source_.key_value_heads; ++group) {
    result.push_back({group * from_step, group * to_step, from_step});
  }
  return result;
}

/// As llama.cpp's own mixes: the first and last eighth of the layers and every third between.
bool takes_more_bits(std::size_t layer, std::size_t layers) {
  const std::size_t eighth = layers / 8;
  return layer < eighth || layer >= 7 * layers / 8 || (layer - eighth) % 3 == 2;
}

std::string Planner::type_of(const Role& role, std::size_t layer) const {
  if (role.rows == Axis::one) return "f32";
  constexpr std::array<std::string_view, 4> k_plain = {"f32", "f16", "bf16", "q8_0"};
  const bool is_head = role.name == "output.weight" ||
                       (role.name == "token_embd.weight" && find("output.weight") == nullptr);
  if (is_head && !std::ranges::contains(k_plain, types_.usual)) {
    return target_.hidden % 256 == 0 ? "q6_K" : "q8_0";
  }
  if (!types_.more_bits.empty() && takes_more_bits(layer, target_.layers) &&
      (role.name == "attn_v.weight" || role.name == "ffn_down.weight")) {
    return types_.more_bits;
  }
  return types_.usual;
}

Result<void> Planner::add(const Role& role, const std::string& name, const std::string& source_name,
                          std::size_t layer) {
  const SourceTensor* const model = find(source_name);  // what this tensor is like
  if (model == nullptr) {
    if (!role.required) return {};
    return fail(ErrorCode::bad_format, std::format("tensor {} is missing", source_name));
  }
  const std::size_t rows = extent(role.rows, source_, model->rows);
  const std::size_t columns = extent(role.columns, source_, model->columns);
  if (model->rows != rows || model->columns != columns) {
    return fail(ErrorCode::bad_format,
                std::format("tensor {} has {} rows of {}, {} rows of {} are wanted", source_name,
                            model->rows, model->columns, rows, columns));
  }
  TensorPlan tensor;
  tensor.name = name;
  tensor.is_vector = role.rows == Axis::one;
  tensor.type = type_of(role, layer);
  tensor.rows = extent(role.rows, target_, rows);
  tensor.columns = extent(role.columns, target_, columns);
  if (name == source_name) {
    used_.insert(name);
    tensor.row_runs = runs(role.rows, rows);
    tensor.column_runs = runs(role.columns, columns);
  }
  if (role.is_rms_norm) {
    tensor.scale = static_cast<float>(
        std::sqrt(static_cast<double>(source_.hidden) / static_cast<double>(target_.hidden)));
  }
  if (role.columns == Axis::head || role.is_rms_norm) tensor.padding = 1.0F;
  tensor.noisy = !tensor.is_vector && name.starts_with("blk.");
  plan_.push_back(std::move(tensor));
  return {};
}

Result<std::vector<TensorPlan>> Planner::plan() {
  PACELINE_TRY_VOID(check_inflatable(source_, target_));
  for (const Role& role : k_model_roles) {
    PACELINE_TRY_VOID(add(role, std::string(role.name), std::string(role.name), 0));
  }
  for (std::size_t layer = 0; layer < target_.layers; ++layer) {
    for (const Role& role : k_layer_roles) {
      PACELINE_TRY_VOID(add(role, std::format("blk.{}.{}", layer, role.name),
                            std::format("blk.{}.{}", layer < source_.layers ? layer : 0, role.name),
                            layer));
    }
  }
  for (const SourceTensor& tensor : tensors_) {
    if (!used_.contains(tensor.name)) {
      return fail(ErrorCode::unsupported,
                  std::format("tensor {} is none that a Llama-like network is known to have; "
                              "without it the inflated model would compute something else",
                              escape(tensor.name, 60)));
    }
  }
  return std::move(plan_);
}

}  // namespace

std::vector<std::string> inflated_shape_names() {
  std::vector<std::string> names = names_of(k_shapes);
  names.insert(names.begin(), std::string(k_source_shape));
  return names;
}

std::vector<std::string> weight_type_names() { return names_of(k_types); }

Result<WeightTypes> weight_types(std::string_view name) {
  const auto found = std::ranges::find(k_types, name, &NamedTypes::name);
  if (found == k_types.end()) {
    return fail(ErrorCode::invalid_argument,
                std::format("type \"{}\" is unknown; known: {}", escape(name),
                            join(weight_type_names(), ", ")));
  }
  return WeightTypes{.name = std::string(found->name),
                     .usual = std::string(found->usual),
                     .more_bits = std::string(found->more_bits)};
}

Result<void> check_inflatable(const LlamaShape& source, const LlamaShape& target) {
  struct Size {
    std::string_view what;
    std::size_t source;
    std::size_t target;
  };
  if (source.head_width != target.head_width) {
    return fail(ErrorCode::invalid_argument,
                std::format("heads are {} wide in the source; {} in the shape would turn "
                            "positions differently",
                            source.head_width, target.head_width));
  }
  if (target.key_value_heads == 0 || target.heads % target.key_value_heads != 0) {
    return fail(ErrorCode::invalid_argument,
                std::format("{} heads of queries cannot share {} heads of keys", target.heads,
                            target.key_value_heads));
  }
  for (const Size& size :
       {Size{"layers", source.layers, target.layers},
        {"columns", source.hidden, target.hidden},
        {"feed-forward neurons", source.feed_forward, target.feed_forward},
        {"heads of keys", source.key_value_heads, target.key_value_heads},
        {"heads of queries to each head of keys", source.group(), target.group()}}) {
    if (size.source <= size.target) continue;
    return fail(ErrorCode::invalid_argument,
                std::format("the source has {} {}, the shape has room for {}; choose a larger "
                            "shape",
                            size.source, size.what, size.target));
  }
  return {};
}

Result<std::vector<TensorPlan>> plan_inflation(const LlamaShape& source, const LlamaShape& target,
                                               const std::vector<SourceTensor>& tensors,
                                               const WeightTypes& types) {
  return Planner(source, target, tensors, types).plan();
}

Result<LlamaShape> inflated_shape(std::string_view name, const LlamaShape& source) {
  if (name == k_source_shape) return source;
  const auto found = std::ranges::find(k_shapes, name, &NamedShape::name);
  if (found == k_shapes.end()) {
    return fail(ErrorCode::invalid_argument,
                std::format("shape \"{}\" is unknown; known: {}", escape(name),
                            join(inflated_shape_names(), ", ")));
  }
  LlamaShape shape;
  shape.layers = found->layers;
  shape.hidden = found->hidden;
  shape.feed_forward = found->feed_forward;
  shape.head_width = source.head_width;
  // Groups may be larger than the named shape's, never smaller than the source's: then there are
  // fewer heads of keys, and queries keep their width.
  shape.heads = std::max<std::size_t>(1, found->query_width / source.head_width);
  shape.key_value_heads = std::max<std::size_t>(
      1, std::min(found->key_value_width / source.head_width, shape.heads / source.group()));
  while (shape.heads % shape.key_value_heads != 0) --shape.key_value_heads;
  if (const auto fits = check_inflatable(source, shape); !fits) {
    return fits.error().in(std::format("shape {}", name));
  }
  return shape;
}

}  // namespace paceline::runtime
