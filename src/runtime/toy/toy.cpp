#include "runtime/toy/toy.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <format>
#include <utility>

#include "core/check.hpp"
#include "core/random.hpp"
#include "core/text.hpp"

namespace paceline::runtime {

namespace {

constexpr std::string_view k_prefix = "toy:";
constexpr std::size_t k_hidden = 16;
constexpr Token k_end_of_text{0};

/// What the logits depend on: all tokens (as a running hash) and the last two.
struct Context {
  std::uint64_t hash = 0x6a09e667f3bcc908ULL;
  std::uint32_t last = 0;
  std::uint32_t before_last = 0;

  Context then(Token token) const {
    const auto id = static_cast<std::uint32_t>(to_int(token));
    return {mix64(hash * 0x9e3779b97f4a7c15ULL + id + 1), id, last};
  }
};

/// The token that gets the spike. Three times in four it follows from the last two tokens, so that
/// texts repeat themselves and lookup finds something; else from all tokens, so that a wrong cache
/// shows at once.
Token preferred(const ToyOptions& options, const Context& context) {
  const std::uint64_t whole = random_at(options.seed, context.hash);
  if (whole % 256 == 0) return k_end_of_text;
  std::uint64_t bits = mix64(whole);
  if ((whole >> 32) % 4 != 0) {
    bits = random_at(options.seed + 1, (std::uint64_t{context.before_last} << 32) | context.last);
  }
  Token token = to_token(1 + bits % (options.vocabulary - 1));
  if (options.agree &&
      to_unit(random_at(options.seed ^ 0x5bd1e995, context.hash)) >= *options.agree) {
    const std::size_t shift = 1 + (bits >> 40) % (options.vocabulary - 2);
    token = to_token(1 + (to_index(token) - 1 + shift) % (options.vocabulary - 1));
  }
  return token;
}

/// Noise in [0, 1) below the spike. Eight logits share one hash: 10^5 passes must take seconds.
float noise(std::uint64_t seed, const Context& context, std::size_t token) {
  const std::uint64_t bits = random_at(seed ^ context.hash, token / 8);
  return static_cast<float>((bits >> (8 * (token % 8))) & 0xff) / 256.0f;
}

class ToyVocabulary final : public Vocabulary {
 public:
  explicit ToyVocabulary(std::size_t size) : size_(size) {}

  std::size_t size() const override { return size_; }

  Result<std::vector<Token>> tokenize(std::string_view text, TokenizeOptions) const override {
    std::vector<Token> tokens;
    tokens.reserve(text.size());
    for (const char c : text) {
      tokens.push_back(
          to_token(1 + static_cast<unsigned char>(c) % std::min<std::size_t>(256, size_ - 1)));
    }
    return tokens;
  }

  std::string piece(Token token, bool show_special) const override {
    if (to_int(token) < 0 || to_index(token) >= size_) return {};
    if (token == k_end_of_text) return show_special ? "<end>" : "";
    const std::size_t index = to_index(token) - 1;
    if (size_ < 257) return std::string(1, static_cast<char>(' ' + index % 95));
    if (index < 256) return std::string(1, static_cast<char>(static_cast<unsigned char>(index)));
    return std::format(" {}", index);
  }

  bool is_end_of_text(Token token) const override { return token == k_end_of_text; }
  std::string chat_template() const override { return {}; }

  Result<RenderedChat> render_chat(const std::vector<ChatMessage>& messages) const override {
    std::string text;
    for (const ChatMessage& message : messages) {
      text += std::format("[{}]\n{}\n", message.role, message.content);
    }
    return RenderedChat{text + "[assistant]\n", false, "none"};
  }

 private:
  std::size_t size_;
};

class ToyRuntime final : public Runtime {
 public:
  ToyRuntime(const ToyOptions& options, const RuntimeLimits& limits)
      : options_(options), limits_(limits), sequences_(limits.sequences) {}

  const RuntimeLimits& limits() const override { return limits_; }

  Capabilities capabilities() const override {
    return {.rollback = true,
            .rollback_reason = {},
            .trees = limits_.leaves > 1,
            .features = limits_.features,
            .exact_widths = true};
  }

  RuntimeInfo info() const override {
    return {.name = "toy",
            .build = "1",
            .backend = "CPU",
            .threads = 1,
            .context = limits_.context,
            .rows = limits_.rows,
            .kv_type_k = "none",
            .kv_type_v = "none",
            .flash_attention = "none"};
  }

  PassCounters counters() const override { return counters_; }

  Result<SequenceId> create_sequence() override {
    for (std::size_t i = 0; i < sequences_.size(); ++i) {
      if (sequences_[i]) continue;
      sequences_[i].emplace(1);
      return static_cast<SequenceId>(i);
    }
    return fail(ErrorCode::busy,
                std::format("all {} sequences of the toy runtime are in use", sequences_.size()));
  }

  Result<SequenceId> fork(SequenceId sequence) override {
    PACELINE_TRY(const SequenceId copy, create_sequence());
    at(copy) = at(sequence);
    return copy;
  }

  void release(SequenceId sequence) override {
    at(sequence);
    drop_rows(sequence);
    sequences_[static_cast<std::size_t>(sequence)].reset();
  }

  std::size_t length(SequenceId sequence) const override { return at(sequence).size() - 1; }

  Result<void> forward(std::span<const Row> rows, std::stop_token stop) override {
    std::vector<std::optional<std::size_t>> lengths(sequences_.size());
    for (std::size_t i = 0; i < sequences_.size(); ++i) {
      if (sequences_[i]) lengths[i] = sequences_[i]->size() - 1;
    }
    PACELINE_TRY_VOID(check_batch(rows, limits_, options_.vocabulary, lengths));
    for (const Row& row : rows) {
      if (includes(row.wants, Wants::feature) && !limits_.features) {
        return fail(ErrorCode::invalid_argument,
                    "a row wants its feature, but the runtime was made without features");
      }
    }
    if (stop.stop_requested()) return fail(ErrorCode::cancelled, "the pass was stopped");
    rows_.assign(rows.begin(), rows.end());
    contexts_.clear();
    open_.assign(sequences_.size(), false);
    for (const Row& row : rows) {
      open_[static_cast<std::size_t>(row.sequence)] = true;
      const Context& parent = row.parent == k_committed_end
                                  ? at(row.sequence).back()
                                  : contexts_[static_cast<std::size_t>(row.parent)];
      contexts_.push_back(parent.then(row.token));
    }
    logits_.resize(rows.size());
    features_.resize(rows.size());
    for (std::size_t i = 0; i < rows.size(); ++i) {
      logits_[i].clear();
      if (includes(rows[i].wants, Wants::logits)) compute_logits(i);
      if (includes(rows[i].wants, Wants::feature)) compute_feature(i);
    }
    counters_.forwards += 1;
    counters_.rows += rows.size();
    return {};
  }

  Token argmax(std::size_t row) const override {
    PACELINE_CHECK(row < rows_.size() && includes(rows_[row].wants, Wants::argmax),
                   "the row did not want its argmax");
    // The spike reaches over all noise; a smaller one has to be compared.
    if (options_.spike >= 1) return preferred(options_, contexts_[row]);
    std::size_t best = 0;
    float best_logit = logit(row, 0);
    for (std::size_t t = 1; t < options_.vocabulary; ++t) {
      if (const float x = logit(row, t); x > best_logit) {
        best = t;
        best_logit = x;
      }
    }
    return to_token(best);
  }

  std::span<const float> logits(std::size_t row) const override {
    PACELINE_CHECK(row < rows_.size() && includes(rows_[row].wants, Wants::logits),
                   "the row did not want its logits");
    return logits_[row];
  }

  std::span<const float> feature(std::size_t row) const override {
    PACELINE_CHECK(row < rows_.size() && includes(rows_[row].wants, Wants::feature),
                   "the row did not want its feature");
    return features_[row];
  }

  Result<void> accept(SequenceId sequence, std::span<const std::int32_t> path) override {
    if (!path.empty() && !is_open(sequence)) {
      return fail(ErrorCode::invalid_argument, std::format("sequence {} has no open rows to accept",
                                                           static_cast<std::uint32_t>(sequence)));
    }
    PACELINE_TRY_VOID(check_path(rows_, sequence, path));
    drop_rows(sequence);
    for (const std::int32_t row : path) {
      at(sequence).push_back(contexts_[static_cast<std::size_t>(row)]);
    }
    return {};
  }

  Result<void> truncate(SequenceId sequence, std::size_t length) override {
    if (length > this->length(sequence)) {
      return fail(ErrorCode::invalid_argument,
                  std::format("cannot truncate {} tokens to {}", this->length(sequence), length));
    }
    drop_rows(sequence);
    at(sequence).resize(length + 1);
    return {};
  }

 private:
  // [0] is the empty context, [i] the context after i tokens.
  using Contexts = std::vector<Context>;

  const Contexts& at(SequenceId sequence) const {
    const auto index = static_cast<std::size_t>(sequence);
    PACELINE_CHECK(index < sequences_.size() && sequences_[index], "no such sequence");
    return *sequences_[index];
  }
  Contexts& at(SequenceId sequence) {
    return const_cast<Contexts&>(std::as_const(*this).at(sequence));
  }

  bool is_open(SequenceId sequence) const {
    const auto index = static_cast<std::size_t>(sequence);
    return index < open_.size() && open_[index];
  }
  void drop_rows(SequenceId sequence) {
    if (is_open(sequence)) open_[static_cast<std::size_t>(sequence)] = false;
  }

  float logit(std::size_t row, std::size_t token) const {
    const float spike = to_index(preferred(options_, contexts_[row])) == token
                            ? static_cast<float>(options_.spike)
                            : 0.0f;
    return noise(options_.seed, contexts_[row], token) + spike;
  }

  void compute_logits(std::size_t row) {
    logits_[row].resize(options_.vocabulary);
    for (std::size_t t = 0; t < options_.vocabulary; ++t) {
      logits_[row][t] = noise(options_.seed, contexts_[row], t);
    }
    logits_[row][to_index(preferred(options_, contexts_[row]))] +=
        static_cast<float>(options_.spike);
  }

  void compute_feature(std::size_t row) {
    for (std::size_t i = 0; i < k_hidden; ++i) {
      features_[row][i] = static_cast<float>(
          2 * to_unit(random_at(options_.seed + 2, contexts_[row].hash + i)) - 1);
    }
  }

  ToyOptions options_;
  RuntimeLimits limits_;
  std::vector<std::optional<Contexts>> sequences_;
  std::vector<Row> rows_;
  Contexts contexts_;       // [rows] of the last pass
  std::vector<bool> open_;  // [sequences] has rows of the last pass that can be accepted
  std::vector<std::vector<float>> logits_;
  std::vector<std::array<float, k_hidden>> features_;
  PassCounters counters_;
};

class ToyModel final : public Model {
 public:
  explicit ToyModel(const ToyOptions& options)
      : options_(options), vocabulary_(options.vocabulary) {
    info_.name = std::format("toy:{}", options.seed);
    info_.architecture = "toy";
    info_.file_type = "none";
    info_.hidden = k_hidden;
    info_.trained_context = options.context;
  }

  const Vocabulary& vocabulary() const override { return vocabulary_; }
  const ModelInfo& info() const override { return info_; }

  Result<std::unique_ptr<Runtime>> create_runtime(const RuntimeLimits& limits) const override {
    RuntimeLimits effective = limits;
    if (effective.context == 0) effective.context = options_.context;
    if (effective.sequences == 0 || effective.rows == 0 || effective.leaves == 0) {
      return fail(ErrorCode::invalid_argument,
                  "a runtime needs at least one sequence, one row and one leaf");
    }
    effective.threads = 1;
    return std::make_unique<ToyRuntime>(options_, effective);
  }

 private:
  ToyOptions options_;
  ToyVocabulary vocabulary_;
  ModelInfo info_;
};

class ToyMemoryEstimator final : public MemoryEstimator {
 public:
  explicit ToyMemoryEstimator(const ToyOptions& options) : model_(options) {}

  const ModelInfo& info() const override { return model_.info(); }
  Result<std::vector<MemoryNeed>> need(const RuntimeLimits& limits) const override {
    PACELINE_TRY(const auto runtime, model_.create_runtime(limits));
    const std::size_t floats = model_.vocabulary().size() + k_hidden;
    return std::vector<MemoryNeed>{
        {.device = "host", .results = limits.most_results() * floats * sizeof(float)}};
  }

 private:
  ToyModel model_;
};

template <typename T>
Result<T> parse_number(std::string_view text, std::string_view what, T low, T high) {
  T value{};
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code != std::errc{} || end != text.data() + text.size() || !(value >= low && value <= high)) {
    return fail(ErrorCode::invalid_argument, std::format("{}: \"{}\" is not a number from {} to {}",
                                                         what, escape(text), low, high));
  }
  return value;
}

}  // namespace

bool is_toy_name(std::string_view name) { return name.starts_with(k_prefix); }

Result<ToyOptions> parse_toy_name(std::string_view name) {
  if (!is_toy_name(name)) {
    return fail(ErrorCode::invalid_argument,
                std::format("\"{}\" is no toy model; toy:SEED[,vocab=N][,spike=X][,agree=P]"
                            "[,context=N] is wanted",
                            escape(name)));
  }
  ToyOptions options;
  const auto parts = split(name.substr(k_prefix.size()), ',');
  PACELINE_TRY(options.seed,
               parse_number<std::uint64_t>(parts[0], "seed of the toy model", 0, UINT64_MAX));
  std::vector<std::string_view> seen;
  for (std::size_t i = 1; i < parts.size(); ++i) {
    const std::size_t equals = parts[i].find('=');
    const std::string_view key = parts[i].substr(0, equals);
    const std::string_view value =
        equals == std::string_view::npos ? std::string_view{} : parts[i].substr(equals + 1);
    const std::string what = std::format("{} of the toy model \"{}\"", key, escape(name));
    if (std::ranges::contains(seen, key)) {
      return fail(ErrorCode::invalid_argument,
                  std::format("\"{}\" stands twice in \"{}\"", escape(key), escape(name)));
    }
    seen.push_back(key);
    if (key == "vocab") {
      PACELINE_TRY(options.vocabulary, parse_number<std::size_t>(value, what, 4, 1 << 20));
    } else if (key == "spike") {
      PACELINE_TRY(options.spike, parse_number<double>(value, what, 0, 1000));
    } else if (key == "agree") {
      PACELINE_TRY(options.agree, parse_number<double>(value, what, 0, 1));
    } else if (key == "context") {
      PACELINE_TRY(options.context, parse_number<std::size_t>(value, what, 2, k_longest_context));
    } else {
      return fail(ErrorCode::invalid_argument,
                  std::format("\"{}\" in \"{}\" is unknown; vocab, spike, agree and context are "
                              "known",
                              escape(key), escape(name)));
    }
  }
  return options;
}

std::unique_ptr<MemoryEstimator> make_toy_memory_estimator(const ToyOptions& options) {
  return std::make_unique<ToyMemoryEstimator>(options);
}

std::shared_ptr<const Model> make_toy_model(const ToyOptions& options) {
  return std::make_shared<ToyModel>(options);
}

}  // namespace paceline::runtime
