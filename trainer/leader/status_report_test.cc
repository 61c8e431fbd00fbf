#include "trainer/leader/status_report.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>

#include <string>
#include <vector>

#include "base/testing/files.h"
#include "trainer/ps/ps_task_test_util.h"

namespace dtrain {
namespace {

constexpr TaskId kWorker0{Role::kWorker, 0};

struct Reported : RegistrarFixture {
  explicit Reported(const Config& of) : RegistrarFixture(of) { AllJoin(); }
  void Tick(double seconds, int64_t step) {
    now += std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(seconds));
    report.Tick(now, step);
  }
  void Beat(int worker, uint64_t steps, const std::vector<uint64_t>& parts_us) {
    flatbuffers::FlatBufferBuilder& builder = encoder.Begin();
    const net::Message beat =
        encoder.Finish({}, wire::CreateHeartbeatDirect(builder, "step", 1, "", 0, steps, 0, 0, nullptr, 0,
                                                       &parts_us, 5 << 20, 3 * steps, 2 * steps, 100 * steps,
                                                       200 * steps, 300 * steps));
    report.OnHeartbeat(*members.Worker(worker), *net::Decode(beat)->body_as_Heartbeat(), now);
  }
  Json Now(int64_t step, std::optional<int64_t> steps) const {
    return Json::Parse(report.ToJson({"training", "", step, steps, false}));
  }

  TimePoint now = Clock::now();
  StatusReport report{config, members, history};
};

TEST_CASE("status report: pace and time left are those of the last ten seconds") {
  Reported run(LinearCluster(1, 2, 1000));
  CHECK(run.Now(0, 1000)["steps_per_s"].is_null());
  CHECK(run.Now(0, 1000)["left_s"].is_null());
  run.Tick(0, 0);
  for (int i = 1; i <= 30; ++i) run.Tick(1, 10 * i);        // 10 a second for half a minute
  for (int i = 1; i <= 12; ++i) run.Tick(1, 300 + 50 * i);  // then 50
  const Json now = run.Now(900, 1000);
  CHECK(now["steps_per_s"].get<double>() == doctest::Approx(50));
  CHECK(now["left_s"].get<double>() == doctest::Approx(2));
  CHECK(now["phase"] == "training");
  CHECK(run.Now(900, std::nullopt)["left_s"].is_null());
  CHECK(run.Now(1100, 1000)["left_s"].get<double>() == 0);
}

TEST_CASE("status report: a run that has gone back to a checkpoint begins to count anew") {
  Reported run(LinearCluster(1, 1, 1000));
  run.Tick(0, 500);
  run.Tick(5, 600);
  run.Tick(1, 100);
  run.Tick(2, 120);
  CHECK(run.Now(120, 1000)["steps_per_s"].get<double>() == doctest::Approx(10));
}

TEST_CASE("status report: the steps of a checkpoint are not of the pace of a run that goes on from it") {
  Reported run(LinearCluster(1, 1, 1000000));
  run.Tick(0, 0);
  run.Tick(3, 0);  // until all tasks are here
  run.report.Begin();
  run.Tick(1, 500000);
  run.Tick(4, 500200);
  CHECK(run.Now(500200, 1000000)["steps_per_s"].get<double>() == doctest::Approx(50));
}

TEST_CASE("status report: where a worker's time goes comes from its heartbeats") {
  Reported run(LinearCluster(1, 2, 1000));
  run.Beat(0, 100, {0, 0, 0, 0, 0});
  run.now += std::chrono::seconds(4);
  run.Beat(0, 140, {100, 600, 0, 200, 100});
  const Json tasks = run.Now(140, 1000)["tasks"];
  REQUIRE(tasks.size() == 3);
  CHECK(tasks[0]["role"] == "ps");
  CHECK(tasks[0]["memory_bytes"].get<int64_t>() > 1 << 20);
  const Json& worker = tasks[1];
  CHECK(worker["role"] == "worker");
  CHECK(worker["index"] == 0);
  CHECK(worker["state"] == "preparing");
  CHECK(worker["local_steps"] == 140);
  CHECK(worker["steps_per_s"].get<double>() == doctest::Approx(10));
  CHECK(worker["memory_bytes"] == 5 << 20);
  CHECK(worker["time"]["compute"].get<double>() == doctest::Approx(0.6));
  CHECK(worker["time"]["hooks"].get<double>() == 0);
  CHECK(worker["staleness"].get<double>() == doctest::Approx(1.5));
  CHECK(tasks[2]["time"].is_null());

  run.report.Forget(*run.members.Worker(0));
  run.members.Worker(0)->taken = 139;
  run.members.Worker(0)->node = 0;
  CHECK(run.Now(140, 1000)["tasks"][1]["time"].is_null());
  CHECK(run.Now(140, 1000)["tasks"][1]["local_steps"] == 139);
}

TEST_CASE("status report: of each ps it says who has its replica, in a run with replicas") {
  Reported run(LinearCluster(3, 1, 1000));
  StatusReport::Now now{"training", "", 7, 1000, false};
  Json tasks = Json::Parse(run.report.ToJson(now))["tasks"];
  for (const Json& task : tasks) CHECK(task.Find("replica") == nullptr);
  now.replicas = {{"ps 1", true, 2, 1}, {"ps 2", true, 3, 5}, {"ps 0", false, 4, 0}};
  tasks = Json::Parse(run.report.ToJson(now))["tasks"];
  CHECK(tasks[0]["replica"].dump() == R"({"on":"ps 1","counts":true,"epoch":2,"behind":1})");
  CHECK(tasks[1]["replica"].dump() == R"({"on":"ps 2","counts":true,"epoch":3,"behind":5})");
  CHECK(tasks[2]["replica"].dump() == R"({"on":"ps 0","counts":false,"epoch":4,"behind":0})");
  CHECK(tasks[3].Find("replica") == nullptr);
}

TEST_CASE(
    "status report: what tasks have moved comes from their heartbeats, and from their results when they are "
    "done") {
  Reported run(LinearCluster(1, 2, 1000));
  const auto moved = [](const Json& of) {
    return of["bytes_sent"].dump() + " " + of["bytes_received"].dump() + " " + of["bytes_saved"].dump();
  };
  CHECK(moved(run.Now(1, 1000)) == "null null null");
  run.Beat(0, 7, {0, 0, 0, 0, 0});
  StatusReport::Now now{"training", "", 7, 1000, false};
  now.traffic = {10, 20, 30};
  Json status = Json::Parse(run.report.ToJson(now));
  CHECK(moved(status) == "710 1420 2130");
  CHECK(moved(status["tasks"][0]) == "10 20 30");
  CHECK(moved(status["tasks"][1]) == "700 1400 2100");
  CHECK(moved(status["tasks"][2]) == "null null null");

  WorkerResult& result = run.members.Worker(0)->result;
  result.done = true;
  result.bytes_sent = 1000;
  result.bytes_received = 2000;
  CHECK(moved(Json::Parse(run.report.ToJson(now))) == "1010 2020 30");
  now.traffic = {~uint64_t{0}, ~uint64_t{0}, ~uint64_t{0}};  // that no ps can have
  CHECK(Json::Parse(run.report.ToJson(now))["bytes_sent"] == int64_t{1} << 53);
}

TEST_CASE("status report: figures that no worker can have break nothing") {
  Reported run(LinearCluster(1, 1, 1000));
  run.Beat(0, 1, {0, 0, 0, 0, 0});
  run.now += std::chrono::seconds(4);
  run.Beat(0, ~0ull, {~0ull, ~0ull, ~0ull, ~0ull, ~0ull});
  CHECK(run.Now(1, 1000)["tasks"][1]["time"]["data"].get<double>() == doctest::Approx(0.2));
  run.now += std::chrono::seconds(4);
  run.Beat(0, 2, {1, 2});  // not all parts
  CHECK(run.Now(1, 1000)["tasks"][1]["time"]["data"].get<double>() == doctest::Approx(0.2));
}

TEST_CASE("status report: it says which tasks are here, which are lost and which are done") {
  Reported run(LinearCluster(2, 2, 1000));
  const auto state = [&](int task) { return run.Now(1, 1000)["tasks"][task]["state"].get<std::string>(); };
  Member& worker = *run.members.Worker(0);
  worker.ready = true;
  CHECK(state(2) == "here");
  worker.takes_part = true;
  worker.lost = true;
  run.members.Remove(worker);
  CHECK(state(2) == "lost");
  CHECK(run.Now(1, 1000)["tasks"][2]["heard_s"].is_null());
  run.members.Worker(1)->done = true;
  CHECK(state(3) == "done");
}

TEST_CASE("status report: at the end it says which tasks are done, which has failed and which were lost") {
  Reported run(LinearCluster(2, 2, 1000));
  run.history.begun = true;
  const auto states = [&](const StatusReport::Now& now) {
    std::string all;
    const Json status = Json::Parse(run.report.ToJson(now));
    for (const Json& task : status["tasks"]) {
      all += (all.empty() ? "" : " ") + task["state"].get<std::string>();
    }
    return all;
  };
  StatusReport::Now now;
  now.ended = true;
  CHECK(states(now) == "ended ended ended ended");
  now.failed = TaskId{Role::kWorker, 1};
  CHECK(states(now) == "ended ended ended failed");
  now.failed_by_loss = true;
  CHECK(states(now) == "ended ended ended lost");
  now.failed = TaskId{Role::kPs, 0};
  now.failed_by_loss = false;
  CHECK(states(now) == "failed ended ended ended");
  Member& worker = *run.members.Worker(0);
  worker.lost = true;
  run.members.Remove(worker);
  run.members.Worker(1)->done = true;
  now = {};
  now.ended = now.done = true;
  CHECK(states(now) == "done done lost done");
}

TEST_CASE("status report: the newest checkpoint and the best evaluation are in it") {
  Reported run(LinearCluster(1, 1, 1000));
  CHECK(run.Now(1, 1000)["checkpoint"].is_null());
  CHECK(run.Now(1, 1000)["evaluation"].is_null());
  // A run that goes on from an hour ago.
  const std::string path = testing::NewDirectory();
  const timespec hour_ago{time(nullptr) - 3600, 0}, times[] = {hour_ago, hour_ago};
  REQUIRE(utimensat(AT_FDCWD, path.c_str(), times, 0) == 0);
  run.history.checkpoint = path;
  run.history.checkpoint_step = 7;
  for (int tick = 0; tick < 2; ++tick) {
    const Json checkpoint = run.Now(20, 1000)["checkpoint"];
    CHECK(checkpoint["path"] == path);
    CHECK(checkpoint["step"] == 7);
    CHECK(checkpoint["age_s"].get<double>() >= 3600);
    CHECK(checkpoint["age_s"].get<double>() < 3700);
    run.Tick(1, 10);
  }
  run.history.patience.emplace(0);
  run.history.patience->Exhausted(0.25, 15);
  CHECK(run.Now(20, 1000)["evaluation"]["best_step"] == 15);
}

TEST_CASE("status report: with more tasks than a message has room for it says how the run is all the same") {
  constexpr int kWorkers = 200;
  Reported run(LinearCluster(1, kWorkers, 1000));
  for (int i = 0; i < kWorkers; ++i)
    run.members.Worker(i)->process.assign(net::kMaxHeaderBytes / kWorkers, 'x');
  const std::string text = run.report.ToJson({"training", "", 5, 1000, false});
  CHECK(text.size() < net::kMaxHeaderBytes);
  CHECK(Json::Parse(text)["global_step"] == 5);
  CHECK(Json::Parse(text)["tasks"].is_null());
}

}  // namespace
}  // namespace dtrain
