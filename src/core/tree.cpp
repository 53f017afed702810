#include "core/tree.hpp"

#include <algorithm>

namespace paceline {

std::int32_t DraftTree::add(Token token, std::int32_t parent) {
  nodes.push_back({token, parent});
  return static_cast<std::int32_t>(nodes.size()) - 1;
}

DraftTree DraftTree::chain(std::span<const Token> tokens) {
  DraftTree tree;
  std::int32_t parent = k_tree_root;
  for (const Token token : tokens) parent = tree.add(token, parent);
  return tree;
}

std::size_t DraftTree::leaves() const {
  std::vector<bool> has_child(nodes.size(), false);
  for (const Node& node : nodes) {
    if (node.parent >= 0) has_child[static_cast<std::size_t>(node.parent)] = true;
  }
  return static_cast<std::size_t>(std::ranges::count(has_child, false));
}

std::size_t DraftTree::depth() const {
  std::vector<std::size_t> depths(nodes.size(), 1);
  std::size_t deepest = 0;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (nodes[i].parent >= 0) depths[i] = depths[static_cast<std::size_t>(nodes[i].parent)] + 1;
    deepest = std::max(deepest, depths[i]);
  }
  return deepest;
}

}  // namespace paceline
