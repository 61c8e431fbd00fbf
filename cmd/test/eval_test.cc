// `dtrain eval` as a process: the same figures as the run that wrote the checkpoint.
#include <doctest/doctest.h>
#include <fmt/core.h>
#include <signal.h>

#include <filesystem>

#include "base/json.h"
#include "cmd/testing/job.h"
#include "trainer/checkpoint/checkpoint_test_util.h"

namespace dtrain::testing {
namespace {

const std::string kDigits =
    DigitsJob("kind: softmax", 2000, 700,
              "batch_size: 64, steps: 30, mode: sync, optimizer: {kind: momentum, learning_rate: 0.2}");

// A run that has ended, and its checkpoints.
struct Trained {
  LocalJob job;
  std::string checkpoints = job.directory + "/ckpt";
  std::string last = checkpoints + "/step-000000030";
  Json result;

  explicit Trained(const std::string& yaml = kDigits) : job(yaml) {
    const auto run = job.Start({"--ps", "2", "--set", "checkpoint.dir=" + checkpoints});
    REQUIRE(RunToEnd(*run) == 0);
    result = ReadResult(job.result);
  }
};

// A run of digits that no test case changes; it outlives them.
const Trained& Digits() {
  static const Trained& digits = *new Trained;
  return digits;
}

// As a checkpoint was that an older dtrain's ps have written.
void ForgetInputs(const std::string& checkpoint) {
  const std::string path = checkpoint + "/" + kManifestName;
  Manifest manifest;
  REQUIRE_FALSE(FromBytes(FileContent(path), &manifest));
  REQUIRE(manifest.inputs.has_value());
  manifest.inputs.reset();
  WriteFile(path, ToBytes(manifest));
}

// Runs `dtrain eval ARGUMENTS` to the end.
struct Eval {
  std::string result_path = NewDirectory() + "/eval.json";
  int code;
  std::string output, error;
  Json result;

  explicit Eval(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "eval");
    arguments.insert(arguments.end(), {"--result", result_path});
    const Done done = Run(arguments);
    code = done.code;
    output = done.output;
    error = done.error;
    result = ReadResult(result_path);
  }
};

TEST_CASE("eval: a directory's newest has the run's loss, accuracy and checksum, by its own config.yaml") {
  const Trained& run = Digits();
  const Eval eval({run.checkpoints + "/"});
  CAPTURE(eval.error);
  REQUIRE(eval.code == 0);
  CHECK(eval.error == "");
  const std::string figures = fmt::format(
      "{}: global step 30, model crc {}\ntest loss {:.6g}, accuracy {:.4f}, AUC {:.4f} of 700 rows\n",
      run.last, run.result.at("model_crc").get<std::string>(), run.result.at("test_loss").get<double>(),
      run.result.at("test_accuracy").get<double>(), run.result.at("test_auc").get<double>());
  CHECK(eval.output.substr(0, figures.size()) == figures);
  CHECK(Contains(eval.output, "\nclass            rows  precision     recall         F1\n0  "));
  for (const char* key :
       {"status", "global_step", "test_loss", "test_accuracy", "test_auc", "model_crc", "checkpoint"}) {
    CAPTURE(key);
    CHECK(eval.result.at(key) == run.result.at(key));
  }
}

TEST_CASE("eval: one by name, another config and other data, and another model, which is refused") {
  const Trained& run = Digits();
  const Eval first({run.checkpoints + "/step-000000000", "--config", run.job.config});
  REQUIRE(first.code == 0);
  CHECK(first.result.at("global_step") == 0);
  CHECK(first.result.at("model_crc") != run.result.at("model_crc"));
  const Eval validation({run.last, "--set", "eval.on=validation", "--set", "data.validation=100"});
  REQUIRE(validation.code == 0);
  CHECK(Contains(validation.output, "validation loss "));
  CHECK_FALSE(Contains(validation.output, "test loss "));
  CHECK(validation.result.at("validation_rows") == 100);
  CHECK(validation.result.at("test_rows").is_null());
  CHECK(Contains(validation.output, " of 100 held-out rows\n"));
  CHECK(Contains(validation.error, "the run held out other rows (data.validation"));
  const Eval pinned({run.last, "--set", "placement.policy=pin", "--set", "placement.pin=[\"weights/*=1\"]",
                     "--set", "train.optimizer.kind=sgd"});
  CHECK(pinned.result.at("model_crc") == run.result.at("model_crc"));
  const Eval other({run.last, "--set", "model.outputs=12"});
  CHECK(other.code == 2);
  CHECK(Contains(other.error, "another model: biases/b1 is 10 x 1 in the checkpoint and 12 x 1 in this run"));
}

TEST_CASE("eval: held-out rows and data.test are measured apart, by the run and by eval, in every mode") {
  for (const std::string mode : {"sync", "async"}) {
    CAPTURE(mode);
    LocalJob job(DigitsJob("kind: softmax", 2000, 700, "batch_size: 50, steps: 40, mode: " + mode));
    const std::string run = job.directory + "/run";
    const auto process = job.Start(
        {"--workers", "1", "--run", run, "--set", "data.validation=300", "--set", "eval.every_steps=10"});
    REQUIRE(RunToEnd(*process) == 0);
    const std::string log = FileContent(run + "/logs/worker-0.log");
    CHECK(Contains(log, ": validation loss "));
    CHECK_FALSE(Contains(log, "0: test loss "));  // once, at the end
    const Json result = ReadResult(run + "/result.json");
    CHECK(result.at("validation_rows") == 300);
    CHECK(result.at("test_rows") == 700);
    CHECK(result.at("validation_loss") != result.at("test_loss"));
    const Eval eval({run});
    CAPTURE(eval.error);
    REQUIRE(eval.code == 0);
    CHECK(Contains(eval.output, " of 300 held-out rows\n"));
    CHECK(Contains(eval.output, " of 700 rows\n"));
    for (const char* key : {"validation_loss", "validation_accuracy", "validation_auc", "test_loss",
                            "test_accuracy", "test_auc", "test_log_loss"}) {
      CAPTURE(key);
      CHECK(eval.result.at(key) == result.at(key));
    }
    const Json json = Json::Parse(Run({"eval", run, "--json"}).output);
    CHECK(json.at("set") == "validation");
    CHECK(json.at("loss") == result.at("validation_loss"));
    CHECK(json.at("test").at("loss") == result.at("test_loss"));
  }
}

// The checkpoints of a run whose best one is its first.
std::string WithBest() {
  const std::string directory = NewDirectory() + "/ckpt";
  std::filesystem::copy(Digits().checkpoints, directory, std::filesystem::copy_options::recursive);
  WriteFile(directory + "/best", "step-000000000\n");
  return directory;
}

TEST_CASE("eval: a directory's best is taken if a run kept one, and said; --newest takes the newest") {
  const std::string directory = WithBest();
  const std::string first = directory + "/step-000000000";
  for (const std::vector<std::string>& arguments : {std::vector<std::string>{directory},
                                                    {directory, "--best"},
                                                    {directory + "/best"},
                                                    {directory + "/best", "--best"}}) {
    const Eval best(arguments);
    CAPTURE(best.error);
    REQUIRE(best.code == 0);
    CHECK(best.result.at("global_step") == 0);
    CHECK(Contains(best.error, "dtrain: " + first + ": the best checkpoint, at global step 0"));
    CHECK(Contains(best.error, "--newest takes the newest") ==
          (arguments == std::vector<std::string>{directory}));
  }
  const Eval newest({directory, "--newest"});
  CHECK(newest.result.at("global_step") == 30);
  CHECK(newest.error == "");
  CHECK(Eval({Digits().checkpoints, "--newest"}).result.at("global_step") == 30);
}

TEST_CASE("eval: a best one that is damaged is warned of, and refused where it was asked for") {
  const std::string directory = WithBest();
  std::filesystem::resize_file(directory + "/step-000000000/shard-0-of-2", 64);
  const Eval other({directory});
  CAPTURE(other.error);
  CHECK(other.result.at("global_step") == 30);
  CHECK(
      Contains(other.error, "warning: " + directory + "/step-000000000, the best checkpoint: shard-0-of-2 "));
  CHECK(Contains(other.error, "; the newest is taken"));
  const Eval asked({directory, "--best"});
  CHECK(asked.code == 2);
  CHECK(Contains(asked.error, "step-000000000"));
}

TEST_CASE("eval: --best and --newest are refused where they say nothing, with a remedy") {
  const std::string& directory = Digits().checkpoints;
  const auto refused = [](const std::vector<std::string>& arguments, const std::string& told) {
    const Eval eval(arguments);
    CAPTURE(eval.error);
    CHECK(eval.code == 2);
    CHECK(Contains(eval.error, told));
  };
  refused({directory, "--best"}, "--best: no checkpoint in " + directory + " is the best one.");
  refused({directory, "--best", "--newest"}, "--newest: contradicts --best.");
  refused({Digits().last, "--best"}, "is one checkpoint already. Leave --best out");
  refused({Digits().last, "--newest"}, "is one checkpoint already. Leave --newest out");
  refused({directory, "--follow", "--best"}, "--best: --follow evaluates each checkpoint");
}

TEST_CASE("eval: predict and export take the same checkpoint as eval") {
  const std::string directory = WithBest();
  const std::string out = NewDirectory() + "/model.npz";
  for (const bool newest : {false, true}) {
    std::vector<std::string> arguments = {"export", directory, "--out", out};
    if (newest) arguments.emplace_back("--newest");
    const Done done = Run(arguments);
    CAPTURE(done.error);
    REQUIRE(done.code == 0);
    CHECK(Contains(done.output, newest ? "from " + directory + "/step-000000030"
                                       : "from " + directory + "/step-000000000"));
  }
  const std::string rows = NewDirectory() + "/rows.jsonl";
  std::string row = "[0";
  for (int i = 1; i < 784; ++i) row += ",0";
  WriteFile(rows, row + "]\n");
  const auto predict = [&](const std::string& which) {
    return Run({"predict", which, "--data", rows}).output;
  };
  CHECK(predict(directory) == predict(directory + "/step-000000000"));
  CHECK(predict(directory) != predict(directory + "/step-000000030"));
}

TEST_CASE("eval: a damaged newest one is passed over and said, and with none left the exit code is 2") {
  const Trained run;
  const auto damage = [](const std::string& path) {
    std::filesystem::resize_file(path + "/shard-0-of-2", 64);
  };
  damage(run.last);
  const Eval older({run.checkpoints});
  CHECK(older.code == 0);
  CHECK(older.result.at("global_step") == 0);
  CHECK(Contains(older.error, "dtrain: warning: " + run.last + ": shard-0-of-2 "));
  CHECK(Contains(older.error, "; skipped\n"));
  damage(run.checkpoints + "/step-000000000");
  const Eval none({run.checkpoints});
  CHECK(none.code == 2);
  CHECK(none.result.at("status") == "failed");
  CHECK(Contains(none.error, run.checkpoints + ": none of its checkpoints can be read (see above). "));
  const Eval by_name({run.last});
  CHECK(by_name.code == 2);
  CHECK(Contains(by_name.error, "dtrain: " + run.last + ": shard-0-of-2 "));
}

TEST_CASE("eval: without a set to evaluate on the exit code is 2") {
  const Trained run(
      "model: {kind: linear, inputs: 2}\n"
      "data: {train: {format: synthetic, name: linear}}\n"
      "train: {batch_size: 4, steps: 30, mode: sync}\n");
  const Eval eval({run.last});
  CHECK(eval.code == 2);
  CHECK(Contains(eval.error, "there is nothing to evaluate on (no data.test). "));
  CHECK(eval.output == "");
}

// Rows of one feature whose sign tells the class, but for every tenth.
std::string Trees(int rows) {
  std::string text = "size,tree\n";
  for (int i = 0; i < rows; ++i) {
    const bool oak = i % 3 == 0;
    text += fmt::format("{},{}\n", (oak != (i % 10 == 0) ? 1 : -1) * (1 + i % 7), oak ? "oak" : "elm");
  }
  return text;
}

// A logistic model of trees, which has evaluated itself on all of them.
struct Forest {
  std::string csv = NewDirectory() + "/trees.csv";
  std::string Yaml() const {
    WriteFile(csv, Trees(300));
    return fmt::format(
        "model: {{kind: logistic}}\n"
        "data:\n"
        "  train: {{format: csv, path: {0}, label: tree}}\n"
        "  test: {{format: csv, path: {0}, label: tree}}\n"
        "  scale: standard\n"
        "train: {{batch_size: 50, steps: 30, mode: sync, optimizer: {{learning_rate: 0.5}}}}\n",
        csv);
  }
};

TEST_CASE("eval: a file of --data that is not there is refused by that name, and not by the config's key") {
  const Forest forest;
  const Trained run(forest.Yaml());
  const Eval eval({run.checkpoints, "--data", "nope.csv"});
  CHECK(eval.code == 2);
  CHECK(Contains(eval.error, " Is --data right?"));
}

TEST_CASE("eval: of classes with names, all figures as one JSON document") {
  const Forest forest;
  const Trained run(forest.Yaml());
  const Eval eval({run.checkpoints, "--json"});
  CAPTURE(eval.error);
  REQUIRE(eval.code == 0);
  const auto json = Json::Parse(eval.output);
  CHECK(json.at("rows") == 300);
  CHECK(json.at("loss") == run.result.at("test_loss"));
  CHECK(json.at("auc") == run.result.at("test_auc"));
  CHECK(json.at("auc").get<double>() > 0.8);
  CHECK(json.at("classes").at(0).at("class") == "elm");
  CHECK(json.at("classes").at(1).at("rows") == 100);
  const auto mean = [&](const char* figure) {
    return (json.at("classes").at(0).at(figure).get<double>() +
            json.at("classes").at(1).at(figure).get<double>()) /
           2;
  };
  for (const char* figure : {"precision", "recall", "f1"}) {
    CHECK(json.at("mean").at(figure).get<double>() == doctest::Approx(mean(figure)));
  }
  const auto counts = json.at("confusion").get<std::vector<std::vector<double>>>();
  CHECK(counts[0][0] + counts[0][1] == 200);
  CHECK(counts[1][0] + counts[1][1] == 100);
  CHECK(json.at("accuracy").get<double>() == doctest::Approx((counts[0][0] + counts[1][1]) / 300));
  CHECK(json.at("classes").at(1).at("recall").get<double>() == doctest::Approx(counts[1][1] / 100));
  CHECK(json.at("classes").at(1).at("precision").get<double>() ==
        doctest::Approx(counts[1][1] / (counts[0][1] + counts[1][1])));
}

TEST_CASE(
    "eval: other rows by --data, in other files and another order of columns, without the training data") {
  const Forest forest;
  const Trained run(forest.Yaml());
  std::filesystem::remove(forest.csv);
  const std::string directory = NewDirectory();
  WriteFile(directory + "/part-1.csv", "tree,color,size\noak,red,3\nelm,blue,-2\n");
  WriteFile(directory + "/part-2.csv", "size,tree\n4,elm\n");
  const Eval eval({run.checkpoints, "--data", directory + "/part-*.csv"});
  CAPTURE(eval.error);
  REQUIRE(eval.code == 0);
  CHECK(Contains(eval.output, ", accuracy 0.6667, AUC 0.5000 of 3 rows\n"));
  CHECK(Contains(eval.output, "\nelm                 2     1.0000     0.5000     0.6667\n"));
  CHECK(Contains(eval.output, "\noak               0        1\n"));
  WriteFile(directory + "/bad.csv", "size,tree\n4,fir\n");
  const Eval bad({run.checkpoints, "--data", directory + "/bad.csv"});
  CHECK(bad.code == 2);
  CHECK(Contains(bad.error, "bad.csv:2:3: tree = fir; must be a class of data.train: elm or oak."));
}

TEST_CASE("eval, predict: rows are read with the delimiter of the config, as the run has read its own") {
  std::string text = "place,no;size;tree\n";  // a comma in each line, which auto would take for the delimiter
  for (int i = 0; i < 40; ++i) text += fmt::format("a,b;{};{}\n", i % 7, i % 7 < 3 ? "elm" : "oak");
  const std::string csv = NewDirectory() + "/trees.csv";
  WriteFile(csv, text);
  const Trained run(
      fmt::format("model: {{kind: logistic}}\n"
                  "data:\n"
                  "  train: {{format: csv, path: {0}, label: tree}}\n"
                  "  test: {{format: csv, path: {0}, label: tree}}\n"
                  "  delimiter: semicolon\n"
                  "  ignore: [\"place,no\"]\n"
                  "train: {{batch_size: 10, steps: 30, mode: sync, optimizer: {{learning_rate: 0.5}}}}\n",
                  csv));
  const Eval eval({run.checkpoints});
  CAPTURE(eval.error);
  REQUIRE(eval.code == 0);
  CHECK(eval.result.at("test_loss") == run.result.at("test_loss"));
  CHECK(Eval({run.checkpoints, "--data", csv}).result.at("test_loss") == run.result.at("test_loss"));
  const Done predict = Run({"predict", run.checkpoints, "--data", csv});
  CHECK(predict.code == 0);
}

TEST_CASE("eval: a training file with other columns than the model's is refused, with both numbers") {
  const Forest forest;
  const Trained run(forest.Yaml());
  ForgetInputs(run.last);
  const std::string rows = NewDirectory() + "/rows.csv";
  WriteFile(rows, "size,tree\n4,elm\n");
  CHECK(Eval({run.last, "--data", rows}).code == 0);
  WriteFile(forest.csv, "size,age,tree\n1,2,oak\n2,1,elm\n");
  WriteFile(rows, "size,age,tree\n4,1,elm\n");
  const Eval eval({run.last, "--data", rows});
  CHECK(eval.code == 2);
  CHECK(Contains(eval.error, "have 2 names, and its model has 1 feature. "));
}

TEST_CASE("eval: of a linear model, errors and R squared") {
  const Trained run(
      "model: {kind: linear, inputs: 2}\n"
      "data: {train: {format: synthetic, name: linear, rows: 200}, test: {format: synthetic, name: linear, "
      "rows: 100}}\n"
      "train: {batch_size: 20, steps: 30, mode: sync, optimizer: {learning_rate: 0.1}}\n");
  const Eval eval({run.last, "--json"});
  REQUIRE(eval.code == 0);
  const auto json = Json::Parse(eval.output);
  const auto loss = json.at("loss").get<double>(), rmse = json.at("rmse").get<double>();
  CHECK(rmse * rmse == doctest::Approx(loss).epsilon(1e-5));
  CHECK(json.at("r2").get<double>() <= 1);
  CHECK(eval.result.at("test_auc").is_null());
}

TEST_CASE("eval: --follow evaluates every checkpoint until the run's last one, and draws its curves") {
  const LocalJob job(kDigits);
  const std::string checkpoints = job.directory + "/ckpt", result = job.directory + "/eval.json";
  Process follow({"eval", checkpoints, "--follow", "--result", result});  // before there is a directory
  const auto run =
      job.Start({"--set", "checkpoint.dir=" + checkpoints, "--set", "checkpoint.every_steps=10", "--set",
                 "checkpoint.keep=10", "--set", "summary.dir=" + job.directory + "/logs"});
  REQUIRE(RunToEnd(*run) == 0);
  REQUIRE(RunToEnd(follow) == 0);
  const std::string output = follow.standard_output();
  CheckpointDirectory directory(checkpoints);
  const std::vector<ListedCheckpoint> listed = directory.List();
  REQUIRE(listed.size() >= 2);
  size_t at = 0;
  for (auto each = listed.rbegin(); each != listed.rend(); ++each) {
    at = output.find(fmt::format("global step {}: test loss ", each->step), at);
    CHECK(at != std::string::npos);
  }
  CHECK(ReadResult(result).at("test_loss") == ReadResult(job.result).at("test_loss"));
  CHECK_FALSE(std::filesystem::is_empty(job.directory + "/logs/eval"));
}

TEST_CASE("eval: --follow goes on past the end of a run that has gone on, and says what it cannot read") {
  const Trained run;
  REQUIRE(RunToEnd(*run.job.Start({"--ps", "2", "--set", "checkpoint.dir=" + run.checkpoints, "--set",
                                   "checkpoint.keep=10", "--set", "train.steps=60"})) == 0);
  WriteFile(run.checkpoints + "/step-000000000/manifest", "damaged");
  Process follow({"eval", run.checkpoints, "--follow"});
  CHECK(RunToEnd(follow) == 0);
  CHECK(Contains(follow.standard_output(), "global step 30: test loss "));
  CHECK(Contains(follow.standard_output(), "global step 60: test loss "));
  CHECK(Contains(follow.standard_error(), "warning: " + run.checkpoints + "/step-000000000: manifest "));
}

TEST_CASE("eval: --follow takes up a new run in a directory that was emptied") {
  const LocalJob job(kDigits);
  const std::string checkpoints = job.directory + "/ckpt", set = "checkpoint.dir=" + checkpoints;
  REQUIRE(RunToEnd(*job.Start(
              {"--set", set, "--set", "checkpoint.every_steps=10", "--set", "checkpoint.keep=10"})) == 0);
  std::filesystem::resize_file(checkpoints + "/step-000000030/shard-0-of-1", 64);  // not its end, then
  Process follow({"eval", checkpoints, "--follow"});
  REQUIRE(follow.WaitForLine("; skipped"));
  std::filesystem::remove_all(checkpoints);
  REQUIRE(RunToEnd(*job.Start({"--set", set})) == 0);
  CHECK(RunToEnd(follow) == 0);
  CHECK(Contains(follow.standard_output(), "global step 30: test loss "));
}

TEST_CASE(
    "eval: --follow evaluates what this run writes: not what it set aside, nor with never what was there") {
  const LocalJob job(kDigits);
  const std::string checkpoints = job.directory + "/ckpt";
  const std::vector<std::string> flags = {"--set", "checkpoint.dir=" + checkpoints, "--set",
                                          "checkpoint.resume=never"};
  REQUIRE(RunToEnd(*job.Start(flags)) == 0);
  std::vector<std::string> command = {"eval", checkpoints, "--follow", "--config", job.config};
  command.insert(command.end(), flags.begin(), flags.end());
  Process never(command);
  REQUIRE(never.WaitForLine("checkpoint.resume is never: 2 checkpoints here already, not evaluated"));
  REQUIRE(RunToEnd(*job.Start(flags)) == 0);
  REQUIRE(std::filesystem::exists(checkpoints + "/replaced-step-000000030-2"));
  CHECK(RunToEnd(never) == 0);
  command.resize(5);
  Process any(command);
  CHECK(RunToEnd(any) == 0);
  for (Process* follow : {&never, &any}) {
    const std::string output = follow->standard_output();
    const size_t first = output.find("global step 30: test loss ");
    CHECK(first != std::string::npos);
    CHECK(output.find("global step 30: test loss ", first + 1) == std::string::npos);
  }
}

TEST_CASE("eval: --follow ends by a signal, or when nothing comes, and says so") {
  const LocalJob job(kDigits);
  const std::string missing = job.directory + "/none", result = job.directory + "/eval.json";
  const Done waits =
      Run({"eval", missing, "--follow", "--config", job.config, "--set", "failure.startup_timeout_s=0.2"});
  CHECK(waits.code == 4);
  CHECK(Contains(waits.error, missing + ": no new checkpoint in 0.2 s (failure.startup_timeout_s)."));
  const std::string checkpoints = job.directory + "/ckpt";
  REQUIRE(RunToEnd(*job.Start({"--set", "checkpoint.dir=" + checkpoints})) == 0);
  const std::vector<std::string> longer = {"eval",
                                           checkpoints,
                                           "--follow",
                                           "--result",
                                           result,
                                           "--set",
                                           "train.steps=40",
                                           "--set",
                                           "failure.wait_s=1",
                                           "--set",
                                           "checkpoint.every_secs=0",
                                           "--set",
                                           "summary.dir=" + job.directory + "/logs"};
  Process ends(longer);
  CHECK(RunToEnd(ends) == 4);
  CHECK(Contains(ends.standard_error(), checkpoints + ", global step 30: no newer checkpoint in "));
  CHECK(ReadResult(result).at("status") == "peer_lost");
  CHECK(ReadResult(result).at("global_step") == 30);
  std::vector<std::string> patient = longer;
  patient.insert(patient.end(), {"--set", "failure.wait_s=300"});
  Process stopped(patient);
  REQUIRE(stopped.WaitForLine("follows " + checkpoints));
  stopped.Signal(SIGTERM);
  CHECK(RunToEnd(stopped) == 143);
  CHECK(ReadResult(result).at("status") == "stopped");
  Process one({"eval", checkpoints + "/step-000000030", "--follow"});
  CHECK(RunToEnd(one) == 2);
  CHECK(Eval({checkpoints, "--follow", "--data", "-"}).code == 2);
  const Eval too_early({missing, "--follow", "--set", "failure.startup_timeout_s=1"});
  CHECK(too_early.code == 2);
  CHECK(Contains(too_early.error, "Name it with --config."));
}

}  // namespace
}  // namespace dtrain::testing
