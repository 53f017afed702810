// Sample-and-match: the accept rule. At each node one token is drawn from the target's processed
// distribution, exactly as plain decoding would draw it. If a child holds that token the walk
// descends, else it stops. The emitted tokens are those of plain decoding, whatever was drafted.
#pragma once

#include <cstdint>
#include <vector>

#include "core/token.hpp"
#include "core/tree.hpp"

namespace paceline::verify {

struct Match {
  std::vector<std::int32_t> path;  // accepted nodes of the tree, from the root downwards
  std::vector<Token> emitted;      // accepted tokens and, unless stopped, one more
};

/// `choose(node)` gives the target's token after `node` (k_tree_root: after the last emitted
/// token). `emit(token)` takes it and says whether the text goes on.
template <typename Choose, typename Emit>
Match sample_and_match(const DraftTree& tree, Choose&& choose, Emit&& emit) {
  Match match;
  std::int32_t node = k_tree_root;
  while (true) {
    const Token token = choose(node);
    match.emitted.push_back(token);
    const bool goes_on = emit(token);
    std::int32_t child = -1;
    for (std::size_t i = 0; i < tree.nodes.size(); ++i) {
      if (tree.nodes[i].parent == node && tree.nodes[i].token == token) {
        child = static_cast<std::int32_t>(i);
        break;
      }
    }
    if (child < 0) return match;
    match.path.push_back(child);
    if (!goes_on) return match;
    node = child;
  }
}

}  // namespace paceline::verify
