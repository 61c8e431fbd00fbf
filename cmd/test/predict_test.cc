// `dtrain predict` as a process: which columns of a file it takes, and what it refuses to guess.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <signal.h>

#include <cmath>
#include <filesystem>

#include "base/testing/files.h"
#include "cmd/testing/job.h"
#include "cmd/testing/process.h"
#include "cmd/testing/python.h"

namespace dtrain::testing {
namespace {

// Rows of two features and a label that their sum tells, in front of them.
std::string Rows(int count) {
  std::string text;
  for (int i = 0; i < count; ++i) {
    const double a = std::sin(i * 1.7), b = std::cos(i * 2.3);
    text += fmt::format("{},{:.6g},{:.6g}\n", a + 2 * b > 0 ? 1 : 0, a, b);
  }
  return text;
}

// A logistic model of such rows, under a header.
struct Trained {
  std::string directory = NewDirectory();
  std::string rows = Rows(100);
  std::string checkpoints = directory + "/ckpt";

  Trained() {
    WriteFile(Path("train.csv"), "y,a,b\n" + rows);
    WriteFile(Path("job.yaml"),
              "model: {kind: logistic}\n"
              "data: {train: {format: csv, path: train.csv, label: y}, scale: standard}\n"
              "train: {batch_size: 10, steps: 50, mode: sync}\n");
    RunLocal(Path("job.yaml"), {"--workers", "1", "--in-process", "--set", "checkpoint.dir=" + checkpoints});
  }
  std::string Path(const std::string& name) const { return directory + "/" + name; }
  Done Predict(const std::string& content, const std::vector<std::string>& more = {}) const {
    WriteFile(Path("rows"), content);
    std::vector<std::string> arguments = {"predict", checkpoints, "--data", Path("rows")};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return Run(arguments);
  }
};

// One that no test case changes.
const Trained& Standard() {
  static const Trained model;
  return model;
}

TEST_CASE("predict: a label in front is left out with and without a header") {
  const Trained& model = Standard();
  const Done named = model.Predict("y,a,b\n" + model.rows), plain = model.Predict(model.rows);
  CAPTURE(plain.error);
  CHECK(named.code == 0);
  CHECK(plain.code == 0);
  CHECK(plain.output == named.output);
}

TEST_CASE("predict: --out - is standard output, and no file of that name") {
  const Trained& model = Standard();
  const Done done = model.Predict(model.rows, {"--out", "-"});
  CHECK(done.output == model.Predict(model.rows).output);
  CHECK_FALSE(std::filesystem::exists("-"));
}

TEST_CASE("predict: another scale than the weights are for is refused, by whatever command and way") {
  const Trained& model = Standard();
  const std::string must =
      "data.scale = none; must be standard, as in " + model.checkpoints + "/step-000000050:";
  for (const std::string command : {"predict", "eval", "export"}) {
    CAPTURE(command);
    std::vector<std::string> arguments = {command, model.checkpoints, "--set", "data.scale=none"};
    if (command != "export") arguments.insert(arguments.end(), {"--data", model.Path("train.csv")});
    if (command == "export") arguments.insert(arguments.end(), {"--out", model.Path("m.npz")});
    const Done done = Run(arguments);
    CHECK(done.code == 2);
    CHECK(Contains(done.error, must));
  }
  WriteFile(model.Path("other.yaml"),
            "model: {kind: logistic}\n"
            "data: {train: {format: csv, path: train.csv, label: y}}\n"
            "train: {steps: 1}\n");
  CHECK(Contains(model.Predict("a,b\n1,2\n", {"--config", model.Path("other.yaml")}).error, must));
  const Done same = model.Predict("a,b\n1,2\n", {"--config", model.Path("job.yaml")});
  CAPTURE(same.error);
  CHECK(same.code == 0);
}

TEST_CASE("predict: answers never replace the file of their rows, by whatever name") {
  const Trained& model = Standard();
  const std::string rows = "a,b\n1,2\n", file = model.Path("rows");
  CHECK(model.Predict(rows, {"--out", model.Path("other")}).code == 0);
  std::filesystem::create_symlink(file, model.Path("link"));
  std::filesystem::create_hard_link(file, model.Path("twin"));
  const std::string spelling = "../" + std::filesystem::path(model.directory).filename().string() + "/rows";
  for (const std::string& out : {std::string("rows"), spelling, std::string("link"), std::string("twin")}) {
    CAPTURE(out);
    const Done done = model.Predict(rows, {"--out", model.Path(out)});
    CHECK(done.code == 2);
    CHECK(Contains(done.error, fmt::format("--out {}: is the same file as --data {}, and would replace it.",
                                           model.Path(out), file)));
    CHECK(FileContent(file) == rows);
  }
  CHECK(Contains(OutputOf(fmt::format("cmd/dtrain predict {} --data - --out {} <{} 2>&1; true",
                                      model.checkpoints, file, file)),
                 "is the same file as --data -"));
  CHECK(FileContent(file) == rows);
  CHECK(Contains(Run({"predict", model.checkpoints, "--data", model.Path("*o*"), "--out", file}).error,
                 "is the same file as --data " + file));
}

TEST_CASE("predict: a reader that goes away ends it by SIGPIPE and without a word, as it does other tools") {
  const Trained& model = Standard();
  std::string rows;
  for (int i = 0; i < 20000; ++i) rows += "1,2\n";
  WriteFile(model.Path("many.csv"), rows);
  const std::string predict = "cmd/dtrain predict " + model.checkpoints + " --data " + model.Path("many.csv");
  const Done done = Run({"-c", predict + " | head -n 1; exit ${PIPESTATUS[0]}"}, Program{"/bin/bash", {}});
  CHECK(done.code == 128 + SIGPIPE);
  CHECK(done.output == "prediction,probability_0,probability_1\n");
  CHECK(done.error == "");
}

TEST_CASE("predict: a checkpoint that is damaged is refused without keys of a run") {
  const Trained model;
  const std::string newest = model.checkpoints + "/step-000000050";
  WriteFile(newest + "/manifest", "");
  const Done done = Run({"predict", newest, "--data", model.Path("train.csv")});
  CHECK(done.code == 2);
  CHECK(Contains(done.error, "which are complete: name one of those."));
}

TEST_CASE("predict: kept columns stand in front of the predictions, so that answers can be joined") {
  const Trained& model = Standard();
  const Done plain = model.Predict("a,b\n1,2\n-3,-1\n");
  const std::string rows = "id,a,note,b\n007,1,\"x, y\",2\n8,-3,,-1\n";
  const Done kept = model.Predict(rows, {"--keep", "id", "note"});
  CAPTURE(kept.error);
  CHECK(kept.code == 0);
  const size_t first = plain.output.find('\n') + 1, second = plain.output.find('\n', first) + 1;
  CHECK(kept.output == "id,note," + plain.output.substr(0, first) + "007,\"x, y\"," +
                           plain.output.substr(first, second - first) + "8,," + plain.output.substr(second));
  const Done lines = model.Predict(rows, {"--keep", "id", "note", "--format", "jsonl"});
  CHECK(Contains(lines.output, "{\"id\":\"007\",\"note\":\"x, y\",\"prediction\":1,"));
  const Done json = model.Predict("{\"a\": 1, \"b\": 2, \"id\": 7, \"who\": \"x, y\"}\n",
                                  {"--keep", "id", "who", "--format", "csv"});
  CHECK(Contains(json.output, "id,who,prediction,"));
  CHECK(Contains(json.output, "\n7,\"x, y\",1,"));
  CHECK(Contains(model.Predict(rows, {"--keep", "id", "id"}).error,
                 "--keep id: the predictions would have two"));
}

TEST_CASE("predict: bad rows are left out up to the limit, each with its place, and are counted") {
  const Trained& model = Standard();
  const std::string rows = "a,b\n1,2\nx,2\n3\n-3,-1\n";
  const Done whole = model.Predict("a,b\n1,2\n-3,-1\n"), skips = model.Predict(rows, {"--skip-bad", "2"});
  CHECK(skips.code == 0);
  CHECK(skips.output == whole.output);
  CHECK(Contains(skips.error, "left out: " + model.Path("rows") + ":3:1: a = x; must be a number"));
  CHECK(Contains(skips.error, "rows:4:2: 1 field; must be 2"));
  CHECK(Contains(skips.error, "2 rows could not be read and are left out"));
  const Done more = model.Predict(rows, {"--skip-bad", "1"});
  CHECK(more.code == 2);
  CHECK(Contains(more.error, "It is bad row 2, and --skip-bad is 1."));
  CHECK(Contains(whole.output, more.output));
}

}  // namespace
}  // namespace dtrain::testing
