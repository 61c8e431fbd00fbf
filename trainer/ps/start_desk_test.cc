#include "trainer/ps/start_desk.h"

#include <doctest/doctest.h>

#include <vector>

#include "trainer/peer/form_message.h"
#include "trainer/testing/fake_channel.h"
#include "trainer/testing/small_config.h"

namespace dtrain {
namespace {

using Indices = std::vector<uint32_t>;

constexpr uint64_t kRequest = 7;

// ps 1 and three workers, all here; workers 0 and 1 are to start together.
struct Desk {
  explicit Desk(int64_t count = 10) : config(LinearCluster(2, 3, count)) {
    for (Member& member : members.all()) {
      member.node = 2 * static_cast<net::NodeId>(1 + &member - members.all().data());
    }
    for (int index : {0, 1}) Of(index).takes_part = true;
    starts.set_start_point([this](Member&) { return point; });
  }
  Member& Worker(int index) { return *members.Worker(index); }
  Standing& Of(int index) { return standings.Of(Worker(index)); }
  const wire::Start& Tell(Member& member, bool over = false) {
    starts.Tell(member, kRequest, over);
    return Told(member);
  }
  const wire::Start& Told(const Member& member) const {
    REQUIRE(!channel.sent.empty());
    CHECK(channel.sent.back().to == member.node);
    CHECK(channel.sent.back().envelope().request() == kRequest);
    return *channel.sent.back().envelope().body_as_Start();
  }
  static Indices Together(const wire::Start& start) {
    return start.workers() == nullptr ? Indices() : Indices(start.workers()->begin(), start.workers()->end());
  }

  const Config config;
  Membership members{config, {Role::kPs, 0}};
  Standings standings{config, members};
  RunHistory history;
  RunPositions positions{config, members, standings};
  FakeChannel channel;
  Outbox outbox{channel};
  Logger log{"ps 0", LogOptions{LogLevel::kError, false, "", false}};
  StepDesk steps{config, members, standings, outbox};
  StartPoint point;
  StartDesk starts{{standings, positions, history, steps, outbox, log}};
};

TEST_CASE(
    "start desk: who starts together hears whether the weights are initial values, one that comes later "
    "not") {
  Desk desk;
  CHECK_FALSE(desk.Tell(desk.Worker(0)).initial());
  desk.history.from_initial = true;
  CHECK(desk.Tell(desk.Worker(0)).initial());
  desk.steps.Applied(desk.Worker(0));
  CHECK_FALSE(desk.Tell(desk.Worker(2)).initial());
}

TEST_CASE("start desk: every task hears of the newest checkpoint, on which host it is and of which step") {
  Desk desk;
  CHECK(desk.Tell(desk.Worker(1)).checkpoint() == nullptr);
  desk.history.checkpoint = "/ckpt/step-000000007";
  desk.history.checkpoint_step = 7;
  const wire::Start& start = desk.Tell(desk.members.At({Role::kPs, 1}));
  REQUIRE(start.checkpoint() != nullptr);
  CHECK(start.checkpoint()->str() == HostName() + ":/ckpt/step-000000007");
  CHECK(start.checkpoint_step() == 7);
}

TEST_CASE("start desk: a worker hears how the run has its features scaled") {
  Desk desk;
  CHECK(desk.Tell(desk.Worker(1)).inputs() == nullptr);
  desk.history.scale = {{1, 2}, {0.5, 4}};
  const wire::Start& start = desk.Tell(desk.Worker(1));
  REQUIRE(start.inputs() != nullptr);
  const std::optional<InputForm> said = DecodeForm(*start.inputs());
  REQUIRE(said.has_value());
  CHECK(said->scale == desk.history.scale);
  CHECK(said->features.empty());
}

TEST_CASE("start desk: those who start together are named, and nobody to one that comes after a step") {
  Desk desk;
  CHECK(Desk::Together(desk.Tell(desk.Worker(0))) == Indices{0, 1});
  CHECK(Desk::Together(desk.Tell(desk.Worker(1))) == Indices{0, 1});
  desk.steps.Applied(desk.Worker(0));
  const wire::Start& late = desk.Tell(desk.Worker(2));
  CHECK(Desk::Together(late).empty());
  CHECK(late.steps() == 1);
  CHECK(desk.Of(2).takes_part);
}

TEST_CASE("start desk: a ps is told neither steps nor to take part") {
  Desk desk;
  Member& ps = desk.members.At({Role::kPs, 1});
  const wire::Start& start = desk.Tell(ps);
  CHECK(start.steps() == 0);
  CHECK_FALSE(desk.standings.Of(ps).takes_part);
}

TEST_CASE("start desk: a worker begins where the rule says, and computes a gradient again without a grant") {
  Desk desk;
  desk.point.local_step = 5;
  desk.point.clock = 4;
  desk.point.resume = desk.point.again = true;
  desk.point.version = 9;
  desk.Of(1).lost = true;
  const wire::Start& start = desk.Tell(desk.Worker(1));
  CHECK(start.local_step() == 5);
  CHECK(start.clock() == 4);
  CHECK(start.resume());
  CHECK(start.version() == 9);
  CHECK(start.steps() == 1);
  CHECK(desk.Of(1).open_steps == 0);
  CHECK_FALSE(desk.Of(1).lost);
}

TEST_CASE("start desk: one that had left with all done takes part again while steps are left") {
  Desk desk;
  desk.Of(1).done = true;
  CHECK(desk.Tell(desk.Worker(1)).steps() == 1);
  CHECK_FALSE(desk.Of(1).done);
}

TEST_CASE("start desk: who comes when the last step is applied hears that it is over, unless it is needed") {
  Desk desk(1);
  desk.Of(2).told = true;
  desk.Tell(desk.Worker(0));
  desk.steps.Applied(desk.Worker(0));
  REQUIRE(desk.steps.over());
  desk.Worker(2).taken = 3;
  const wire::Start& start = desk.Tell(desk.Worker(2));
  CHECK(start.over());
  CHECK(start.local_step() == 3);
  CHECK_FALSE(desk.Of(2).takes_part);
  CHECK_FALSE(desk.Of(2).told);  // it has yet to say Bye
  CHECK_FALSE(desk.Tell(desk.Worker(1)).over());
  CHECK_FALSE(desk.Tell(desk.Worker(0)).over());
}

TEST_CASE("start desk: when the run is over only the ps are told anything else") {
  Desk desk;
  CHECK(desk.Tell(desk.Worker(1), /*over=*/true).over());
  CHECK_FALSE(desk.Tell(desk.members.At({Role::kPs, 1}), true).over());
  CHECK(desk.Tell(desk.Worker(0), true).over());
}

}  // namespace
}  // namespace dtrain
