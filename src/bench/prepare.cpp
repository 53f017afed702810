// From fixtures to prompts as tokens.
#include <algorithm>
#include <format>

#include "bench/bench.hpp"

namespace paceline::bench {

namespace {

Result<std::vector<Token>> prompt_tokens(const workload::Prompt& prompt,
                                         const runtime::Vocabulary& vocabulary) {
  if (!prompt.raw_text.empty()) {
    return vocabulary.tokenize(prompt.raw_text, {.add_special = true, .parse_special = false});
  }
  std::vector<runtime::ChatMessage> messages;
  for (const workload::Message& message : prompt.messages) {
    messages.push_back({message.role, message.content});
  }
  return runtime::chat_tokens(vocabulary, messages);
}

}  // namespace

Result<std::vector<PreparedPrompt>> prepare(const workload::Fixture& fixture,
                                            const runtime::Vocabulary& vocabulary,
                                            const PrepareLimits& limits) {
  std::vector<PreparedPrompt> prepared;
  const std::size_t count = limits.max_prompts == 0
                                ? fixture.prompts.size()
                                : std::min(limits.max_prompts, fixture.prompts.size());
  for (std::size_t i = 0; i < count; ++i) {
    const workload::Prompt& prompt = fixture.prompts[i];
    auto tokens = prompt_tokens(prompt, vocabulary);
    if (!tokens) return tokens.error().in(std::format("prompt \"{}\"", prompt.id));
    PreparedPrompt out;
    out.fixture = fixture.id;
    out.content_class = to_string(fixture.content_class);
    out.id = prompt.id;
    out.tokens = *std::move(tokens);
    out.max_tokens = fixture.max_tokens.value_or(limits.default_max_tokens);
    out.repetitions = limits.repetitions;
    out.stop = fixture.stop;
    out.sampling = limits.sampling;
    out.sampling.temperature = fixture.temperature;
    out.sampling.top_p = fixture.top_p;
    if (out.tokens.empty()) {
      out.unusable = "the prompt gives no tokens";
    } else if (out.tokens.size() + out.max_tokens > limits.context) {
      out.unusable = std::format(
          "{} prompt tokens and {} new ones do not fit into the context of {}; raise "
          "--max-context-tokens or shorten the prompt",
          out.tokens.size(), out.max_tokens, limits.context);
    }
    prepared.push_back(std::move(out));
  }
  return prepared;
}

}  // namespace paceline::bench
