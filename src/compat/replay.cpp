#include "compat/replay.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>

namespace paceline::compat {

using runtime::Row;
using runtime::Wants;

PassShape PassShape::chain(std::size_t rows, std::size_t committed) {
  PassShape shape;
  for (std::size_t i = 0; i < rows; ++i) {
    shape.parents.push_back(static_cast<std::int32_t>(i) - 1);
    if (i < committed) shape.path.push_back(static_cast<std::int32_t>(i));
  }
  return shape;
}

namespace {

/// Widths that the noise is measured for; those that occur most.
constexpr std::size_t k_most_widths = 3;
/// What the rejected rows hold instead of their tokens: another token, this far away.
constexpr std::size_t k_fillers[] = {7, 11};

using Logits = std::vector<float>;

/// Puts one pass through and commits the rows of its path. Gives the logits of row `wanted`.
Result<Logits> pass(runtime::Runtime& target, std::vector<Row> rows,
                    std::span<const std::int32_t> path, std::optional<std::size_t> wanted,
                    std::stop_token stop) {
  if (wanted) rows[*wanted].wants = Wants::logits;
  const runtime::SequenceId sequence = rows.front().sequence;
  PACELINE_TRY_VOID(target.forward(rows, stop));
  Logits logits;
  if (wanted) {
    const auto row = target.logits(*wanted);
    logits.assign(row.begin(), row.end());
  }
  PACELINE_TRY_VOID(target.accept(sequence, path));
  return logits;
}

/// The passes of one text, on a sequence of its own.
class Replay {
 public:
  Replay(const WrittenText& text, const ReplaySetting& setting, std::size_t filler)
      : text_(text), setting_(setting), filler_(filler) {}

  /// The logits that emitted token number `index` was chosen from.
  Result<Logits> logits_at(std::size_t index, std::stop_token stop) {
    PACELINE_TRY(sequence_, text_.target->create_sequence());
    auto logits = run(index, stop);
    text_.target->release(sequence_);
    return logits;
  }

 private:
  Result<Logits> run(std::size_t index, std::stop_token stop) {
    PACELINE_TRY(auto first, prompt(index == 0, stop));
    if (index == 0) return first;
    std::size_t emitted = 1;
    for (const PassShape& shape : text_.rounds) {
      std::vector<Row> rows = rejected_rows(shape, emitted);
      for (std::size_t i = 0; i < shape.path.size(); ++i) {
        rows[static_cast<std::size_t>(shape.path[i])].token = text_.tokens[emitted - 1 + i];
      }
      const bool here = index < emitted + shape.path.size();
      const auto wanted = here
                              ? std::optional(static_cast<std::size_t>(shape.path[index - emitted]))
                              : std::nullopt;
      PACELINE_TRY(auto logits, pass(*text_.target, std::move(rows), shape.path, wanted, stop));
      if (here) return logits;
      emitted += shape.path.size();
    }
    return fail(ErrorCode::internal, "the rounds of a text end before its tokens do");
  }

  Result<Logits> prompt(bool wants_last, std::stop_token stop) {
    const auto prompt = setting_.prompt;
    Logits logits;
    for (std::size_t done = 0; done < prompt.size();) {
      const std::size_t count = std::min(text_.target->limits().rows, prompt.size() - done);
      const PassShape shape = PassShape::chain(count, count);
      std::vector<Row> rows;
      for (std::size_t i = 0; i < count; ++i) {
        rows.push_back({sequence_, prompt[done + i], shape.parents[i], Wants::nothing});
      }
      done += count;
      const auto wanted =
          wants_last && done == prompt.size() ? std::optional(count - 1) : std::nullopt;
      PACELINE_TRY(logits, pass(*text_.target, std::move(rows), shape.path, wanted, stop));
    }
    return logits;
  }

  /// The rows of a pass, each with a token that was not drafted there.
  std::vector<Row> rejected_rows(const PassShape& shape, std::size_t emitted) const {
    std::vector<Row> rows;
    const std::size_t last = to_index(text_.tokens[emitted - 1]);
    for (std::size_t i = 0; i < shape.parents.size(); ++i) {
      rows.push_back({sequence_, to_token((last + filler_ * (i + 1)) % setting_.vocabulary),
                      shape.parents[i], Wants::nothing});
    }
    return rows;
  }

  const WrittenText& text_;
  const ReplaySetting& setting_;
  std::size_t filler_;
  runtime::SequenceId sequence_{};
};

Result<Logits> replay(const WrittenText& text, const ReplaySetting& setting, std::size_t filler,
                      std::size_t index, std::stop_token stop) {
  return Replay(text, setting, filler).logits_at(index, stop);
}

/// The largest distance of two logits; infinite where one is no number or only one is infinite.
double distance(const Logits& a, const Logits& b) {
  double largest = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i] == b[i]) continue;
    const double difference = std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i]));
    if (!std::isfinite(difference)) return std::numeric_limits<double>::infinity();
    largest = std::max(largest, difference);
  }
  return largest;
}

/// Standard deviation of the logits that are numbers.
double spread(const Logits& logits) {
  double count = 0;
  double sum = 0;
  double squares = 0;
  for (const float logit : logits) {
    if (!std::isfinite(logit)) continue;
    const auto value = static_cast<double>(logit);
    ++count;
    sum += value;
    squares += value * value;
  }
  if (count == 0) return 0;
  return std::sqrt(std::max(0.0, squares / count - (sum / count) * (sum / count)));
}

double top_two_margin(Logits logits) {
  if (logits.size() < 2) return 0;
  std::ranges::partial_sort(logits, logits.begin() + 2, std::greater<>());
  return static_cast<double>(logits[0]) - static_cast<double>(logits[1]);
}

/// The numbers of rows that occur most among the rounds up to token `index`, and the last one's.
std::vector<std::size_t> common_widths(const WrittenText& text, std::size_t index) {
  std::map<std::size_t, std::size_t> counts;
  std::size_t last = 1;
  std::size_t emitted = 1;
  for (const PassShape& shape : text.rounds) {
    if (emitted > index) break;
    last = shape.parents.size();
    ++counts[last];
    emitted += shape.path.size();
  }
  std::vector<std::size_t> widths;
  for (const auto& [width, count] : counts) widths.push_back(width);
  std::ranges::sort(widths, [&](std::size_t a, std::size_t b) { return counts[a] > counts[b]; });
  if (widths.size() > k_most_widths) widths.resize(k_most_widths);
  if (std::ranges::find(widths, last) == widths.end()) widths.push_back(last);
  return widths;
}

/// The same tokens up to `index`, in passes of `width` rows that commit all that is known.
WrittenText nothing_rejected(const WrittenText& text, std::size_t index, std::size_t width,
                             std::size_t prompt_tokens) {
  WrittenText grouped{.target = text.target, .tokens = text.tokens, .rounds = {}};
  for (std::size_t emitted = 1; emitted <= index;) {
    const std::size_t room = text.target->limits().context - (prompt_tokens + emitted - 1);
    const std::size_t known = std::min(width, index - emitted + 1);
    grouped.rounds.push_back(PassShape::chain(std::max(known, std::min(width, room)), known));
    emitted += known;
  }
  return grouped;
}

/// How far the logits move where passes are as wide as the text's, but nothing is rolled back.
Result<double> measure_noise(const WrittenText& text, std::size_t index, const Logits& plain,
                             const ReplaySetting& setting, std::stop_token stop) {
  double noise = 0;
  for (const std::size_t width : common_widths(text, index)) {
    const WrittenText grouped = nothing_rejected(text, index, width, setting.prompt.size());
    PACELINE_TRY(const Logits logits, replay(grouped, setting, k_fillers[0], index, stop));
    noise = std::max(noise, distance(plain, logits));
  }
  return noise;
}

}  // namespace

Result<std::optional<TextDifference>> find_difference(const WrittenText& speculative,
                                                      const WrittenText& plain,
                                                      const ReplaySetting& setting,
                                                      std::stop_token stop) {
  const auto& tokens = speculative.tokens;
  const auto [here, there] = std::ranges::mismatch(tokens, plain.tokens);
  if (here == tokens.end() && there == plain.tokens.end()) return std::optional<TextDifference>{};
  TextDifference difference;
  difference.index = static_cast<std::size_t>(here - tokens.begin());
  if (here != tokens.end()) difference.speculative = *here;
  if (there != plain.tokens.end()) difference.plain = *there;
  const bool replayable = speculative.target != nullptr && plain.target != nullptr;
  if (!difference.speculative || !difference.plain || !replayable) {
    return std::optional(difference);
  }

  const std::size_t index = difference.index;
  PACELINE_TRY(const Logits plain_logits, replay(plain, setting, k_fillers[0], index, stop));
  difference.top_two_margin = top_two_margin(plain_logits);
  verify::Sampler sampler(setting.sampler, setting.vocabulary);
  for (const Token token : setting.prompt) sampler.push(token);
  for (std::size_t i = 0; i < index; ++i) sampler.push(tokens[i]);
  bool choices_come_again = sampler.choose(plain_logits, index) == *difference.plain;
  double deviation = 0;
  for (const std::size_t filler : k_fillers) {
    PACELINE_TRY(const Logits logits, replay(speculative, setting, filler, index, stop));
    choices_come_again =
        choices_come_again && sampler.choose(logits, index) == *difference.speculative;
    deviation = std::max(deviation, distance(plain_logits, logits));
  }
  difference.deviation = deviation;
  PACELINE_TRY(difference.width_noise,
               measure_noise(speculative, index, plain_logits, setting, stop));
  difference.numeric_tie = choices_come_again && deviation <= spread(plain_logits) &&
                           deviation <= k_noise_factor * *difference.width_noise;
  return std::optional(difference);
}

}  // namespace paceline::compat
