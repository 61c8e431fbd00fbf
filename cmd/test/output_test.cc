// What the real binary shows: a live line at a terminal, stable columns elsewhere, JSON where it was asked
// for.
#include <doctest/doctest.h>
#include <signal.h>

#include <algorithm>
#include <filesystem>
#include <regex>
#include <set>
#include <sstream>

#include "base/json.h"
#include "cmd/testing/job.h"

namespace dtrain::testing {
namespace {

constexpr int64_t kForEver = 1000000000000;
constexpr int kColumns = 90;

// A terminal as far as needed here: what its user would see after all that was written.
class Screen {
 public:
  void Write(const std::string& text) {
    for (size_t i = 0; i < text.size(); ++i) {
      if (text.compare(i, 3, "\x1b[K") == 0) {
        lines_.back().resize(std::min(lines_.back().size(), column_));
        i += 2;
      } else if (text[i] == '\r') {
        column_ = 0;
      } else if (text[i] == '\n') {
        lines_.emplace_back();
      } else {
        Put(text[i]);
      }
      max_live_ = std::max(max_live_, LiveLines());
    }
  }
  int LiveLines() const { return static_cast<int>(std::count_if(lines_.begin(), lines_.end(), IsLive)); }
  // At any time.
  int max_live() const { return max_live_; }
  const std::vector<std::string>& lines() const { return lines_; }

 private:
  static bool IsLive(const std::string& line) { return line.compare(0, 5, "step ") == 0; }
  void Put(char c) {
    if (lines_.back().size() <= column_) lines_.back().resize(column_ + 1, ' ');
    lines_.back()[column_++] = c;
  }

  std::vector<std::string> lines_ = {""};
  size_t column_ = 0;
  int max_live_ = 0;
};

// How often the live line's text changed.
size_t Drawings(const std::string& output) {
  std::set<std::string> texts;
  for (size_t at = 0; (at = output.find("step ", at)) != std::string::npos; ++at) {
    if (at >= 3 && output.compare(at - 3, 3, "\x1b[K") == 0) {
      texts.insert(output.substr(at, output.find_first_of("\r\n", at) - at));
    }
  }
  return texts.size();
}

void CheckRows(const Screen& screen) {
  int rows = 0;
  for (const std::string& line : screen.lines()) {
    if (line.find("| epoch ") == std::string::npos) continue;
    ++rows;
    CHECK(line.find(" worker ") == 29);  // it begins its line, behind the time
    CHECK(line.find("step ", line.find("ms/step") + 8) == std::string::npos);
  }
  CHECK(rows >= 2);
}

TEST_CASE("terminal: one live line below the rows, five drawings a second, and none of it left at the end") {
  for (const bool in_process : {false, true}) {
    CAPTURE(in_process);
    const int64_t steps = in_process ? 600000 : 100000;  // enough seconds for a live line
    const LocalJob job(LinearJob(steps) + "hooks: {log_every_steps: " + std::to_string(steps / 15) + "}\n");
    std::vector<std::string> arguments = {"local", "--config", job.config};
    if (in_process) arguments.push_back("--in-process");
    Process run(arguments, kColumns);
    const int code = RunToEnd(run);
    const std::string output = run.standard_error();
    CAPTURE(output);
    REQUIRE(code == 0);
    Screen screen;
    screen.Write(output);
    CHECK(screen.max_live() == 1);
    CHECK(screen.LiveLines() == 0);
    CHECK(screen.lines().back().empty());
    CHECK(static_cast<double>(Drawings(output)) <= 5 * run.seconds() + 1);
    CheckRows(screen);
  }
}

TEST_CASE("terminal: the live line goes when the run is stopped, whoever draws it") {
  for (const char* mode : {"", "--in-process"}) {
    CAPTURE(mode);
    const LocalJob job(LinearJob(kForEver));
    std::vector<std::string> arguments = {"local", "--config", job.config, "--set", "failure.grace_s=1"};
    if (*mode != '\0') arguments.push_back(mode);
    Process run(arguments, kColumns);
    REQUIRE(run.WaitForLine("\x1b[Kstep "));
    run.Signal(SIGINT);
    CHECK(RunToEnd(run) == 1);
    Screen screen;
    screen.Write(run.standard_error());
    CHECK(screen.LiveLines() == 0);
    CHECK(screen.lines().back().empty());
  }
}

TEST_CASE("terminal: only the chief of a cluster draws, and a narrow terminal cuts the line") {
  const Cluster cluster(1, 2, LinearJob(kForEver) + "failure: {grace_s: 1}\n");
  const auto ps = cluster.Start("ps", 0);
  Process chief({"--config", cluster.config(), "--role", "worker", "--index", "0"}, 30);
  Process other({"--config", cluster.config(), "--role", "worker", "--index", "1", "--set",
                 "hooks.log_every_steps=100"},
                kColumns);
  REQUIRE(chief.WaitForLine("\x1b[Kstep "));
  REQUIRE(other.WaitForLine("epoch"));
  CHECK(other.standard_error().find("\x1b[K") == std::string::npos);
  chief.Signal(SIGTERM);
  CHECK(RunToEnd(chief) == 1);
  const std::string output = chief.standard_error();
  const size_t live = output.find("\x1b[Kstep ") + 3;
  CHECK(output.find_first_of("\r\n", live) - live <= 29);
}

TEST_CASE("output: without a terminal there are no control characters") {
  const LocalJob job(LinearJob(2000));
  Process run({"local", "--config", job.config});
  REQUIRE(RunToEnd(run) == 0);
  CHECK(run.standard_error().find_first_of("\r\x1b") == std::string::npos);
}

// The lines of a log in JSON, each of which has to be an object with what every line has.
std::vector<Json> Objects(const std::string& log) {
  std::vector<Json> objects;
  std::istringstream lines(log);
  for (std::string line; std::getline(lines, line);) {
    CAPTURE(line);
    objects.push_back(Json::Parse(line));
    REQUIRE(objects.back().is_object());
    for (const char* key : {"time", "task", "host", "level", "text"})
      CHECK(objects.back().at(key).is_string());
  }
  REQUIRE_FALSE(objects.empty());
  return objects;
}

// The text of the last line.
std::string LastText(const std::string& log) { return Objects(log).back().at("text"); }

TEST_CASE("output: log.format json is one object a line however the run ends, and the last says why") {
  const LocalJob job(LinearJob(kForEver) + "hooks: {log_every_steps: 100}\nlog: {format: json}\n");
  const struct {
    std::vector<std::string> more;
    int code;
    std::string said;
  } refused[] = {
      {{"--set", "train.optimizer.learning_rate=1e30"}, 3, "train.optimizer.learning_rate"},
      {{"--set", "train.optimizer.learning_rate=1e30", "--in-process"}, 3, "train.optimizer.learning_rate"},
      {{"--set", "log.dir=/proc/nowhere"}, 2, "set log.dir"},
      {{"--set", "train.batch_size=0"}, 2, "train.batch_size = 0"},
  };
  for (const auto& [more, code, said] : refused) {
    CAPTURE(said);
    const auto run = job.Start(more);
    CheckEnd(*run, code);
    CHECK(Contains(LastText(run->standard_error()), said));
  }
  const auto wrong_index = Cluster(1, 1, LinearJob(10) + "log: {format: json}\n").Start("worker", 7);
  CheckEnd(*wrong_index, 2);
  CHECK(Contains(LastText(wrong_index->standard_error()), "Use --index 0."));
  const auto lost = job.Start({"--set", "failure.worker_lost=fail"});
  REQUIRE(lost->WaitForLine("epoch"));
  kill(lost->Children().back(), SIGKILL);
  CheckEnd(*lost, 4);
  CHECK(Contains(LastText(lost->standard_error()), "was killed by SIGKILL"));
  const auto stopped = job.Start({"--set", "failure.grace_s=1"});
  REQUIRE(stopped->WaitForLine("epoch"));
  stopped->Signal(SIGTERM);
  CheckEnd(*stopped, 1);
  const std::string last = LastText(stopped->standard_error());
  CHECK(last.rfind("stopped by SIGTERM at global step ", 0) == 0);
  CHECK(Contains(last, "; nothing was saved: there is no checkpoint.dir"));
}

TEST_CASE("output: log.format json is one object a line, at a terminal too; rows have their figures") {
  const LocalJob job(LinearJob(2000));
  Process run(
      {"local", "--config", job.config, "--set", "log.format=json", "--set", "hooks.log_every_steps=100"},
      kColumns);
  REQUIRE(RunToEnd(run) == 0);
  int rows = 0;
  for (const Json& object : Objects(run.standard_error())) {
    CAPTURE(object.dump());
    if (!object.contains("epoch")) continue;
    ++rows;
    CHECK(object.at("epoch") == 1);
    CHECK(object.at("batch").is_null());  // data without end
    CHECK(object.at("batches").is_null());
    CHECK(object.at("local_step").get<int64_t>() % 100 == 0);
    CHECK(object.at("global_step").get<int64_t>() >= object.at("local_step").get<int64_t>());
    for (const char* key : {"loss", "examples_per_s", "ms_per_step"}) CHECK(object.at(key).is_number_float());
  }
  CHECK(rows >= 10);
}

size_t Count(const std::string& text, const std::string& word) {
  size_t count = 0;
  for (size_t at = 0; (at = text.find(word, at)) != std::string::npos; at += word.size()) ++count;
  return count;
}

// A job whose only data row that is bad comes late, so that only reading all of the data finds it.
std::string BadCsvJob() {
  const std::string path = NewDirectory() + "/bad.csv";
  std::string rows = "a,b,c\n";
  for (int i = 0; i < 200; ++i) rows += i == 150 ? "1,x1,3\n" : "1,2,3\n";
  WriteFile(path, rows);
  return "model: linear\ndata: {train: {format: csv, path: " + path + ", label: c}}\ntrain: {steps: 20}\n";
}

TEST_CASE("output: an error is told once, however many tasks end with it") {
  const LocalJob job(BadCsvJob());
  for (const char* how : {"text", "json"}) {
    CAPTURE(how);
    const auto run = job.Start({"--ps", "2", "--workers", "3", "--set", std::string("log.format=") + how});
    CHECK(RunToEnd(*run) == 2);
    CHECK(Count(run->standard_error(), "b = x1; must be a number") == 1);
    if (how != std::string("json")) continue;
    int errors = 0;
    for (const Json& object : Objects(run->standard_error())) {
      if (object.at("level") != "error") continue;
      ++errors;
      CHECK(object.at("event") == "run_ended");
    }
    CHECK(errors == 1);
  }
  const auto threads = job.Start({"--in-process"});
  CHECK(RunToEnd(*threads) == 2);
  CHECK(Count(threads->standard_error(), "b = x1; must be a number") == 1);
}

TEST_CASE("output: every task's own log says why it ended") {
  const LocalJob job(BadCsvJob());
  const std::string logs = job.directory + "/logs";
  CHECK(RunToEnd(*job.Start({"--set", "log.dir=" + logs})) == 2);
  for (const char* name : {"/ps-0.log", "/worker-0.log", "/worker-1.log"}) {
    CAPTURE(name);
    CHECK(Contains(FileContent(logs + name), "b = x1; must be a number"));
  }
}

TEST_CASE("output: a stop that was asked for and saved is told once, and is no error") {
  const LocalJob job(LinearJob(kForEver) + "hooks: {log_every_steps: 100}\n");
  for (const bool threads : {false, true}) {
    CAPTURE(threads);
    std::vector<std::string> more = {"--set", "log.format=json", "--set",
                                     "checkpoint.dir=" + NewDirectory() + "/ckpt"};
    if (threads) more.push_back("--in-process");
    const auto run = job.Start(more);
    REQUIRE(run->WaitForLine("epoch"));
    run->Signal(SIGTERM);
    CheckEnd(*run, 143);
    const std::string said = run->standard_error();
    CHECK(Count(said, "stopped by SIGTERM") == 1);
    for (const Json& object : Objects(said)) CHECK(object.at("level") != "error");
    const Json last = Objects(said).back();
    CHECK(last.at("level") == "warning");
    CHECK(last.at("event") == "run_ended");
  }
}

TEST_CASE("output: -q leaves errors, and log.level warning the result") {
  const LocalJob good(LinearJob(200)), bad(BadCsvJob());
  const auto quiet = good.Start({"-q"});
  CHECK(RunToEnd(*quiet) == 0);
  CHECK(quiet->standard_error() == "");
  CHECK(quiet->standard_output() == "");
  const auto refused = bad.Start({"-q"});
  CHECK(RunToEnd(*refused) == 2);
  CHECK(Count(refused->standard_error(), "\n") == 1);
  CHECK(Contains(refused->standard_error(), "b = x1; must be a number"));
  const auto warnings = good.Start({"--set", "log.level=warning"});
  CHECK(RunToEnd(*warnings) == 0);
  CHECK(warnings->standard_output().rfind("done: 200 global steps", 0) == 0);
  CHECK(warnings->standard_error() == "");
}

TEST_CASE("output: the start is at most eight lines, with 2 workers and with 20") {
  for (const char* const workers : {"2", "20"}) {
    CAPTURE(workers);
    const LocalJob job(LinearJob(4000) + "hooks: {log_every_steps: 1}\n");
    const auto run = job.Start({"--workers", workers});
    REQUIRE(RunToEnd(*run) == 0);
    const std::string said = run->standard_error();
    const std::string start = said.substr(0, said.find(" | epoch "));
    CAPTURE(start);
    CHECK(Count(start, "\n") <= 8);
    CHECK(Contains(start, "all "));
  }
}

TEST_CASE("output: --result - and --json leave standard output to one JSON document") {
  const LocalJob job(LinearJob(200));
  const std::string checkpoints = NewDirectory() + "/ckpt";
  Process run({"local", job.config, "--result", "-", "--set", "checkpoint.dir=" + checkpoints});
  REQUIRE(RunToEnd(run) == 0);
  CHECK(Json::Parse(run.standard_output()).at("status") == "done");
  CHECK_FALSE(std::filesystem::exists("-"));
  const std::vector<std::vector<std::string>> commands = {
      {"check", job.config}, {"plan", job.config}, {"inspect", checkpoints}};
  for (std::vector<std::string> words : commands) {
    CAPTURE(words[0]);
    words.push_back("--json");
    Process command(words);
    CHECK(RunToEnd(command) == 0);
    CHECK(Json::Parse(command.standard_output()).is_object());
  }
}

// `dtrain arguments...`, started by a shell with these descriptors closed.
std::unique_ptr<Process> StartWithout(const std::string& closed, const std::string& arguments) {
  const std::vector<std::string> shell = {"-c", "exec cmd/dtrain " + arguments + closed};
  return std::make_unique<Process>(shell, Program{"/bin/sh", {}});
}

TEST_CASE("output: a run whose standard files are closed is done as any other") {
  const LocalJob job(LinearJob(200));
  const std::string directory = NewDirectory(), result = directory + "/result.json";
  for (const char* closed : {" >&- 2>&-", " <&- >&- 2>&-", " <&-"}) {
    CAPTURE(closed);
    const auto run = StartWithout(closed, "local --run none --config " + job.config + " --result " + result +
                                              " --set log.dir=" + directory);
    CHECK(RunToEnd(*run) == 0);
    CHECK(ReadResult(result).at("status") == "done");
    std::filesystem::remove(result);
  }
}

TEST_CASE("output: what a command prints does not vanish where standard output is closed") {
  const LocalJob job(LinearJob(200));
  const auto run = StartWithout(" >&-", "check --config " + job.config);
  CHECK(RunToEnd(*run) == 1);
  CHECK(Contains(run->standard_error(), "dtrain: standard output: Bad file descriptor"));
}

TEST_CASE("output: a command whose reader has gone ends silently, as other tools do") {
  const LocalJob job(DigitsJob("kind: softmax", 300, 100, "batch_size: 50, steps: 20"));
  REQUIRE(Run({"local", job.config, "--run", job.directory + "/run"}).code == 0);
  for (const std::string command :
       {"--generate bash", "help", "status RUN", "report --csv RUN", "eval RUN"}) {
    CAPTURE(command);
    const std::string words = std::regex_replace(command, std::regex("RUN"), job.directory + "/run");
    // The reader has ended before the command begins.
    Process shell({"-c", "exec 3> >(exec true); wait $!; cmd/dtrain " + words + " >&3; exit $?"},
                  Program{"/bin/bash", {}});
    CHECK(RunToEnd(shell) == 128 + SIGPIPE);
    CHECK(shell.standard_error() == "");
  }
}

}  // namespace
}  // namespace dtrain::testing
