#include "runtime/largest.hpp"

#include <cmath>
#include <format>
#include <limits>
#include <string>

#include "core/text.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "runtime/largest.cpp"
#include "hwy/foreach_target.h"
#include "hwy/highway.h"
//
#include "hwy/contrib/algo/find-inl.h"

HWY_BEFORE_NAMESPACE();
namespace paceline::runtime::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// A comparison with NaN is false, so NaN never wins. Four maxima at once hide the latency.
Largest find_largest(const float* logits, std::size_t count) {
  constexpr std::size_t k_maxima = 4;
  const hn::ScalableTag<float> d;
  const std::size_t width = hn::Lanes(d);
  float best = -std::numeric_limits<float>::infinity();
  bool numbers = true;
  auto first = hn::Set(d, best);
  auto second = first;
  auto third = first;
  auto fourth = first;
  auto odd = hn::Zero(d);  // all bits where NaN was seen
  const auto see = [&](auto& maxima, std::size_t at) HWY_ATTR {
    const auto values = hn::LoadU(d, logits + at);
    maxima = hn::IfThenElse(hn::Gt(values, maxima), values, maxima);
    odd = hn::Or(odd, hn::VecFromMask(d, hn::IsNaN(values)));
  };
  std::size_t i = 0;
  for (; i + k_maxima * width <= count; i += k_maxima * width) {
    see(first, i);
    see(second, i + width);
    see(third, i + 2 * width);
    see(fourth, i + 3 * width);
  }
  for (; i + width <= count; i += width) see(first, i);
  if (count >= width) {
    best = hn::ReduceMax(d, hn::Max(hn::Max(first, second), hn::Max(third, fourth)));
    numbers = hn::AllFalse(d, hn::IsNaN(odd));
  }
  for (; i < count; ++i) {
    best = logits[i] > best ? logits[i] : best;
    numbers = numbers && !std::isnan(logits[i]);
  }
  const std::size_t id = hn::Find(d, best, logits, count);
  return {.token = to_token(id < count ? id : 0), .finite = numbers && std::isfinite(best)};
}

}  // namespace paceline::runtime::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace paceline::runtime {

HWY_EXPORT(find_largest);

Largest find_largest(std::span<const float> logits) {
  return HWY_DYNAMIC_DISPATCH(find_largest)(logits.data(), logits.size());
}

Error logits_not_finite(std::string_view model, std::size_t position, std::string_view runtime) {
  const std::string other = runtime == "native"  ? ", or try --runtime llama"
                            : runtime == "llama" ? ", or try --runtime native"
                                                 : "";
  return fail(ErrorCode::bad_format,
              std::format("\"{}\" gives logits that are no numbers (NaN or infinite) at position "
                          "{}, so nothing can be chosen from them: its weights are damaged, or the "
                          "runtime {} computes them wrongly; compare the file's checksum with its "
                          "source and fetch it again{}",
                          escape(model, 400), position, runtime, other),
              std::string(k_logits_not_finite));
}

}  // namespace paceline::runtime
#endif  // HWY_ONCE
