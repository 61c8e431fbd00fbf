#include "trainer/leader/leases.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <thread>
#include <vector>

#include "base/testing/copied_state.h"
#include "trainer/ps/ps_task_test_util.h"

namespace dtrain {
namespace {

constexpr uint64_t kFirst = 71;  // the process of worker 0; that of worker 1 is the next number

// Two workers whose batches have one row. Each ps has two blocks of a gradient.
Config Dynamic(int ps = 1, TrainMode mode = TrainMode::kAsync) {
  Config config = LinearCluster(ps, 2, 0);
  config.model.inputs = 2 * ps * kBlockValues - ps;
  config.data.split = Split::kDynamic;
  config.train.mode = mode;
  config.train.steps.reset();
  config.train.epochs = 1;
  return config;
}

// The Leases of ps 0. The test plays the workers and the other ps.
struct Leasing : PsTaskFixture {
  explicit Leasing(const Config& of, int64_t rows) : PsTaskFixture(of) {
    for (size_t ps = 1; ps < of.cluster.ps.size(); ++ps) members.Ps(ps).node = 100 * ps;
    leases.set_on_free([this] { ++freed; });
    leases.BeginAt(DataPlan(), rows);
  }
  Member& Worker(int index) { return *members.Worker(index); }
  Member& Start(int index, uint64_t incarnation = 0) {
    Member& worker = Worker(index);
    worker.incarnation = incarnation != 0 ? incarnation : kFirst + static_cast<uint64_t>(index);
    leases.Start(worker);
    leases.GoesOn(worker);
    return worker;
  }
  void Take(Member& worker, bool in_weights = false) {
    ++worker.taken;
    leases.Taken(worker, in_weights ? 0 : 1);
    leases.Refill(worker);
  }
  // ps `from` tells what it has taken of a process of worker 0.
  void Report(size_t from, uint64_t incarnation, uint64_t gradients = 0, uint64_t blocks = 0,
              bool dropped = false) {
    const net::Message report = Make([&](auto& builder) {
      const auto taken = wire::CreateTakenState(builder, 0, incarnation, gradients, blocks, dropped);
      return wire::CreateReport(builder, 0, 0, 0, taken);
    });
    leases.OnTaken(members.Ps(from), *net::Decode(report)->body_as_Report()->taken());
  }
  // What ps 0 itself has of the process of worker 0.
  void TookHere(uint64_t gradients, uint64_t blocks = 0, bool dropped = false) {
    Worker(0).of_process = {kFirst, gradients, blocks, dropped};
  }
  // The ps that were told since the last call that a process of worker 0 is gone.
  std::vector<net::NodeId> Ordered() {
    std::vector<net::NodeId> ordered;
    for (const FakeChannel::Sent& sent : channel.sent) {
      const wire::Incarnation* const gone = sent.envelope().body_as_Order()->gone();
      CHECK(gone->worker() == 0);
      CHECK(gone->incarnation() == kFirst);
      ordered.push_back(sent.to);
    }
    channel.sent.clear();
    return ordered;
  }
  std::vector<Lease> Of(const Member& worker) {
    const net::Message grant = Make([&](auto& builder) {
      return wire::CreateGrant(builder, 0, false, 0, false, 0, leases.Encode(worker, builder));
    });
    return DecodeLeases(net::Decode(grant)->body_as_Grant()->leases());
  }
  // Takes what there is, and tells the batches in their order; "+" behind one that some ps have already.
  std::string TakeAll(Member& worker) {
    std::string batches;
    while (leases.Ask(worker)) {
      while (leases.Has(worker)) {
        const std::vector<Lease> all = Of(worker);
        const auto lease = std::find_if(
            all.begin(), all.end(), [&](const Lease& one) { return worker.taken < one.step + one.batches; });
        REQUIRE(lease != all.end());
        batches +=
            fmt::format("{}{} ", lease->first + worker.taken - lease->step, lease->taken.empty() ? "" : "+");
        Take(worker);
      }
    }
    leases.Pauses(worker);
    return batches;
  }

  int freed = 0;  // how often there were batches for those that wait
  Leases leases{config, layout, members, history, outbox, log};
};

TEST_CASE(
    "leases: the first is as long as a worker must know ahead, a later one takes a second at its pace") {
  Leasing f(Dynamic(), int64_t{1} << 40);
  const TimePoint before = Clock::now();
  Member& worker = f.Start(0);
  const TimePoint begun = Clock::now();
  CHECK(f.Of(worker).back().batches == 2);
  std::this_thread::sleep_for(milliseconds(20));
  const TimePoint took = Clock::now();
  f.Take(worker);
  const double shortest = SecondsBetween(begun, took), longest = SecondsBetween(before, Clock::now());
  REQUIRE(f.Of(worker).size() == 2);
  CHECK(f.Of(worker)[1].step == 2);
  CHECK(f.Of(worker)[1].first == 2);
  CHECK(f.Of(worker)[1].batches <= std::max(2.0, 1 / shortest));
  CHECK(f.Of(worker)[1].batches >= std::max(2.0, 1 / longest - 1));
  CHECK(worker.result.leases == 2);
}

TEST_CASE("leases: none is longer than half of an equal part of what is left, or than a worker must know") {
  for (const int64_t in_flight : {1, 2}) {
    Config config = Dynamic();
    config.train.in_flight = in_flight;
    Leasing f(config, 400);
    Member& worker = f.Start(0);
    int64_t first = 0;
    while (f.leases.Ask(worker)) {
      const Lease lease = f.Of(worker).back();
      CHECK(lease.first == first);
      CHECK(lease.batches <= std::max((400 - first) / 4, in_flight + 1));
      CHECK(lease.batches >= std::min(400 - first, in_flight + 1));
      first += lease.batches;
      while (worker.taken < lease.step + lease.batches) {
        ++worker.taken;  // without an answer that refills
        f.leases.Taken(worker, 1);
      }
    }
    CHECK(first == 400);
    f.leases.Pauses(worker);
    CHECK(f.leases.over());
    CHECK(f.Logged().find("epoch 1 of 1 is over: applied once: 400 of 400 rows") != std::string::npos);
  }
}

TEST_CASE("leases: answers name the newest until the worker must have it, and meanwhile none follows") {
  Config config = Dynamic();
  config.train.in_flight = 2;
  config.train.epochs = 2;
  Leasing f(config, 4);
  Member& worker = f.Start(0);
  CHECK(f.leases.NewestFor(worker).batches == 0);  // the answer to Ready had it
  f.Take(worker);
  for (; worker.taken < 3; f.Take(worker)) {  // the last batch of the first epoch
    CAPTURE(worker.taken);
    const net::WeightsHead::Lease newest = f.leases.NewestFor(worker);
    CHECK(newest.step == 3);
    CHECK(newest.epoch == 0);
    CHECK(newest.first == 3);
    CHECK(newest.batches == 1);
    CHECK(f.Of(worker).back().step == 3);
  }
  CHECK(f.leases.NewestFor(worker).step == 4);
  CHECK(f.leases.NewestFor(worker).epoch == 1);
}

TEST_CASE("leases: a ps that fills itself is asked what it has taken when it is filled") {
  Leasing f(Dynamic(3), 4);
  Member& lost = f.Start(0);
  f.members.Ps(1).fills = true;
  f.leases.Lost(lost);
  CHECK(f.Ordered() == std::vector<net::NodeId>{200});
  f.members.Ps(1).fills = false;
  f.leases.Tick(Clock::now());
  CHECK(f.Ordered() == std::vector<net::NodeId>{100, 200});
}

TEST_CASE("leases: a lost worker's batches are leased again when every ps has reported, and not before") {
  Leasing f(Dynamic(3), 4);
  Member& lost = f.Start(0);
  Member& other = f.Start(1);
  TimePoint now = Clock::now();
  f.leases.Lost(lost);
  CHECK(f.Ordered() == std::vector<net::NodeId>{100, 200});
  CHECK(f.leases.IsUnknown(lost));
  f.leases.Tick(now);
  CHECK(f.Ordered().size() == 2);
  f.Report(1, kFirst - 1);
  f.Report(1, kFirst);
  f.Report(1, kFirst);
  f.Report(2, kFirst + 1);
  f.leases.Tick(now + milliseconds(99));
  CHECK(f.Ordered().empty());
  f.leases.Tick(now + milliseconds(100));
  CHECK(f.Ordered() == std::vector<net::NodeId>{200});
  CHECK(f.TakeAll(other) == "2 3 ");
  CHECK(f.leases.IsUnknown(lost));
  CHECK(f.freed == 0);
  f.Report(2, kFirst);
  CHECK_FALSE(f.leases.IsUnknown(lost));
  CHECK(f.freed == 1);
  CHECK(f.Logged().find("worker 0: the 2 steps left of its lease go to the others\n") != std::string::npos);
  CHECK_FALSE(f.leases.Has(lost));
  CHECK(f.TakeAll(other) == "0 1 ");
  CHECK(f.leases.over());
  f.leases.Tick(now + milliseconds(900));
  CHECK(f.Ordered().empty());
}

TEST_CASE("leases: steps that ps have in part are given again for the blocks that lack them, and counted") {
  Config config = Dynamic(2);
  config.train.in_flight = 3;
  Leasing f(config, 4);
  Member& lost = f.Start(0);
  f.Take(lost), f.Take(lost);
  f.TookHere(2, 1);
  f.leases.Lost(lost);
  f.Report(1, kFirst, 1);
  CHECK(*f.history.steps_given_again == 2);
  CHECK(f.Logged().find("worker 0: some ps lack 2 steps of it, computed again for them") !=
        std::string::npos);
  Member& other = f.Start(1);
  std::vector<Lease> leases = f.Of(other);
  REQUIRE(leases.size() >= 2);
  CHECK(leases[0].first == 1);
  CHECK(leases[0].batches == 1);
  CHECK(leases[0].taken == std::vector<uint32_t>{2, 0});
  f.Take(other, /*in_weights=*/true);
  CHECK(f.Of(other)[1].first == 2);
  CHECK(f.Of(other)[1].taken == std::vector<uint32_t>{1, 0});
  CHECK(f.TakeAll(other) == "2+ 3 ");
  CHECK(f.leases.over());
  CHECK(f.Logged().find("applied once: 4 of 4 rows") != std::string::npos);
}

TEST_CASE(
    "leases: a gradient too late for its round is in no weights, whichever ps have got as far as that") {
  for (const bool here : {true, false}) {
    CAPTURE(here);
    Config config = Dynamic(2, TrainMode::kSync);
    config.train.aggregate = 1;
    Leasing f(config, 4);
    Member& lost = f.Start(0);
    if (here) {
      ++lost.taken;
      f.leases.Dropped(lost);
      CHECK(f.freed == 1);
    }
    f.TookHere(here ? 1 : 0, 0, here);
    f.leases.Lost(lost);
    f.Report(1, kFirst, here ? 0 : 1, 0, !here);
    CHECK(*f.history.steps_given_again == 0);
    CHECK(f.TakeAll(f.Start(1)) == "0 1 2 3 ");
    CHECK(f.leases.over());
  }
}

TEST_CASE("leases: those of a lost ps 0 go on in the next one, which asks again for what is not known") {
  Leasing run(Dynamic(2), 8), next(Dynamic(2), 8);
  Member& lost = run.Start(0);
  run.Start(1);
  run.Take(lost);
  run.TookHere(1);
  run.leases.Lost(lost);
  CHECK(run.Ordered() == std::vector<net::NodeId>{100});
  CopyState(run.leases, &next.leases);
  for (const int worker : {0, 1}) CopyState(run.Worker(worker), &next.Worker(worker));
  next.leases.Tick(Clock::now());
  CHECK(next.Ordered() == std::vector<net::NodeId>{100});
  for (Leasing* each : {&run, &next}) {
    CHECK(each->leases.IsUnknown(each->Worker(0)));
    each->Report(1, kFirst, 1);
    CHECK_FALSE(each->leases.IsUnknown(each->Worker(0)));
  }
  const std::string batches = run.TakeAll(run.Worker(1));
  CHECK(std::count(batches.begin(), batches.end(), ' ') == 7);
  CHECK(next.TakeAll(next.Worker(1)) == batches);
  CHECK(next.leases.over());
}

TEST_CASE("leases: a lost worker that is waited for keeps its batches") {
  Config config = Dynamic(2);
  config.failure.worker_lost = WorkerLost::kWait;
  Leasing f(config, 4);
  Member& lost = f.Start(0);
  Member& other = f.Start(1);
  f.Take(lost);
  f.TookHere(1);
  f.leases.Lost(lost);
  f.Report(1, kFirst, 0, 1);
  CHECK(*f.history.steps_given_again == 1);
  CHECK(f.Logged().find("worker 0: the 1 step left of its lease stay its own") != std::string::npos);
  CHECK(f.TakeAll(other) == "2 3 ");
  CHECK(f.TakeAll(f.Start(0, kFirst + 9)) == "0+ 1 ");
  CHECK(f.leases.over());
}

TEST_CASE("leases: where rounds wait for a lost worker nothing is asked, and it goes on at once") {
  Config config = Dynamic(2, TrainMode::kSync);
  config.failure.worker_lost = WorkerLost::kWait;
  Leasing f(config, 4);
  Member& lost = f.Start(0);
  f.Start(1);
  f.Take(lost);
  f.leases.Lost(lost);
  CHECK(f.Ordered().empty());
  CHECK_FALSE(f.leases.IsUnknown(lost));
  CHECK(f.TakeAll(f.Start(0, kFirst + 9)) == "1 ");
}

TEST_CASE("leases: steps are held until all workers pause that have been told to start") {
  Leasing f(Dynamic(), 100);
  CHECK(f.leases.Hold(false));
  f.leases.GoOn();
  Member& worker = f.Start(0);
  CHECK_FALSE(f.leases.Hold(false));
  CHECK(f.leases.held());
  Member& other = f.Start(1);
  f.leases.Pauses(worker);
  CHECK_FALSE(f.leases.Hold(false));
  f.leases.Pauses(other);
  CHECK(f.leases.Hold(false));
  f.leases.GoOn();
  CHECK_FALSE(f.leases.held());
  f.leases.GoesOn(worker);
  CHECK_FALSE(f.leases.Hold(false));
  f.leases.Release(worker);
  CHECK(f.leases.Hold(false));
}

TEST_CASE("leases: steps are not held while it is unknown what a worker has done, or a step is torn") {
  Leasing f(Dynamic(2), 100);
  Member& lost = f.Start(0);
  Member& other = f.Start(1);
  f.leases.Pauses(other);
  CHECK_FALSE(f.leases.Hold(false));
  f.leases.Lost(lost);
  for (const bool at_end : {false, true}) CHECK_FALSE(f.leases.Hold(at_end));
  f.Report(1, kFirst, 1);
  CHECK_FALSE(f.leases.held());  // who waits may take the step that some ps lack
  CHECK_FALSE(f.leases.Hold(false));
  CHECK_FALSE(f.leases.held());
  CHECK(f.leases.Hold(/*at_end=*/true));
  f.leases.GoOn();
  f.Take(other), f.Take(other);
  REQUIRE(f.leases.Ask(other));
  REQUIRE(f.Of(other).size() > 1);
  CHECK(f.Of(other)[1].taken == std::vector<uint32_t>{0, 2});
  f.Take(other);
  CHECK_FALSE(f.leases.Hold(false));
  f.leases.Pauses(other);
  CHECK(f.leases.Hold(false));
}

TEST_CASE("leases: in sync steps are not held for a checkpoint") {
  Leasing f(Dynamic(2, TrainMode::kSync), 100);
  f.Start(0);
  CHECK(f.leases.Hold(false));
  CHECK_FALSE(f.leases.held());
}

}  // namespace
}  // namespace dtrain
