#include "draft/lookup.hpp"

#include <format>
#include <optional>
#include <unordered_map>
#include <vector>

#include "core/check.hpp"
#include "core/random.hpp"

namespace paceline::draft {

namespace {

constexpr std::size_t k_most_ngram = 16;

/// The text of one slot and, for each n-gram length, where each n-gram ended last.
class History {
 public:
  explicit History(const LookupOptions& options)
      : shortest_(options.shortest_ngram),
        places_(options.longest_ngram - options.shortest_ngram + 1) {}

  void push(Token token) {
    // The n-grams that end before `token` become findable only now that something follows them.
    if (!tokens_.empty()) {
      for (std::size_t n = shortest_; n < shortest_ + places_.size(); ++n) {
        if (n <= tokens_.size()) places_[n - shortest_][key(n)] = tokens_.size();
      }
    }
    tokens_.push_back(token);
  }

  /// Index of the token that followed the last n tokens at their latest earlier place.
  std::optional<std::size_t> find(std::size_t n) const {
    if (n > tokens_.size()) return std::nullopt;
    const auto& places = places_[n - shortest_];
    const auto place = places.find(key(n));
    if (place == places.end()) return std::nullopt;
    const std::size_t next = place->second;
    for (std::size_t i = 1; i <= n; ++i) {  // a hash may collide
      if (tokens_[next - i] != tokens_[tokens_.size() - i]) return std::nullopt;
    }
    return next;
  }

  /// The continuation from `next` on. It may run into itself: "abab" goes on with "ab".
  std::vector<Token> continuation(std::size_t next, std::size_t length) const {
    std::vector<Token> tokens;
    for (std::size_t i = 0; i < length; ++i) {
      const std::size_t at = next + i;
      tokens.push_back(at < tokens_.size() ? tokens_[at] : tokens[at - tokens_.size()]);
    }
    return tokens;
  }

 private:
  std::uint64_t key(std::size_t n) const {
    std::uint64_t hash = n;
    for (std::size_t i = tokens_.size() - n; i < tokens_.size(); ++i) {
      hash = mix64(hash * 0x9e3779b97f4a7c15ULL + to_index(tokens_[i]) + 1);
    }
    return hash;
  }

  std::size_t shortest_;
  std::vector<Token> tokens_;
  std::vector<std::unordered_map<std::uint64_t, std::size_t>> places_;  // [n - shortest]
};

/// Adds a chain below the root, sharing what the tree has already.
void add_chain(DraftTree& tree, std::span<const Token> tokens) {
  std::int32_t node = k_tree_root;
  for (const Token token : tokens) {
    std::int32_t child = -1;
    for (std::size_t i = 0; i < tree.nodes.size(); ++i) {
      if (tree.nodes[i].parent == node && tree.nodes[i].token == token) {
        child = static_cast<std::int32_t>(i);
      }
    }
    node = child >= 0 ? child : tree.add(token, node);
  }
}

class LookupDrafter final : public Drafter {
 public:
  explicit LookupDrafter(const LookupOptions& options) : options_(options), slots_(options.slots) {}

  Result<DraftSlot> open() override {
    for (std::size_t i = 0; i < slots_.size(); ++i) {
      if (slots_[i]) continue;
      slots_[i].emplace(options_);
      return static_cast<DraftSlot>(i);
    }
    return fail(ErrorCode::busy, std::format("all {} lookup slots are in use", slots_.size()));
  }

  void close(DraftSlot slot) override {
    at(slot);
    slots_[static_cast<std::size_t>(slot)].reset();
  }

  Result<void> observe(DraftSlot slot, std::span<const Token> tokens) override {
    for (const Token token : tokens) at(slot).push(token);
    return {};
  }

  Result<void> draft(std::span<DraftRequest> requests, std::stop_token) override {
    for (DraftRequest& request : requests) {
      request.tree.nodes.clear();
      const History& history = at(request.slot);
      std::size_t found = 0;
      for (std::size_t n = options_.longest_ngram;
           n >= options_.shortest_ngram && found < options_.branches; --n) {
        const auto next = history.find(n);
        if (!next) continue;
        add_chain(request.tree, history.continuation(*next, request.depth));
        ++found;
      }
    }
    return {};
  }

  std::size_t max_leaves() const override { return options_.branches; }

 private:
  History& at(DraftSlot slot) {
    const auto index = static_cast<std::size_t>(slot);
    PACELINE_CHECK(index < slots_.size() && slots_[index], "no such lookup slot");
    return *slots_[index];
  }

  LookupOptions options_;
  std::vector<std::optional<History>> slots_;
};

}  // namespace

Result<std::unique_ptr<Drafter>> make_lookup_drafter(const LookupOptions& options) {
  if (options.shortest_ngram < 1 || options.longest_ngram < options.shortest_ngram ||
      options.longest_ngram > k_most_ngram) {
    return fail(ErrorCode::invalid_argument,
                std::format("lookup n-grams from {} to {} tokens; 1 <= shortest <= longest <= {} "
                            "is wanted",
                            options.shortest_ngram, options.longest_ngram, k_most_ngram));
  }
  if (options.branches < 1 || options.slots < 1) {
    return fail(ErrorCode::invalid_argument, "lookup needs at least one branch and one slot");
  }
  return std::make_unique<LookupDrafter>(options);
}

}  // namespace paceline::draft
