#include "plan/break_even.hpp"

namespace paceline::plan {

double tokens_per_round(double acceptance, std::size_t depth) {
  double tokens = 1;
  double reached = 1;
  for (std::size_t i = 0; i < depth; ++i) {
    reached *= acceptance;
    tokens += reached;
  }
  return tokens;
}

double speedup(double acceptance, std::size_t depth, const RoundCost& cost) {
  return tokens_per_round(acceptance, depth) / cost.total();
}

std::optional<double> break_even_acceptance(std::size_t depth, const RoundCost& cost) {
  if (cost.total() <= 1) return 0;
  if (speedup(1, depth, cost) < 1) return std::nullopt;
  double low = 0;
  double high = 1;
  for (int i = 0; i < 60; ++i) {
    const double middle = (low + high) / 2;
    (speedup(middle, depth, cost) < 1 ? low : high) = middle;
  }
  return high;
}

}  // namespace paceline::plan
