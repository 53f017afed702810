#include "compat/canary_sampler_impl.hpp"

#include <array>
#include <cmath>
#include <format>
#include <vector>

#include "core/token.hpp"
#include "verify/sampler.hpp"

namespace paceline::compat {

namespace {

constexpr std::size_t k_draws = 12;
// Probabilities of tokens 0 to 7; their logarithms are the logits.
constexpr std::array k_probabilities{0.26, 0.20, 0.16, 0.13, 0.10, 0.07, 0.05, 0.03};

struct KnownAnswer {
  const char* name;
  verify::SamplerOptions options;
  std::array<int, k_draws> tokens;  // of positions 0, 1, ...
};

std::vector<KnownAnswer> known_answers();

}  // namespace

std::string sampler_fault() {
  std::vector<float> logits;
  for (const double p : k_probabilities) logits.push_back(static_cast<float>(std::log(p)));
  for (const KnownAnswer& answer : known_answers()) {
    verify::Sampler sampler(answer.options, logits.size());
    sampler.push(Token{1});  // a prompt
    std::string drawn;
    std::string wanted;
    for (std::size_t i = 0; i < k_draws; ++i) {
      const Token token = sampler.choose(logits, i);
      sampler.push(token);
      drawn += std::format("{} ", to_int(token));
      wanted += std::format("{} ", answer.tokens[i]);
    }
    if (drawn != wanted) {
      return std::format("{}: drew {}where {}is right", answer.name, drawn, wanted);
    }
  }
  return {};
}

namespace {

/// In each, two links of the chain give other tokens when they change places. The answers were
/// computed apart from verify::Sampler, from its contract.
std::vector<KnownAnswer> known_answers() {
  const auto options = [](auto fill) {
    verify::SamplerOptions o;
    o.temperature = 1;
    o.seed = 17;
    fill(o);
    return o;
  };
  return {
      {"top-k before top-p",
       options([](auto& o) {
         o.top_k = 4;
         o.top_p = 0.6;
       }),
       {0, 0, 1, 1, 0, 1, 0, 0, 0, 0, 0, 0}},
      {"top-p before min-p",
       options([](auto& o) {
         o.top_p = 0.8;
         o.min_p = 0.45;
       }),
       {1, 1, 3, 1, 1, 2, 0, 1, 0, 0, 0, 1}},
      {"top-p before the temperature",
       options([](auto& o) {
         o.top_p = 0.5;
         o.temperature = 3;
       }),
       {1, 1, 2, 1, 1, 1, 0, 1, 0, 0, 0, 1}},
      {"min-p before the temperature",
       options([](auto& o) {
         o.min_p = 0.4;
         o.temperature = 3;
       }),
       {1, 1, 3, 2, 1, 2, 0, 1, 0, 0, 0, 1}},
      {"penalties before top-k",
       options([](auto& o) {
         o.presence_penalty = 2;
         o.top_k = 3;
       }),
       {0, 3, 5, 4, 2, 0, 6, 0, 0, 0, 0, 7}},
      {"bias before penalties",
       options([](auto& o) {
         o.logit_bias = {{Token{6}, 4.0}};
         o.repetition_penalty = 2;
       }),
       {6, 6, 6, 6, 6, 6, 3, 6, 2, 5, 6, 6}},
      {"one random number per position",
       options([](auto& o) {
         o.top_k = 3;
         o.min_p = 0.3;
       }),
       {0, 1, 2, 1, 1, 1, 0, 0, 0, 0, 0, 1}},
  };
}

}  // namespace

}  // namespace paceline::compat
