// Drafts as trees of tokens. A chain is a tree without branches.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/token.hpp"

namespace paceline {

/// `DraftTree::Node::parent` of nodes that follow the last emitted token.
inline constexpr std::int32_t k_tree_root = -1;

struct DraftTree {
  struct Node {
    Token token{};
    std::int32_t parent = k_tree_root;  // index of an earlier node
  };
  std::vector<Node> nodes;  // parents before children

  std::size_t size() const { return nodes.size(); }
  bool empty() const { return nodes.empty(); }
  /// Adds a node and gives its index.
  std::int32_t add(Token token, std::int32_t parent);
  static DraftTree chain(std::span<const Token> tokens);
  /// Number of nodes without children (0 for an empty tree).
  std::size_t leaves() const;
  /// Rows between the root and the deepest node.
  std::size_t depth() const;
};

}  // namespace paceline
