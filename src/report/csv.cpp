// Raw samples as comma-separated values (RFC 4180 quoting, lines end in "\n").
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <format>
#include <optional>
#include <string_view>

#include "core/text.hpp"
#include "report/render_impl.hpp"

namespace paceline::report {

namespace {

class Line {
 public:
  void add(std::string_view text) {
    if (started_) line_ += ',';
    started_ = true;
    const std::string valid = to_valid_utf8(text);
    if (valid.find_first_of(",\"\r\n") == std::string::npos && trim(valid) == valid) {
      line_ += valid;
      return;
    }
    line_ += '"';
    for (const char c : valid) {
      if (c == '"') line_ += '"';
      line_ += c;
    }
    line_ += '"';
  }
  void add(std::integral auto number) { add(std::string_view(std::format("{}", number))); }
  void add(double number) {
    add(std::string_view(std::isfinite(number) ? std::format("{}", number) : ""));
  }
  /// Unix times keep their microseconds and no power of ten.
  void add_seconds(double seconds) {
    add(std::string_view(std::isfinite(seconds) ? std::format("{:.6f}", seconds) : ""));
  }
  template <typename T>
  void add(const std::optional<T>& value) {
    value ? add(*value) : add(std::string_view());
  }
  void add_empty(std::size_t cells) {
    for (std::size_t i = 0; i < cells; ++i) add(std::string_view());
  }
  std::string text() && { return std::move(line_); }
  std::string end() && { return std::move(line_) + "\n"; }

 private:
  std::string line_;
  bool started_ = false;
};

constexpr std::array<std::string_view, 7> k_block_columns{
    "phase", "fixture", "content_class", "prompt", "repetition", "status", "reason"};
constexpr std::array<std::string_view, 32> k_sample_columns{"arm",
                                                            "order",
                                                            "prompt_tokens",
                                                            "tokens",
                                                            "finish_reason",
                                                            "started_at_unix_seconds",
                                                            "ended_at_unix_seconds",
                                                            "elapsed_ns",
                                                            "prefill_ns",
                                                            "first_token_ns",
                                                            "first_text_ns",
                                                            "draft_ns",
                                                            "verify_ns",
                                                            "accept_ns",
                                                            "round_other_ns",
                                                            "other_ns",
                                                            "rounds",
                                                            "drafted",
                                                            "accepted",
                                                            "emitted_by_rounds",
                                                            "target_forwards",
                                                            "target_rows",
                                                            "replayed_rows",
                                                            "draft_forwards",
                                                            "streamed_chunks",
                                                            "thermal_state",
                                                            "baseline",
                                                            "equal",
                                                            "first_difference",
                                                            "top_two_margin",
                                                            "numeric_tie",
                                                            "longest_gap_ns"};

record::Round sum_of(const std::vector<record::Round>& rounds) {
  record::Round sum;
  for (const record::Round& round : rounds) {
    sum.drafted += round.drafted;
    sum.accepted += round.accepted;
    sum.emitted += round.emitted;
    sum.draft_ns += round.draft_ns;
    sum.verify_ns += round.verify_ns;
    sum.accept_ns += round.accept_ns;
    sum.other_ns += round.other_ns;
  }
  return sum;
}

/// Between deliveries, the first token's included.
std::optional<std::int64_t> longest_gap(const record::Sample& sample) {
  std::optional<std::int64_t> longest;
  std::int64_t last = sample.first_token_ns;
  for (const record::Round& round : sample.rounds) {
    if (round.emitted == 0) continue;
    longest = std::max(longest.value_or(0), round.delivered_ns - last);
    last = round.delivered_ns;
  }
  return longest;
}

void add_sample(Line& line, const record::Sample& sample) {
  const record::Round sum = sum_of(sample.rounds);
  line.add(sample.arm);
  line.add(sample.order);
  line.add(sample.prompt_tokens);
  line.add(sample.tokens.size());
  line.add(sample.finish_reason);
  line.add_seconds(sample.started_at_unix_seconds);
  line.add_seconds(sample.ended_at_unix_seconds);
  line.add(sample.elapsed_ns);
  line.add(sample.prefill_ns);
  line.add(sample.first_token_ns);
  line.add(sample.first_text_ns);
  line.add(sum.draft_ns);
  line.add(sum.verify_ns);
  line.add(sum.accept_ns);
  line.add(sum.other_ns);
  line.add(sample.other_ns);
  line.add(sample.rounds.size());
  line.add(sum.drafted);
  line.add(sum.accepted);
  line.add(sum.emitted);
  line.add(sample.target_forwards);
  line.add(sample.target_rows);
  line.add(sample.replayed_rows);
  line.add(sample.draft_forwards);
  line.add(sample.streamed_chunks);
  line.add(sample.thermal_state);
}

void add_comparison(Line& line, const record::Comparison* comparison) {
  if (comparison == nullptr) return line.add_empty(5);
  line.add(comparison->baseline);
  line.add(std::string_view(comparison->equal ? "true" : "false"));
  line.add(comparison->first_difference);
  line.add(comparison->top_two_margin);
  line.add(std::string_view(comparison->numeric_tie ? "true" : "false"));
}

Line block_cells(const record::Block& block) {
  Line line;
  line.add("block");
  line.add(block.fixture);
  line.add(block.content_class);
  line.add(block.prompt);
  line.add(block.repetition);
  line.add(to_string(block.status));
  line.add(block.reason);
  return line;
}

std::string block_lines(const record::Block& block) {
  std::string text;
  for (const record::Sample& sample : block.samples) {
    const auto comparison =
        std::ranges::find(block.comparisons, sample.arm, &record::Comparison::arm);
    Line line = block_cells(block);
    add_sample(line, sample);
    add_comparison(line, comparison == block.comparisons.end() ? nullptr : &*comparison);
    line.add(longest_gap(sample));
    text += std::move(line).end();
  }
  if (!block.samples.empty()) return text;
  Line line = block_cells(block);
  line.add_empty(k_sample_columns.size());
  return std::move(line).end();
}

}  // namespace

std::string csv_beginning() {
  Line line;
  for (const std::string_view column : k_block_columns) line.add(column);
  return std::move(line).text() + ",";
}

std::string render_csv(const record::Record& record) {
  Line header;
  for (const std::string_view column : k_block_columns) header.add(column);
  for (const std::string_view column : k_sample_columns) header.add(column);
  std::string text = std::move(header).end();
  for (const record::Block& block : record.blocks) text += block_lines(block);
  if (!record.sustained) return text;
  for (const record::Sample& sample : record.sustained->samples) {
    Line line;
    line.add("sustained");
    line.add_empty(k_block_columns.size() - 1);
    add_sample(line, sample);
    add_comparison(line, nullptr);
    line.add(longest_gap(sample));
    text += std::move(line).end();
  }
  return text;
}

}  // namespace paceline::report
