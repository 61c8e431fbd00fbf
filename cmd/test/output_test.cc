// What the real binary shows: a live line at a terminal, stable columns elsewhere, JSON where it was asked
// for.
#include <doctest/doctest.h>
#include <signal.h>

#include <algorithm>
#include <filesystem>
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

struct Job {
  std::string directory = NewDirectory();
  std::string config = directory + "/job.yaml";
  explicit Job(const std::string& text) { WriteFile(config, text); }
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
    CHECK(line.find(" worker ") == 23);  // it begins its line, behind the time
    CHECK(line.find("step ", line.find("ms/step") + 8) == std::string::npos);
  }
  CHECK(rows >= 2);
}

TEST_CASE("terminal: one live line below the rows, five drawings a second, and none of it left at the end") {
  for (const bool in_process : {false, true}) {
    CAPTURE(in_process);
    const Job job(LinearJob(30000) + "hooks: {log_every_steps: 2000}\n");
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

TEST_CASE("terminal: the live line has step, loss, pace, ETA and the workers that are here") {
  const Job job(LinearJob(kForEver));
  Process run({"local", "--config", job.config}, kColumns);
  REQUIRE(run.WaitForLine("2/2 workers"));
  const std::string output = run.standard_error();
  const size_t live = output.rfind("\x1b[Kstep ", output.find("2/2 workers"));
  REQUIRE(live != std::string::npos);
  const std::string line = output.substr(live, output.find("2/2 workers") - live);
  for (const char* part : {"/1000000000000 0%  loss ", " examples/s  ETA "}) {
    CAPTURE(line);
    CHECK(line.find(part) != std::string::npos);
  }
}

TEST_CASE("terminal: the live line goes when the run is stopped, whoever draws it") {
  for (const char* mode : {"", "--in-process"}) {
    CAPTURE(mode);
    const Job job(LinearJob(kForEver));
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
  const Job job(LinearJob(2000));
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
    for (const char* key : {"time", "task", "level", "text"}) CHECK(objects.back().at(key).is_string());
  }
  REQUIRE_FALSE(objects.empty());
  return objects;
}

// The text of the last line.
std::string LastText(const std::string& log) { return Objects(log).back().at("text"); }

TEST_CASE("output: log.format json is one object a line when the run fails, and the last says why") {
  const Job job(LinearJob(kForEver) + "hooks: {log_every_steps: 100}\n");
  for (const char* mode : {"log.level=info", "--in-process"}) {
    std::vector<std::string> arguments = {"local", "--config", job.config, "--set", "log.format=json"};
    if (mode[0] != '-') arguments.push_back("--set");
    arguments.push_back(mode);
    arguments.insert(arguments.end(), {"--set", "train.optimizer.learning_rate=1e30"});
    Process run(arguments);
    CHECK(RunToEnd(run) == 3);
    CHECK(Contains(LastText(run.standard_error()), "train.optimizer.learning_rate"));
  }
}

TEST_CASE("output: log.format json is one object a line when a task is killed or the run is stopped") {
  const Job job(LinearJob(kForEver) + "hooks: {log_every_steps: 100}\nlog: {format: json}\n");
  Process lost({"local", "--config", job.config, "--set", "failure.worker_lost=fail"});
  REQUIRE(lost.WaitForLine("epoch"));
  kill(lost.Children().back(), SIGKILL);
  CHECK(RunToEnd(lost) == 4);
  CHECK(Contains(LastText(lost.standard_error()), "was killed by SIGKILL"));
  Process stopped({"local", "--config", job.config, "--set", "failure.grace_s=1"});
  REQUIRE(stopped.WaitForLine("epoch"));
  stopped.Signal(SIGTERM);
  CHECK(RunToEnd(stopped) == 1);
  CHECK(LastText(stopped.standard_error()) ==
        "stopped by SIGTERM; nothing was saved: there is no checkpoint.dir");
}

TEST_CASE("output: log.format json is one object a line for errors of the config, the index and the log") {
  const Cluster cluster(1, 1, LinearJob(10) + "log: {format: json}\n");
  const auto wrong_index = cluster.Start("worker", 7);
  CHECK(RunToEnd(*wrong_index) == 2);
  CHECK(Contains(LastText(wrong_index->standard_error()), "Use --index 0."));
  const auto no_log = cluster.Start("worker", 0, {"--set", "log.dir=/proc/nowhere"});
  CHECK(RunToEnd(*no_log) == 2);
  CHECK(Contains(LastText(no_log->standard_error()), "Set log.dir"));
  Process wrong_value({"local", "--config", cluster.config(), "--set", "train.batch_size=0"});
  CHECK(RunToEnd(wrong_value) == 2);
  CHECK(Contains(LastText(wrong_value.standard_error()), "train.batch_size = 0"));
}

TEST_CASE("output: log.format json is one object a line, at a terminal too; rows have their figures") {
  const Job job(LinearJob(2000));
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

// `dtrain arguments...`, started by a shell with these descriptors closed.
std::unique_ptr<Process> StartWithout(const std::string& closed, const std::string& arguments) {
  const std::vector<std::string> shell = {"-c", "exec cmd/dtrain " + arguments + closed};
  return std::make_unique<Process>(shell, Program{"/bin/sh", {}});
}

TEST_CASE("output: a run whose standard files are closed is done as any other") {
  const Job job(LinearJob(200));
  const std::string directory = NewDirectory(), result = directory + "/result.json";
  for (const char* closed : {" >&- 2>&-", " <&- >&- 2>&-", " <&-"}) {
    CAPTURE(closed);
    const auto run = StartWithout(
        closed, "local --config " + job.config + " --result " + result + " --set log.dir=" + directory);
    CHECK(RunToEnd(*run) == 0);
    CHECK(ReadResult(result).at("status") == "done");
    std::filesystem::remove(result);
  }
}

TEST_CASE("output: what a command prints does not vanish where standard output is closed") {
  const Job job(LinearJob(200));
  const auto run = StartWithout(" >&-", "check --config " + job.config);
  CHECK(RunToEnd(*run) == 1);
  CHECK(Contains(run->standard_error(), "dtrain: standard output: Bad file descriptor"));
}

TEST_CASE("output: a log file that cannot be written is said once, and the run goes on") {
  const Job job(LinearJob(200));
  const std::string log = job.directory + "/worker-0.log";
  std::filesystem::create_symlink("/dev/full", log);
  for (const char* format : {"text", "json"}) {
    Process run({"local", "--config", job.config, "--set", "log.level=debug", "--set",
                 std::string("log.format=") + format, "--set", "log.dir=" + job.directory});
    CHECK(RunToEnd(run) == 0);
    const std::string said = run.standard_error();
    const std::string failure = log + ": cannot be written: No space left on device";
    CHECK(Contains(said, failure));
    CHECK(said.find(failure) == said.rfind(failure));
  }
}

}  // namespace
}  // namespace dtrain::testing
