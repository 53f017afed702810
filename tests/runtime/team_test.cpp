#include "runtime/native/team.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <cstddef>
#include <vector>

namespace paceline::runtime::native {
namespace {

// Notes what ran, and whether a phase began before the one in front of it was done.
class Recorder final : public Phases {
 public:
  explicit Recorder(std::vector<std::size_t> units) : units_(std::move(units)) {
    for (const std::size_t count : units_) runs_.emplace_back(count);
  }
  void run(std::size_t phase, std::size_t unit, std::size_t) override {
    if (phase > 0 && done_[phase - 1].load() != units_[phase - 1]) early_.store(true);
    runs_[phase][unit].fetch_add(1);
    done_[phase].fetch_add(1);
    if (stop_in_ != nullptr && phase == 2) stop_in_->request_stop();
  }
  const std::vector<std::size_t>& units() const { return units_; }
  bool early() const { return early_.load(); }
  bool all_once() const {
    for (const auto& phase : runs_) {
      for (const auto& count : phase) {
        if (count.load() != 1) return false;
      }
    }
    return true;
  }
  std::size_t done(std::size_t phase) const { return done_[phase].load(); }
  void stop_with(std::stop_source& source) { stop_in_ = &source; }

 private:
  std::vector<std::size_t> units_;
  std::vector<std::vector<std::atomic<int>>> runs_;
  std::vector<std::atomic<std::size_t>> done_ = std::vector<std::atomic<std::size_t>>(64);
  std::atomic<bool> early_{false};
  std::stop_source* stop_in_ = nullptr;
};

TEST(Team, RunsEveryUnitOnceAndPhasesInOrder) {
  for (const std::size_t threads : {1U, 2U, 3U, 8U}) {
    Team team(threads);
    EXPECT_EQ(team.threads(), threads);
    for (int pass = 0; pass < 300; ++pass) {
      Recorder recorder({1, 7, 0, 30, 2, 64, 1, 0});
      EXPECT_TRUE(team.run(recorder, recorder.units(), {}));
      ASSERT_TRUE(recorder.all_once()) << threads << " threads, pass " << pass;
      ASSERT_FALSE(recorder.early()) << threads << " threads, pass " << pass;
    }
  }
}

TEST(Team, APassWithoutUnitsIsOver) {
  Team team(2);
  Recorder recorder({});
  EXPECT_TRUE(team.run(recorder, recorder.units(), {}));
}

TEST(Team, AStoppedPassLeavesTheRestOutAndTheNextIsWhole) {
  for (const std::size_t threads : {1U, 4U}) {
    Team team(threads);
    for (int pass = 0; pass < 100; ++pass) {
      std::stop_source source;
      Recorder stopped({3, 3, 3, 40, 40});
      stopped.stop_with(source);
      EXPECT_FALSE(team.run(stopped, stopped.units(), source.get_token()));
      EXPECT_EQ(stopped.done(1), 3U);
      EXPECT_EQ(stopped.done(4), 0U);
      Recorder whole({5, 5});
      EXPECT_TRUE(team.run(whole, whole.units(), {}));
      ASSERT_TRUE(whole.all_once());
    }
  }
}

TEST(Team, NothingRunsWhereTheStopCameBefore) {
  Team team(2);
  std::stop_source source;
  source.request_stop();
  Recorder recorder({4});
  EXPECT_FALSE(team.run(recorder, recorder.units(), source.get_token()));
  EXPECT_EQ(recorder.done(0), 0U);
}

TEST(Team, SeveralTeamsWorkBesideEachOther) {
  Team first(3);
  Team second(3);
  for (int pass = 0; pass < 100; ++pass) {
    Recorder a({8, 8, 8});
    Recorder b({8, 8, 8});
    EXPECT_TRUE(first.run(a, a.units(), {}));
    EXPECT_TRUE(second.run(b, b.units(), {}));
    ASSERT_TRUE(a.all_once() && b.all_once());
  }
}

}  // namespace
}  // namespace paceline::runtime::native
