// predict, export and import of the real binary, read and written by numpy, safetensors and onnxruntime.
#include <doctest/doctest.h>
#include <fmt/core.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/json.h"
#include "cmd/testing/job.h"
#include "cmd/testing/process.h"
#include "cmd/testing/python.h"
#include "trainer/checkpoint/checkpoint_test_util.h"
#include "trainer/input/data_test_util.h"

namespace dtrain::testing {
namespace {

// Rows of two features and a label: what `label` makes of them.
template <typename Label>
std::string Rows(const char* header, int count, Label label) {
  std::string text = header;
  for (int i = 0; i < count; ++i) {
    const double a = std::sin(i * 1.7) * 30 + 100, b = std::cos(i * 2.3) * 0.01;
    text += fmt::format("{:.6g},{:.6g},{}\n", a, b, label(a - 100, b * 3000));
  }
  return text;
}

const auto kThreeNames = [](double a, double b) { return a > 10 ? "elm" : b > 0 ? "\"oak, red\"" : "yew"; };
const auto kTwoNumbers = [](double a, double b) { return a + b > 0 ? 1 : 0; };
const auto kAmount = [](double a, double b) { return a + b > 0 ? 0.02 * (a + b) : 0.0; };
const auto kTarget = [](double a, double b) { return 0.1 * a - 0.05 * b + 2; };

// A model that was trained on `rows`, and its folder.
struct Model {
  std::string directory = NewDirectory();
  std::string config = directory + "/job.yaml";
  std::string checkpoints = directory + "/ckpt";

  Model(const std::string& model, const std::string& rows, const std::string& data = "scale: standard",
        const std::string& more = "", const std::string& columns = "label: y") {
    WriteFile(directory + "/train.csv", rows);
    const std::string file = "{format: csv, path: train.csv, " + columns + "}";
    Train(fmt::format("model: {{{}}}\ndata: {{train: {}, test: {}, {}}}\n{}", model, file, file, data, more));
  }
  // Of images with as many labels.
  explicit Model(const std::string& model) {
    WriteFile(directory + "/images", IdxImageContent(60, 2, 3));
    std::vector<uint8_t> labels;
    for (int i = 0; i < 60; ++i) labels.push_back(static_cast<uint8_t>(i * 6 % 256 / 90));
    WriteFile(directory + "/labels", IdxLabelContent(labels));
    Train(fmt::format(
        "model: {{{}}}\ndata: {{train: {{format: idx, images: images, labels: labels}}, test: {{format: "
        "idx, images: images, labels: labels}}}}\n",
        model));
  }

  void Train(const std::string& job) const {
    WriteFile(config, job +
                          "train: {batch_size: 10, steps: 300, mode: sync, optimizer: {kind: momentum, "
                          "learning_rate: 0.1}}\n");
    RunLocal(config, {"--workers", "1", "--in-process", "--set", "checkpoint.dir=" + checkpoints});
  }

  std::string Path(const std::string& name) const { return directory + "/" + name; }

  // Every format, and the predictions of the features in `rows`.
  void Export(const std::string& rows) const {
    for (const char* format : {"safetensors", "npz", "onnx"}) {
      const Done done =
          Run({"export", checkpoints, "--to", format, "--out", Path(std::string("model.") + format)});
      CAPTURE(done.error);
      REQUIRE(done.code == 0);
      CHECK(done.error == "");
    }
    WriteFile(Path("rows.csv"), rows);
    const Done done = Run({"predict", checkpoints, "--data", Path("rows.csv"), "--format", "jsonl", "--out",
                           Path("predictions.jsonl")});
    CAPTURE(done.error);
    REQUIRE(done.code == 0);
    CHECK(done.output == "");
  }
};

std::string Features(int count) {
  std::string text;
  for (int i = 0; i < count; ++i) {
    text += fmt::format("{:.6g},{:.6g}\n", std::cos(i * 1.1) * 40 + 100, std::sin(i * 0.7) * 0.02);
  }
  return text;
}

std::string Pixels(int count) {
  std::string text;
  for (int i = 0; i < count * 6; ++i) text += fmt::format("{}{}", i * 37 % 256, i % 6 == 5 ? "\n" : ",");
  return text;
}

TEST_CASE("export: numpy, safetensors and onnxruntime read every kind of model, and predict as dtrain does") {
  if (Python().empty()) return;
  const Model softmax("kind: softmax, outputs: 3", Rows("a,b,y\n", 200, kThreeNames));
  const Model logistic("kind: logistic", Rows("a,b,y\n", 200, kTwoNumbers), "scale: unit");
  const Model linear("kind: linear", Rows("a,b,y\n", 200, kTarget));
  const Model sigmoid("kind: mlp, outputs: 3, hidden: [5]", Rows("a,b,y\n", 200, kThreeNames));
  const Model tanh("kind: mlp, outputs: 3, hidden: [5, 4], activation: tanh",
                   Rows("a,b,y\n", 200, kThreeNames));
  const Model relu("kind: mlp, outputs: 3, hidden: [6], activation: relu");
  const Model images("kind: softmax, outputs: 3");
  const Model regression("kind: mlp, hidden: [5], activation: tanh, head: linear",
                         Rows("a,b,y\n", 200, kTarget));
  const Model two("kind: mlp, hidden: [5], activation: relu, head: logistic",
                  Rows("a,b,y\n", 200, kTwoNumbers));
  const Model tweedie("kind: linear, loss: tweedie, loss_power: 1.3", Rows("a,b,y\n", 200, kAmount));
  const Model hinge("kind: logistic, loss: squared_hinge", Rows("a,b,y\n", 200, kTwoNumbers));
  std::string folders;
  for (const Model* model :
       {&softmax, &logistic, &linear, &sigmoid, &tanh, &regression, &two, &tweedie, &hinge})
    model->Export(Features(300));
  for (const Model* model : {&relu, &images}) model->Export(Pixels(300));
  const std::vector<const Model*> all = {&softmax, &logistic,   &linear, &sigmoid, &tanh, &relu,
                                         &images,  &regression, &two,    &tweedie, &hinge};
  for (const Model* model : all) folders += " " + model->directory;
  std::istringstream lines(OutputOf(Python() + " cmd/test/testdata/check_exports.py" + folders));
  for (const Model* model : all) {
    CAPTURE(model->config);
    std::string line;
    REQUIRE(std::getline(lines, line));
    const auto read = Json::Parse(line);
    CHECK(read.at("rows") == 300);
    CHECK(read.at("difference").get<double>() < 2e-6);
    CHECK(read.at("metadata").at("global_step") == "300");
    CHECK(read.at("shapes").at("biases/b1").size() == 1);
  }
}

TEST_CASE("losses: eval tells what is explained, and predict answers in the units of the label") {
  const Model poisson("kind: linear, loss: poisson", Rows("a,b,y\n", 200, kAmount));
  const auto eval = Json::Parse(Run({"eval", poisson.checkpoints, "--json"}).output);
  CHECK(eval.at("deviance").get<double>() ==
        doctest::Approx(2 * eval.at("loss").get<double>()).epsilon(1e-4));
  CHECK(eval.at("d2").get<double>() > 0.3);
  CHECK(eval.at("r2").get<double>() > 0.3);
  CHECK(eval.at("share_below").is_null());
  CHECK(Contains(Run({"eval", poisson.checkpoints}).output, "below that of always the best constant"));
  WriteFile(poisson.Path("rows.csv"), "a,b\n70,-0.01\n130,0.01\n");
  std::istringstream answers(
      Run({"predict", poisson.checkpoints, "--data", poisson.Path("rows.csv")}).output);
  std::string header;
  double low = 0, high = 0;
  answers >> header >> low >> high;
  CHECK(header == "prediction");
  CHECK(low > 0);
  CHECK(high > 2 * low);
  const Model hinge("kind: logistic, loss: hinge", Rows("a,b,y\n", 200, kTwoNumbers));
  const auto figures = Json::Parse(Run({"eval", hinge.checkpoints, "--json"}).output);
  CHECK(figures.at("auc").get<double>() > 0.9);
  CHECK(figures.at("accuracy").get<double>() > 0.9);
  CHECK(figures.at("log_loss").is_null());
  CHECK(figures.at("calibration").is_null());
  const auto predict = [&](const std::vector<std::string>& more) {
    std::vector<std::string> words = {"predict", hinge.checkpoints, "--data", poisson.Path("rows.csv")};
    words.insert(words.end(), more.begin(), more.end());
    return Run(words);
  };
  CHECK(predict({}).output.find("prediction,score\n0,-") == 0);
  CHECK(predict({"--raw"}).output.find("score\n-") == 0);
  CHECK(predict({"--format", "jsonl"}).output.find("{\"prediction\":0,\"score\":-") == 0);
  CHECK(Contains(predict({"--threshold", "0.3"}).error, "has scores alone"));
}

// How a table writes what is known of person `i`. Of those who come later, a plan that training has not seen.
std::string PersonRow(int i, bool later) {
  static const char* const kGaps[] = {"", "?", "NA", "n/a", "NaN", "null"};
  static const char* const kPlans[] = {"free", "pro", "\"team, large\"", " gr\u00fcn ", "trial"};
  static const char* const kTimes[] = {
      "", "T09:30", " 23:59:59.25", " 12:00Z", "T06:15:00+05:30", " 00:10-0200", "T18:45+01"};
  const auto gap = [&](int every, const std::string& text) {
    return i % every == 0 ? kGaps[i / every % 6] : text;
  };
  const std::string age = fmt::format("{:.5g}", 40 + 20 * std::sin(i * 1.7));
  const std::string plan = later && i % 13 == 0 ? "gold" : kPlans[i % 17 % 5];
  const std::string since =
      fmt::format("{}-{:02}-{:02}{}", 1996 + i % 29, 1 + i % 12, 1 + i % 28, kTimes[i % 7]);
  return gap(7, age) + "," + gap(11, plan) + "," + gap(9, since) +
         fmt::format(",{:.6g}", std::cos(i * 2.3) * 5000);
}

using LabelOf = std::string (*)(double truth);

// `label`: of training rows; null: these are rows that come later.
std::string People(const std::string& header, int count, LabelOf label) {
  std::string rows = header;
  for (int i = 1; i <= count; ++i) {
    const double truth = std::sin(i * 1.7) + (i % 17 % 5 == 1 ? 0.7 : -0.3) - (i % 29) * 0.03 + 0.3;
    rows += PersonRow(i, label == nullptr) + (label == nullptr ? "" : "," + label(truth)) + "\n";
  }
  return rows;
}

const LabelOf kStays = [](double truth) -> std::string { return truth > 0 ? "stays" : "leaves"; };
// The first and the fourth have names of outputs of a graph.
constexpr char kPeople[] = "prediction,plan,since,label,y\n";

// Reads the exported graph's answers to rows.csv of each folder, and holds them against predictions.jsonl.
std::vector<Json> CheckColumns(const std::vector<const Model*>& models) {
  std::string command = Python() + " cmd/test/testdata/check_columns.py";
  for (const Model* model : models) command += " " + model->directory;
  std::istringstream lines(OutputOf(command));
  std::vector<Json> read;
  for (std::string line; std::getline(lines, line);) read.push_back(Json::Parse(line));
  REQUIRE(read.size() == models.size());
  return read;
}

TEST_CASE("export: onnxruntime gives the answers of predict from raw rows, with texts, gaps and dates") {
  if (Python().empty()) return;
  const LabelOf three = [](double truth) -> std::string {
    return truth > 0.4 ? "\u5317" : truth > -0.4 ? "elm" : "oak";
  };
  const LabelOf signs = [](double truth) -> std::string { return truth > 0 ? "1" : "-1"; };
  const LabelOf target = [](double truth) { return fmt::format("{:.4g}", 3 * truth); };
  const std::string forms = "categories: [plan], dates: [since], ";
  const Model mean("kind: logistic", People(kPeople, 600, kStays),
                   forms + "missing: mean, scale: standard, max_categories: 3");
  const Model indicator("kind: softmax, outputs: 3", People(kPeople, 600, three),
                        forms + "missing: indicator, scale: unit");
  const Model zero("kind: linear", People(kPeople, 600, target),
                   "ignore: [since], categories: [plan], missing: zero, scale: standard");
  const Model mlp("kind: mlp, hidden: [6], activation: relu, head: logistic", People(kPeople, 600, signs),
                  forms + "missing: indicator, scale: standard");
  const Model nameless("kind: mlp, hidden: [5, 4], activation: tanh, head: linear", People("", 600, target),
                       "categories: [1], dates: [2], missing: mean, scale: unit", "",
                       "label: 4, header: false");
  const std::vector<const Model*> all = {&mean, &indicator, &zero, &mlp, &nameless};
  for (const Model* model : all) {
    CAPTURE(FileContent(model->config));
    WriteFile(model->Path("rows.csv"),
              People(model == &nameless ? "" : "prediction,plan,since,label\n", 1000, nullptr));
    const Done exported = Run({"export", model->checkpoints, "--out", model->Path("model.onnx")});
    CHECK(exported.code == 0);
    CHECK(exported.error == "");
    CHECK(Contains(exported.output, "without blanks at their ends: strip them first"));
    const Done done = Run({"predict", model->checkpoints, "--data", model->Path("rows.csv"), "--format",
                           "jsonl", "--out", model->Path("predictions.jsonl")});
    CAPTURE(done.error);
    REQUIRE(done.code == 0);
  }
  const Model numbers("kind: logistic",
                      Rows("a,b,y\n", 200, [](double a, double b) { return a + b > 0 ? 1 : -1; }),
                      "scale: standard");
  const Model ignoring("kind: softmax, outputs: 3", Rows("b,a,y\n", 200, kThreeNames),
                       "ignore: [b], scale: standard");
  // Numbers that vary little, for which a shift in float32 has too few digits, without and with gaps.
  const auto narrow = [](int count, bool gaps, bool label) {
    std::string text = label ? "year,seconds,y\n" : "year,seconds\n";
    for (int i = 0; i < count; ++i) {
      const std::string year = gaps && i % 7 == 3 ? "NA" : fmt::format("{}", 1990 + i * 5 % 37);
      text += fmt::format("{},{}", year, 1700000000 + i * 977 % 100000);
      text += label ? (i * 5 % 37 + i * 977 % 100000 / 3000 > 35 ? ",late\n" : ",early\n") : "\n";
    }
    return text;
  };
  const Model years("kind: logistic", narrow(200, false, true));
  const Model gaps("kind: mlp, hidden: [4], activation: relu, head: logistic", narrow(200, true, true),
                   "missing: indicator, scale: standard");
  numbers.Export("a,b\n" + Features(300));
  ignoring.Export("b,a\n" + Features(300));
  years.Export(narrow(300, false, false));
  gaps.Export(narrow(300, true, false));
  CHECK(CheckColumns({&gaps})[0].at("difference").get<double>() < 1e-6);
  for (const Json& read : CheckColumns({&numbers, &ignoring, &years})) {
    CHECK(read.at("difference").get<double>() < 2e-6);
    CHECK(read.at("outputs") == Json({"label", "prediction", "probabilities"}));
  }
  const std::vector<Json> read = CheckColumns(all);
  for (size_t i = 0; i < all.size(); ++i) {
    CAPTURE(FileContent(all[i]->config));
    CHECK(read[i].at("rows") == 1000);
    CHECK(read[i].at("refused") == 0);
    CHECK(read[i].at("difference").get<double>() < 1e-6);
    if (all[i] != &nameless) CHECK(read[i].at("inputs").at("prediction_2") == "tensor(float)");
    CHECK(read[i].at("inputs").at(all[i] == &nameless ? "column 2" : "plan") == "tensor(string)");
  }
}

TEST_CASE("export: a row that predict refuses has no class in ONNX") {
  if (Python().empty()) return;
  const Model model("kind: mlp, hidden: [4], activation: relu, head: logistic",
                    "age,plan,since,y\n1,a,2024-01-31,no\n2,b,2023-02-28,yes\n3,a,2022-11-30,yes\n",
                    "categories: [plan], dates: [since], unseen: error");
  WriteFile(model.Path("rows.csv"),
            "age,plan,since\n1,a,2024-02-29\nnan,a,2024-02-29\ninf,a,2024-02-29\n1,c,2024-02-29\n"
            "1,,2024-02-29\n1,a,2023-02-29\n1,a,2024-02-29 25:00\n1,a,29.2.2024\n1,a,\n");
  const Done done = Run({"predict", model.checkpoints, "--data", model.Path("rows.csv"), "--skip-bad", "8"});
  CAPTURE(done.error);
  REQUIRE(done.code == 0);
  CHECK(Contains(done.error, "8 rows could not be read"));
  REQUIRE(Run({"export", model.checkpoints, "--out", model.Path("model.onnx")}).code == 0);
  WriteFile(model.Path("predictions.jsonl"), "");
  const Json read = CheckColumns({&model})[0];
  CHECK(read.at("rows") == 9);
  CHECK(read.at("refused") == 8);
  CHECK(read.at("predictions").size() == 2);
  CHECK(read.at("predictions")[0] == -1);
  CHECK(read.at("labels")[0] == "");
}

TEST_CASE("export: --numeric begins with features, and hashed texts need it") {
  const Model plain("kind: logistic", People(kPeople, 100, kStays),
                    "categories: [plan], dates: [since], missing: mean");
  const Done done = Run({"export", plain.checkpoints, "--numeric", "--out", plain.Path("model.onnx")});
  CHECK(done.code == 0);
  CHECK(Contains(done.error, "the graph takes features and does not scale them"));
  CHECK(Contains(FileContent(plain.Path("model.onnx")), "Not in the graph: plan"));
  const Done npz = Run({"export", plain.checkpoints, "--numeric", "--out", plain.Path("model.npz")});
  CHECK(npz.code == 2);
  CHECK(Contains(npz.error, "--numeric: is for ONNX. Leave it out, or try --to onnx."));

  const Model hashed("kind: logistic", People(kPeople, 100, kStays),
                     "ignore: [since], hash: [plan], hash_bits: 8, missing: zero");
  const Done refused = Run({"export", hashed.checkpoints, "--out", hashed.Path("model.onnx")});
  CHECK(refused.code == 2);
  CHECK(
      Contains(refused.error,
               "texts are hashed (data.hash, data.bags), and ONNX has no operator for that. With --numeric"));
  CHECK(Run({"export", hashed.checkpoints, "--numeric", "--out", hashed.Path("model.onnx")}).code == 0);
}

TEST_CASE("export: no file takes the place of one of a checkpoint, or of what keeps them") {
  const Model model("kind: logistic", Rows("a,b,y\n", 200, kTwoNumbers));
  std::string step;
  for (const auto& entry : std::filesystem::directory_iterator(model.checkpoints)) {
    if (std::filesystem::exists(entry.path() / "manifest")) step = entry.path().string();
  }
  const std::string shard = step + "/shard-0-of-1", before = FileContent(shard);
  REQUIRE(!before.empty());
  std::filesystem::create_symlink(step, model.Path("link"));
  const auto refused = [&](const std::string& out, const char* to) {
    const Done done = Run({"export", model.checkpoints, "--to", to, "--out", out});
    CHECK(done.code == 2);
    return done.error;
  };
  for (const char* to : {"safetensors", "npz", "onnx"}) {
    for (const std::string& out : {shard, step + "/new", model.Path("link/shard-0-of-1")}) {
      CHECK(Contains(refused(out, to),
                     "--out " + out + ": lies in the checkpoint " + step + ". Name a file in "));
    }
  }
  for (const char* name : {"/best", "/step-000000999", "/.in-use"}) {
    CHECK(Contains(refused(model.checkpoints + name, "npz"),
                   ": lies in a directory of checkpoints, where best"));
  }
  CHECK(FileContent(shard) == before);
  CHECK(Run({"export", model.checkpoints, "--out", model.checkpoints + "/model.npz"}).code == 0);
  CHECK(Run({"export", model.checkpoints, "--to", "npz", "--out", model.Path("best")}).code == 0);
}

TEST_CASE("import: what numpy and safetensors write comes back, and an evaluation of it is the same") {
  if (Python().empty()) return;
  const Model model("kind: mlp, outputs: 3, hidden: [5]", Rows("a,b,y\n", 200, kThreeNames));
  model.Export(Features(10));
  REQUIRE(std::system((Python() + " cmd/test/testdata/write_weights.py " + model.directory).c_str()) == 0);
  const auto eval = [](const std::string& checkpoints) {
    return Json::Parse(Run({"eval", checkpoints, "--json"}).output);
  };
  const Json expected = eval(model.checkpoints);
  for (const std::string name :
       {"model.npz", "model.safetensors", "plain.npz", "deflated.npz", "double.npz", "columns.npz",
        "sides.npz", "plain.safetensors", "torch.safetensors", "half.npz", "half.safetensors"}) {
    CAPTURE(name);
    const std::string out = model.Path("from-" + name);
    std::vector<std::string> arguments = {"import", model.Path(name), "--config", model.config, "--out", out};
    if (name == "torch.safetensors") {
      arguments.insert(arguments.end(),
                       {"--transpose", "--map", "fc1.weight=weights/W1", "--map", "fc1.bias=biases/b1",
                        "--map", "fc2.weight=weights/W2", "--map", "fc2.bias=biases/b2"});
    }
    const Done done = Run(arguments);
    CAPTURE(done.error);
    REQUIRE(done.code == 0);
    CHECK(Contains(done.output, "not used: step") == (name == "torch.safetensors"));
    const Json got = eval(out);
    CHECK(got.at("global_step") == 0);
    if (Contains(name, "half")) {
      CHECK(got.at("loss").get<double>() == doctest::Approx(expected.at("loss").get<double>()).epsilon(0.01));
    } else {
      CHECK(got.at("model_crc") == expected.at("model_crc"));
      CHECK(got.at("loss") == expected.at("loss"));
    }
  }
}

TEST_CASE("import: a run goes on from the weights, with the optimizer at its beginning") {
  const Model model("kind: softmax, outputs: 3", Rows("a,b,y\n", 200, kThreeNames));
  const std::string file = model.Path("model.npz"), out = model.Path("again");
  REQUIRE(Run({"export", model.checkpoints, "--out", file}).code == 0);
  const std::vector<std::string> import = {"import", file, "--config", model.config, "--out", out};
  const Done done = Run(import);
  CAPTURE(done.error);
  REQUIRE(done.code == 0);
  const std::string zeros = fmt::format("{:<12}  {:>11}  {:>11}  {:>11}", "velocity", 0, 0, 0);
  CHECK(Contains(Run({"inspect", out}).output, zeros));
  const Done again = Run(import);
  CHECK(again.code == 2);
  CHECK(Contains(again.error, "has checkpoints already"));
  const Json before = Json::Parse(Run({"eval", out, "--json"}).output);
  const Json result = RunLocal(
      model.config, {"--workers", "2", "--set", "checkpoint.dir=" + out, "--set", "train.steps=100"});
  CHECK(result.at("status") == "done");
  CHECK(result.at("global_step") == 100);
  CHECK(result.at("test_loss").get<double>() < before.at("loss").get<double>());
}

TEST_CASE("import: a run goes on from a checkpoint of TensorFlow, with its slots and at its step") {
  const std::string directory = NewDirectory(), out = directory + "/ckpt", job = directory + "/job.yaml";
  std::string rows = "a,b,c,y\n";
  for (int i = 0; i < 40; ++i) rows += fmt::format("{},{},1,{}\n", i % 5, i % 3, i % 2);
  WriteFile(directory + "/train.csv", rows);
  WriteFile(job,
            "model: {kind: mlp, hidden: [3, 3], outputs: 2, activation: tanh}\n"
            "data: {train: {format: csv, path: train.csv, label: y}}\n"
            "train: {mode: sync, batch_size: 20, steps: 5, optimizer: adam}\n");
  const Done done = Run({"import", "testdata/tensorflow/trained/adam", "--config", job, "--out", out});
  CAPTURE(done.error);
  REQUIRE(done.code == 0);
  CHECK(Contains(done.output, "  dense_1/kernel [3, 3]  is weights/W2, with Adam and Adam_1\n"));
  CHECK(Contains(done.output, out + "/step-000000001: 6 tensors (32 values) from"));
  CHECK(Contains(Run({"inspect", out}).output, "began with the weights of testdata/tensorflow/trained/adam"));
  const Json result = RunLocal(job, {"--workers", "2", "--set", "checkpoint.dir=" + out});
  CHECK(result.at("status") == "done");
  CHECK(result.at("global_step") == 5);
  const Done other = Run({"import", "testdata/tensorflow/trained/adam", "--config", job, "--out", out + "2",
                          "--set", "model.hidden=[3]"});
  CHECK(other.code == 2);
  CHECK(Contains(other.error, "of this shape dense/kernel and dense_1/kernel"));
}

TEST_CASE("export: a checkpoint of TensorFlow comes back by import with the same bits and step") {
  const std::string directory = NewDirectory(), job = directory + "/job.yaml";
  WriteFile(directory + "/train.csv", "a,b,c,d,y\n1,2,3,4,0\n2,1,0,1,1\n");
  WriteFile(job,
            "model: {kind: softmax}\ndata: {train: {format: csv, path: train.csv, label: y}}\n"
            "train: {batch_size: 1, steps: 5, optimizer: {kind: sgd, learning_rate: 0.1}}\n");
  const std::string once = directory + "/once", again = directory + "/again",
                    prefix = directory + "/tf/model.ckpt-1";
  REQUIRE(Run({"import", "testdata/tensorflow/trained/sgd", "--config", job, "--out", once}).code == 0);
  const Done done = Run({"export", once, "--to", "tf", "--out", prefix, "--map", "dense/kernel=weights/W1"});
  CAPTURE(done.error);
  REQUIRE(done.code == 0);
  CHECK(Contains(done.output, "2 tensors and global_step, "));
  CHECK(Contains(Run({"inspect", directory + "/tf"}).output, "  dense/kernel  [4, 2]  float32\n"));
  REQUIRE(Run({"import", prefix, "--config", job, "--out", again}).code == 0);
  for (const std::string& from : {once, again})
    REQUIRE(Run({"export", from, "--out", from + ".npz"}).code == 0);
  CHECK(FileContent(once + ".npz") == FileContent(again + ".npz"));
  for (const std::string& bad : {directory + "/e/", directory + "/e.index"})
    CHECK(Contains(Run({"export", once, "--to", "tf", "--out", bad}).error,
                   "must be the prefix of a checkpoint's files"));
  for (const char* const map : {"a=b", "weights/W1", "global_step=weights/W1"}) {
    const Done refused = Run({"export", once, "--to", "tf", "--out", directory + "/x", "--map", map});
    CHECK(refused.code == 2);
    CHECK_FALSE(std::filesystem::exists(directory + "/x.index"));
  }
}

TEST_CASE("export: slots and powers of the optimizer go to TensorFlow and come back with the same bits") {
  const std::string directory = NewDirectory(), job = directory + "/job.yaml", rows = directory + "/rows";
  struct Case {
    std::string model, format, optimizer, name, told;
    std::vector<std::string> maps;
  };
  const std::vector<Case> cases = {{"{kind: mlp, hidden: [3, 3], outputs: 2, activation: tanh}",
                                    "{format: csv, path: rows, label: y}",
                                    "adam",
                                    "adam",
                                    "6 tensors, 14 tensors of the optimizer and global_step",
                                    {}},
                                   {"{kind: softmax, outputs: 2}",
                                    "{format: csv, path: rows, label: y}",
                                    "rmsprop",
                                    "rmsprop",
                                    "2 tensors, 4 tensors of the optimizer and global_step",
                                    {}},
                                   {"{kind: wide_deep, inputs: 4, embedding: 2, hidden: [3], table: range}",
                                    "{format: libsvm, path: rows}",
                                    "{wide: {kind: ftrl}, deep: {kind: adagrad}}",
                                    "wide_deep",
                                    "7 tensors, 9 tensors of the optimizer and global_step",
                                    {"--map", "linear/bias=biases/b1", "--map", "dnn/logits/bias=deep/b2"}}};
  for (const Case& each : cases) {
    CAPTURE(each.name);
    const bool is_sparse = each.name == "wide_deep";
    WriteFile(rows, is_sparse             ? "0 0:1 3:1\n1 1:1\n"
                    : each.name == "adam" ? "a,b,c,y\n1,2,3,0\n2,1,0,1\n"
                                          : "a,b,c,d,y\n1,2,3,4,0\n2,1,0,1,1\n");
    WriteFile(job, fmt::format("model: {}\ndata: {{train: {}{}}}\ntrain: {{steps: 5, optimizer: {}}}\n",
                               each.model, each.format, is_sparse ? ", index_base: 0" : "", each.optimizer));
    const std::string once = directory + "/once-" + each.name, again = directory + "/again-" + each.name,
                      prefix = directory + "/" + each.name + "/m";
    std::vector<std::string> import = {
        "import", "testdata/tensorflow/trained/" + each.name, "--config", job, "--out", once};
    import.insert(import.end(), each.maps.begin(), each.maps.end());
    const Done taken = Run(import);
    CAPTURE(taken.error);
    REQUIRE(taken.code == 0);
    const Done given = Run({"export", once, "--to", "tf", "--out", prefix});
    CAPTURE(given.error);
    REQUIRE(given.code == 0);
    CHECK(Contains(given.output, each.told));
    CHECK(Json::Parse(Run({"inspect", prefix, "--json"}).output).at("step") == 1);
    REQUIRE(Run({"import", prefix, "--config", job, "--out", again}).code == 0);
    const std::string shard = "/step-000000001/shard-0-of-1";
    CHECK(FileContent(once + shard) == FileContent(again + shard));
  }
}

// The columns of testdata/tensorflow/columns, whose rows.csv has TensorFlow's answers.
struct FeatureColumns {
  const std::string directory = NewDirectory(), job = directory + "/job.yaml",
                    from = "testdata/tensorflow/columns/";
  const std::vector<std::string> vocabularies = {"--vocabulary", "color=" + from + "color.txt",
                                                 "--vocabulary", "shape=" + from + "shape.txt"};

  FeatureColumns() {
    WriteFile(directory + "/rows.csv", FileContent(from + "rows.csv"));
    WriteFile(job,
              "model: {kind: wide_deep, embedding: 4, hidden: [5, 3], activation: relu, table: hash}\n"
              "data: {train: {format: csv, path: rows.csv, label: y}, hash: [color, shape], ignore: [logit], "
              "numbers: plain}\n"
              "train: {batch_size: 3, steps: 5, optimizer: {wide: {kind: ftrl, learning_rate: 0.1}, "
              "deep: {kind: adagrad, learning_rate: 0.1}}}\n");
  }
  Done With(std::vector<std::string> arguments, const std::vector<std::string>& more = {}) const {
    arguments.insert(arguments.end(), vocabularies.begin(), vocabularies.end());
    arguments.insert(arguments.end(), more.begin(), more.end());
    return Run(arguments);
  }
};

TEST_CASE("import: feature columns of Estimator become rows of texts that answer as TensorFlow does") {
  const FeatureColumns columns;
  for (const char* const table : {"hash", "range"}) {
    CAPTURE(table);
    const std::string out = columns.directory + "/" + table;
    const Done done = columns.With({"import", columns.from + "model.ckpt-1", "--config", columns.job, "--out",
                                    out, "--set", std::string("model.table=") + table});
    CAPTURE(done.error);
    REQUIRE(done.code == 0);
    CHECK(Contains(done.output, " is embeddings/E1[color], with Adagrad\n"));
    CHECK(Contains(done.output, " is weights/W1[shape], with Ftrl_1 and Ftrl\n"));
    CHECK(Contains(done.output, "inputs of deep/W1 there: age, color and shape"));
    std::istringstream answers(Run({"predict", out, "--data", columns.from + "rows.csv", "--raw"}).output),
        rows(FileContent(columns.from + "rows.csv"));
    std::string ours, theirs;
    std::getline(answers, ours);
    std::getline(rows, theirs);
    int compared = 0;
    for (; std::getline(rows, theirs) && std::getline(answers, ours); ++compared)
      CHECK(std::abs(std::stod(ours) - std::stod(theirs.substr(theirs.rfind(',') + 1))) < 1e-6);
    CHECK(compared == 6);
    CHECK(RunLocal(columns.job,
                   {"--set", "checkpoint.dir=" + out, "--set", std::string("model.table=") + table})
              .at("global_step") == 5);
  }
}

TEST_CASE(
    "import: a LinearClassifier with a variable for each column becomes a dense model, with its slots") {
  const std::string directory = NewDirectory(), job = directory + "/job.yaml", out = directory + "/ckpt",
                    from = "testdata/tensorflow/estimator/linear";
  // A text that the vocabulary has not, and a line that no row has.
  WriteFile(directory + "/rows.csv",
            "age,size,color,y\n0.1,1.0,red,0\n0.5,2.0,blue,1\n0.9,0.5,pink,1\n0.4,1.5,red,0\n");
  WriteFile(directory + "/color.txt", "red\ngreen\nblue\n");
  WriteFile(job,
            "model: {kind: logistic}\n"
            "data: {train: {format: csv, path: rows.csv, label: y}, categories: [color]}\n"
            "train: {steps: 5, optimizer: {kind: ftrl}}\n");
  const Done bare = Run({"import", from, "--config", job, "--out", out});
  CHECK(bare.code == 2);
  CHECK(Contains(bare.error, "--vocabulary: is missing for color."));
  const Done done = Run(
      {"import", from, "--config", job, "--out", out, "--vocabulary", "color=" + directory + "/color.txt"});
  CAPTURE(done.error);
  REQUIRE(done.code == 0);
  CHECK(Contains(
      done.output,
      "linear/linear_model/color/weights [3, 1]  is weights/W1[color], with linear and accumulator"));
  CHECK(
      Contains(done.output,
               "linear/linear_model/size/weights [1, 1]   is weights/W1[size], with linear and accumulator"));
  CHECK(Contains(done.output,
                 "left out: 1 line of " + directory + "/color.txt whose text no row of the data has\n"));
  // TensorFlow's logits; the third is that of a color without a weight.
  CHECK(Run({"predict", out, "--data", directory + "/rows.csv", "--raw"}).output ==
        "logit\n-0.21434918\n0.20012553\n0.1125916\n-0.17670715\n");
  const Done slots = Run({"inspect", out + "/step-000000002"});
  CHECK(Contains(slots.output, " z                 -0.2507       0.5265      0.01085 "));
  std::filesystem::remove_all(directory);
}

TEST_CASE(
    "import: a DNNClassifier whose columns have another order in the data answers as there, and goes back") {
  const std::string directory = NewDirectory(), job = directory + "/job.yaml", once = directory + "/once",
                    again = directory + "/again", rows = directory + "/rows.csv",
                    prefix = directory + "/tf/m", from = "testdata/tensorflow/estimator/dnn",
                    shard = "/step-000000002/shard-0-of-1";
  WriteFile(rows, "size,age,y\n1.0,0.1,0\n2.0,0.5,1\n0.5,0.9,1\n1.5,0.4,0\n");
  WriteFile(job,
            "model: {kind: mlp, hidden: [3, 2], activation: relu, head: logistic}\n"
            "data: {train: {format: csv, path: rows.csv, label: y}}\n"
            "train: {steps: 5, optimizer: {kind: adagrad}}\n");
  const auto compare = [&](const std::string& checkpoint, const std::vector<double>& expected) {
    std::istringstream answers(Run({"predict", checkpoint, "--data", rows, "--raw"}).output);
    std::string line;
    std::getline(answers, line);
    for (const double logit : expected) {
      REQUIRE(std::getline(answers, line));
      CHECK(std::abs(std::stod(line) - logit) < 1e-6);
    }
  };
  const Done done = Run({"import", from, "--config", job, "--out", once});
  CAPTURE(done.error);
  REQUIRE(done.code == 0);
  CHECK(Contains(done.output, "\ninputs of weights/W1 there: age and size (--inputs for another order)\n"));
  // The checkpoint's weights on age and size, by numpy; and on size and age.
  compare(once, {0.01577289, 0.05545508, -0.00736008, 0.0433103});
  REQUIRE(Run({"import", from, "--config", job, "--out", again, "--inputs", "size,age"}).code == 0);
  compare(again, {-4.30483487e-05, -4.30483487e-05, 0.0456684601, -4.30483487e-05});
  // Slots have the order too, the one that the name tells and the one that is given.
  for (const std::string& name : {std::string("dnn/hiddenlayer_0/kernel"), std::string("first/kernel")}) {
    CAPTURE(name);
    const std::string data = ".data-00000-of-00001", there = FileContent(from + data);
    std::vector<std::string> order;
    if (name == "first/kernel") order = {"--inputs", "age,size"};
    std::vector<std::string> give = {"export", once,   "--to",  "tf",
                                     "--out",  prefix, "--map", name + "=weights/W1"},
                             take = {"import", prefix, "--config", job, "--out", directory + "/" + name};
    give.insert(give.end(), order.begin(), order.end());
    take.insert(take.end(), order.begin(), order.end());
    REQUIRE(Run(give).code == 0);
    REQUIRE(Run(take).code == 0);
    CHECK(FileContent(once + shard) == FileContent(directory + "/" + name + shard));
    // The kernel's values, and those of its accumulator, as they are there.
    for (const size_t at : {12, 104}) CHECK(Contains(FileContent(prefix + data), there.substr(at, 24)));
  }
  std::filesystem::remove_all(directory);
}

TEST_CASE(
    "import: weights of a dense model are the whole, in one dimension too, and not looked for by column") {
  const std::string directory = NewDirectory(), job = directory + "/job.yaml";
  std::string rows = "a,b,c,d,e,f,y\n";
  for (int i = 0; i < 6; ++i) rows += "0,0,0,0,0,1," + std::to_string(i % 2) + "\n";
  WriteFile(directory + "/rows.csv", rows);
  WriteFile(job,
            "model: {kind: logistic}\n"
            "data: {train: {format: csv, path: rows.csv, label: y}}\n"
            "train: {steps: 5}\n");
  const std::string old = "testdata/tensorflow/old";  // h is 0 to 5, in one dimension
  const Done flat = Run({"import", old, "--config", job, "--out", directory + "/flat", "--map",
                         "h=weights/W1", "--map", "=biases/b1"});
  CAPTURE(flat.error);
  REQUIRE(flat.code == 0);
  CHECK(Contains(Run({"predict", directory + "/flat", "--data", directory + "/rows.csv", "--raw"}).output,
                 "logit\n5\n"));
  const std::string sgd = "testdata/tensorflow/trained/sgd";  // a kernel of 4 x 2
  WriteFile(directory + "/rows.csv", "a,b,y\n0,1,0\n1,0,1\n1,1,2\n0,0,3\n");
  const Done turned = Run({"import", sgd, "--config", job, "--out", directory + "/turned", "--set",
                           "model={kind: softmax, outputs: 4}"});
  CHECK(turned.code == 2);
  CHECK(Contains(turned.error, "of this shape, with --transpose, dense/kernel."));
  const Done other = Run({"import", sgd, "--config", job, "--out", directory + "/other", "--set",
                          "model={kind: softmax, outputs: 5}"});
  CHECK(other.code == 2);
  CHECK(Contains(other.error,
                 "no tensor weights/W1 (2 x 5 in the model); it has dense/bias and dense/kernel."));
  std::filesystem::remove_all(directory);
}

TEST_CASE("export: rows of texts go back in the order of a vocabulary, with slots, and come again") {
  const FeatureColumns columns;
  const std::string once = columns.directory + "/once", again = columns.directory + "/again",
                    prefix = columns.directory + "/tf/m", maps = columns.directory + "/maps.yaml";
  REQUIRE(
      columns.With({"import", columns.from + "model.ckpt-1", "--config", columns.job, "--out", once}).code ==
      0);
  const Done refused = Run({"export", once, "--to", "tf", "--out", prefix});
  CHECK(refused.code == 2);
  CHECK(Contains(refused.error, "--vocabulary COLUMN=FILE"));
  WriteFile(maps,
            "dnn/*_embedding: embeddings/E1[*]\nlinear/*/weights: weights/W1[*]\n"
            "dnn/hiddenlayer_0/kernel: deep/W1\nlinear/bias_weights: biases/b1\ndnn/logits/bias: deep/b3\n");
  const Done done = columns.With({"export", once, "--to", "tf", "--out", prefix, "--maps", maps});
  CAPTURE(done.error);
  REQUIRE(done.code == 0);
  CHECK(Contains(done.output, "11 tensors, 14 tensors of the optimizer and global_step"));
  CHECK(Contains(Run({"inspect", prefix}).output, "dnn/color_embedding"));
  const Done taken =
      columns.With({"import", prefix, "--config", columns.job, "--out", again, "--maps", maps});
  CAPTURE(taken.error);
  REQUIRE(taken.code == 0);
  const std::string shard = "/step-000000001/shard-0-of-1";
  CHECK(FileContent(once + shard) == FileContent(again + shard));
  WriteFile(columns.directory + "/pink", "pink\nred\n");
  const Done other = Run({"export", once, "--to", "tf", "--out", prefix + "2", "--vocabulary",
                          "color=" + columns.directory + "/pink"});
  CHECK(other.code == 0);
  CHECK(Contains(other.output, "color: 1 of 2 texts have no row, and get what a row begins with\n"));
  CHECK(Contains(other.output, "left out: 4 rows of texts that no vocabulary has\n"));
}

TEST_CASE(
    "import: rows without a line, lines without a row, and a vocabulary for another model are refused") {
  const FeatureColumns columns;
  WriteFile(columns.directory + "/short", "red\n");
  const auto error = [&](const std::vector<std::string>& more) {
    std::vector<std::string> all = {"import", columns.from + "model.ckpt-1", "--config", columns.job,
                                    "--out",  columns.directory + "/x"};
    all.insert(all.end(), more.begin(), more.end());
    const Done done = Run(all);
    CHECK(done.code == 2);
    return done.error;
  };
  CHECK(Contains(error({"--vocabulary", "color=" + columns.directory + "/short", "--vocabulary",
                        "shape=" + columns.from + "color.txt"}),
                 "linear/linear_model/color/weights has 3 rows, and " + columns.directory +
                     "/short 1 line: 2 rows would have no line."));
  CHECK(Contains(error({"--vocabulary", "color=" + columns.from + "color.txt", "--vocabulary",
                        "shape=" + columns.from + "color.txt"}),
                 "1 line would have no row."));
  CHECK(Contains(error({"--set", "model={kind: mlp, hidden: [3]}", "--vocabulary", "color=x"}), "Leave"));
  const std::string once = columns.directory + "/once", shared = columns.directory + "/tf/m";
  REQUIRE(
      columns.With({"import", columns.from + "model.ckpt-1", "--config", columns.job, "--out", once}).code ==
      0);
  REQUIRE(columns
              .With({"export", once, "--to", "tf", "--out", shared, "--map",
                     "color_shape_shared_embedding/embedding_weights=embeddings/E1[color]", "--map",
                     "other=embeddings/E1[shape]"})
              .code == 0);
  const Done refused =
      columns.With({"import", shared, "--config", columns.job, "--out", columns.directory + "/x"});
  CHECK(refused.code == 2);
  CHECK(Contains(refused.error, "/embedding_weights is one table for several columns"));
  CHECK_FALSE(Contains(refused.error, "zeros"));
  CHECK_FALSE(std::filesystem::exists(columns.directory + "/x"));
}

TEST_CASE(
    "import: what a checkpoint of TensorFlow lacks is told before a value is read, and leaves nothing") {
  const std::string directory = NewDirectory(), job = directory + "/job.yaml", out = directory + "/out",
                    from = "testdata/tensorflow/trained/sgd", data = ".data-00000-of-00001";
  WriteFile(directory + "/train.csv", "a,b,c,d,y\n1,2,3,4,0\n2,1,0,1,1\n");
  WriteFile(job,
            "model: {kind: softmax}\ndata: {train: {format: csv, path: train.csv, label: y}}\n"
            "train: {steps: 5, optimizer: sgd}\n");
  std::string bytes = FileContent(from + data);
  bytes[8] ^= 1;  // of dense/kernel
  WriteFile(directory + "/x" + data, bytes);
  WriteFile(directory + "/x.index", FileContent(from + ".index"));
  const auto import = [&](const std::string& to) {
    return Run({"import", directory + "/x", "--config", job, "--out", to});
  };
  const Done damaged = import(out);
  CHECK(damaged.code == 2);
  CHECK(Contains(damaged.error, "dense/kernel: its 32 bytes"));
  CHECK_FALSE(std::filesystem::exists(out));
  REQUIRE(Run({"import", from, "--config", job, "--out", out}).code == 0);
  CHECK(Contains(import(out).error, "has checkpoints already"));
}

TEST_CASE("import: rows of a table are those of TensorFlow, and go on as a dense model does") {
  const std::string directory = NewDirectory(), job = directory + "/job.yaml";
  std::string rows;
  for (int i = 0; i < 40; ++i) rows += fmt::format("{} {}:1 {}:0.5\n", i % 2, i % 3, 3);
  WriteFile(directory + "/rows.svm", rows);
  WriteFile(job,
            "model: {kind: softmax, inputs: 4, outputs: 2}\n"
            "data: {train: {format: libsvm, path: rows.svm}, index_base: 0, validation: 10}\n"
            "train: {mode: sync, batch_size: 5, steps: 9, optimizer: adagrad}\n");
  const auto import = [&](const std::string& out, const std::string& set) {
    return Run(
        {"import", "testdata/tensorflow/trained/adagrad", "--config", job, "--out", out, "--set", set});
  };
  Json results[2];
  for (const std::string kind : {"range", "none"}) {
    CAPTURE(kind);
    const std::string out = directory + "/" + kind, set = "model.table=" + kind;
    const Done done = import(out, set);
    CAPTURE(done.error);
    REQUIRE(done.code == 0);
    CHECK(Contains(done.output, "  dense/kernel [4, 2]  is weights/W1, with Adagrad\n"));
    results[kind == "none"] = RunLocal(job, {"--set", "checkpoint.dir=" + out, "--set", set});
    CHECK(Contains(Run({"inspect", out}).output, "step-000000009: good"));
  }
  CHECK(results[0].at("global_step") == 9);
  CHECK(results[0].at("validation_loss") == results[1].at("validation_loss"));
  const Done hashed = import(directory + "/hash", "model.table=hash");
  CHECK(hashed.code == 2);
  CHECK(Contains(hashed.error, "a table takes rows of TensorFlow by their numbers"));
}

TEST_CASE("import: the scale is that of the file, whatever rows the config has") {
  // What is 1 above the middle is "up".
  const auto rows = [](double factor, double shift) {
    std::string text = "a,b,y\n";
    for (int i = 0; i < 40; ++i) {
      text +=
          fmt::format("{},{},{}\n", i * factor + shift, i * 7 % 40 * factor + shift, i < 20 ? "down" : "up");
    }
    return text;
  };
  const Model model("kind: mlp, hidden: [4], outputs: 2, activation: tanh", rows(1, 0));
  const std::string again = model.Path("again");
  for (const char* name : {"model.safetensors", "model.npz"}) {
    REQUIRE(Run({"export", model.checkpoints, "--out", model.Path(name)}).code == 0);
  }
  const auto import = [&](const char* name, const std::string& set) {
    std::filesystem::remove_all(again);
    const Done done =
        Run({"import", model.Path(name), "--config", model.config, "--out", again, "--set", set});
    CAPTURE(done.error);
    REQUIRE(done.code == 0);
    return done;
  };
  const auto loss = [&](const std::string& checkpoints) {
    const Done done = Run({"eval", checkpoints, "--data", model.Path("train.csv"), "--json"});
    return Json::Parse(done.output).at("loss").dump();
  };
  const Done same = import("model.safetensors", "data.scale=standard");
  CHECK(same.error == "");
  CHECK_FALSE(Contains(same.output, "data.scale"));
  const std::string expected = loss(model.checkpoints);
  CHECK(loss(again) == expected);
  WriteFile(model.Path("other.csv"), rows(3, 100));
  const std::string other = "data.train.path=" + model.Path("other.csv");
  for (const char* name : {"model.safetensors", "model.npz"}) {
    const Done told = import(name, other);
    CHECK(Contains(told.output,
                   "data.scale: that of the file, not of data.train: a becomes (x - 19.5) * 0.0866"));
    CHECK(Contains(told.output, " and not (x - 158.5) * 0.0288"));
    CHECK(loss(again) == expected);
  }
  // A file of another program does not say it: the rows count, and that is said.
  if (Python().empty()) return;
  REQUIRE(std::system((Python() + " cmd/test/testdata/write_weights.py " + model.directory).c_str()) == 0);
  const Done plain = import("plain.npz", other);
  CHECK(Contains(plain.error, "warning: " + model.Path("plain.npz") + " does not say how its features were"));
  CHECK(loss(again) != expected);
  CHECK(import("plain.npz", "data.scale=none").error == "");
}

TEST_CASE("import: what stands for gaps is that of the file, whatever rows the config has") {
  const Model model("kind: logistic", People(kPeople, 600, kStays),
                    "categories: [plan], dates: [since], missing: indicator, scale: standard");
  const auto loss = [&](const std::string& checkpoints) {
    const Done done = Run({"eval", checkpoints, "--data", model.Path("train.csv"), "--json"});
    CAPTURE(done.error);
    return Json::Parse(done.output).at("loss").dump();
  };
  const std::string expected = loss(model.checkpoints);
  WriteFile(model.Path("other.csv"), People(kPeople, 300, kStays));
  for (const char* name : {"model.safetensors", "model.npz"}) {
    CAPTURE(name);
    REQUIRE(Run({"export", model.checkpoints, "--out", model.Path(name)}).code == 0);
    const std::string again = model.Path(std::string("from-") + name);
    const Done done = Run({"import", model.Path(name), "--config", model.config, "--out", again, "--set",
                           "data.train.path=" + model.Path("other.csv")});
    CAPTURE(done.error);
    REQUIRE(done.code == 0);
    CHECK(Contains(done.output, "what stands for gaps: those of the file, not of data.train"));
    CHECK(loss(again) == expected);
  }
}

TEST_CASE("import: where nothing can be written --out is named, and not a key of a run") {
  const Model model("kind: softmax, outputs: 3", Rows("a,b,y\n", 200, kThreeNames));
  const std::string file = model.Path("model.safetensors"), out = model.Path("other");
  REQUIRE(Run({"export", model.checkpoints, "--out", file}).code == 0);
  const Done below_file = Run({"import", file, "--config", model.config, "--out", file + "/ckpt"});
  CHECK(below_file.code == 2);
  CHECK(Contains(below_file.error, "--out = " + file + "/ckpt: "));
#ifndef __SANITIZE_THREAD__  // it keeps its own memory in a file
  const Done full = Run({"-c", fmt::format("ulimit -f 0; exec cmd/dtrain import {} --config {} --out {}",
                                           file, model.config, out)},
                        Program{"/bin/bash", {}});
  CAPTURE(full.error);
  CHECK(full.code == 1);
  CHECK(Contains(full.error, "dtrain: --out " + out + ": "));
  CHECK(Contains(full.error, "Free some space, or name another directory."));
#endif
}

TEST_CASE("import: another model and a damaged file are exit code 2, and leave nothing") {
  const Model model("kind: softmax, outputs: 3", Rows("a,b,y\n", 200, kThreeNames));
  const std::string file = model.Path("model.safetensors"), out = model.Path("other");
  REQUIRE(Run({"export", model.checkpoints, "--out", file}).code == 0);
  const Done other = Run({"import", file, "--config", model.config, "--out", out, "--set", "model.kind=mlp",
                          "--set", "model.hidden=[4]"});
  CHECK(other.code == 2);
  CHECK(Contains(other.error, "weights/W1 is 2 x 3 in the file and 2 x 4 in the model."));
  CHECK(Contains(other.error, "biases/b1 is 3 in the file and 4 x 1 in the model."));
  CHECK(Contains(other.error, "no tensor weights/W2 (4 x 3 in the model)"));
  const Done scale =
      Run({"import", file, "--config", model.config, "--out", out, "--set", "data.scale=unit"});
  CHECK(scale.code == 2);
  CHECK(Contains(scale.error, "model.safetensors: another model: data.scale = unit; must be standard"));
  std::fstream bias(file, std::ios::in | std::ios::out | std::ios::binary);
  bias.seekp(-4, std::ios::end);
  bias.write("\0\0\xc0\x7f", 4);
  bias.close();
  const Done nan = Run({"import", file, "--config", model.config, "--out", out});
  CHECK(nan.code == 2);
  CHECK(Contains(nan.error, file + ": biases/b1[2"));
  CHECK(Contains(nan.error, "weights must be finite"));
  REQUIRE(Run({"export", model.checkpoints, "--out", file}).code == 0);
  std::ofstream(model.Path("train.csv"), std::ios::app) << "1,2\n";
  CHECK(Run({"import", file, "--config", model.config, "--out", out}).code == 2);
  CHECK_FALSE(std::filesystem::exists(out));
  std::filesystem::resize_file(file, 300);
  CHECK(Run({"import", file, "--config", model.config, "--out", out}).code == 2);
  CHECK_FALSE(std::filesystem::exists(out));
}

TEST_CASE("heads: an mlp for real targets learns them, answers with numbers, and has no other head") {
  const Model model("kind: mlp, hidden: [8], activation: tanh, head: linear", Rows("a,b,y\n", 200, kTarget));
  const Done eval = Run({"eval", model.checkpoints, "--json"});
  CAPTURE(eval.error);
  REQUIRE(eval.code == 0);
  CHECK(Json::Parse(eval.output).at("r2").get<double>() > 0.95);
  WriteFile(model.Path("rows.csv"), "a,b\n120,0.001\n");
  const Done predict = Run({"predict", model.checkpoints, "--data", model.Path("rows.csv")});
  CHECK(predict.code == 0);
  CHECK(predict.output.find("prediction\n") == 0);
  const double found = std::stod(predict.output.substr(predict.output.find('\n')));
  CHECK(std::abs(found - kTarget(20, 3)) < 1);
  for (const char* command : {"eval", "export"}) {
    std::vector<std::string> arguments = {command, model.checkpoints, "--set", "model.head=logistic"};
    if (command == std::string("export")) arguments.insert(arguments.end(), {"--out", model.Path("m.npz")});
    const Done other = Run(arguments);
    CHECK(other.code == 2);
    CHECK(Contains(other.error, "model.head = logistic; must be linear"));
  }
  const Done resumed =
      Run({"local", "--config", model.config, "--workers", "1", "--set",
           "checkpoint.dir=" + model.checkpoints, "--set", "model.head=softmax", "--set", "model.outputs=2"});
  CHECK(resumed.code == 2);
}

TEST_CASE("heads: an mlp for two classes by one output tells them apart by their names") {
  const auto names = [](double a, double b) { return a + b > 0 ? "yes" : "no"; };
  const Model model("kind: mlp, hidden: [8], head: logistic", Rows("a,b,y\n", 200, names));
  const Done eval = Run({"eval", model.checkpoints, "--json"});
  CAPTURE(eval.error);
  REQUIRE(eval.code == 0);
  CHECK(Json::Parse(eval.output).at("accuracy").get<double>() > 0.9);
  WriteFile(model.Path("rows.csv"), "a,b\n130,0.01\n70,-0.01\n");
  const Done predict = Run({"predict", model.checkpoints, "--data", model.Path("rows.csv")});
  CHECK(predict.output.find("prediction,probability_no,probability_yes\nyes,") == 0);
  CHECK(Contains(predict.output, "\nno,"));
}

TEST_CASE("predict: CSV in any order of columns, JSON lines with ids, and images have the same answers") {
  const Model model("kind: softmax, outputs: 3", Rows("a,b,y\n", 200, kThreeNames));
  WriteFile(model.Path("by-name.csv"), "other,b,a\nx,0.002,131\nx,-0.001,90\n");
  const Done csv = Run({"predict", model.checkpoints, "--data", model.Path("by-name.csv")});
  CAPTURE(csv.error);
  REQUIRE(csv.code == 0);
  CHECK(csv.output.substr(0, csv.output.find('\n')) ==
        "prediction,probability_elm,\"probability_oak, red\",probability_yew");
  WriteFile(model.Path("rows.jsonl"), "{\"id\":[1],\"a\":131,\"b\":0.002}\n{\"features\":[90,-0.001]}\n");
  const Done json = Run({"predict", model.checkpoints, "--data", model.Path("rows.jsonl")});
  std::istringstream lines(json.output), rows(csv.output);
  std::string line, row;
  std::getline(rows, row);
  for (const char* name : {"elm", "yew"}) {
    REQUIRE(std::getline(lines, line));
    REQUIRE(std::getline(rows, row));
    const auto answer = Json::Parse(line);
    CHECK(answer.at("prediction") == name);
    std::string expected = name;
    for (const auto& [name_of_class, probability] : answer.at("probabilities").items()) {
      expected += fmt::format(",{}", probability.get<float>());
    }
    CHECK(row == expected);
  }
  CHECK(json.output.find("{\"id\":[1],\"prediction\":\"elm\"") == 0);

  const Model images("kind: softmax, outputs: 3");
  const Done idx = Run({"predict", images.checkpoints, "--data", images.Path("images")});
  CHECK(std::count(idx.output.begin(), idx.output.end(), '\n') == 61);
  std::string pixels;
  for (int i = 0; i < 360; ++i) pixels += fmt::format("{}{}", i % 256, i % 6 == 5 ? "\n" : ",");
  WriteFile(images.Path("pixels.csv"), pixels);
  // Bytes are summed before they are divided: the last digits may be others.
  std::istringstream by_idx(idx.output);
  std::istringstream by_csv(Run({"predict", images.checkpoints, "--data", images.Path("pixels.csv")}).output);
  for (int i = 0; i <= 60; ++i) {
    REQUIRE(std::getline(by_idx, line));
    REQUIRE(std::getline(by_csv, row));
    CHECK(line.substr(0, line.find(',')) == row.substr(0, row.find(',')));
    if (i == 0) continue;
    CHECK(std::stod(line.substr(2)) == doctest::Approx(std::stod(row.substr(2))).epsilon(1e-4));
  }
}

TEST_CASE("predict: the rows before one that cannot be read are answered, and its place is told") {
  const Model model("kind: linear", Rows("a,b,y\n", 100, kTarget));
  WriteFile(model.Path("bad.csv"), "a,b\n100,0\n101,0\n102,none\n103,0\n");
  const Done done = Run({"predict", model.checkpoints, "--data", model.Path("bad.csv")});
  CHECK(done.code == 2);
  CHECK(std::count(done.output.begin(), done.output.end(), '\n') == 3);
  CHECK(Contains(done.error, "bad.csv:4:5: b = none; must be a number."));
  const Done file =
      Run({"predict", model.checkpoints, "--data", model.Path("bad.csv"), "--out", model.Path("out.csv")});
  CHECK(file.code == 2);
  CHECK_FALSE(std::filesystem::exists(model.Path("out.csv")));
}

TEST_CASE("predict: in a pipe each row is answered before the next one comes") {
  if (Python().empty()) return;
  const Model model("kind: logistic", Rows("a,b,y\n", 100, kTwoNumbers), "scale: none");
  const std::string output = OutputOf(fmt::format(
      "{} cmd/test/testdata/pipe_rows.py cmd/dtrain predict {} --data -", Python(), model.checkpoints));
  CHECK(output.find("prediction,probability_0,probability_1\n") == 0);
  CHECK(std::count(output.begin(), output.end(), '\n') == 4);
}

TEST_CASE("predict: without the training file a checkpoint is all that is needed") {
  const Model model("kind: softmax, outputs: 3", Rows("a,b,y\n", 100, kThreeNames), "scale: standard");
  std::filesystem::remove(model.Path("train.csv"));
  WriteFile(model.Path("rows.csv"), "b,a\n0,100\n");
  const Done done = Run({"predict", model.checkpoints, "--data", model.Path("rows.csv")});
  CAPTURE(done.error);
  CHECK(done.code == 0);
  CHECK(Contains(done.output, "probability_elm"));
  CHECK(Run({"export", model.checkpoints, "--out", model.Path("model.onnx")}).code == 0);
}

TEST_CASE("models: what the command line lacks is exit code 2 and a remedy") {
  CHECK(Contains(Run({"predict", "ckpt"}).error, "--data is missing"));
  CHECK(Contains(Run({"predict"}).error, "predict: which checkpoint?"));
  CHECK(Contains(Run({"predict", "ckpt", "--data", "x", "--format", "xml"}).error, "must be csv or jsonl"));
  CHECK(Contains(Run({"export", "ckpt"}).error, "--out is missing"));
  CHECK(
      Contains(Run({"export", "ckpt", "--out", "model.bin"}).error, "must be safetensors, npz, onnx or tf"));
  CHECK(Contains(Run({"import", "x.npz", "--config", "y"}).error, "--out is missing"));
  CHECK(Run({"import"}).code == 2);
}

}  // namespace
}  // namespace dtrain::testing
