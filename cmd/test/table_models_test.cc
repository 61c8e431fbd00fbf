// Models of sparse rows after their training: eval, predict, export, import and inspect of the real binary,
// for tables of each format of rows.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <signal.h>

#include <cmath>
#include <filesystem>
#include <functional>
#include <memory>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include "base/testing/files.h"
#include "cmd/testing/job.h"
#include "cmd/testing/python.h"

namespace dtrain::testing {
namespace {

// A trained model in a directory of its own, where its rows are too.
struct Trained {
  std::string directory = NewDirectory();
  std::string checkpoints = directory + "/ckpt";
  std::string config = directory + "/job.yaml";
  Json result;

  std::string Path(const std::string& name) const { return directory + "/" + name; }
  // `job`: model and data; `train`: more of that section.
  void Train(const std::string& job, const std::string& train = "epochs: 2",
             const std::vector<std::string>& more = {}) {
    WriteFile(config, job + fmt::format("train: {{mode: sync, batch_size: 64, {}, "
                                        "optimizer: {{kind: adagrad, learning_rate: 0.1}}}}\n",
                                        train));
    std::vector<std::string> arguments = {
        "--workers", "1", "--ps", "2", "--in-process", "--set", "checkpoint.dir=" + checkpoints};
    arguments.insert(arguments.end(), more.begin(), more.end());
    result = RunLocal(config, arguments);
    REQUIRE(result.is_object());
  }
  void Synthesize(const std::string& kind, const std::string& name, int rows, int first = 0) const {
    std::vector<std::string> arguments = {
        "synth", kind,      "--rows", fmt::format("{}", rows), "--first", fmt::format("{}", first),
        "--out", Path(name)};
    if (kind != "criteo") arguments.insert(arguments.end(), {"--features", "20", "--width", "3000"});
    REQUIRE(Run(arguments).code == 0);
  }
  Json Eval(const std::vector<std::string>& more = {}) const {
    std::vector<std::string> arguments = {"eval", checkpoints, "--json"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    const Done done = Run(arguments);
    CAPTURE(done.error);
    REQUIRE(done.code == 0);
    return Json::Parse(done.output);
  }
  Done Predict(const std::string& file, const std::vector<std::string>& more = {}) const {
    std::vector<std::string> arguments = {"predict", checkpoints, "--data", file};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return Run(arguments);
  }
};

// A logistic model of libsvm rows, with a test set in two files.
const Trained& Standard() {
  static const Trained model = [] {
    Trained made;
    made.Synthesize("libsvm", "train.txt", 3000);
    made.Synthesize("libsvm", "test-1.txt", 333, 3000);
    made.Synthesize("libsvm", "test-2.txt", 500, 3333);
    made.Train(
        "model: {kind: logistic, inputs: 3000}\n"
        "data: {train: {format: libsvm, path: train.txt}, test: {format: libsvm, path: \"test-*.txt\"}}\n");
    return made;
  }();
  return model;
}

TEST_CASE("table models: eval gives the figures of the run's own evaluation, to the last bit") {
  const Trained& model = Standard();
  const auto check = [](const Trained& of) {
    const Json eval = of.Eval();
    CHECK(eval["loss"] == of.result["test_loss"]);
    CHECK(eval["accuracy"] == of.result["test_accuracy"]);
    CHECK(eval["auc"] == of.result["test_auc"]);
    CHECK(eval["model_crc"] == of.result["model_crc"]);
  };
  check(model);
  CHECK(model.Eval()["rows"] == 833);
  CHECK(model.Eval({"--data", model.Path("test-1.txt")})["rows"] == 333);
  const std::string vw =
      "model: {{kind: {0}, {1}}}\n"
      "data: {{train: {{format: {2}, path: a.txt}}, test: {{format: {2}, path: b.txt}}, hash_bits: 14}}\n";
  for (const std::string format : {"vw", "criteo"}) {
    CAPTURE(format);
    Trained other;
    other.Synthesize(format, "a.txt", 2000);
    other.Synthesize(format, "b.txt", 700, 2000);
    other.Train(fmt::format(fmt::runtime(vw), "logistic", "init: {kind: normal, stddev: 0.01}", format));
    check(other);
  }
  Trained classes;  // named, and of weights that are not 0 in the beginning
  WriteFile(classes.Path("a.txt"), "left 1:1 3:2\nright 2:1\nup 3:1 4:0.5\nleft 1:2 4:1\n");
  WriteFile(classes.Path("b.txt"), "up 3:1 5:1\nleft 1:1\n");
  classes.Train(
      "model: {kind: softmax, outputs: 3, inputs: 9, init: {kind: normal, stddev: 0.1}}\n"
      "data: {train: {format: libsvm, path: a.txt}, test: {format: libsvm, path: b.txt}}\n");
  check(classes);
  CHECK(classes.Predict(classes.Path("b.txt")).output.find("prediction,probability_left,") == 0);
}

TEST_CASE("table models: held-out rows are those of the run") {
  Trained model;
  model.Synthesize("libsvm", "train.txt", 1000);
  model.Train(
      "model: {kind: logistic, inputs: 3000}\n"
      "data: {train: {format: libsvm, path: train.txt}, validation: 200}\n"
      "eval: {on: validation}\n");
  const Json eval = model.Eval();
  CHECK(eval["rows"] == 200);
  CHECK(eval["set"] == "validation");
  CHECK(eval["loss"] == model.result["validation_loss"]);
}

TEST_CASE("table models: rows that cannot be read, or have no label, are told with their place by eval") {
  const Trained& model = Standard();
  WriteFile(model.Path("bad.txt"), "1 1:1\n3001:1\n1 0:1\n1 3001:1\n");
  const Done label = Run({"eval", model.checkpoints, "--data", model.Path("bad.txt")});
  CHECK(label.code == 2);
  CHECK(Contains(label.error, "bad.txt:2:1: 3001:1 stands where the label must"));
  const Done skipped = model.Predict(model.Path("bad.txt"), {"--skip-bad", "5"});
  CHECK(skipped.code == 0);
  CHECK(Contains(skipped.error, "bad.txt:3:3: feature 0; indexes begin at 1"));
  CHECK(Contains(skipped.error, "1 row could not be read and is left out"));
  CHECK(Contains(skipped.error, "2 features that the model has not"));
}

TEST_CASE("table models: predict takes rows with any label or none, and passes labels and tags on") {
  const Trained& model = Standard();
  WriteFile(model.Path("rows.txt"), "1 5:1 7:2\n5:1 7:2\n-17.5 5:1 7:2 # x\n");
  const Done raw = model.Predict(model.Path("rows.txt"), {"--raw", "--keep", "label"});
  CHECK(raw.code == 0);
  const std::string logit = raw.output.substr(raw.output.rfind(',') + 1);
  CHECK(raw.output == "label,logit\n1," + logit + "," + logit + "-17.5," + logit);
  const Done json = model.Predict(model.Path("rows.txt"), {"--raw", "--format", "jsonl"});
  CHECK(json.output.find("{\"logit\":") == 0);
  const Done kept = model.Predict(model.Path("rows.txt"), {"--keep", "id"});
  CHECK(kept.code == 2);
  CHECK(Contains(kept.error, "--keep id: a row of "));
  Trained vw;
  WriteFile(vw.Path("a.txt"), "1 one|a x:1 y\n-1 |a y z\n1 |a x\n");
  vw.Train("model: {kind: logistic}\ndata: {train: {format: vw, path: a.txt}, hash_bits: 10}\n");
  WriteFile(vw.Path("b.txt"), "tag|a x\n|a z\n");
  CHECK(vw.Predict(vw.Path("b.txt"), {"--keep", "tag"}).output.find("tag,prediction,") == 0);
  CHECK(vw.Predict(vw.Path("b.txt"), {"--format", "jsonl"})
            .output.find("{\"id\":\"tag\",\"prediction\":\"1\",") == 0);
}

TEST_CASE("table models: other data.hash_bits than the checkpoint's are refused by their name") {
  Trained vw;
  WriteFile(vw.Path("a.txt"), "1 |a x\n-1 |a y\n");
  vw.Train("model: {kind: logistic}\ndata: {train: {format: vw, path: a.txt}, hash_bits: 10}\n");
  const std::string told = "data.hash_bits = 12; must be 10, as ";
  const Done predicted = vw.Predict(vw.Path("a.txt"), {"--set", "data.hash_bits=12"});
  CHECK(predicted.code == 2);
  CHECK(Contains(predicted.error, told));
  for (const char* command : {"check", "local"}) {
    const Done resumed = Run({command, "--config", vw.config, "--workers", "1", "--ps", "1", "--set",
                              "data.hash_bits=12", "--set", "checkpoint.dir=" + vw.checkpoints});
    CHECK(resumed.code == 2);
    CHECK(Contains(resumed.error, told));
  }
}

TEST_CASE("table models: rows as JSON lines are refused, and lines of sparse rows are no table") {
  const Trained& model = Standard();
  WriteFile(model.Path("rows.jsonl"), "{\"features\": [1, 2]}\n");
  const Done json = model.Predict(model.Path("rows.jsonl"));
  CHECK(json.code == 2);
  CHECK(Contains(json.error, "is JSON lines (--data); sparse models have none."));
  WriteFile(model.Path("rows.vw"), "1 |a x |b y:2\n-1 | z\n");
  for (const char* rows : {"train.txt", "rows.vw"}) {
    const Done check = Run({"check", model.Path(rows)});
    CHECK(check.code == 2);
    CHECK(Contains(check.error,
                   fmt::format("not like a table. dtrain init {} writes a config", model.Path(rows))));
  }
}

TEST_CASE("table models: inspect tells losses by their number, and a reader may stop at any line") {
  const Trained& model = Standard();
  const std::string inspect = "cmd/dtrain inspect " + model.checkpoints;
  CHECK(Contains(OutputOf(inspect), "\"recent_losses\":\""));
  const std::string pipe = model.Path("pipe");  // nobody reads from it
  CHECK(OutputOf(fmt::format("bash -c 'mkfifo {0}; exec 3<>{0} 4>{0} 3>&-; {1} 2>&1 >&4 4>&-; echo $?'", pipe,
                             inspect)) == fmt::format("{}\n", 128 + SIGPIPE));
}

TEST_CASE("table models: a table with hashed columns is read by its names, with and without data.train") {
  Trained model;
  std::string train = "url,age,user,clicked\n", test = "clicked,user,age,url\n";
  for (int i = 0; i < 300; ++i) {
    const int url = i * 7 % 11, user = i * 5 % 13, clicked = url % 2;
    (i % 3 == 0 ? test : train) += i % 3 == 0 ? fmt::format("{},u{},{},/p{}\n", clicked, user, i % 4, url)
                                              : fmt::format("/p{},{},u{},{}\n", url, i % 4, user, clicked);
  }
  WriteFile(model.Path("train.csv"), train);
  WriteFile(model.Path("test.csv"), test);
  model.Train(
      "model: {kind: logistic}\n"
      "data: {train: {format: csv, path: train.csv, label: clicked}, hash: [url, user], hash_bits: 12,\n"
      "  test: {format: csv, path: test.csv, label: clicked}}\n");
  WriteFile(model.Path("new.csv"), "user,url,age\nu1,/p3,1\nu2,/p4,0\n");
  const Json eval = model.Eval();
  CHECK(eval["loss"] == model.result["test_loss"]);
  const Done predicted = model.Predict(model.Path("new.csv"), {"--keep", "user"});
  CAPTURE(predicted.error);
  CHECK(predicted.code == 0);
  CHECK(predicted.output.find("user,prediction,probability_0,probability_1\nu1,") == 0);
  std::filesystem::remove(model.Path("train.csv"));
  CHECK(model.Eval()["loss"] == eval["loss"]);
  CHECK(model.Predict(model.Path("new.csv")).output.find("prediction,probability_0,probability_1\n") == 0);
  for (const char* name : {"url", "age"}) {
    std::string header = "user,url,age\n";
    header[header.find(name)] -= 'a' - 'A';
    WriteFile(model.Path("new.csv"), header + "u1,/p3,1\n");
    const Done other = model.Predict(model.Path("new.csv"));
    CHECK(other.code == 2);
    CHECK(Contains(other.error, fmt::format("no column \"{}\", which is in ", name)));
  }
}

TEST_CASE("table models: scikit-learn's log loss and AUC of raw logits are those of eval to 1e-9") {
  if (Python().empty()) return;
  const Trained& model = Standard();
  const std::string logits = model.Path("logits.csv");
  REQUIRE(model.Predict(model.Path("test-*.txt"), {"--raw", "--keep", "label", "--out", logits}).code == 0);
  const Json measured = Json::Parse(OutputOf(Python() + " cmd/test/testdata/raw_logits.py " + logits));
  const Json eval = model.Eval();
  REQUIRE(measured.is_object());
  CHECK(measured["rows"] == 833);
  CHECK(std::abs(measured["auc"].get<double>() - eval["auc"].get<double>()) < 1e-9);
  CHECK(std::abs(measured["log_loss"].get<double>() - eval["log_loss"].get<double>()) < 1e-9);
}

TEST_CASE("table models: log loss and AUC of rows with weights are scikit-learn's, in a run and in eval") {
  if (Python().empty()) return;
  Trained model;
  std::string rows = "label,url,weight\n";
  for (int i = 0; i < 400; ++i) {
    rows += fmt::format("{},/p{},{}\n", i * 7 % 11 > 4 ? 1 : 0, i * 5 % 13, i % 9 * 0.25);
  }
  WriteFile(model.Path("rows.csv"), rows);
  model.Train(
      "model: {kind: logistic}\n"
      "data: {train: {format: csv, path: rows.csv, label: label}, hash: [url], hash_bits: 12,\n"
      "  test: {format: csv, path: rows.csv, label: label}, weight: weight}\n");
  const std::string logits = model.Path("logits.csv");
  REQUIRE(
      model.Predict(model.Path("rows.csv"), {"--raw", "--keep", "label", "--keep", "weight", "--out", logits})
          .code == 0);
  const Json measured = Json::Parse(OutputOf(Python() + " cmd/test/testdata/raw_logits.py " + logits));
  const Json eval = model.Eval();
  REQUIRE(measured.is_object());
  CHECK(std::abs(measured["auc"].get<double>() - eval["auc"].get<double>()) < 1e-9);
  CHECK(std::abs(measured["log_loss"].get<double>() - eval["log_loss"].get<double>()) < 1e-9);
  CHECK(model.result["test_auc"] == eval["auc"]);
}

TEST_CASE("table models: exported rows, dense tensors and LIBLINEAR's model predict as dtrain does") {
  if (Python().empty()) return;
  const Trained& model = Standard();
  for (const char* name : {"m.tsv", "m.safetensors", "m.liblinear", "m.npz", "m.onnx"}) {
    CAPTURE(name);
    CHECK(Run({"export", model.checkpoints, "--out", model.Path(name)}).code == 0);
  }
  REQUIRE(Run({"export", model.checkpoints, "--dense", "--out", model.Path("dense.safetensors")}).code == 0);
  const Done parts = Run({"export", model.checkpoints, "--parts", "3", "--out", model.Path("p.safetensors")});
  REQUIRE(parts.code == 0);
  CHECK(Contains(parts.output, "p-00001-of-00003.safetensors: "));
  CHECK(Contains(parts.output, " in 3 files, "));
  REQUIRE(model.Predict(model.Path("test-1.txt"), {"--raw", "--out", model.Path("raw.csv")}).code == 0);
  CHECK(OutputOf(Python() + " cmd/test/testdata/table_exports.py " + model.directory) == "fine\n");
}

TEST_CASE("table models: LIBLINEAR's model has the labels of the rows, and a solver for each kind of model") {
  const auto header = [](const std::string& model, const std::string& rows) {
    Trained trained;
    WriteFile(trained.Path("a.txt"), rows);
    trained.Train(
        fmt::format("model: {{{}, inputs: 5}}\ndata: {{train: {{format: libsvm, path: a.txt}}}}\n", model));
    REQUIRE(Run({"export", trained.checkpoints, "--to", "liblinear", "--out", trained.Path("m")}).code == 0);
    const std::string text = FileContent(trained.Path("m"));
    return text.substr(0, text.find("nr_feature"));
  };
  CHECK(header("kind: logistic", "-1 1:1\n+1 2:1\n") == "solver_type L2R_LR\nnr_class 2\nlabel 1 -1\n");
  CHECK(header("kind: logistic", "0 1:1\n1 2:1\n") == "solver_type L2R_LR\nnr_class 2\nlabel 1 0\n");
  CHECK(header("kind: softmax, outputs: 3", "a 1:1\nb 2:1\nc 3:1\n") ==
        "solver_type MCSVM_CS\nnr_class 3\nlabel 0 1 2\n");
  CHECK(header("kind: linear", "0.5 1:1\n1 2:1\n") == "solver_type L2R_L2LOSS_SVR\nnr_class 2\n");
}

TEST_CASE("table models: what a table cannot be exported to or imported from is refused with the remedy") {
  const Trained& model = Standard();
  const auto refused = [&](const std::vector<std::string>& arguments) {
    const Done done = Run(arguments);
    CHECK(done.code == 2);
    return done.error;
  };
  CHECK(Contains(refused({"export", model.checkpoints, "--dense", "--out", model.Path("x.tsv")}),
                 "--dense: a file of tsv has the rows that are not 0"));
  CHECK(Contains(refused({"export", model.checkpoints, "--parts", "2", "--out", model.Path("x.tsv")}),
                 "--parts 2: is for the rows of a table"));
  CHECK(Contains(
      refused({"export", model.checkpoints, "--parts", "4097", "--out", model.Path("x.safetensors")}),
      "--parts 4097: must be at most 4096"));
  Trained wide;
  WriteFile(wide.Path("a.txt"), "1 1:1 99999999:1\n0 2:1\n");
  wide.Train(
      "model: {kind: logistic, inputs: 99999999}\n"
      "data: {train: {format: libsvm, path: a.txt}, test: {format: libsvm, path: a.txt}}\n");
  CHECK(Contains(refused({"export", wide.checkpoints, "--out", wide.Path("x.npz")}),
                 "a dense model of 100000000 values; of a table it may have less than 16777216"));
  CHECK(Run({"export", wide.checkpoints, "--out", wide.Path("x.tsv")}).code == 0);
  CHECK(Contains(FileContent(wide.Path("x.tsv")), "\n99999998\t99999999\t"));
  CHECK(Contains(refused({"import", wide.Path("x.tsv"), "--config", wide.config, "--out", wide.Path("ck")}),
                 "a table takes no weights of files"));
  Trained dense;
  dense.Synthesize("libsvm", "a.txt", 300);
  dense.Train(
      "model: {kind: logistic, inputs: 3000, table: none}\n"
      "data: {train: {format: libsvm, path: a.txt}, test: {format: libsvm, path: a.txt}}\n");
  CHECK(Contains(refused({"export", dense.checkpoints, "--out", dense.Path("x.tsv")}),
                 "--to tsv: is for tables, and this model has none"));
  CHECK(dense.Eval()["loss"] == dense.result["test_loss"]);
  CHECK(dense.Predict(dense.Path("a.txt")).code == 0);
}

TEST_CASE("table models: inspect shows what is stored, and a flipped byte of it ends every command") {
  const Trained& model = Standard();
  const Done good = Run({"inspect", model.checkpoints});
  CAPTURE(good.error);
  CHECK(good.code == 0);
  CHECK(Contains(good.output, "  table: 3000 features and the bias, 1 value each; "));
  CHECK(Contains(good.output, "not zero"));
  CHECK(Contains(good.output, "  accumulator "));
  const std::string copy = model.Path("copy");
  std::filesystem::create_directory(copy);
  std::filesystem::copy(model.result["checkpoint"].get<std::string>(), copy + "/step-000000001",
                        std::filesystem::copy_options::recursive);
  const std::string shard = copy + "/step-000000001/shard-1-of-2", bytes = FileContent(shard);
  for (const size_t at : {size_t{70}, bytes.size() / 2, bytes.size() - 9}) {
    CAPTURE(at);
    std::string damaged = bytes;
    damaged[at] = static_cast<char>(damaged[at] ^ 4);
    WriteFile(shard, damaged);
    for (const std::string command : {"inspect", "eval", "predict", "export"}) {
      CAPTURE(command);
      std::vector<std::string> arguments = {command, copy + "/step-000000001"};
      if (command == "export") arguments.insert(arguments.end(), {"--out", model.Path("x.tsv")});
      if (command == "predict") arguments.insert(arguments.end(), {"--data", model.Path("test-1.txt")});
      const Done done = Run(arguments);
      CHECK(done.code == 2);
      CHECK(Contains(done.error, "shard-1-of-2 is damaged at byte 64: the checksum"));
    }
  }
}

TEST_CASE("table models: check and plan say what a table may take and what a step moves") {
  const Trained& model = Standard();
  const Done check = Run({"check", "--config", model.config, "--ps", "2"});
  CHECK(check.code == 0);
  CHECK(Contains(check.output,
                 "table: 3000 features and the bias, 1 value each, 2 with the optimizer's slots; at "
                 "most 24.0 KiB on all ps: rows take memory when they are first written"));
  CHECK(Contains(check.output, "ps 1: table[1536:3073), at most 12.0 KiB"));
  const Done plan = Run({"plan", "--config", model.config, "--ps", "2"});
  CHECK(plan.code == 0);
  CHECK(Contains(plan.output, " rows, as in the first 3000 rows of "));
  CHECK_FALSE(Contains(plan.output, "huge"));
  const Done large = Run({"plan", "--config", model.config, "--set", "model.inputs=268435456"});
  CHECK(large.code == 0);
  CHECK(Contains(large.output, "and all ps take 2.0 GiB as soon as one row in each 2 MiB is written."));
  const Done huge = Run({"plan", "--config", model.config, "--set", "model.inputs=268435456", "--set",
                         "model.table_pages=huge"});
  CHECK_FALSE(Contains(huge.output, "as soon as one row"));
}

// A table of places: numbers, one of them with gaps, also as -999.0, a date, texts, and a label by `label`.
std::string Places(int rows, bool header, const std::function<std::string(int)>& label) {
  static const char* const kTowns[] = {"bonn", "ulm", "missing", "", "k\u00f6ln", "?"};
  std::string text = header ? "size,price,since,town,street,y\n" : "";
  for (int i = 0; i < rows; ++i) {
    const std::string price = i % 18 == 4  ? "-999.0"
                              : i % 9 == 4 ? ""
                                           : fmt::format("{:.6g}", 2 + 0.4 * std::cos(i * 2.3));
    text += fmt::format("{:.5g},{},20{:02}-0{}-1{},{},s{},{}\n", 3 * std::sin(i * 1.7), price, 10 + i % 13,
                        1 + i % 9, i % 10, kTowns[i % 11 % 6], i * 7 % 23, label(i));
  }
  return text;
}

// A table of bags: texts with weights behind colons, texts with weights in a column of their own, and texts
// with colons.
std::string BagsOf(int rows, const std::function<std::string(int)>& label) {
  std::string text = "size,tags,words,tfidf,links,y\n";
  for (int i = 0; i < rows; ++i) {
    std::string tags, words, weights;
    for (int j = 0; j < i % 4; ++j) {
      tags += fmt::format("{}t{}{}", j > 0 ? "|" : "", (i + j) % 7,
                          j % 2 == 1 ? fmt::format(":{:.3g}", std::cos(i)) : "");
      words += fmt::format("{}w{}", j > 0 ? " | " : "", i * j % 11);
      weights += fmt::format("{}{:.3g}", j > 0 ? "|" : "", std::sin(i + j));
    }
    text += fmt::format("{:.5g},{},{},{},http://{}|b,{}\n", std::sin(i * 1.7), tags, words, weights, i % 5,
                        label(i));
  }
  return text;
}

TEST_CASE("export: docs/row_by_hand.py computes the rows of each kind of model by hand, from its file alone") {
  if (Python().empty()) return;
  const auto truth = [](int i) { return std::sin(i * 1.7) + (i % 11 % 6 == 1 ? 0.8 : -0.2); };
  const auto target = [&](int i) { return fmt::format("{:.4g}", 3 * truth(i)); };
  const auto signs = [&](int i) -> std::string { return truth(i) > 0 ? "1" : "-1"; };
  const auto names = [&](int i) -> std::string {
    return truth(i) > 0.4 ? "high" : truth(i) > -0.4 ? "mid" : "low";
  };
  const std::string csv = "{format: csv, path: a.txt, label: y}", gap = "missing_values: [\"price=-999\"], ",
                    all = gap + "ignore: [street], categories: [town], dates: [since], ",
                    hashed = gap + "hash: [town, street], missing: zero, hash_bits: 12, ";
  struct Case {
    std::string model, data, rows;  // rows: a table, or what dtrain synth makes, or lines of libsvm
  };
  std::string lines;
  for (int i = 0; i < 400; ++i) {
    lines += fmt::format("{} {}:1 {}:{:.4g}\n", truth(i) > 0 ? 1 : -1, i % 7, 7 + i % 5, std::cos(i));
  }
  const std::vector<Case> cases = {
      {"kind: linear", "train: " + csv + ", " + all + "missing: mean, scale: standard",
       Places(400, true, target)},
      {"kind: logistic", "train: " + csv + ", " + all + "missing: indicator, scale: unit, max_categories: 2",
       Places(400, true, signs)},
      {"kind: softmax, outputs: 3", "train: " + csv + ", " + all + "missing: zero, scale: standard",
       Places(400, true, names)},
      {"kind: mlp, hidden: [5, 4], activation: tanh, head: logistic",
       "train: " + csv + ", " + all + "missing: indicator, scale: standard", Places(400, true, signs)},
      {"kind: logistic", "train: " + csv + ", " + hashed + "ignore: [since]", Places(400, true, signs)},
      {"kind: fm, head: linear, factors: 3",
       "train: {format: csv, path: a.txt, label: 5, header: false}, hash: [3, 4], ignore: [2], missing: "
       "zero, "
       "missing_values: [\"1=-999\"]",
       Places(400, false, target)},
      {"kind: wide_deep, head: logistic, embedding: 4, hidden: [6], activation: relu",
       "train: " + csv + ", " + hashed + "scale: standard, dates: [since]", Places(400, true, signs)},
      {"kind: wide_deep, head: linear, embedding: 3, hidden: [4], combine: sum, table: hash",
       "train: " + csv + ", " + gap +
           "numbers: plain, scale: unit, hash: [town, street], dates: [since], missing: zero",
       Places(400, true, target)},
      {"kind: wide_deep, head: logistic, embedding: 2, hidden: [4]",
       "train: " + csv + ", bags: [tags, \"words=tfidf\", \"links=none\"], bag_separator: bar, hash_bits: 12",
       BagsOf(400, signs)},
      {"kind: logistic, inputs: 13", "train: {format: libsvm, path: a.txt}, index_base: 0", lines},
      {"kind: fm, head: logistic, factors: 2, inputs: 13",
       "train: {format: libsvm, path: a.txt}, index_base: 0", lines},
      {"kind: mlp, hidden: [3], inputs: 13, head: logistic, activation: sigmoid, table: none",
       "train: {format: libsvm, path: a.txt}, index_base: 0", lines},
      {"kind: logistic", "train: {format: criteo, path: a.txt}, hash_bits: 14", "criteo"},
      {"kind: wide_deep, embedding: 2, hidden: [4]", "train: {format: criteo, path: a.txt}, hash_bits: 14",
       "criteo"},
      {"kind: logistic", "train: {format: vw, path: a.txt}, hash_bits: 16", "vw"}};
  std::vector<std::unique_ptr<Trained>> models;
  std::string command = Python() + " cmd/test/testdata/by_hand.py";
  for (const Case& of : cases) {
    CAPTURE(of.model + "; " + of.data);
    Trained& model = *models.emplace_back(std::make_unique<Trained>());
    of.rows.size() < 10 ? model.Synthesize(of.rows, "a.txt", 400) : WriteFile(model.Path("a.txt"), of.rows);
    if (of.rows == "criteo") {  // its numbers also as other programs write them
      const std::regex number("(^|\n)([01]\t-?[0-9]+)\t");
      const std::string lines_of = FileContent(model.Path("a.txt"));
      WriteFile(model.Path("a.txt"), std::regex_replace(lines_of, number, "$1$2.0\t"));
    }
    model.Train("model: {" + of.model + "}\ndata: {" + of.data + "}\n", "epochs: 3");
    std::filesystem::copy(model.Path("a.txt"), model.Path("rows.txt"));
    const Done exported = Run({"export", model.checkpoints, "--out", model.Path("model.safetensors")});
    CAPTURE(exported.error);
    REQUIRE(exported.code == 0);
    const Done done = model.Predict(model.Path("rows.txt"),
                                    {"--format", "jsonl", "--out", model.Path("predictions.jsonl")});
    CAPTURE(done.error);
    REQUIRE(done.code == 0);
    command += " " + model.directory;
  }
  std::istringstream found(OutputOf(command));
  for (const Case& of : cases) {
    CAPTURE(of.model + "; " + of.data);
    std::string line;
    REQUIRE(std::getline(found, line));
    const Json read = Json::Parse(line);
    CHECK(read[0] == 400);
    CHECK(read[1].get<double>() < 1e-6);
  }
}

}  // namespace
}  // namespace dtrain::testing
