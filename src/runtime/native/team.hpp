// Threads that go through the phases of a pass together. One of them is the caller. A phase is
// over when all its units are done, not when all threads have come by: a thread that the system
// has taken away holds up the others only with the one unit that it is in.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <stop_token>
#include <thread>
#include <vector>

namespace paceline::runtime::native {

/// What a team does. `run` is called once for each unit, from any thread of the team; the units of
/// a phase at the same time, and after all units of the phases before it.
class Phases {
 public:
  virtual ~Phases() = default;
  virtual void run(std::size_t phase, std::size_t unit, std::size_t thread) = 0;
};

/// One thread calls `run`; the others belong to the team and sleep between passes.
class Team {
 public:
  explicit Team(std::size_t threads);
  ~Team();
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  std::size_t threads() const { return claims_.size(); }
  /// Runs the phases, `units[i]` units in phase i. False where `stop` was requested meanwhile: some
  /// units were then left out, and no thread works on any of them any more.
  bool run(Phases& phases, const std::vector<std::size_t>& units, const std::stop_token& stop);

 private:
  // A pass as the helpers see it. A late helper may still look at the last one while the next has
  // begun, so there are several.
  struct Pass {
    std::atomic<std::size_t> helpers{0};  // at work in it
    std::atomic<bool> stopped{false};
    Phases* phases = nullptr;
    std::vector<std::size_t> units;
    std::uint64_t first_phase = 0;  // phases are numbered through all passes
    std::uint64_t done_before = 0;  // value of done_ at the start
  };
  // The next unit of a thread's share, with the number of the phase that it belongs to.
  struct alignas(64) Claim {
    std::atomic<std::uint64_t> next{0};
  };

  void help(const std::stop_token& stop, std::size_t thread);
  void work(Pass& pass, std::size_t thread, const std::stop_token* stop);
  bool run_share(Pass& pass, std::size_t phase, std::size_t owner, std::size_t thread,
                 const std::stop_token* stop);
  bool wait_for(const Pass& pass, std::uint64_t done);
  void wake();

  std::vector<Claim> claims_;
  alignas(64) std::atomic<std::uint64_t> done_{0};  // units, through all passes
  alignas(64) std::atomic<std::uint32_t> pass_number_{0};
  std::atomic<std::uint32_t> signal_{0};  // changes when sleepers must look again
  std::atomic<std::uint32_t> sleepers_{0};
  std::array<Pass, 4> passes_;
  std::uint64_t phases_before_ = 1;
  std::vector<std::jthread> helpers_;  // last: they use all of the above
};

}  // namespace paceline::runtime::native
