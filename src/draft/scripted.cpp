#include "draft/scripted.hpp"

#include "core/random.hpp"

namespace paceline::draft {

namespace {

/// One slot: the oracle is the oracle of one text.
class ScriptedDrafter final : public Drafter {
 public:
  explicit ScriptedDrafter(ScriptedOptions options) : options_(std::move(options)) {}

  Result<DraftSlot> open() override {
    if (open_) return fail(ErrorCode::busy, "a scripted drafter writes one text at a time");
    open_ = true;
    observed_ = 0;
    return DraftSlot{};
  }

  void close(DraftSlot) override { open_ = false; }

  Result<void> observe(DraftSlot, std::span<const Token> tokens) override {
    observed_ += tokens.size();
    return {};
  }

  Result<void> draft(std::span<DraftRequest> requests, std::stop_token) override {
    for (DraftRequest& request : requests) {
      request.tree.nodes.clear();
      std::int32_t parent = k_tree_root;
      const std::size_t emitted = observed_ - options_.prompt_tokens;
      for (std::size_t i = 0; i < request.depth && emitted + i < options_.oracle.size(); ++i) {
        const Token truth = options_.oracle[emitted + i];
        for (std::size_t d = 1; d <= options_.decoys_before; ++d) {
          request.tree.add(other_than(truth, d + 1), parent);
        }
        parent =
            request.tree.add(options_.right(emitted + i) ? truth : other_than(truth, 1), parent);
      }
    }
    return {};
  }

  std::size_t max_leaves() const override {
    return options_.decoys_before == 0 ? 1 : 1 + 16 * options_.decoys_before;
  }

 private:
  Token other_than(Token token, std::size_t distance) const {
    return to_token((to_index(token) + distance) % options_.vocabulary);
  }

  ScriptedOptions options_;
  bool open_ = false;
  std::size_t observed_ = 0;
};

}  // namespace

std::unique_ptr<Drafter> make_scripted_drafter(ScriptedOptions options) {
  return std::make_unique<ScriptedDrafter>(std::move(options));
}

std::function<bool(std::size_t)> right_with_probability(double probability, std::uint64_t seed) {
  return [=](std::size_t index) { return to_unit(random_at(seed, index)) < probability; };
}

}  // namespace paceline::draft
