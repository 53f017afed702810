// A benchmark on the toy model with a clock that moves by itself at every reading.
#pragma once

#include <memory>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "bench/bench.hpp"
#include "support/manual_clock.hpp"
#include "support/odd_runtime.hpp"

namespace paceline::test {

/// Fill it, then run(). The order of the add_ calls is the order of arms and prompts.
class Scene {
 public:
  explicit Scene(std::string_view toy = "toy:7");
  Scene(const Scene&) = delete;
  Scene& operator=(const Scene&) = delete;

  void add_plain(std::string id = "plain");
  void add_lookup(std::size_t depth);
  void add_draft(std::string_view toy, std::size_t depth);
  void add_scripted(double acceptance, std::size_t depth);
  /// Drafts what `propose` says; see FakeDrafter.
  void add_drafter(std::string id, draft::Drafter& drafter, std::size_t depth);
  /// `count` prompts of about 40 tokens with ids "<fixture>-0", ...
  void add_prompts(const std::string& fixture, std::size_t count, std::size_t repetitions = 1);

  Result<void> run(std::stop_token stop = {});

  std::shared_ptr<const runtime::Model> model;
  OddRuntime target;
  ManualClock clock{Nanoseconds{1000}};
  bench::Setup setup;
  record::Record record;

 private:
  bench::Contender& add(std::string id, record::ArmKind kind, std::size_t depth);

  std::vector<std::unique_ptr<draft::Drafter>> drafters_;
  std::unique_ptr<draft::Drafter> scripted_;
};

/// Plain and lookup at depth 3, `classes` fixtures "a", "b", ... of `prompts` prompts each.
std::unique_ptr<Scene> lookup_scene(std::size_t classes, std::size_t prompts,
                                    std::size_t repetitions = 1);

/// "a-0 #1": fixture, prompt and repetition of every block, in order.
std::vector<std::string> names(const std::vector<record::Block>& blocks);

/// The blocks without what differs from run to run: times and readings of the host.
std::vector<record::Block> without_times(std::vector<record::Block> blocks);

const record::Sample& sample_of(const record::Block& block, std::string_view arm);
std::uint64_t drafted(const record::Sample& sample);
std::uint64_t accepted(const record::Sample& sample);

}  // namespace paceline::test
