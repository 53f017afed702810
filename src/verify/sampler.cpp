#include "verify/sampler.hpp"

#include <algorithm>
#include <cmath>
#include <format>
#include <limits>
#include <map>
#include <numeric>

#include "core/check.hpp"
#include "core/random.hpp"

namespace paceline::verify {

namespace {

Result<void> check_range(const char* name, double value, double low, double high) {
  if (value >= low && value <= high) return {};
  return fail(ErrorCode::invalid_argument,
              std::format("{} is {}, it must be from {} to {}", name, value, low, high));
}

/// What is no number (a broken back end, inf - inf) is never chosen before a number. It would also
/// break the order that sorting needs.
float number_or_lowest(float logit) {
  return std::isnan(logit) ? -std::numeric_limits<float>::infinity() : logit;
}

}  // namespace

Result<void> check_sampler_options(const SamplerOptions& options, std::size_t vocabulary_size) {
  PACELINE_TRY_VOID(check_range("temperature", options.temperature, 0, 100));
  PACELINE_TRY_VOID(check_range("top_p", options.top_p, 0, 1));
  PACELINE_TRY_VOID(check_range("min_p", options.min_p, 0, 1));
  PACELINE_TRY_VOID(check_range("repetition_penalty", options.repetition_penalty, 0.01, 100));
  PACELINE_TRY_VOID(check_range("presence_penalty", options.presence_penalty, -100, 100));
  PACELINE_TRY_VOID(check_range("frequency_penalty", options.frequency_penalty, -100, 100));
  for (const auto& [token, bias] : options.logit_bias) {
    if (to_int(token) < 0 || to_index(token) >= vocabulary_size) {
      return fail(ErrorCode::invalid_argument,
                  std::format("logit_bias names token {}, the vocabulary has {}", to_int(token),
                              vocabulary_size));
    }
    if (std::isnan(bias)) {
      return fail(ErrorCode::invalid_argument,
                  std::format("logit_bias of token {} is not a number", to_int(token)));
    }
  }
  return {};
}

Sampler::Sampler(SamplerOptions options, std::size_t vocabulary_size)
    : options_(std::move(options)), vocabulary_size_(vocabulary_size) {}

bool Sampler::needs_logits() const {
  return options_.temperature > 0 || options_.has_penalties() || !options_.logit_bias.empty();
}

void Sampler::push(Token token) {
  if (options_.has_penalties()) history_.push_back(token);
}

Token Sampler::choose(std::span<const float> logits, std::uint64_t position) {
  PACELINE_CHECK(logits.size() == vocabulary_size_, "logits of another vocabulary");
  candidates_.resize(logits.size());
  for (std::size_t i = 0; i < logits.size(); ++i) {
    candidates_[i] = {number_or_lowest(logits[i]), static_cast<std::int32_t>(i)};
  }
  apply_bias_and_penalties();
  if (options_.temperature == 0) {
    const auto best = std::ranges::max_element(candidates_, [](const auto& a, const auto& b) {
      return a.logit < b.logit;  // the first of equals stays the largest
    });
    return Token{best->id};
  }
  keep_top_k();
  keep_top_p();
  keep_min_p();
  return draw(position);
}

void Sampler::apply_bias_and_penalties() {
  for (const auto& [token, bias] : options_.logit_bias) {
    float& logit = candidates_[to_index(token)].logit;
    logit = number_or_lowest(logit + static_cast<float>(bias));
  }
  if (!options_.has_penalties()) return;
  std::map<Token, std::size_t> counts;
  const std::size_t window = std::min(options_.penalty_window, history_.size());
  for (const Token token : std::span(history_).last(window)) ++counts[token];
  for (const auto& [token, count] : counts) {
    float& logit = candidates_[to_index(token)].logit;
    const auto repetition = static_cast<float>(options_.repetition_penalty);
    logit = logit > 0 ? logit / repetition : logit * repetition;
    logit -= static_cast<float>(options_.presence_penalty +
                                static_cast<double>(count) * options_.frequency_penalty);
  }
}

namespace {
constexpr auto k_more_probable = [](const auto& a, const auto& b) {
  return a.logit != b.logit ? a.logit > b.logit : a.id < b.id;
};
}  // namespace

void Sampler::keep_top_k() {
  if (options_.top_k == 0 || options_.top_k >= candidates_.size()) return;
  const auto end = candidates_.begin() + static_cast<std::ptrdiff_t>(options_.top_k);
  std::partial_sort(candidates_.begin(), end, candidates_.end(), k_more_probable);
  candidates_.erase(end, candidates_.end());
}

void Sampler::keep_top_p() {
  if (options_.top_p >= 1) return;
  std::ranges::sort(candidates_, k_more_probable);
  const double largest = static_cast<double>(candidates_.front().logit);
  double total = 0;
  for (const Candidate& c : candidates_) total += std::exp(static_cast<double>(c.logit) - largest);
  double sum = 0;
  for (std::size_t i = 0; i < candidates_.size(); ++i) {
    sum += std::exp(static_cast<double>(candidates_[i].logit) - largest);
    if (sum >= options_.top_p * total) {
      candidates_.resize(i + 1);
      return;
    }
  }
}

void Sampler::keep_min_p() {
  if (options_.min_p <= 0) return;
  float largest = candidates_.front().logit;
  for (const Candidate& c : candidates_) largest = std::max(largest, c.logit);
  const float floor = largest + static_cast<float>(std::log(options_.min_p));
  std::erase_if(candidates_, [&](const Candidate& c) { return c.logit < floor; });
}

Token Sampler::draw(std::uint64_t position) {
  float largest = candidates_.front().logit;
  for (const Candidate& c : candidates_) largest = std::max(largest, c.logit);
  weights_.resize(candidates_.size());
  double total = 0;
  for (std::size_t i = 0; i < candidates_.size(); ++i) {
    // A logit of -inf gives weight 0; two of +inf share the draw.
    const double distance =
        candidates_[i].logit == largest
            ? 0
            : static_cast<double>(candidates_[i].logit) - static_cast<double>(largest);
    weights_[i] = std::exp(distance / options_.temperature);
    total += weights_[i];
  }
  const double target = to_unit(random_at(options_.seed, position)) * total;
  double sum = 0;
  std::size_t last_possible = 0;
  for (std::size_t i = 0; i < candidates_.size(); ++i) {
    if (weights_[i] <= 0) continue;
    last_possible = i;
    sum += weights_[i];
    if (target < sum) break;
  }
  return Token{candidates_[last_possible].id};
}

}  // namespace paceline::verify
