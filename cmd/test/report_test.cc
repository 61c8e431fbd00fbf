// `dtrain report` of the real binary: the pages of runs that are done, go on, were killed or have failed, and
// the table of several. The pages are parsed by Python's own parser of HTML.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <thread>

#include "base/clock.h"
#include "base/json.h"
#include "cmd/testing/job.h"
#include "cmd/testing/python.h"

namespace dtrain::testing {
namespace {

namespace fs = std::filesystem;

// What the reader of a page sees; see testdata/read_page.py. A page that is not well formed, or that would
// load something, is a failed CHECK.
Json ReadPage(const std::string& file) {
  const Json page =
      Json::Parse(OutputOf(fmt::format("{} cmd/test/testdata/read_page.py {}", Python(), file)));
  REQUIRE(page.is_object());
  CHECK(page.at("problems").dump() == "[]");
  return page;
}

Json ReportOf(const std::string& run) {
  const Done done = Run({"report", run});
  CAPTURE(done.error);
  REQUIRE(done.code == 0);
  CHECK(done.output == fmt::format("report: {}/report.html\n", run));
  CHECK(FileContent(run + "/report.html").find("<!DOCTYPE html>") == 0);
  return ReadPage(run + "/report.html");
}

bool HasRow(const Json& page, const std::vector<std::string>& cells) {
  const auto& rows = page.at("rows");
  return std::any_of(rows.begin(), rows.end(), [&](const Json& row) { return row == Json(cells); });
}

bool Sees(const Json& page, const std::string& text) {
  return Contains(page.at("text").get<std::string>(), text);
}

// Runs a job in the directory `run` of its own.
struct DoneRun : LocalJob {
  explicit DoneRun(const std::string& job, std::vector<std::string> more = {}) : LocalJob(job) {
    more.insert(more.end(), {"--run", run});
    CheckEnd(*Start(more));
  }
  const std::string run = directory + "/run";
};

TEST_CASE("report: the page of a run has its figures, curves, events, placement, confusion and weights") {
  if (Python().empty()) return;
  const DoneRun done(DigitsJob("kind: softmax", 2000, 500, "batch_size: 50, epochs: 2"),
                     {"--ps", "2", "--set", "summary.every_steps=1", "--set", "checkpoint.every_steps=20",
                      "--set", "eval.every_steps=10"});
  const Json page = ReportOf(done.run), result = ReadResult(done.run + "/result.json");
  const Json& tiles = page.at("tiles");
  CHECK(tiles.at("test accuracy") == fmt::format("{:.2f} %", 100 * result.at("test_accuracy").get<double>()));
  CHECK(tiles.at("global steps") == fmt::format("{}", result.at("global_step").get<int64_t>()));
  for (const char* const title :
       {"Training loss", "Training accuracy", "Test loss", "Pace: global steps/s", "Staleness, the mean"}) {
    const auto& charts = page.at("charts");
    CHECK_MESSAGE(std::count(charts.begin(), charts.end(), Json(title)) == 1, title);
  }
  CHECK(page.at("charts").at(0) == "Test loss");  // rows that it was not trained on come first
  CHECK(page.at("pictures") == 10);
  CHECK(HasRow(page, {"data.train.name", "digits"}));
  CHECK(Sees(page, "weights/W1 [0:"));
  CHECK(Sees(page, "tasks are here after"));
  CHECK(Sees(page, "; steps were held for"));
  CHECK(HasRow(page, {"", "0", "1", "2", "3", "4", "5", "6", "7", "8", "9"}));
  // The confusion is that of all rows, and as many are right as the result says.
  double all = 0, right = 0;
  for (const Json& row : page.at("rows")) {
    if (row.size() != 11 || row.at(0).get<std::string>().size() != 1) continue;
    for (size_t i = 1; i < row.size(); ++i) {
      const std::string cell = row.at(i).get<std::string>();
      const double rows = cell.empty() ? 0 : std::stod(cell);
      all += rows;
      if (row.at(0) == Json(std::to_string(i - 1))) right += rows;
    }
  }
  CHECK(all == 500);
  CHECK(right / all == doctest::Approx(result.at("test_accuracy").get<double>()));
}

TEST_CASE("report: a model with one logit has its calibration, and a linear one its errors") {
  if (Python().empty()) return;
  const std::string directory = NewDirectory();
  std::string rows = "x,y,z\n";
  for (int i = 0; i < 200; ++i) rows += fmt::format("{},{},{}\n", i % 20, i % 20 > 9 ? 1 : 0, 2 * (i % 20));
  WriteFile(directory + "/rows.csv", rows);
  const auto job = [&](const char* kind, const char* label) {
    return fmt::format(
        "model: {{kind: {}}}\ndata: {{train: {{format: csv, path: {}/rows.csv, label: {}}}, validation: 50, "
        "scale: standard}}\ntrain: {{epochs: 20, batch_size: 10}}\neval: {{on: validation}}\n",
        kind, directory, label);
  };
  const DoneRun logistic(job("logistic", "y"));
  const Json page = ReportOf(logistic.run);
  const auto& charts = page.at("charts");
  CHECK(std::count(charts.begin(), charts.end(), Json("Calibration")) == 1);
  CHECK(Sees(page, "validation (50 rows): "));
  CHECK(page.at("pictures") == 0);
  const DoneRun linear(job("linear", "z"));
  CHECK(Sees(ReportOf(linear.run), "RMSE "));
}

TEST_CASE("report: a run that goes on, and one that was killed with its event files cut off") {
  if (Python().empty()) return;
  AdoptOrphans();
  const std::string directory = NewDirectory(), run = directory + "/run";
  WriteFile(directory + "/job.yaml", LongJob("steps: 1000000"));
  const auto process = std::make_unique<Process>(std::vector<std::string>{
      "local", directory + "/job.yaml", "--run", run, "--set", "summary.every_steps=1"});
  REQUIRE(process->WaitForLine("worker 0 | epoch"));
  const TimePoint deadline = Clock::now() + kPatience;
  while (!Contains(FileContent(run + "/status.json"), "\"training\"") && Clock::now() < deadline) {
    std::this_thread::sleep_for(milliseconds(5));
  }
  const Json running = ReportOf(run);
  CHECK(Sees(running, "running"));
  CHECK(Sees(running, "The run has not ended."));
  CHECK(running.at("tiles").contains("global steps"));
  process->Signal(SIGKILL);
  REQUIRE(process->WaitForEnd());
  REQUIRE(NoneLeft());
  for (const auto& entry : fs::recursive_directory_iterator(run + "/summaries")) {
    if (entry.is_regular_file()) fs::resize_file(entry.path(), entry.file_size() - 3);
  }
  const Json dead = ReportOf(run);
  CHECK(Sees(dead, "dead"));
  CHECK(Sees(dead, "The run has no result"));
  CHECK(Sees(dead, ": cut off in the record at byte "));
  const auto& charts = dead.at("charts");
  CHECK(std::count(charts.begin(), charts.end(), Json("Training loss")) == 1);
}

TEST_CASE("report: a run that failed says why, in text that is escaped") {
  if (Python().empty()) return;
  const std::string directory = NewDirectory(), run = directory + "/<i>run&";
  WriteFile(directory + "/<img src=x>.csv", "x,y\n1,2\n2,oak\n");
  WriteFile(directory + "/job.yaml",
            "model: {kind: linear}\ndata: {train: {format: csv, path: '<img src=x>.csv', label: y}}\n"
            "train: {epochs: 1}\n");
  CHECK(Run({"local", directory + "/job.yaml", "--run", run}).code == 2);
  const std::string page_file = directory + "/page.html";
  CHECK(Run({"report", run, "-o", page_file}).output == "report: " + page_file + "\n");
  const Json page = ReadPage(page_file);
  CHECK(Sees(page, "failed"));
  CHECK(Sees(page, "<img src=x>.csv:3"));
  CHECK(Sees(page, "<i>run&"));
  CHECK(page.at("pictures") == 0);
}

TEST_CASE("report: a link in the place of the page is refused, and what it points to stays") {
  const DoneRun done(LinearJob(20));
  WriteFile(done.directory + "/mine", "precious");
  fs::create_symlink("../mine", done.run + "/report.html");
  const Done refused = Run({"report", done.run});
  CHECK(refused.code == 2);
  CHECK(Contains(refused.error, "/report.html: a link is there"));
  CHECK(FileContent(done.directory + "/mine") == "precious");
  CHECK(Run({"report", done.run, "--out", done.directory + "/page.html"}).code == 0);
}

TEST_CASE("report: several runs are a table, the best one first, with the keys that differ; also as a page") {
  if (Python().empty()) return;
  const std::string directory = NewDirectory(), runs = directory + "/runs";
  WriteFile(directory + "/job.yaml", DigitsJob("kind: softmax", 1000, 500, "batch_size: 50, epochs: 2"));
  for (const char* const rate : {"0.0001", "0.2"}) {
    CHECK(Run({"local", directory + "/job.yaml", "--run", runs + "/rate-" + rate, "--set",
               "summary.every_steps=1", "--set", std::string("train.optimizer.learning_rate=") + rate})
              .code == 0);
  }
  fs::create_directory(runs + "/other");
  const Done text = Run({"report", runs + "/rate-0.0001", runs + "/other", runs + "/rate-0.2"});
  CHECK(text.code == 0);
  CHECK(Contains(text.error, "other: not the directory of a run; left out"));
  CHECK(text.output.find("                                   train.optimizer.\n"
                         "run          state  test_accuracy  learning_rate ") == 0);
  CHECK(Contains(text.output, "\nrate-0.0001  done "));

  const Json table = Json::Parse(Run({"report", runs, "--json"}).output);
  CHECK(table.at("by") == "test_accuracy");
  REQUIRE(table.at("runs").size() == 2);
  CHECK(table.at("runs").at(0).at("global_step").is_number_integer());
  const Json& best = table.at("runs").at(0);
  CHECK(best.at("test_loss") == ReadResult(runs + "/rate-0.2/result.json").at("test_loss"));
  CHECK(best.at("config") == Json{{"train.optimizer.learning_rate", 0.2}});

  CHECK(Run({"report", runs, "--csv", "--by", "train_s", "--out", directory + "/t.csv"}).code == 0);
  CHECK(FileContent(directory + "/t.csv")
            .find("run,path,state,train_s,train.optimizer.learning_rate,test_accuracy,") == 0);

  for (const auto& [by, says] : {std::pair("validation_loss", "no run has it. There is test_loss."),
                                 {"test_rmse", "no run has it. There is test_accuracy, "},
                                 {"eval_loss", " Did you mean validation_loss or test_loss?"},
                                 {"rmse", " Did you mean validation_rmse or test_rmse?"}}) {
    CAPTURE(by);
    const Done refused = Run({"report", runs, "--by", by});
    CHECK(refused.code == 2);
    CHECK(Contains(refused.error, says));
  }

  CHECK(Run({"report", runs, "--out", directory + "/runs.html"}).code == 0);
  const Json page = ReadPage(directory + "/runs.html");
  CHECK(Sees(page, "2 runs"));
  CHECK(Sees(page, "rate-0.2"));
  const auto& charts = page.at("charts");
  CHECK(std::count(charts.begin(), charts.end(), Json("Training loss")) == 2);

  const std::string pipe = directory + "/pipe";
  REQUIRE(mkfifo(pipe.c_str(), 0600) == 0);
  const Done refused = Run({"report", runs, "--csv", "--out", pipe});
  CHECK(refused.code == 2);
  CHECK(Contains(refused.error, "a file would take its place"));
  CHECK(fs::is_fifo(pipe));
}

TEST_CASE("report: what is no run, or cannot be written, is refused with the remedy") {
  const std::string directory = NewDirectory();
  const Done none = Run({"report", directory});
  CHECK(none.code == 2);
  CHECK(Contains(none.error,
                 directory + ": not the directory of a run: it has no run.json. Name one of runs/."));
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"report", directory, directory + "/no"}, {"report", directory + "/no"}}) {
    const Done missing = Run(words);
    CHECK(missing.code == 2);
    CHECK(Contains(missing.error, directory + "/no: no such directory. Name a run, such as one of runs/."));
  }
  CHECK(Run({"report"}).code == 2);
  CHECK(Run({"report", "x", "--csv", "--json"}).code == 2);
}

}  // namespace
}  // namespace dtrain::testing
