// The canary's report as JSON, and the words of its enums.
#include "canary_schema.hpp"
#include "compat/canary.hpp"
#include "core/json.hpp"

namespace paceline::compat {

std::string_view to_string(CanaryStage stage) {
  switch (stage) {
    case CanaryStage::sampler:
      return "sampler";
    case CanaryStage::repeat:
      return "repeat";
    case CanaryStage::chain:
      return "chain";
    case CanaryStage::forced:
      return "forced";
    case CanaryStage::tree:
      return "tree";
    case CanaryStage::window:
      return "window";
    case CanaryStage::context_end:
      return "context_end";
    case CanaryStage::drafter:
      return "drafter";
  }
  return "";
}

std::string_view to_string(CanaryOutcome outcome) {
  switch (outcome) {
    case CanaryOutcome::equal:
      return "equal";
    case CanaryOutcome::numeric_tie:
      return "numeric_tie";
    case CanaryOutcome::different:
      return "different";
    case CanaryOutcome::not_run:
      return "not_run";
  }
  return "";
}

std::string_view to_string(CanaryResult result) {
  switch (result) {
    case CanaryResult::equal:
      return "equal";
    case CanaryResult::numeric_tie:
      return "numeric_tie";
    case CanaryResult::different:
      return "different";
    case CanaryResult::inconclusive:
      return "inconclusive";
    case CanaryResult::not_exercised:
      return "not_exercised";
  }
  return "";
}

std::string_view canary_schema() { return embedded::canary_schema()[0].contents; }

namespace {

template <typename T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json();
}

Json token_json(const std::optional<Token>& token, const std::string& text) {
  if (!token) return {};
  return {{"id", to_int(*token)}, {"text", text}};
}

Json to_json(const CanaryCase& result) {
  Json difference;
  if (result.difference) {
    const CanaryDifference& d = *result.difference;
    difference = {{"position", d.position},
                  {"plain", token_json(d.plain, d.plain_text)},
                  {"speculative", token_json(d.speculative, d.speculative_text)},
                  {"top_two_margin", or_null(d.top_two_margin)},
                  {"deviation", or_null(d.deviation)},
                  {"width_noise", or_null(d.width_noise)}};
  }
  return {{"stage", to_string(result.stage)},
          {"prompt", result.prompt},
          {"arm", result.arm},
          {"depth", result.depth},
          {"temperature", result.temperature},
          {"outcome", to_string(result.outcome)},
          {"reason", result.reason},
          {"detail", result.detail},
          {"prompt_tokens", result.prompt_tokens},
          {"tokens", result.tokens},
          {"finish_reason", result.finish_reason},
          {"rounds", result.rounds},
          {"drafted", result.drafted},
          {"accepted", result.accepted},
          {"accepted_counts", result.accepted_counts},
          {"difference", difference}};
}

}  // namespace

Json to_json(const CanaryReport& report) {
  Json cases = Json::array();
  for (const CanaryCase& result : report.cases) cases.push_back(to_json(result));
  Json skipped = Json::array();
  for (const CanarySkip& skip : report.skipped) {
    skipped.push_back({{"stage", to_string(skip.stage)}, {"reason", skip.reason}});
  }
  return {{"result", to_string(report.result())},
          {"complete", report.complete},
          {"incomplete_reason", report.incomplete_reason},
          {"cases", std::move(cases)},
          {"skipped", std::move(skipped)}};
}

}  // namespace paceline::compat
