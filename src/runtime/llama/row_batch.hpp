// The arrays behind a llama_batch.
#pragma once

#include <llama.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/token.hpp"

namespace paceline::runtime {

/// Made once for the most rows of a pass. One thread.
class RowBatch {
 public:
  RowBatch(std::size_t capacity, std::size_t ids_per_row)
      : ids_per_row_(ids_per_row),
        tokens_(capacity),
        positions_(capacity),
        id_counts_(capacity),
        ids_(capacity * ids_per_row),
        id_pointers_(capacity),
        outputs_(capacity) {
    for (std::size_t i = 0; i < capacity; ++i) id_pointers_[i] = &ids_[i * ids_per_row];
  }

  std::size_t capacity() const { return tokens_.size(); }
  std::size_t size() const { return size_; }
  void clear() { size_ = 0; }

  /// Appends a row that belongs to no sequence yet.
  void add(Token token, std::size_t position, bool output) {
    tokens_[size_] = to_int(token);
    positions_[size_] = static_cast<llama_pos>(position);
    outputs_[size_] = output ? 1 : 0;
    id_counts_[size_] = 0;
    ++size_;
  }
  void add_id(std::size_t row, llama_seq_id id) {
    ids_[row * ids_per_row_ + static_cast<std::size_t>(id_counts_[row]++)] = id;
  }
  std::span<const llama_seq_id> ids(std::size_t row) const {
    return {&ids_[row * ids_per_row_], static_cast<std::size_t>(id_counts_[row])};
  }
  /// Valid until the next `add`.
  llama_batch view() {
    return {.n_tokens = static_cast<std::int32_t>(size_),
            .token = tokens_.data(),
            .embd = nullptr,
            .pos = positions_.data(),
            .n_seq_id = id_counts_.data(),
            .seq_id = id_pointers_.data(),
            .logits = outputs_.data()};
  }

 private:
  std::size_t ids_per_row_;
  std::size_t size_ = 0;
  std::vector<llama_token> tokens_;
  std::vector<llama_pos> positions_;
  std::vector<std::int32_t> id_counts_;
  std::vector<llama_seq_id> ids_;
  std::vector<llama_seq_id*> id_pointers_;
  std::vector<std::int8_t> outputs_;
};

}  // namespace paceline::runtime
