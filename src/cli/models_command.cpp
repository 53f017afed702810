// `paceline models`: the models that are known by name, fetching them, and making large ones of
// small ones.
#include <CLI/CLI.hpp>
#include <format>
#include <memory>

#include "cli/commands.hpp"
#include "cli/exit_code.hpp"
#include "cli/open_model.hpp"
#include "cli/terminal.hpp"
#include "core/hash.hpp"
#include "core/log.hpp"
#include "core/text.hpp"
#include "models/models.hpp"
#include "runtime/llama/inflate.hpp"

namespace paceline::cli {

namespace {

int complain(const Error& error) {
  print_error(error);
  return exit_code(error);
}

int list() {
  std::string text;
  for (const models::NamedModel& model : models::catalogue()) {
    const auto path = models::locate(model.name);
    text += std::format("{:<14} {:>7.1f} MB  {}\n{:<14} {}\n{:<14} licence: {}\n", model.name,
                        static_cast<double>(model.bytes) / 1e6, model.description, "",
                        path ? path->string() : "not fetched yet", "", model.licence);
  }
  return finish(text);
}

int fetch(const std::string& name, bool offline, std::stop_token stop) {
  const auto path = fetch_with_progress(name, {offline, stop});
  return path ? finish(path->string() + "\n") : complain(path.error());
}

int verify(const std::string& name, std::stop_token stop) {
  const auto path = models::locate(name);
  if (!path) return complain(path.error());
  const auto sum = sha256_file(*path, stop);
  if (!sum) return complain(sum.error());
  for (const models::NamedModel& model : models::catalogue()) {
    if (model.name != name) continue;
    if (*sum == model.sha256) return finish(std::format("{} is intact: sha256 {}\n", name, *sum));
    return complain(fail(ErrorCode::bad_format,
                         std::format("\"{}\" has sha256 {}, {} is wanted; delete it and fetch it "
                                     "again",
                                     path->string(), *sum, model.sha256)));
  }
  return finish(std::format("{} has sha256 {}\n", printable(path->string()), *sum));
}

struct InflateWords {
  std::string source;
  std::string output;
  runtime::InflateOptions options;
};

int inflate(const InflateWords& words, bool offline, std::stop_token stop) {
  const auto source = fetch_with_progress(words.source, {offline, stop});
  if (!source) return complain(source.error());
  runtime::InflateOptions options = words.options;
  options.stop = stop;
  ProgressLine progress;
  options.progress = [&](std::uint64_t done, std::uint64_t total) {
    progress.show(std::format("writing {}: {:.2f} of {:.2f} GB", words.output,
                              static_cast<double>(done) / 1e9, static_cast<double>(total) / 1e9));
  };
  const auto made = runtime::inflate_model(*source, words.output, options);
  progress.clear();
  if (!made) return complain(made.error());
  const runtime::LlamaShape& shape = made->shape;
  log_info(
      "{} layers, {} columns, {} feed-forward neurons, {} heads of {} over {} of keys; {:.2f} "
      "billion weights, {:.2f} GB",
      shape.layers, shape.hidden, shape.feed_forward, shape.heads, shape.head_width,
      shape.key_value_heads, static_cast<double>(made->parameters) / 1e9,
      static_cast<double>(made->bytes) / 1e9);
  return finish(words.output + "\n");
}

void add_inflate_options(CLI::App& command, InflateWords& words) {
  runtime::InflateOptions& options = words.options;
  command.add_option("SOURCE", words.source, "A small model's name or path: llama, qwen2 or qwen3")
      ->required();
  command
      .add_option("--shape", options.shape,
                  "Whose cost the file has; source: the small model's own, for drafts with noise")
      ->required()
      ->check(CLI::IsMember(runtime::inflated_shape_names()));
  command
      .add_option("--type", options.type,
                  "Type of the matrices. The output head is Q6_K beside block types (Q8_0 where "
                  "256 does not divide the width); Q4_K_M and Q5_K_M mix as llama.cpp does")
      ->check(CLI::IsMember(runtime::weight_type_names()))
      ->capture_default_str();
  command
      .add_option("--noise", options.noise,
                  "Multiply each weight of the layers by 1 + X times a normal random number. More "
                  "noise in a draft means less that the target accepts")
      ->capture_default_str();
  command.add_flag("--random", options.random,
                   "Random weights, where only speed is asked; records say so");
  command.add_option("--seed", options.seed, "Of noise and random weights")->capture_default_str();
  command.add_option("-o,--output", words.output, "The new file, which must not exist")->required();
  command.footer(
      "The large model writes the small one's text, with its tokenizer and chat template, and a\n"
      "pass of it costs what the large shape costs: columns, heads, neurons and layers of zeros\n"
      "change nothing but the time. Bench records and tables name such files as inflated.\n\n"
      "Examples:\n"
      "  paceline models inflate smollm2-135m --shape 7b -o big.gguf\n"
      "  paceline models inflate smollm2-135m --shape source --noise 0.05 -o draft.gguf\n"
      "  paceline bench --target big.gguf --draft draft.gguf");
}

}  // namespace

Command add_models_command(CLI::App& app) {
  struct Options {
    std::string name;
    bool offline = false;
    InflateWords inflate = {};
  };
  auto options = std::make_shared<Options>();
  CLI::App* command =
      app.add_subcommand("models",
                         "List the models that are known by name, fetch or verify them, or put a "
                         "small model's weights into a large shape");
  CLI::App* fetch_command = command->add_subcommand("fetch", "Fetch a model; prints its path");
  fetch_command->add_option("NAME", options->name, "Name of the model")->required();
  fetch_command->add_flag("--offline", options->offline, "Only look whether it is there");
  CLI::App* verify_command =
      command->add_subcommand("verify", "Compare a fetched model with its checksum");
  verify_command->add_option("NAME", options->name, "Name of the model, or a path")->required();
  CLI::App* inflate_command = command->add_subcommand(
      "inflate", "Write a small model's weights into the shape of a large one; prints the path");
  add_inflate_options(*inflate_command, options->inflate);
  inflate_command->add_flag("--offline", options->offline, "Only look whether the source is there");
  return [=](std::stop_token stop) {
    if (inflate_command->parsed()) return inflate(options->inflate, options->offline, stop);
    if (fetch_command->parsed()) return fetch(options->name, options->offline, stop);
    if (verify_command->parsed()) return verify(options->name, stop);
    return list();
  };
}

}  // namespace paceline::cli
