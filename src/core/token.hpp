// The strong type for vocabulary entries.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>

namespace paceline {

/// A token id of the target's vocabulary, 0 <= id < Vocabulary::size().
enum class Token : std::int32_t {};

constexpr std::int32_t to_int(Token token) { return static_cast<std::int32_t>(token); }
constexpr std::size_t to_index(Token token) { return static_cast<std::size_t>(token); }
constexpr Token to_token(std::size_t index) {
  return static_cast<Token>(static_cast<std::int32_t>(index));
}

}  // namespace paceline
