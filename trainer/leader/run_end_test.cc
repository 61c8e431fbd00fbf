#include "trainer/leader/run_end.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "base/error.h"
#include "trainer/peer/peer_limits.h"
#include "trainer/ps/ps_test_util.h"

namespace dtrain {
namespace {

using Indices = std::vector<int64_t>;

// ps 0 and 1 and three workers; worker 0 is done. Each ps has a part of the weights.
struct Ended : PsFixture {
  explicit Ended(int workers = 3) : PsFixture(LinearCluster(2, workers, 10)) {
    members.Worker(0)->done = true;
    Here({Role::kPs, 1});
  }
  void Here(TaskId task) { members.At(task).node = task.role == Role::kPs ? 100 : 10 + 2 * task.index; }
  // A worker that takes part, has the rows to evaluate, and asks for the end.
  const Member& Waits(int index) {
    Here({Role::kWorker, index});
    Member& worker = *members.Worker(index);
    worker.takes_part = worker.done = worker.evaluates = true;
    worker.end_request = 7;
    return worker;
  }
  void OtherPsReports(const char* non_finite = nullptr) {
    const net::Message list = Make([&](auto& builder) {
      const auto values = builder.CreateVector(std::vector<float>{3});
      const auto part = wire::CreatePart(builder, builder.CreateString(NameOf(1)), 0, 4, 12, values);
      const auto wrong = non_finite == nullptr ? 0 : builder.CreateString(non_finite);
      const auto parts = builder.CreateVector({part});
      return wire::CreateReport(builder, 0, 0, wire::CreateChecksumList(builder, parts, 1000, 500, wrong));
    });
    end.OnChecksums(members.At({Role::kPs, 1}), *net::Decode(list)->body_as_Report()->checksums());
  }
  // The only variable in the range of a ps.
  const std::string& NameOf(int ps) const {
    return layout.variables[static_cast<size_t>(layout.SegmentsOf(ps).at(0).variable)].name;
  }
  void Evaluated(const Member& worker, double accuracy) {
    EvaluationFigures of;
    of.rows = 50;
    of.loss = 0.5;
    const std::string held_out = EvaluationToJson(of);
    of.accuracy = accuracy;
    of.auc = 0.75;
    of.log_loss = 0.625;
    const std::string test = EvaluationToJson(of);
    const net::Message figures = Make([&](auto& builder) {
      return wire::CreateEvaluatedDirect(builder, 0, 10, held_out.c_str(), test.c_str(), 20, 10);
    });
    end.OnEvaluated(worker, *net::Decode(figures)->body_as_Evaluated());
  }
  const RunSummary& Reported() {
    end.Begin(now);
    end.TakeOwn(own);
    OtherPsReports();
    end.Tick(now);
    CHECK(end.Complete());
    end.Tell({10, 0, 1, false, {}}, now);
    return end.summary();
  }
  int Asked(net::NodeId node, wire::Body kind) const {
    return static_cast<int>(std::count_if(channel.sent.begin(), channel.sent.end(), [&](const auto& sent) {
      return sent.to == node && sent.envelope().body_type() == kind;
    }));
  }

  const TimePoint now = Clock::now();
  ShardReport own{{{{NameOf(0), 0, 4, 11}, {2}}}, 4, 2, 0, ""};
  RunHistory history;
  Logger log{"ps 0", LogOptions{LogLevel::kError, false, "", false}};
  Evaluations evaluations{config, members, history, log};
  RunEnd end{config, layout, members, evaluations, history, outbox, log};
};

TEST_CASE(
    "run end: it is made of every ps's report, asked for until it is here, and of the figures of one "
    "worker") {
  Ended run;
  const Member& worker = run.Waits(0);
  run.end.Begin(run.now);
  run.end.TakeOwn(run.own);
  CHECK(run.Asked(100, wire::Body::Order) == 1);
  run.end.Tick(run.now + milliseconds(1000));
  CHECK(run.Asked(100, wire::Body::Order) == 2);
  run.OtherPsReports();
  run.OtherPsReports();  // a repeated report counts once
  run.end.Tick(run.now);
  CHECK_FALSE(run.end.Complete());
  CHECK(run.Asked(worker.node, wire::Body::Grant) == 1);
  run.Evaluated(worker, 0.875);
  REQUIRE(run.end.Complete());
  run.end.Tell({10, 0, 1, false, 0.875}, run.now);
  const RunSummary& summary = run.end.summary();
  CHECK(summary.model_crc == ModelChecksum({{run.NameOf(0), 0, 4, 11}, {run.NameOf(1), 0, 4, 12}}));
  CHECK(summary.weights.at(run.NameOf(0)) == std::vector<float>{2});
  CHECK(summary.weights.at(run.NameOf(1)) == std::vector<float>{3});
  CHECK(summary.bytes_sent == 4 + 1000 + 20);
  CHECK(summary.bytes_received == 2 + 500 + 10);
  CHECK(summary.validation.rows == 50);
  CHECK(summary.validation.loss == 0.5);
  CHECK_FALSE(summary.validation.accuracy);
  CHECK(summary.test.loss == 0.5);
  CHECK(summary.test.accuracy == 0.875);
  CHECK(summary.test.auc == 0.75);
  CHECK(summary.test.log_loss == 0.625);
  CHECK_FALSE(summary.test.calibration);
  CHECK(summary.progressive_loss == 0.875);
}

TEST_CASE("run end: a ps that fills itself is asked for its report when it is filled") {
  Ended run;
  run.members.Ps(1).fills = true;
  run.end.Begin(run.now);
  CHECK(run.Asked(100, wire::Body::Order) == 0);
  run.members.Ps(1).fills = false;
  run.end.Tick(run.now + milliseconds(1000));
  CHECK(run.Asked(100, wire::Body::Order) == 1);
}

TEST_CASE("run end: a worker that is lost while it evaluates is replaced; without one there are no figures") {
  Ended run;
  const Member& first = run.Waits(1);
  const Member& second = run.Waits(2);
  run.end.Begin(run.now);
  run.end.TakeOwn(run.own);
  run.OtherPsReports();
  run.end.Tick(run.now);
  CHECK(run.Asked(first.node, wire::Body::Grant) == 1);
  run.members.Worker(1)->node = 0;
  run.end.Tick(run.now);
  CHECK(run.Asked(second.node, wire::Body::Grant) == 1);
  CHECK_FALSE(run.end.Complete());
  run.members.Worker(2)->node = 0;
  run.end.Tick(run.now);
  REQUIRE(run.end.Complete());
  run.end.Tell({10, 0, 1, false, {}}, run.now);
  CHECK_FALSE(run.end.summary().test.loss.has_value());
}

TEST_CASE("run end: a final weight that is not finite, on any ps, ends the run as diverged") {
  Ended run;
  run.end.Begin(run.now);
  run.end.TakeOwn(run.own);
  CHECK_THROWS_WITH_AS(run.OtherPsReports("weights/W1[0] is nan"),
                       doctest::Contains("at the end of the run weights/W1[0] is nan: the run has diverged"),
                       Failure);
}

TEST_CASE("run end: who has started and is not done was lost, also before a rollback; others took no part") {
  Ended run;
  run.history.took_part = {true, true, false};
  run.members.Worker(2)->taken = 4;  // steps of an earlier run
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
    WorkerResult& worker = run.members.Worker(0)->result;
    worker.done = true;
    worker.local_steps = 10;
    worker.figures.steps = 10;
    worker.first_step_nanos = 1;
    worker.last_step_nanos = 5'000'000'001;
    const RunSummary& summary = run.Reported();
    REQUIRE(summary.train_s.has_value());
    CHECK(*summary.train_s == doctest::Approx(5));
    CHECK(*summary.steps_per_s == doctest::Approx(returned ? 2.0 : 0.8));
  }
}

TEST_CASE("run end: the first loss is that of the worker that had learnt least, however late another came") {
  Ended run;
  run.members.Worker(0)->result.first_loss = 0.01;
  run.members.Worker(1)->result.first_loss = 2.5;
  CHECK(run.Reported().first_loss == 2.5);
}

TEST_CASE("run end: a report of another part of the model than that of its ps is dropped") {
  Ended run;
  run.end.Begin(run.now);
  run.end.TakeOwn(run.own);
  const auto report = [&](const std::string& name, uint64_t bytes, size_t copies, size_t values) {
    const net::Message list = run.Make([&](auto& builder) {
      const auto floats = builder.CreateVector(std::vector<float>(values));
      const auto part = wire::CreatePart(builder, builder.CreateString(name), 0, bytes, 12, floats);
      const std::vector<flatbuffers::Offset<wire::Part>> parts(copies, part);
      const auto all = builder.CreateVector(parts);
      return wire::CreateReport(builder, 0, 0, wire::CreateChecksumList(builder, all, ~0ull, ~0ull));
    });
    run.end.OnChecksums(run.members.At({Role::kPs, 1}), *net::Decode(list)->body_as_Report()->checksums());
    run.end.Tick(run.now);
  };
  report(run.NameOf(0), 4, 1, 1);
  report(run.NameOf(1), 8, 1, 1);
  report(run.NameOf(1), 4, 1, 60);
  report(run.NameOf(1), 4, 0, 1);
  report(std::string(500000, 'x'), 4, 50000, 60);  // 25 GB of names, if each was copied
  CHECK_FALSE(run.end.Complete());
  report(run.NameOf(1), 4, 1, 1);
  CHECK(run.end.Complete());
  run.end.Tell({10, 0, 1, false, {}}, run.now);
  CHECK(run.end.summary().bytes_sent == kMaxCount);  // and no overflow
}

TEST_CASE("run end: the end of a run of very many workers can be told, whatever each says of itself") {
  for (const int workers : {4000, 60000}) {
    CAPTURE(workers);
    Ended run(workers);
    const std::string device(100000, '\1');
    const net::Message done = run.Make([&](auto& builder) {
      WorkerFigures figures;
      figures.steps = std::numeric_limits<int64_t>::min();
      figures.data = figures.compute = figures.hooks = figures.wait =
          figures.network = {1.1e300, -2.2e-300, 3.3};
      const auto text = builder.CreateString(FiguresToJson(figures));
      return wire::CreateDone(builder, ~0ull, 1.1e30f, std::numeric_limits<int64_t>::min(),
                              std::numeric_limits<int64_t>::max(), ~0ull, ~0ull, 1.23456789012345e-300, text,
                              builder.CreateString(device), 1e300);
    });
    for (int worker = 0; worker < workers; ++worker) {
      Member& member = *run.members.Worker(worker);
      member.done = true;
      member.result.Take(*net::Decode(done)->body_as_Done());
    }
    run.Waits(0);
    run.end.Begin(run.now);
    run.end.TakeOwn(run.own);
    run.OtherPsReports();
    run.end.Tick(run.now);
    run.Evaluated(*run.members.Worker(0), 0.5);
    REQUIRE(run.end.Complete());
    run.end.Tell({10, 0, 1, false, {}}, run.now);
    const wire::End* const end = run.channel.sent.back().envelope().body_as_End();
    REQUIRE(end != nullptr);
    RunSummary summary;
    REQUIRE(FromWireJson(end->json()->str(), &summary));
    CHECK(summary.workers.empty());
    CHECK(summary.local_steps.size() == (workers == 4000 ? 4000u : 0u));
    CHECK(summary.bytes_sent == kMaxCount);
  }
}

}  // namespace
}  // namespace dtrain
