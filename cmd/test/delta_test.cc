// Deltas (checkpoint.delta) in the real binary: a run saves and goes on from them, and every command that
// reads a checkpoint reads them.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <signal.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "base/testing/files.h"
#include "cmd/testing/job.h"
#include "cmd/testing/leftovers.h"

namespace dtrain::testing {
namespace {

namespace fs = std::filesystem;

// A synchronous run on rows of a table. It saves at once after step 10, and every 10 steps where it is not
// saving yet.
class DeltaJob {
 public:
  DeltaJob() {
    REQUIRE(Run({"synth", "libsvm", "--rows", "2000", "--features", "20", "--width", "3000", "--out", rows()})
                .code == 0);
    WriteFile(
        config(),
        "model: {kind: logistic, inputs: 3000}\n"
        "data: {train: {format: libsvm, path: rows.txt}, test: {format: libsvm, path: rows.txt}}\n"
        "train: {mode: sync, batch_size: 50, steps: 40, optimizer: {kind: adagrad, learning_rate: 0.1}}\n"
        "checkpoint: {every_secs: 0, every_steps: 10, keep: 9}\n");
  }
  std::string config() const { return directory_ + "/job.yaml"; }
  std::string rows() const { return directory_ + "/rows.txt"; }
  std::string Path(const std::string& name) const { return directory_ + "/" + name; }
  std::string Step(int step) const { return Path(fmt::format("ckpt/step-{:09}", step)); }
  // Trains, with checkpoints in the directory `name`.
  Json Train(const std::string& name, const std::vector<std::string>& more = {}) const {
    std::vector<std::string> arguments = {"--workers", "2",     "--ps",
                                          "2",         "--set", "checkpoint.dir=" + Path(name)};
    for (const std::string& set : more) arguments.insert(arguments.end(), {"--set", set});
    const Json result = RunLocal(config(), arguments);
    REQUIRE(result.is_object());
    return result;
  }

 private:
  const std::string directory_ = NewDirectory();
};

const DeltaJob& Standard() {
  static const DeltaJob* const made = [] {
    auto* const job = new DeltaJob;  // lives until the end of the process
    const Json whole = job->Train("whole");
    // All rows are saved at step 20 and, by the run that goes on, at step 30; a delta of these at the end.
    job->Train("ckpt", {"train.steps=20"});
    const Json deltas = job->Train("ckpt", {"checkpoint.delta=9"});
    CHECK(deltas.at("model_crc") == whole.at("model_crc"));
    return job;
  }();
  return *made;
}

// A copy of the checkpoints of the standard job, to be damaged.
std::string Copy() {
  const std::string copy = NewDirectory() + "/ckpt";
  fs::copy(Standard().Path("ckpt"), copy, fs::copy_options::recursive);
  return copy;
}

TEST_CASE("delta: inspect says which checkpoints are deltas, and names their bases") {
  const Done listed = Run({"inspect", Standard().Path("ckpt")});
  CAPTURE(listed.output);
  CHECK(listed.code == 0);
  for (const char* line : {"step-000000020: good\n", "step-000000030: good\n",
                           "step-000000040: good, a delta of step-000000030\n"}) {
    CAPTURE(line);
    CHECK(Contains(listed.output, line));
  }
  const Done one = Run({"inspect", Standard().Step(40)});
  CHECK(one.code == 0);
  CHECK(Contains(one.output, "\n  a delta: what changed since step-000000030 (sequence "));
  const auto table_of = [](const std::string& output) { return output.substr(output.find("  table: ")); };
  CHECK(table_of(one.output) == table_of(Run({"inspect", Standard().Path("whole/step-000000040")}).output));
}

TEST_CASE("delta: eval, predict and export give what they give of a checkpoint of all rows") {
  const DeltaJob& job = Standard();
  const std::string delta = job.Step(40), whole = job.Path("whole/step-000000040");
  const auto out = [](const std::vector<std::string>& arguments) {
    const Done done = Run(arguments);
    CAPTURE(done.error);
    CHECK(done.code == 0);
    return done.output;
  };
  const auto loss = [&](const std::string& path) {
    return Json::Parse(out({"eval", path, "--json"})).at("loss");
  };
  CHECK(loss(delta) == loss(whole));
  CHECK(out({"predict", delta, "--data", job.rows()}) == out({"predict", whole, "--data", job.rows()}));
  out({"export", delta, "--out", job.Path("delta.tsv")});
  out({"export", whole, "--out", job.Path("whole.tsv")});
  CHECK(FileContent(job.Path("delta.tsv")) == FileContent(job.Path("whole.tsv")));
}

TEST_CASE("delta: a run goes on from one and ends with the bits of a run that never stopped") {
  const DeltaJob& job = Standard();
  const Json undisturbed = job.Train("undisturbed", {"train.steps=60"});
  const std::string copy = Copy();
  const Done check = Run({"check", "--config", job.config(), "--set", "checkpoint.dir=" + copy});
  CHECK(Contains(check.output, "start: from " + copy + "/step-000000040, at global step 40"));
  const auto more = [&](const std::string& dir, const std::string& ps) {
    return RunLocal(job.config(), {"--workers", "2", "--ps", ps, "--set", "train.steps=60", "--set",
                                   "checkpoint.dir=" + dir, "--set", "checkpoint.delta=9"});
  };
  CHECK(more(copy, "3").at("model_crc") == undisturbed.at("model_crc"));

  // The base is gone: the newest one that is whole is another one of all rows.
  const std::string damaged = Copy();
  fs::remove(damaged + "/step-000000030/shard-0-of-2");
  Process run({"local", "--config", job.config(), "--workers", "2", "--ps", "1", "--result",
               damaged + ".json", "--set", "train.steps=60", "--set", "checkpoint.dir=" + damaged});
  CHECK(RunToEnd(run) == 0);
  CAPTURE(run.standard_error());
  CHECK(Contains(run.standard_error(),
                 "step-000000040: its base step-000000030: shard-0-of-2 is missing; skipped"));
  CHECK(Contains(run.standard_error(), "restored " + damaged + "/step-000000020 "));
  CHECK(ReadResult(damaged + ".json").at("model_crc") == undisturbed.at("model_crc"));
}

TEST_CASE("delta: one that was copied without its base is an error that names it") {
  const std::string copy = NewDirectory() + "/step-000000040";
  fs::copy(Standard().Step(40), copy, fs::copy_options::recursive);
  for (const std::vector<std::string>& command : std::vector<std::vector<std::string>>{
           {"inspect", copy},
           {"eval", copy},
           {"predict", copy, "--data", Standard().rows()},
           {"export", copy, "--out", copy + ".tsv"},
           {"check", "--config", Standard().config(), "--set", "checkpoint.start_from=" + copy}}) {
    CAPTURE(command[0]);
    const Done done = Run(command);
    CHECK(done.code == 2);
    CAPTURE(done.error);
    CHECK(Contains(done.error, copy + ": its base step-000000030: there is no such directory"));
  }
}

// The names of the checkpoints in `dir` whose line of `dtrain inspect` says so, the newest first.
std::vector<std::string> Listed(const std::string& dir, bool deltas) {
  const Done listed = Run({"inspect", dir});
  CAPTURE(listed.output);
  CHECK(listed.code == 0);
  std::vector<std::string> names;
  std::istringstream lines(listed.output);
  for (std::string line; std::getline(lines, line);) {
    const size_t end = line.find(": good");
    const bool is_of_list = line[0] == ' ' && end != std::string::npos;
    if (!is_of_list || Contains(line, ", a delta of ") != deltas) continue;
    names.push_back(line.substr(line.rfind(' ', end) + 1, end - line.rfind(' ', end) - 1));
  }
  return names;
}

TEST_CASE(
    "delta: one that a full disk cuts off is followed by one of all rows, and a damaged one is passed over") {
  const DeltaJob job;
  const std::string dir = job.Path("full");
  Process run({"local", "--config", job.config(), "--ps", "2", "--workers", "1", "--set",
               "train.steps=1000000000", "--set", "checkpoint.dir=" + dir, "--set",
               "checkpoint.every_steps=0", "--set", "checkpoint.every_secs=0.05", "--set",
               "checkpoint.delta=1000", "--set", "checkpoint.keep=1000"});
  const auto wait_for_saved = [&](size_t count) {
    const TimePoint deadline = Clock::now() + kPatience;
    const auto saved = [&] {
      const std::string said = run.standard_error();
      size_t found = 0;
      for (size_t at = 0; (at = said.find("| saved ", at)) != std::string::npos; ++at) ++found;
      return found;
    };
    while (saved() < count && Clock::now() < deadline) std::this_thread::yield();
    REQUIRE(saved() >= count);
    return saved();
  };
  wait_for_saved(2);
  const pid_t full = ChildOf(run, "ps", 1);
  FillDiskOf(full);
  REQUIRE(run.WaitForLine("could not be written: "));
  CHECK(Contains(run.standard_error(), "/shard-1-of-2: cannot be written: File too large"));
  GiveRoomTo(full);
  wait_for_saved(wait_for_saved(0) + 3);
  run.Signal(SIGTERM);
  CHECK(RunToEnd(run) == 128 + SIGTERM);
  CHECK(UnfinishedFiles(dir) == "");
  const std::vector<std::string> deltas = Listed(dir, true);
  REQUIRE(deltas.size() >= 2);
  CHECK(Listed(dir, false).size() == 2);  // the first one, and the one after the failure

  const std::string shard = dir + "/" + deltas[0] + "/shard-0-of-2";
  std::fstream file(shard, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(70);
  file.put('\x55');
  file.close();
  const Done check = Run({"check", "--config", job.config(), "--set", "train.steps=1000000000", "--set",
                          "checkpoint.dir=" + dir});
  CAPTURE(check.output);
  CHECK(Contains(check.output, "start: from " + dir + "/" + deltas[1] + ", at global step "));
}

TEST_CASE("delta: checkpoint.keep keeps the base of a delta, and the best one with its base") {
  const DeltaJob& job = Standard();
  const std::string kept = "kept";
  job.Train(kept, {"checkpoint.delta=99", "checkpoint.keep=1", "eval.every_steps=4", "eval.keep_best=true"});
  const Done listed = Run({"inspect", job.Path(kept)});
  CAPTURE(listed.output);
  CHECK(listed.code == 0);
  CHECK(Contains(listed.output, "step-000000000: good\n"));
  CHECK(Contains(listed.output, "step-000000040: good, "));
  CHECK(Contains(listed.output, ", the best, a delta of step-000000000\n"));
  CHECK(Run({"eval", job.Path(kept)}).code == 0);
}

TEST_CASE("delta: a model without a table is refused, with the rule and the remedy") {
  const Done done =
      Run({"check", "--config", "configs/quickstart_digits.yaml", "--set", "checkpoint.delta=3"});
  CHECK(done.code == 2);
  CAPTURE(done.error);
  CHECK(Contains(
      done.error,
      "checkpoint.delta = 3; is for models whose weights are rows of a table (model.table), and this "
      "one's change in every step. Try 0."));
}

}  // namespace
}  // namespace dtrain::testing
