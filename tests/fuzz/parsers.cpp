// Damaged bytes for every parser of ours that reads what others wrote: GGUF headers and the token
// tables in them, tokenizer.json, config.json, the fingerprint's JSON, the probe's answer. One
// process, one deterministic stream of mutations: fuzz_parsers COUNT [SEED]. Whatever comes, a
// parser gives a value that keeps its promises, or an error with a message.
#include <array>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <format>
#include <functional>
#include <memory>
#include <print>
#include <string>
#include <string_view>
#include <vector>

#include "compat/probe.hpp"
#include "compat/snapshot.hpp"
#include "compat/token_table.hpp"
#include "core/file.hpp"
#include "core/json.hpp"
#include "core/random.hpp"
#include "runtime/llama/gguf_header.hpp"
#include "runtime/toy/toy.hpp"
#include "support/gguf_builder.hpp"
#include "support/temporary_folder.hpp"

namespace paceline::test {
namespace {

/// Ends the program: the mutation that led here is made again by the same seed and count.
void require(bool holds, const char* what) {
  if (holds) return;
  std::println(stderr, "broken promise: {}", what);
  std::abort();
}

struct Counts {
  std::size_t values = 0;
  std::size_t errors = 0;
};

template <typename T>
bool counted(const Result<T>& result, Counts& counts) {
  if (result) {
    ++counts.values;
    return true;
  }
  ++counts.errors;
  require(!result.error().message.empty(), "an error has a message");
  require(result.error().message.size() < 4096, "a message is short");
  return false;
}

void check_table(const compat::TokenTable& table) {
  require(table.size() > 0, "a table has tokens");
  require(table.kinds.empty() || table.kinds.size() == table.size(), "one kind per token");
  std::size_t bytes = 0;
  for (std::size_t id = 0; id < table.size(); ++id) {
    for (const char c : table.texts[id]) bytes += static_cast<unsigned char>(c);
    bytes += table.is_padding(id) ? 1U : 0U;
  }
  for (const std::string_view merge : table.merges) bytes += merge.size();
  require(bytes < (std::size_t{1} << 40), "texts can be read");
}

void parse_gguf(const std::string& bytes, Counts& counts) {
  const auto shared = std::make_shared<const std::string>(bytes);
  const auto header = runtime::GgufHeader::parse(shared, shared->size());
  if (!counted(header, counts)) return;
  require(header->data_offset() + 31 >= header->tensors().size(), "data lies behind the list");
  for (const runtime::GgufTensor& tensor : header->tensors()) {
    for (const std::uint64_t extent : tensor.extents) require(extent > 0, "extents are positive");
  }
  if (const auto table = compat::token_table(*header)) check_table(*table);
}

void parse_tokenizer(const std::string& bytes, Counts& counts) {
  const auto table = compat::token_table_of_tokenizer_json(bytes, "tokenizer.json");
  if (counted(table, counts)) check_table(*table);
}

void parse_config(const std::string& bytes, Counts& counts) {
  counted(compat::snapshot_facts(bytes), counts);
}

void parse_tokenizer_config(const std::string& bytes, Counts& counts) {
  const auto text = compat::normalised_tokenizer_config(bytes);
  if (!counted(text, counts)) return;
  const auto again = compat::normalised_tokenizer_config(*text);
  require(again.has_value() && *again == *text, "what is normalised stays as it is");
}

void parse_probe(const std::string& bytes, Counts& counts) {
  const auto json = parse_json(bytes, "probe");
  if (!json) {
    ++counts.errors;
    return;
  }
  const auto probe = compat::probe_from_json(*json);
  if (!counted(probe, counts)) return;
  require(probe->plain.size() == compat::probe_texts().size(), "one answer per text");
}

struct Target {
  const char* name;
  std::function<void(const std::string&, Counts&)> parse;
  std::vector<std::string> seeds;
};

/// The header of a TINY without its weights, which nobody here reads.
std::string gguf_seed(const TinyModel& model) {
  const TemporaryFolder folder;
  const auto path = folder.path() / "m.gguf";
  write_tiny(path, model);
  std::string bytes = read_file(path).value_or("");
  const auto header =
      runtime::GgufHeader::parse(std::make_shared<const std::string>(bytes), bytes.size());
  require(header.has_value(), "the seed is whole");
  bytes.resize(header->data_offset());
  return bytes;
}

std::vector<Target> targets() {
  TinyModel small;
  small.layers = 1;
  small.vocabulary.pieces.resize(4);
  TinyModel recurrent = small;
  recurrent.kind = TinyModel::Kind::recurrent;
  const auto toy = runtime::make_toy_model({.vocabulary = 16});
  return {
      {"gguf", parse_gguf, {gguf_seed(small), gguf_seed(recurrent)}},
      {"tokenizer.json",
       parse_tokenizer,
       {R"({"model":{"type":"BPE","vocab":{"a":0,"b":1,"ab":2},"merges":["a b"]},)"
        R"("added_tokens":[{"id":3,"content":"<e>","special":true}]})",
        R"({"added_tokens":null,"model":{"vocab":[["x",-1.5],["y",0]]}})"}},
      {"config.json",
       parse_config,
       {R"({"model_type":"gemma3","text_config":{"num_hidden_layers":18,"layer_types":["full"],)"
        R"("vocab_size":262144,"sliding_window":512,"use_sliding_window":true}})"}},
      {"tokenizer_config.json",
       parse_tokenizer_config,
       {R"({"eos_token":{"content":"</s>"},"chat_template":"x","n":[1,2.5,1e30,-0,null,true]})"}},
      {"probe", parse_probe, {dump_json(compat::to_json(compat::probe(toy->vocabulary())))}},
  };
}

/// Numbers at the edges, written little-endian.
std::string edge_number(Random& random) {
  constexpr std::array<std::uint64_t, 10> k_edges = {
      0, 1, 0x7f, 0xff, 0x7fffffff, 0xffffffff, 1ULL << 32, 1ULL << 60, ~0ULL >> 1, ~0ULL};
  const std::uint64_t value = k_edges[random.below(k_edges.size())];
  std::string bytes;
  for (std::size_t i = 0; i < (random.below(2) == 0 ? 4U : 8U); ++i) {
    bytes += static_cast<char>(value >> (8 * i) & 0xff);
  }
  return bytes;
}

void mutate(std::string& bytes, Random& random) {
  constexpr std::string_view k_special = "{}[]\",:\\0-1eE.\n\t nutf\xff\xc3\xed";
  if (bytes.empty()) return;
  const std::size_t at = random.below(bytes.size());
  const std::size_t length = 1 + random.below(std::min<std::size_t>(bytes.size() - at, 24));
  switch (random.below(8)) {
    case 0:
      bytes[at] = static_cast<char>(random.below(256));
      break;
    case 1:
      bytes[at] = k_special[random.below(k_special.size())];
      break;
    case 2:
      bytes.erase(at, length);
      break;
    case 3:
      bytes.insert(random.below(bytes.size()), bytes.substr(at, length));
      break;
    case 4:
      bytes.resize(at);
      break;
    case 5:
      bytes.insert(at, 1, k_special[random.below(k_special.size())]);
      break;
    case 6:
      bytes[at] = static_cast<char>(bytes[at] ^ (1 << random.below(8)));
      break;
    default: {
      const std::string number = edge_number(random);
      bytes.replace(at, std::min(number.size(), bytes.size() - at), number);
    }
  }
}

int run(std::size_t count, std::uint64_t seed) {
  const std::vector<Target> list = targets();
  std::vector<Counts> counts(list.size());
  for (std::size_t i = 0; i < list.size(); ++i) {
    for (const std::string& whole : list[i].seeds) list[i].parse(whole, counts[i]);
    require(counts[i].errors == 0, "every seed is valid");
  }
  Random random(seed);
  for (std::size_t n = 0; n < count; ++n) {
    const std::size_t i = n % list.size();
    std::string bytes = list[i].seeds[random.below(list[i].seeds.size())];
    const std::size_t mutations = 1 + random.below(3);
    for (std::size_t m = 0; m < mutations; ++m) mutate(bytes, random);
    list[i].parse(bytes, counts[i]);
  }
  for (std::size_t i = 0; i < list.size(); ++i) {
    std::println("{:<22} {:>8} values {:>8} errors", list[i].name, counts[i].values,
                 counts[i].errors);
    require(count < 1000 || (counts[i].values > 0 && counts[i].errors > 0), "both were seen");
  }
  return 0;
}

}  // namespace
}  // namespace paceline::test

int main(int argc, char** argv) {
  std::size_t count = 0;
  std::uint64_t seed = 1;
  const auto read = [&](int i, auto& value) {
    const std::string_view text = argv[i];
    const auto end = std::from_chars(text.data(), text.data() + text.size(), value);
    return end.ec == std::errc{} && end.ptr == text.data() + text.size();
  };
  if (argc < 2 || argc > 3 || !read(1, count) || (argc == 3 && !read(2, seed))) {
    std::println(stderr, "usage: fuzz_parsers COUNT [SEED]");
    return 2;
  }
  return paceline::test::run(count, seed);
}
