#include "runtime/native/team.hpp"

#include <algorithm>

#include "core/check.hpp"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace paceline::runtime::native {

namespace {

// Units of a phase fit into the low bits of a claim.
constexpr unsigned k_unit_bits = 24;
constexpr std::uint64_t k_unit_mask = (std::uint64_t{1} << k_unit_bits) - 1;
// Some ten microseconds: longer than a phase of a small model, shorter than what anybody else
// on the machine would miss.
constexpr int k_spins = 1000;

void relax() {
#if defined(__x86_64__)
  _mm_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

}  // namespace

Team::Team(std::size_t threads) : claims_(std::max<std::size_t>(1, threads)) {
  for (std::size_t i = 1; i < claims_.size(); ++i) {
    helpers_.emplace_back([this, i](const std::stop_token& stop) { help(stop, i); });
  }
}

Team::~Team() {
  for (std::jthread& helper : helpers_) helper.request_stop();
  signal_.fetch_add(1);
  signal_.notify_all();
}

// Those who sleep counted themselves before they looked a last time, so either they see what
// changed or we see them.
void Team::wake() {
  if (sleepers_.load() == 0) return;
  signal_.fetch_add(1);
  signal_.notify_all();
}

void Team::help(const std::stop_token& stop, std::size_t thread) {
  std::uint32_t seen = 0;
  for (;;) {
    const auto changed = [&] { return pass_number_.load() != seen || stop.stop_requested(); };
    for (int i = 0; i < k_spins && !changed(); ++i) relax();
    while (!changed()) {
      const std::uint32_t signal = signal_.load();
      sleepers_.fetch_add(1);
      if (!changed()) signal_.wait(signal);
      sleepers_.fetch_sub(1);
    }
    if (stop.stop_requested()) return;
    seen = pass_number_.load();
    Pass& pass = passes_[seen % passes_.size()];
    pass.helpers.fetch_add(1);
    // Only now is the pass safe from being used again: look whether it still is the one.
    if (pass_number_.load() == seen) work(pass, thread, nullptr);
    pass.helpers.fetch_sub(1);
  }
}

bool Team::run(Phases& phases, const std::vector<std::size_t>& units, const std::stop_token& stop) {
  if (stop.stop_requested()) return false;
  const std::uint32_t number = pass_number_.load() + 1;
  Pass& pass = passes_[number % passes_.size()];
  while (pass.helpers.load() != 0) std::this_thread::yield();
  pass.phases = &phases;
  pass.units = units;
  pass.stopped.store(false);
  pass.first_phase = phases_before_;
  pass.done_before = done_.load();
  phases_before_ += units.size();
  pass_number_.store(number);
  wake();
  work(pass, 0, &stop);
  if (!pass.stopped.load()) return true;
  wake();
  while (pass.helpers.load() != 0) std::this_thread::yield();
  return false;
}

void Team::work(Pass& pass, std::size_t thread, const std::stop_token* stop) {
  std::uint64_t done = pass.done_before;
  for (std::size_t phase = 0; phase < pass.units.size(); ++phase) {
    if (stop != nullptr && stop->stop_requested()) pass.stopped.store(true);
    if (pass.stopped.load()) return;
    for (std::size_t i = 0; i < claims_.size(); ++i) {
      if (!run_share(pass, phase, (thread + i) % claims_.size(), thread, stop)) return;
    }
    done += pass.units[phase];
    if (!wait_for(pass, done)) return;
  }
}

// Takes units of `owner`'s share until none is left. False where the pass was stopped.
bool Team::run_share(Pass& pass, std::size_t phase, std::size_t owner, std::size_t thread,
                     const std::stop_token* stop) {
  const std::size_t units = pass.units[phase];
  const std::size_t first = units * owner / claims_.size();
  const std::size_t count = units * (owner + 1) / claims_.size() - first;
  const std::uint64_t number = pass.first_phase + phase;
  std::atomic<std::uint64_t>& claim = claims_[owner].next;
  std::uint64_t ran = 0;
  bool stopped = false;
  std::uint64_t seen = claim.load();
  for (;;) {
    const std::uint64_t claimed_phase = seen >> k_unit_bits;
    if (claimed_phase > number) break;
    const std::uint64_t next = claimed_phase == number ? seen & k_unit_mask : 0;
    if (next >= count) break;
    if (!claim.compare_exchange_weak(seen, number << k_unit_bits | (next + 1))) continue;
    seen = number << k_unit_bits | (next + 1);
    pass.phases->run(phase, first + static_cast<std::size_t>(next), thread);
    ++ran;
    if (stop != nullptr && stop->stop_requested()) pass.stopped.store(true);
    if (pass.stopped.load(std::memory_order_relaxed)) {
      stopped = true;
      break;
    }
  }
  if (ran > 0) {
    done_.fetch_add(ran);
    wake();
  }
  return !stopped;
}

bool Team::wait_for(const Pass& pass, std::uint64_t done) {
  const auto ready = [&] { return done_.load() >= done || pass.stopped.load(); };
  for (int i = 0; i < k_spins && !ready(); ++i) relax();
  while (!ready()) {
    const std::uint32_t signal = signal_.load();
    sleepers_.fetch_add(1);
    if (!ready()) signal_.wait(signal);
    sleepers_.fetch_sub(1);
  }
  return !pass.stopped.load();
}

}  // namespace paceline::runtime::native
