// The parts of a report: what is escaped, thinned, recognised and compared.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <sstream>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "base/testing/files.h"
#include "cmd/common/run_files.h"
#include "cmd/report/charts.h"
#include "cmd/report/comparison.h"
#include "cmd/report/curves.h"
#include "cmd/report/html.h"
#include "cmd/report/model_figures.h"
#include "cmd/report/run_events.h"
#include "cmd/report/run_page.h"
#include "trainer/config/config.h"
#include "trainer/config/dump.h"

namespace dtrain {
namespace {

RunFiles RunOf(const std::string& name, const std::string& result) {
  RunFiles run;
  run.name = name;
  run.path = "runs/" + name;
  run.result = Json::Parse(result);
  REQUIRE(run.result.is_object());
  run.state = TextIn(run.result, "status");
  run.config = PartOf(run.result, "config");
  return run;
}

std::vector<std::string> NamesOf(const Comparison& comparison) {
  std::vector<std::string> names;
  for (const RunFiles& run : comparison.runs()) names.push_back(run.name);
  return names;
}

std::vector<RunFiles> FourRuns() {
  return {RunOf("a", R"({"status": "done", "test_accuracy": 0.9, "test_loss": 0.4, "config":
                {"train.optimizer.learning_rate": 0.1, "train.mode": "async", "run.dir": "/a"}})"),
          RunOf("failed", R"({"status": "failed", "test_accuracy": null, "error": "<b>no</b>", "config":
                {"train.optimizer.learning_rate": 0.1, "train.mode": "async", "run.dir": "/b"}})"),
          RunOf("c", R"({"status": "done", "test_accuracy": 0.95, "test_loss": 0.5, "config":
                {"train.optimizer.learning_rate": 0.2, "train.mode": "async", "run.dir": "/c"}})"),
          RunOf("old", R"({"status": "done", "test_accuracy": 0.5, "test_loss": 0.1, "config": null})")};
}

TEST_CASE("html: text is escaped, also in quotes, and what moves a cursor or a line is no character") {
  CHECK(Html("<script>alert(1)</script> & \"a\" 'b'") ==
        "&lt;script&gt;alert(1)&lt;/script&gt; &amp; &quot;a&quot; &#39;b&#39;");
  CHECK(Html("a\nb") == "a\nb");
  CHECK(Html("\x1b[2J\xff") == "\\x1b[2J\\xff");
  CHECK(HtmlPage("<t>", "").find("<title>&lt;t&gt;</title>") != std::string::npos);
}

TEST_CASE("html: numbers as people read them") {
  CHECK(NumberText(1234567) == "1,234,567");
  CHECK(NumberText(-1234.4) == "-1,234");
  CHECK(NumberText(0.123456) == "0.1235");
  CHECK(NumberText(5) == "5");
  CHECK(NumberText(1e20) == "1e+20");
}

TEST_CASE("curve: many points become few, with the mean and the range of each") {
  Curve curve;
  for (int64_t step = 1; step <= 100000; ++step) curve.Add({step, 1e9, step % 2 == 0 ? 1.0 : 3.0});
  const auto& points = curve.points();
  CHECK(points.size() <= 2 * Curve::kMaxPoints);
  CHECK(points.size() >= Curve::kMaxPoints / 2);
  int64_t count = 0;
  for (const Curve::Point& point : points) count += point.count;
  CHECK(count == 100000);
  CHECK(points[10].mean == doctest::Approx(2));
  CHECK(points[10].min == 1);
  CHECK(points[10].max == 3);
  CHECK(points.back().last_step == 100000);
  CHECK(curve.last() == 1);
}

TEST_CASE("curve: a run that goes back to a step has one value for it, the later one") {
  Curve curve;
  for (const int64_t step : {1, 2, 3, 4}) curve.Add({step, 1e9, 1});
  for (const int64_t step : {3, 4, 5}) curve.Add({step, 2e9, 2});
  std::vector<double> values;
  for (const Curve::Point& point : curve.points()) values.push_back(point.mean);
  CHECK(values == std::vector<double>{1, 1, 2, 2, 2});
}

TEST_CASE(
    "chart: series of equal values and of values far apart are drawn, also beside one point; one alone is "
    "not") {
  Curve one, equal, wide;
  one.Add({7, 1e9, 0});
  CHECK(LineChart({"t", "n"}, {{"s", &one}}) == "");
  for (const int64_t step : {1, 2, 3}) {
    equal.Add({step, 1e9, 5});
    wide.Add({step, 1e9, step == 2 ? 1e-6 : 1e6});
  }
  for (const Curve* curve : {&equal, &wide}) {
    const std::string html = LineChart({"t", "n"}, {{"<s>", curve}, {"one", &one}});
    CHECK(html.find("nan") == std::string::npos);
    CHECK(html.find("inf") == std::string::npos);
    CHECK(html.find("<s>") == std::string::npos);
    CHECK(html.find("</figure>") != std::string::npos);
  }
  CHECK(LineChart({"t", "n"}, {}) == "");
}

TEST_CASE("events: lines of text and of JSON tell the same") {
  const char* const at = "2026-11-27T21:05:01.5+01:00";
  const double wall_s = *WallSeconds("2026-11-27T20:05:01.5Z");
  const struct {
    std::string text, json;
    RunEventKind kind;
  } cases[] = {{"all 3 tasks are here after 0.5 s", R"("level": "info", "event": "run_started")",
                RunEventKind::kStart},
               {"saved c/step-9 in 0.1 s; steps were held for 0.0 ms",
                R"("level": "info", "event": "checkpoint_saved")", RunEventKind::kCheckpoint},
               {"warning: worker 1 is gone; the run goes on without it",
                R"("level": "warning", "event": "worker_lost")", RunEventKind::kLoss},
               {"stepping again 0.1 s after the loss", R"("level": "info", "event": "recovered")",
                RunEventKind::kRecovery},
               {"warning: x", R"("level": "warning")", RunEventKind::kWarning},
               {"error: x", R"("level": "error")", RunEventKind::kError}};
  for (const auto& [text, json, kind] : cases) {
    CAPTURE(text);
    RunEvent of_text, of_json;
    REQUIRE(EventOfLine(std::string(at) + " ps 0@node1 | " + text, &of_text));
    REQUIRE(EventOfLine(
        std::string(R"({"time": ")") + at + R"(", "task": "ps 0", "text": "t", )" + json + "}", &of_json));
    CHECK(of_text.kind == kind);
    CHECK(of_json.kind == kind);
    CHECK(of_text.task == "ps 0");
    CHECK(of_text.wall_s == wall_s);
    CHECK(of_json.wall_s == wall_s);
  }
  RunEvent none;
  for (const char* const line : {"", "{", "x", "2026-11-27T21:05:01.5+01:00 ps 0 | run id 7",
                                 "yesterday ps 0 | error: x", "{\"level\": \"error\"}"}) {
    CHECK_FALSE(EventOfLine(line, &none));
  }
}

TEST_CASE("time: RFC 3339 with any zone, and nothing else") {
  CHECK(*WallSeconds("1970-01-01T01:00:00.250+01:00") == 0.25);
  CHECK(*WallSeconds("1970-01-01T00:00:00-00:30") == 1800);
  CHECK_FALSE(WallSeconds("1970-01-01 00:00:00"));
  CHECK_FALSE(WallSeconds("1970-01-01T00:00:00"));
  CHECK_FALSE(WallSeconds(""));
}

TEST_CASE(
    "comparison: the best run comes first, one without the figure last, and keys that differ are told") {
  const Comparison comparison(FourRuns(), "");
  CHECK(comparison.by() == "test_accuracy");
  CHECK(NamesOf(comparison) == std::vector<std::string>{"c", "a", "old", "failed"});
  CHECK(comparison.keys() == std::vector<std::string>{"train.optimizer.learning_rate"});
  CHECK(comparison.figures() == std::vector<std::string>{"test_accuracy", "test_loss"});
  CHECK(comparison.Text(58) ==
        "                               train.optimizer.\n"
        "run     state   test_accuracy  learning_rate     test_loss\n"
        "c       done             0.95  0.2                     0.5\n"
        "a       done              0.9  0.1                     0.4\n"
        "old     done              0.5  -                       0.1\n"
        "failed  failed              -  0.1                       -\n");
  CHECK(comparison.Text(57) ==
        "                               train.optimizer.\n"
        "run     state   test_accuracy  learning_rate\n"
        "c       done             0.95  0.2\n"
        "a       done              0.9  0.1\n"
        "old     done              0.5  -\n"
        "failed  failed              -  0.1\n"
        "1 more figure: --csv or the page (-o) has them all\n");
  CHECK(comparison.Text(20).find("run     state   test_accuracy\nc ") == 0);
  const Json json = comparison.ToJson();
  CHECK(json.at("runs").at(0).at("config").at("train.optimizer.learning_rate") == 0.2);
  CHECK(json.at("runs").at(3).at("test_accuracy").is_null());
}

// Every key differs.
std::vector<RunFiles> UnlikeRuns() {
  std::vector<RunFiles> runs = FourRuns();
  runs.resize(3);
  for (size_t i = 0; i < runs.size(); ++i) {
    const Json defaults = FlatConfig(Config());
    for (const auto& [key, value] : defaults.items()) runs[i].config[key] = fmt::format("value {}", i);
    runs[i].config["cluster.ps"] = std::vector<std::string>(i + 1, "a:1");
  }
  return runs;
}

TEST_CASE("comparison: of unlike jobs a table has the keys that say most, within the width, and a count") {
  const Comparison comparison(UnlikeRuns(), "");
  CHECK(comparison.keys().size() > 100);
  CHECK(comparison.keys().front() == "model.kind");
  const auto rank = [&](const char* key) {
    return std::find(comparison.keys().begin(), comparison.keys().end(), key) - comparison.keys().begin();
  };
  CHECK(rank("cluster.ps") < rank("model.activation"));
  CHECK(rank("train.reduce") < rank("eval.on"));
  CHECK(rank("failure.detect_s") < rank("data.seed"));
  CHECK(rank("data.seed") < rank("data.train.path"));
  for (const size_t width : {80, 120, 300}) {
    const std::string text = comparison.Text(width);
    CAPTURE(text);
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) CHECK(line.size() <= width);
    CHECK(text.find(" mode") != std::string::npos);
    CHECK(text.find("path") == std::string::npos);
    CHECK(text.find(" more keys differ") != std::string::npos);
  }
  const std::string csv = comparison.Csv(), page = comparison.Page();
  for (const std::string& key : comparison.keys()) {
    CAPTURE(key);
    CHECK(csv.find("," + key + ",") != std::string::npos);
    CHECK(page.find("<td>" + key + "</td>") != std::string::npos);
  }
}

TEST_CASE("comparison: runs with held-out rows are compared by these") {
  std::vector<RunFiles> runs = FourRuns();
  runs.erase(runs.begin() + 1);
  for (RunFiles& run : runs) run.result["validation_accuracy"] = 1 - *NumberIn(run.result, "test_loss");
  const Comparison comparison(std::move(runs), "");
  CHECK(comparison.by() == "validation_accuracy");
  CHECK(NamesOf(comparison)[0] == "old");
}

TEST_CASE(
    "comparison: where one class has most rows, the log loss makes the best run, and not the accuracy") {
  std::vector<RunFiles> runs = FourRuns();
  for (RunFiles& run : runs) {
    run.result["test_base_accuracy"] = 0.6;
    run.result["test_log_loss"] = 1 - NumberIn(run.result, "test_loss").value_or(0);
  }
  const std::string by_accuracy = Comparison(runs, "").by();
  CHECK(by_accuracy.find("log_loss") == std::string::npos);
  runs[0].result["test_base_accuracy"] = 0.92;
  CHECK(Comparison(runs, "").by() == "test_log_loss");
}

TEST_CASE("run files: what an older dtrain wrote as test_* of held-out rows is validation_*") {
  const auto present = [](const char* text) { return WithPresentKeys(Json::Parse(text)).dump(); };
  CHECK(present(R"({"test_loss":0.5,"test_auc":null,"config":{"eval.on":"validation"}})") ==
        R"({"validation_loss":0.5,"validation_auc":null,"config":{"eval.on":"validation"}})");
  for (const char* same : {R"({"test_loss":0.5,"config":{"eval.on":"test"}})", R"({"test_loss":0.5})", "null",
                           R"({"validation_loss":0.4,"test_loss":0.5,"config":{"eval.on":"validation"}})"}) {
    CHECK(present(same) == same);
  }
}

TEST_CASE("comparison: a device that runs found by themselves is compared as what they found") {
  std::vector<RunFiles> runs = FourRuns();
  for (size_t i = 0; i < 3; ++i) {
    runs[i].config["device.kind"] = i == 0 ? "cpu" : "auto";
    runs[i].config["device.tf32"] = i == 0 ? Json(nullptr) : Json(false);
  }
  for (RunFiles& run : runs) run.result["device"] = "cpu:0";
  CHECK(Comparison(runs, "").keys() == std::vector<std::string>{"train.optimizer.learning_rate"});
  runs[1].result["device"] = "cuda:0,1";
  CHECK(Comparison(runs, "").keys().size() == 3);
}

TEST_CASE("comparison: whole numbers of a result stay whole") {
  std::vector<RunFiles> runs = FourRuns();
  for (RunFiles& run : runs) run.result["global_step"] = 600;
  runs[0].config["data.validation"] = 30.0;
  runs[1].config["data.validation"] = 0.2;
  const Comparison comparison(std::move(runs), "");
  CHECK(comparison.Csv().find(",600\n") != std::string::npos);
  CHECK(comparison.Csv().find("600.0") == std::string::npos);
  CHECK(comparison.Csv().find(",30,") != std::string::npos);
  CHECK(comparison.Csv().find(",0.2,") != std::string::npos);
  CHECK(comparison.ToJson().at("runs").at(0).at("global_step").dump() == "600");
}

TEST_CASE("comparison: by another figure, less may be better; one that is none is refused") {
  CHECK(NamesOf(Comparison(FourRuns(), "test_loss")) == std::vector<std::string>{"old", "a", "c", "failed"});
  CHECK_THROWS_AS(Comparison(FourRuns(), "loss"), UserError);
}

TEST_CASE("comparison: fields of CSV may have anything in them") {
  std::vector<RunFiles> runs = FourRuns();
  runs[0].name = "a,\"b\"\nc";
  const std::string csv = Comparison(std::move(runs), "").Csv();
  CHECK(csv.find("run,path,state,test_accuracy,train.optimizer.learning_rate,test_loss\n") == 0);
  CHECK(csv.find("\n\"a,\"\"b\"\"\nc\",runs/a,done,0.9,0.1,0.4\n") != std::string::npos);
}

TEST_CASE("comparison: a page has the errors of runs as text") {
  const std::string page = Comparison(FourRuns(), "").Page();
  CHECK(page.find("failed: &lt;b&gt;no&lt;/b&gt;") != std::string::npos);
  CHECK(page.find("<b>no") == std::string::npos);
}

TEST_CASE("run files: what is damaged or missing is told, and the rest is read") {
  const std::string directory = testing::NewDirectory();
  CHECK_THROWS_AS(ReadRun(directory), UserError);
  WriteFileAtomically(directory + "/run.json", R"({"name": "x", "host": "elsewhere"})");
  WriteFileAtomically(directory + "/result.json", R"({"status": "do)");
  WriteFileAtomically(directory + "/config.yaml", "model: {kind: none of them}\n");
  const RunFiles run = ReadRun(directory);
  CHECK(run.name == "x");
  CHECK(run.state == "dead");
  REQUIRE(run.problems.size() == 2);
  CHECK(run.problems[0] == "result.json is damaged.");
  CHECK(run.problems[1].find("config.yaml cannot be read: ") == 0);
  CHECK(run.Place("logs", "logs") == directory + "/logs");
}

TEST_CASE("run files: a member of another kind is told and left out, and the page has the rest") {
  const std::string directory = testing::NewDirectory();
  WriteFileAtomically(directory + "/run.json", R"({"name": "x", "command_line": {"a": 1}})");
  WriteFileAtomically(directory + "/result.json",
                      R"({"status": "done", "warnings": {"a": 1}, "restarts": {"a": 1}, "workers": {"a": 1},
                          "local_steps": {"a": 1}, "hosts": [1], "config": [1], "test_loss": "low"})");
  WriteFileAtomically(directory + "/status.json", R"({"tasks": {"a": 1}})");
  const std::string damaged = RunPage(ReadRun(directory));
  for (const char* const problem : {"run.json is damaged: its &quot;command_line&quot; is no list.",
                                    "result.json is damaged: its &quot;warnings&quot; is no list.",
                                    "result.json is damaged: its &quot;restarts&quot; is no list.",
                                    "result.json is damaged: its &quot;workers&quot; is no list.",
                                    "result.json is damaged: its &quot;local_steps&quot; is no list.",
                                    "status.json is damaged: its &quot;tasks&quot; is no list."}) {
    CHECK_MESSAGE(damaged.find(problem) != std::string::npos, problem);
  }
  // Lists whose elements are of another kind.
  WriteFileAtomically(directory + "/result.json",
                      R"({"status": "done", "warnings": [1], "restarts": [[]], "workers": ["a", null],
                          "local_steps": [{}]})");
  WriteFileAtomically(directory + "/status.json",
                      R"({"tasks": [1, [], {"role": "worker", "index": 1e300, "time": [1]},
                                    {"role": "worker", "index": -1}]})");
  CHECK(RunPage(ReadRun(directory)).find("<h1>x</h1>") != std::string::npos);
}

TEST_CASE("picture: a PNG in which zero is transparent") {
  const std::string uri = PictureUri({1, -1, 0, 0.5f}, 2, 2);
  CHECK(uri.find("data:image/png;base64,iVBORw0KGgo") == 0);
  CHECK(uri.size() % 4 == 22 % 4);
}

}  // namespace
}  // namespace dtrain
