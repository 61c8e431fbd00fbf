// Data that do not stay in memory, with the real binary: from files in each epoch, from a cache, and through
// pipes. Whatever is killed, a synchronous run ends with the bits of a run that was left alone.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <signal.h>

#include <filesystem>
#include <fstream>

#include "base/json.h"
#include "cmd/testing/job.h"

namespace dtrain::testing {
namespace {

std::string Job(const std::string& cache, int64_t steps) {
  return fmt::format(
      "cluster: {{ps: [\"a:1\", \"a:2\"], worker: [\"a:3\", \"a:4\", \"a:5\"]}}\n"
      "model: {{kind: linear}}\n"
      "data: {{train: {{format: csv, path: part-*.csv, label: y}}, cache: {}, validation: 100,\n"
      "  scale: standard{}}}\n"
      "eval: {{on: validation}}\n"
      "train: {{mode: sync, batch_size: 50, epochs: 3, steps: {}}}\n"
      "checkpoint: {{dir: ckpt, every_secs: 0.2}}\n"
      "failure: {{detect_s: 1, worker_lost: wait, restarts: 3}}\n",
      cache, cache == "memory" ? "" : ", shuffle_rows: 2000", steps);
}

// Three files, one of them packed.
void WriteParts(const std::string& directory) {
  for (int part = 0; part < 3; ++part) {
    const std::string path = fmt::format("{}/part-{}.csv", directory, part);
    const Done made = Run({"synth", "linear", "--rows", "20000", "--first", fmt::format("{}", part * 20000),
                           "--features", "5", "--out", path});
    REQUIRE(made.code == 0);
  }
  REQUIRE(std::system(fmt::format("gzip {}/part-2.csv && mv {}/part-2.csv.gz {}/part-2.csv", directory,
                                  directory, directory)
                          .c_str()) == 0);
}

// The flags by which a job leaves its files in its directory.
std::vector<std::string> In(const LocalJob& job, const std::string& cache,
                            std::vector<std::string> more = {}) {
  more.insert(more.end(), {"--set", "checkpoint.dir=" + job.directory + "/ckpt"});
  if (cache == "file") more.insert(more.end(), {"--set", "data.cache_dir=" + job.directory + "/cache"});
  return more;
}

// What is the same however often a run was interrupted.
std::string EndOf(const LocalJob& job) {
  const Json result = ReadResult(job.result);
  REQUIRE(result.is_object());
  return fmt::format("weights {}, final loss {}", result["model_crc"].dump(), result["final_loss"].dump());
}

TEST_CASE("streamed: 1000 = 500 + 500 steps, and a worker or a ps that is killed changes no bit") {
  for (const std::string cache : {"memory", "none", "file"}) {
    CAPTURE(cache);
    const LocalJob whole(Job(cache, 1000));
    WriteParts(whole.directory);
    const auto undisturbed = whole.Start(In(whole, cache));
    CheckEnd(*undisturbed);
    const std::string end = EndOf(whole);
    const LocalJob halves(Job(cache, 1000));
    WriteParts(halves.directory);
    const auto first = halves.Start(In(halves, cache, {"--set", "train.steps=500"}));
    CheckEnd(*first);
    CHECK(EndOf(halves) != end);
    const auto second = halves.Start(In(halves, cache));
    CheckEnd(*second);
    CHECK(EndOf(halves) == end);
    for (const auto& [role, index] : {std::pair<const char*, int>{"worker", 1}, {"ps", 0}}) {
      const LocalJob job(Job(cache, 1000) + "hooks: {log_every_steps: 10}\n");
      WriteParts(job.directory);
      const auto run = job.Start(In(job, cache));
      REQUIRE(run->WaitForLine(fmt::format("local step {:9}", 100)));
      const pid_t victim = ChildOf(*run, role, index);
      REQUIRE(victim > 0);
      kill(victim, SIGKILL);
      CheckEnd(*run);
      CHECK(EndOf(job) == end);
    }
  }
}

TEST_CASE("streamed: a pipe of any length takes the memory of its windows") {
  // bench/run.sh --only stream has 100,000,000 rows.
  const LocalJob job(
      fmt::format("model: {{kind: linear, inputs: 10}}\n"
                  "data: {{train: {{format: csv, path: \"exec:{} synth linear --rows 300000 --features 10\", "
                  "label: y}},\n"
                  "  cache: none}}\n"
                  "train: {{batch_size: 100, epochs: 1}}\n",
                  std::filesystem::absolute(Program().path).string()));
  const Json result = RunLocal(job.config, {"--in-process"});
  REQUIRE(result.is_object());
  CHECK(result["global_step"].get<int64_t>() == 3000);
}

TEST_CASE("streamed: a command that fails ends the run with its words, and what it has started") {
  const LocalJob job(
      "model: {kind: linear, inputs: 1}\n"
      "data: {train: {format: csv, path: \"exec:printf 'x,y\\n1,2\\n3,4\\n'; echo no more >&2; exit 5\", "
      "label: y},\n"
      "  cache: none}\n"
      "train: {batch_size: 1, epochs: 1}\n");
  const Done done = Run({"local", "--config", job.config, "--in-process"});
  CHECK(done.code == 2);
  CHECK(Contains(done.error + done.output, "exit code 5: no more"));
}

TEST_CASE(
    "streamed: a row that cannot be read ends the run when it is trained on, and check finds the first") {
  const LocalJob job(
      "model: {kind: logistic}\n"
      "data: {train: {format: csv, path: bad.csv, label: y}, cache: none, shuffle_rows: 1000}\n"
      "train: {batch_size: 10, epochs: 1}\n");
  std::string table = "x,y\n";
  for (int row = 0; row < 20000; ++row) {
    table += fmt::format("{},{}\n", row == 15000 ? "rich" : "0.5", row % 2);
  }
  std::ofstream(job.directory + "/bad.csv") << table;
  const std::string told = "bad.csv:15002:1: x = rich; must be a number. Correct it, or remove the row.";
  const Done run = Run({"local", "--config", job.config, "--in-process"});
  CHECK(run.code == 2);
  CHECK(Contains(run.error, told));
  CHECK(Contains(run.error + run.output, "initialised 2 variables"));  // it had begun
  const Done check = Run({"check", "--config", job.config});
  CHECK(check.code == 2);
  CHECK(Contains(check.error, told));
  const Done skipped = Run({"check", "--config", job.config, "--set", "data.bad_rows=skip"});
  CHECK(skipped.code == 0);
  CHECK(Contains(skipped.output, "a run parses all rows before its first step: data.bad_rows: skip leaves"));
}

}  // namespace
}  // namespace dtrain::testing
