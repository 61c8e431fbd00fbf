#include "trainer/ps/chief_role.h"

#include <doctest/doctest.h>

#include "trainer/testing/small_config.h"

namespace dtrain {
namespace {

// Three workers, all here, and a ps 1.
struct Run {
  explicit Run(WorkerLost worker_lost = WorkerLost::kContinue) {
    config.failure.worker_lost = worker_lost;
    for (int index = 0; index < 3; ++index) Worker(index).node = static_cast<net::NodeId>(2 + 2 * index);
  }
  Member& Worker(int index) { return *members.Worker(index); }
  // The index of the successor; -1: none.
  int Successor(const std::function<bool(const Member&)>& can = [](const Member&) { return true; }) const {
    const Member* const found = role.Successor(can);
    return found == nullptr ? -1 : found->task.index;
  }

  Config config = LinearCluster(2, 3, 10);
  Membership members{config, {Role::kPs, 0}};
  RunHistory history;
  ChiefRole role{config, members, history};
};

TEST_CASE("chief role: the first term is 1, and one that begins again as the chief that it was keeps it") {
  Run run;
  CHECK(run.role.term() == 0);
  run.role.BeginWith(run.Worker(0));
  CHECK(run.role.term() == 1);
  run.role.BeginWith(run.Worker(0));
  CHECK(run.role.term() == 1);
  run.role.BeginWith(run.Worker(2));
  CHECK(run.role.term() == 2);
  CHECK(run.role.index() == 2);
  CHECK(&run.role.member() == &run.Worker(2));
}

TEST_CASE("chief role: a chief that is lost ends its term, whether another worker follows it or not") {
  Run run;
  run.role.BeginWith(run.Worker(0));
  run.role.PassOnTo(nullptr);
  CHECK(run.role.term() == 2);
  CHECK(run.role.index() == 0);
  run.role.PassOnTo(&run.Worker(1));
  CHECK(run.role.term() == 3);
  CHECK(run.role.Is(run.Worker(1)));
  CHECK_FALSE(run.role.Is(run.Worker(0)));
}

TEST_CASE("chief role: the ps of the chief's index is not the chief") {
  Run run;
  run.role.BeginWith(run.Worker(1));
  CHECK(run.role.Is(run.Worker(1)));
  CHECK_FALSE(run.role.Is(run.members.At({Role::kPs, 1})));
  CHECK_FALSE(run.role.NeedsToBegin(run.members.At({Role::kPs, 1})));
}

TEST_CASE("chief role: the successor is the worker of the lowest index that is here, can, and is not it") {
  Run run;
  run.role.BeginWith(run.Worker(0));
  CHECK(run.Successor() == 1);
  CHECK(run.Successor([](const Member& member) { return member.task.index != 1; }) == 2);
  run.Worker(1).node = 0;
  CHECK(run.Successor() == 2);
  run.role.PassOnTo(&run.Worker(2));
  CHECK(run.Successor() == 0);
  run.Worker(0).node = 0;
  CHECK(run.Successor() == -1);
}

TEST_CASE(
    "chief role: nobody follows a chief where the run does not go on without workers, or they are fed") {
  for (const WorkerLost worker_lost : {WorkerLost::kFail, WorkerLost::kWait}) {
    Run run(worker_lost);
    CHECK(run.Successor() == -1);
  }
  Run fed;
  fed.config.data.split = Split::kFeed;
  CHECK(fed.Successor() == -1);
}

TEST_CASE("chief role: a run needs worker 0 to begin, to go on only where nobody can take its place") {
  for (const WorkerLost worker_lost : {WorkerLost::kContinue, WorkerLost::kWait}) {
    Run run(worker_lost);
    CHECK(run.role.NeedsToBegin(run.Worker(0)));
    CHECK_FALSE(run.role.NeedsToBegin(run.Worker(1)));
    run.history.begun = true;
    CHECK(run.role.NeedsToBegin(run.Worker(0)) == (worker_lost == WorkerLost::kWait));
  }
}

}  // namespace
}  // namespace dtrain
