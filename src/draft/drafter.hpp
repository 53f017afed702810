// What proposes tokens. A drafter keeps one state (a slot) per text that is being written.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <stop_token>
#include <string>

#include "core/result.hpp"
#include "core/token.hpp"
#include "core/tree.hpp"

namespace paceline::draft {

enum class DraftSlot : std::uint32_t {};

struct DraftRequest {
  DraftSlot slot{};
  std::size_t depth = 0;  // most tokens on a path; the drafter may give fewer or none
  DraftTree tree;         // the answer
};

/// One thread.
class Drafter {
 public:
  virtual ~Drafter() = default;

  /// A fresh slot that has seen nothing. Error busy: no slot is free.
  virtual Result<DraftSlot> open() = 0;
  virtual void close(DraftSlot slot) = 0;
  /// The text of the slot has grown by these tokens: the prompt and the first token at once, then
  /// the tokens of each round. Called after plain rounds too, so that no slot goes stale.
  virtual Result<void> observe(DraftSlot slot, std::span<const Token> tokens) = 0;
  /// Fills every request's tree with tokens that may follow what its slot has observed.
  /// Errors: cancelled, runtime_failed.
  virtual Result<void> draft(std::span<DraftRequest> requests, std::stop_token stop) = 0;
  /// Most leaves of a tree that `draft` gives; 1: chains.
  virtual std::size_t max_leaves() const { return 1; }
  /// Passes through a draft model so far; 0 for drafters without one.
  virtual std::uint64_t forwards() const { return 0; }
};

}  // namespace paceline::draft
