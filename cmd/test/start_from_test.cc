// The real binary with checkpoint.start_from: a job for the data of each day.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <signal.h>

#include <filesystem>
#include <string>
#include <vector>

#include "base/json.h"
#include "cmd/testing/job.h"
#include "cmd/testing/leftovers.h"

namespace dtrain::testing {
namespace {

std::string Set(const std::string& key, const std::string& value) { return "--set=" + key + "=" + value; }

std::string Ps(int ps) {
  std::string addresses;
  for (int i = 0; i < ps; ++i) addresses += (i == 0 ? "" : ",") + std::string("\"127.0.0.1:0\"");
  return Set("cluster.ps", "[" + addresses + "]");
}

std::string Newest(const std::string& dir, int64_t step) { return fmt::format("{}/step-{:09}", dir, step); }

// Job: a model and the rows of two days, which have the same features.
struct Job : LocalJob {
  explicit Job(const std::string& model, const std::string& optimizer)
      : LocalJob(fmt::format("cluster: {{ps: [\"127.0.0.1:9911\"], worker: [\"a:2\", \"a:3\"]}}\n"
                             "model: {{inputs: 500, {}}}\n"
                             "data: {{train: {{format: libsvm, path: day1.svm}},\n"
                             "       test: {{format: libsvm, path: day2.svm}}}}\n"
                             "train: {{mode: sync, batch_size: 20, steps: 10,\n"
                             "  optimizer: {{kind: {}, learning_rate: 0.02}}}}\n"
                             "eval: {{by: chief}}\nhooks: {{progressive: true}}\n",
                             model, optimizer)) {
    Synthesize("day1", 400, 1);
    Synthesize("day2", 300, 2);
  }
  std::string Path(const std::string& name) const { return directory + "/" + name; }
  void Synthesize(const std::string& name, int rows, int seed) const {
    REQUIRE(testing::Run({"synth", "libsvm", "--rows", fmt::format("{}", rows), "--features", "20", "--width",
                          "500", "--seed", fmt::format("{}", seed), "--out", Path(name + ".svm")})
                .code == 0);
  }
  // A run on the rows of a day, with checkpoints in `dir` and the weights of `from`.
  std::vector<std::string> Day(int day, const std::string& dir, const std::string& from) const {
    std::vector<std::string> sets = {Set("data.train.path", Path(fmt::format("day{}.svm", day))),
                                     Set("checkpoint.dir", Path(dir))};
    if (!from.empty()) sets.push_back(Set("checkpoint.start_from", Path(from)));
    return sets;
  }
  Json Train(std::vector<std::string> sets, const std::vector<std::string>& more) const {
    sets.insert(sets.end(), more.begin(), more.end());
    const Json result = RunLocal(config, sets);
    REQUIRE(result.is_object());
    return result;
  }
  Done Command(const char* command, std::vector<std::string> sets,
               const std::vector<std::string>& more = {}) const {
    sets.insert(sets.begin(), {command, "--config", config});
    sets.insert(sets.end(), more.begin(), more.end());
    return testing::Run(sets);
  }
};

struct Model {
  const char* model;
  const char* optimizer;
};
constexpr Model kModels[] = {{"kind: mlp, hidden: [8], outputs: 2, table: none", "adam"},
                             {"kind: logistic", "adagrad"}};

TEST_CASE("start_from: the loss before the first step is that of the day before, for any number of ps") {
  for (const Model& each : kModels) {
    CAPTURE(each.model);
    const Job job(each.model, each.optimizer);
    // Its test rows are those of the second day.
    const double before = job.Train(job.Day(1, "mon", ""), {Ps(1)}).at("test_loss").get<double>();
    Json crc;
    for (const int ps : {1, 3}) {
      const std::string dir = fmt::format("tue-{}", ps);
      const Json run = job.Train(job.Day(2, dir, "mon"), {Ps(ps), Set("train.steps", "1"),
                                                          Set("train.batch_size", "150")});  // all rows
      CHECK(run.at("progressive_loss").get<double>() == doctest::Approx(before).epsilon(1e-5));
      CHECK(run.at("global_step") == 1);
      if (crc.is_null()) crc = run.at("model_crc");
      CHECK(run.at("model_crc") == crc);
    }
  }
}

TEST_CASE("start_from: the directory of a run stands for its checkpoints, and resume takes it too") {
  const Job job(kModels[1].model, kModels[1].optimizer);
  const Done monday = job.Command("local", {Ps(2), "--run", job.Path("monday")});
  CAPTURE(monday.error);
  REQUIRE(monday.code == 0);
  for (const char* const key : {"checkpoint.start_from", "checkpoint.resume"}) {
    CAPTURE(key);
    const std::vector<std::string> sets = {Ps(3), Set(key, job.Path("monday") + "/"),
                                           Set("train.steps", "20")};
    const Done check = job.Command("check", sets);
    CAPTURE(check.error);
    CHECK(Contains(check.output, Newest(job.Path("monday/checkpoints"), 10)));
    const Done run = job.Command("local", sets, {"--run", job.Path(key)});
    CAPTURE(run.error);
    CHECK(run.code == 0);
  }
  const auto steps = [&](const char* key) {
    return Json::Parse(FileContent(job.Path(std::string(key) + "/result.json"))).at("local_steps").dump();
  };
  CHECK(steps("checkpoint.start_from") == "[20,20]");
  CHECK(Contains(FileContent(job.Path("checkpoint.resume/logs/ps-0.log")), "global step 10"));
}

TEST_CASE("start_from: three days and three ps end with the bits of one run that took the same batches") {
  for (const Model& each : kModels) {
    CAPTURE(each.model);
    const Job job(each.model, each.optimizer);
    std::string before;
    for (const int day : {1, 2, 3}) {
      CAPTURE(day);
      const int rows = day == 3 ? 1 : day;
      const std::string seed = Set("data.seed", fmt::format("{}", day)), dir = fmt::format("of-{}", day);
      const Json whole = job.Train(job.Day(rows, "whole", ""),
                                   {Ps(1), seed, Set("train.steps", fmt::format("{}", 10 * day))});
      const Json run = job.Train(job.Day(rows, dir, before), {Ps(day), seed});
      CHECK(run.at("model_crc") == whole.at("model_crc"));
      CHECK(run.at("global_step") == 10);
      before = dir;
    }
    const Done seen = testing::Run({"inspect", job.Path("of-3")});
    CHECK(seen.code == 0);
    CHECK(Contains(seen.output, "  began with the weights of " + Newest(job.Path("of-2"), 10) +
                                    ", and its slots after 20 updates\n"));
  }
}

TEST_CASE("start_from: the weights of another optimizer are those that dtrain import would take") {
  const Job job(kModels[0].model, "adagrad");
  job.Train(job.Day(1, "mon", ""), {});
  REQUIRE(testing::Run({"export", job.Path("mon"), "--out", job.Path("mon.npz")}).code == 0);
  const std::string adam = Set("train.optimizer.kind", "adam");
  REQUIRE(testing::Run({"import", job.Path("mon.npz"), "--config", job.config, adam, "--out", job.Path("in")})
              .code == 0);
  const Json imported = job.Train(job.Day(2, "in", ""), {adam, Ps(1)});
  const Json begun = job.Train(job.Day(2, "tue", "mon"), {adam, Ps(3)});
  CHECK(begun.at("model_crc") == imported.at("model_crc"));
}

TEST_CASE("start_from: check and the run say what the run begins with, and refuse another model") {
  const Job job(kModels[1].model, kModels[1].optimizer);
  const std::vector<std::string> day = job.Day(2, "tue", "mon");
  const Done missing = job.Command("check", day);
  CHECK(missing.code == 2);
  CHECK(Contains(missing.error, "mon"));
  job.Train(job.Day(1, "mon", ""), {});
  const std::string from = Newest(job.Path("mon"), 10);
  CHECK(Contains(job.Command("check", day).output,
                 "\nstart: at global step 0, with the weights of " + from + ", of its global step 10\n"));
  CHECK(Contains(job.Command("check", day, {Set("train.optimizer.kind", "sgd")}).output,
                 "its optimizer was adagrad: the slots begin anew\n"));
  for (const char* command : {"check", "local"}) {
    CAPTURE(command);
    const Done wider = job.Command(command, day, {Set("model.inputs", "600")});
    CHECK(wider.code == 2);
    CHECK(
        Contains(wider.error, from + ": another model: table is 501 x 1 in the checkpoint and 601 x 1 in "));
    const Done other = job.Command(command, day, {Set("model.kind", "linear")});
    CHECK(other.code == 2);
    CHECK(Contains(other.error, "model.kind"));
    CHECK(Contains(other.error, "or begin with initial values: without checkpoint.start_from."));
  }
  const Done run = job.Command("local", day);
  CHECK(run.code == 0);
  CHECK(
      Contains(run.error, "begins with the weights and optimizer slots of " + from + ", of global step 10"));
  // The remedy is named where it was not used.
  const Done again = job.Command("local", job.Day(2, "mon", ""));
  CHECK(again.code == 0);
  CHECK(Contains(again.error, from + " was trained on other data: data.train has 300 rows here and had 400 "
                                     "there"));
  CHECK(Contains(again.error, "already done: " + from + " has the last step, 10"));
  CHECK(Contains(again.error,
                 "To train its model on them, name another checkpoint.dir, and "
                 "checkpoint.start_from: " +
                     from));
}

TEST_CASE("start_from: a ps that is killed before the first checkpoint comes back to the weights") {
  AdoptOrphans();
  // A checkpoint of it is some megabytes.
  const LocalJob job(
      "cluster: {ps: [\"a:1\", \"a:2\"], worker: [\"a:3\"]}\n"
      "model: {kind: linear, inputs: 1000000}\n"
      "data: {train: {format: synthetic, name: linear}}\n"
      "train: {batch_size: 1, steps: 5, mode: sync, optimizer: {kind: adam, learning_rate: 0.001}}\n"
      "failure: {restarts: 2, detect_s: 10, worker_lost: wait}\n");
  const std::string dir = job.directory + "/mon", from = Set("checkpoint.start_from", dir);
  const auto at = [&](const char* name) { return Set("checkpoint.dir", job.directory + "/" + name); };
  REQUIRE(RunLocal(job.config, {at("mon")}).is_object());
  const Json expected = RunLocal(job.config, {at("undisturbed"), from});
  REQUIRE(expected.is_object());
  for (const int ps : {0, 1}) {
    CAPTURE(ps);
    const auto run = job.Start({at(ps == 0 ? "tue-0" : "tue-1"), from});
    REQUIRE(run->WaitForLine("begins with the weights and optimizer slots of " + Newest(dir, 5)));
    const pid_t pid = ChildOf(*run, "ps", ps);
    REQUIRE(pid > 0);
    kill(pid, SIGKILL);
    CheckEnd(*run);
    CHECK(Contains(run->standard_error(), fmt::format("ps {} was killed by SIGKILL; started again", ps)));
    const Json result = ReadResult(job.result);
    CHECK(result.at("model_crc") == expected.at("model_crc"));
    CHECK(result.at("global_step") == 5);
  }
  CHECK(NoneLeft());
}

}  // namespace
}  // namespace dtrain::testing
