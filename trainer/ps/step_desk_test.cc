#include "trainer/ps/step_desk.h"

#include <doctest/doctest.h>

#include "trainer/testing/fake_channel.h"
#include "trainer/testing/small_config.h"

namespace dtrain {
namespace {

constexpr uint64_t kRequest = 7;

// Two workers, both here.
class Desk {
 public:
  explicit Desk(const Config& config) : config_(config) {
    for (int worker = 0; worker < 2; ++worker) Worker(worker).node = static_cast<net::NodeId>(2 + 2 * worker);
  }
  Member& Worker(int index) { return *members_.Worker(index); }
  // What was sent last: a Grant.
  const wire::Grant& Granted() const { return *channel_.sent.back().envelope().body_as_Grant(); }
  size_t sent() const { return channel_.sent.size(); }

 private:
  const Config config_;
  Membership members_{config_, {Role::kPs, 0}};
  Standings standings_{config_, members_};
  FakeChannel channel_;
  Outbox outbox_{channel_};

 public:
  StepDesk steps{config_, members_, standings_, outbox_};
};

Config Steps(int64_t steps, TrainMode mode = TrainMode::kAsync) {
  Config config = LinearCluster(1, 2, steps);
  config.train.mode = mode;
  return config;
}

TEST_CASE("step desk: a worker begins with as many steps as it may have under way") {
  Config config = Steps(3);
  config.train.in_flight = 2;
  Desk desk(config);
  CHECK(desk.steps.GrantFirst(desk.Worker(0)) == 2);
  CHECK(desk.steps.GrantFirst(desk.Worker(0)) == 2);  // asked again: the same ones
  CHECK(desk.steps.GrantFirst(desk.Worker(1)) == 1);
}

TEST_CASE("step desk: who asks while others hold the last steps waits until one comes back") {
  Desk desk(Steps(1));
  CHECK(desk.steps.GrantFirst(desk.Worker(0)) == 1);
  desk.steps.OnNeedStep(desk.Worker(1), kRequest);
  CHECK(desk.sent() == 0);
  desk.steps.GiveBack(desk.Worker(0));
  desk.steps.ServeWaiting();
  REQUIRE(desk.sent() == 1);
  CHECK(desk.Granted().steps() == 1);
}

TEST_CASE("step desk: who waits hears that there is no more step, once the last is applied") {
  Desk desk(Steps(1));
  desk.steps.GrantFirst(desk.Worker(0));
  desk.steps.OnNeedStep(desk.Worker(1), kRequest);
  desk.steps.Applied(desk.Worker(0));
  CHECK(desk.steps.over());
  desk.steps.ServeWaiting();
  REQUIRE(desk.sent() == 1);
  CHECK(desk.Granted().over());
  CHECK(desk.Granted().global_step() == 1);
}

TEST_CASE("step desk: a request that is repeated is granted the same step") {
  Desk desk(Steps(5));
  desk.steps.OnNeedStep(desk.Worker(0), kRequest);
  desk.steps.OnNeedStep(desk.Worker(0), kRequest);
  CHECK(desk.sent() == 2);
  CHECK(desk.Granted().steps() == 1);
  desk.steps.OnNeedStep(desk.Worker(0), kRequest + 1);
  desk.steps.OnNeedStep(desk.Worker(0), kRequest + 2);
  desk.steps.GiveBack(desk.Worker(0));
  CHECK(desk.steps.GrantFirst(desk.Worker(1)) == 1);
}

TEST_CASE("step desk: closed, it grants no next step outside sync") {
  Desk desk(Steps(5));
  desk.steps.GrantFirst(desk.Worker(0));
  desk.steps.Close();
  CHECK(desk.steps.GrantNext(desk.Worker(0)) == 0);
}

TEST_CASE("step desk: in sync every worker is granted its next step until the rounds are over") {
  Desk desk(Steps(1, TrainMode::kSync));
  CHECK(desk.steps.GrantNext(desk.Worker(0)) == 1);
  CHECK(desk.steps.GrantNext(desk.Worker(1)) == 1);
  desk.steps.RoundApplied();
  CHECK(desk.steps.applied() == 1);
  CHECK(desk.steps.GrantNext(desk.Worker(0)) == 0);
}

TEST_CASE("step desk: a run that is ended early applies what is granted, and no more") {
  Desk desk(Steps(5));
  desk.steps.GrantFirst(desk.Worker(0));
  desk.steps.EndEarly(std::nullopt);
  CHECK_FALSE(desk.steps.over());
  CHECK(desk.steps.GrantNext(desk.Worker(1)) == 0);
  desk.steps.Applied(desk.Worker(0));
  CHECK(desk.steps.over());
}

}  // namespace
}  // namespace dtrain
