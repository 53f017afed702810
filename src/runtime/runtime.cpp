#include "runtime/runtime.hpp"

#include <algorithm>
#include <format>

namespace paceline::runtime {

Result<BatchShape> check_batch(std::span<const Row> rows, const RuntimeLimits& limits,
                               std::size_t vocabulary_size,
                               const std::vector<std::optional<std::size_t>>& length_of_sequence) {
  if (rows.size() > limits.rows) {
    return fail(
        ErrorCode::invalid_argument,
        std::format("{} rows in one pass, at most {} are allowed", rows.size(), limits.rows));
  }
  const auto results = static_cast<std::size_t>(
      std::ranges::count_if(rows, [](const Row& row) { return row.wants != Wants::nothing; }));
  if (results > limits.most_results()) {
    return fail(ErrorCode::invalid_argument,
                std::format("{} rows of one pass want results, at most {} may", results,
                            limits.most_results()));
  }
  BatchShape shape;
  shape.depth.resize(rows.size(), 0);
  std::vector<bool> has_child(rows.size(), false);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const Row& row = rows[i];
    const auto sequence = static_cast<std::size_t>(row.sequence);
    if (sequence >= length_of_sequence.size() || !length_of_sequence[sequence]) {
      return fail(ErrorCode::invalid_argument,
                  std::format("row {} names sequence {}, which does not exist", i, sequence));
    }
    if (to_int(row.token) < 0 || to_index(row.token) >= vocabulary_size) {
      return fail(ErrorCode::invalid_argument,
                  std::format("row {} has token {}, the vocabulary has {}", i, to_int(row.token),
                              vocabulary_size));
    }
    if (row.parent != k_committed_end) {
      const auto parent = static_cast<std::size_t>(row.parent);
      if (row.parent < 0 || parent >= i || rows[parent].sequence != row.sequence) {
        return fail(ErrorCode::invalid_argument,
                    std::format("row {} has parent {}, which is no earlier row of its sequence", i,
                                row.parent));
      }
      shape.depth[i] = shape.depth[parent] + 1;
      has_child[parent] = true;
    }
    if (*length_of_sequence[sequence] + shape.depth[i] >= limits.context) {
      return fail(ErrorCode::invalid_argument,
                  std::format("position {} lies outside the context of {} tokens",
                              *length_of_sequence[sequence] + shape.depth[i], limits.context));
    }
  }
  std::vector<std::size_t> leaves(length_of_sequence.size(), 0);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (has_child[i]) continue;
    const auto sequence = static_cast<std::size_t>(rows[i].sequence);
    if (++leaves[sequence] > limits.leaves) {
      return fail(
          ErrorCode::invalid_argument,
          std::format("more than {} leaves in the rows of sequence {}", limits.leaves, sequence));
    }
  }
  return shape;
}

Result<void> check_path(std::span<const Row> rows, SequenceId sequence,
                        std::span<const std::int32_t> path) {
  std::int32_t parent = k_committed_end;
  for (const std::int32_t index : path) {
    if (index < 0 || static_cast<std::size_t>(index) >= rows.size()) {
      return fail(ErrorCode::invalid_argument,
                  std::format("accepted row {}, the last pass had {}", index, rows.size()));
    }
    const Row& row = rows[static_cast<std::size_t>(index)];
    if (row.sequence != sequence || row.parent != parent) {
      return fail(ErrorCode::invalid_argument,
                  std::format("accepted row {} does not continue the path at {}", index, parent));
    }
    parent = index;
  }
  return {};
}

Result<std::vector<Token>> chat_tokens(const Vocabulary& vocabulary,
                                       const std::vector<ChatMessage>& messages) {
  PACELINE_TRY(const auto chat, vocabulary.render_chat(messages));
  return vocabulary.tokenize(chat.text,
                             {.add_special = !chat.adds_begin_of_text, .parse_special = true});
}

}  // namespace paceline::runtime
