#include "trainer/ps/run_end.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "trainer/ps/ps_test_util.h"

namespace dtrain {
namespace {

using Indices = std::vector<int64_t>;

// ps 0 of three workers, of which worker 0 is done and reports.
struct Ended : PsFixture {
  Ended() : PsFixture(LinearCluster(1, 3, 10)) { standings.Of(*members.Worker(0)).done = true; }
  const RunSummary& Reported() {
    const net::Message report = Make([](auto& builder) {
      return wire::CreateReport(builder, builder.CreateString(ToWireJson(RunSummary())));
    });
    CHECK(end.TakeReport(*net::Decode(report)->body_as_Report(), {10, 0, 1, false}));
    return end.summary();
  }

  Standings standings{config, members};
  RunHistory history;
  Logger log{"ps 0", LogOptions{LogLevel::kError, false, "", false}};
  RunEnd end{config, members, standings, history, outbox, log};
};

TEST_CASE("run end: who has started and is not done was lost, also before a rollback; others took no part") {
  Ended run;
  run.history.took_part = {true, true, false};
  run.members.Worker(2)->taken = 4;  // of an earlier run
  const RunSummary& summary = run.Reported();
  CHECK(summary.lost_workers == Indices{1});
  CHECK(summary.absent_workers == Indices{2});
  CHECK(summary.local_steps == Indices{0, 0, 4});
}

TEST_CASE("run end: a ps 0 that came into a run that was under way knows by the steps who took part") {
  Ended run;
  run.history.peers_returned = true;
  run.members.Worker(2)->taken = 4;
  const RunSummary& summary = run.Reported();
  CHECK(summary.lost_workers == Indices{2});
  CHECK(summary.absent_workers == Indices{1});
}

TEST_CASE("run end: the pace of a ps 0 that came into a run under way is that of its own steps and time") {
  for (const bool returned : {false, true}) {
    Ended run;
    run.history.peers_returned = returned;
    run.history.first_step = 6;
    run.history.first_nanos = 3'000'000'000;
    WorkerResult& worker = run.standings.Of(*run.members.Worker(0)).result;
    worker.done = true;
    worker.local_steps = 10;
    worker.first_step_nanos = 1;
    worker.last_step_nanos = 5'000'000'001;
    const RunSummary& summary = run.Reported();
    REQUIRE(summary.train_s.has_value());
    CHECK(*summary.train_s == doctest::Approx(5));
    CHECK(*summary.steps_per_s == doctest::Approx(returned ? 2.0 : 0.8));
  }
}

TEST_CASE("run end: a report that is none is not taken") {
  Ended run;
  const net::Message report =
      run.Make([](auto& builder) { return wire::CreateReport(builder, builder.CreateString("{}")); });
  CHECK_FALSE(run.end.TakeReport(*net::Decode(report)->body_as_Report(), {10, 0, 1, false}));
  CHECK_FALSE(run.end.reported());
}

}  // namespace
}  // namespace dtrain
