// TFRecord in the real binary: the bits of the same rows as CSV, and what each command makes of such files.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <filesystem>
#include <string>
#include <vector>

#include "base/testing/files.h"
#include "cmd/testing/job.h"

namespace dtrain::testing {
namespace {

// Clicks as CSV and as TFRecord.
class ClickJob {
 public:
  ClickJob() {
    Synthesize("a", 3000, 0);
    Synthesize("b", 700, 3000);
  }
  ~ClickJob() { std::filesystem::remove_all(directory_); }
  ClickJob(const ClickJob&) = delete;
  ClickJob& operator=(const ClickJob&) = delete;

  Json Train(const std::string& format, const std::string& model, const std::string& data,
             std::vector<std::string> more = {}, int workers = 2) const {
    const std::string config = Path(format + ".yaml");
    const auto source = [&](const char* name) {
      return fmt::format("{{format: {0}, path: {1}.{0}, label: label}}", format, name);
    };
    WriteFile(config,
              fmt::format("model: {{{}}}\ndata: {{train: {}, test: {}, {}}}\n"
                          "train: {{mode: sync, batch_size: 50, epochs: 1, optimizer: {{kind: adagrad, "
                          "learning_rate: 0.1}}}}\n",
                          model, source("a"), source("b"), data));
    more.insert(more.end(), {"--ps", "2", "--workers", fmt::format("{}", workers)});
    const Json result = RunLocal(config, more);
    REQUIRE(result.is_object());
    return result;
  }
  std::string Path(const std::string& name) const { return directory_ + "/" + name; }

 private:
  void Synthesize(const std::string& name, int rows, int first) const {
    for (const std::string format : {"csv", "tfrecord"}) {
      REQUIRE(Run({"synth", "criteo", "--rows", fmt::format("{}", rows), "--first", fmt::format("{}", first),
                   format == "csv" ? "--header" : "--tfrecord", "--out", Path(name + "." + format)})
                  .code == 0);
    }
  }

  const std::string directory_ = NewDirectory();
};

std::string Categories() {
  std::string names = "C1";
  for (int i = 2; i <= 26; ++i) names += fmt::format(", C{}", i);
  return names;
}

TEST_CASE("tfrecord: sync has the bits of the same rows as CSV, dense and hashed, however rows are dealt") {
  const ClickJob job;
  const std::string dense = "missing: indicator, scale: standard, ignore: [" + Categories() + "]";
  const std::string hashed = "missing: zero, hash_bits: 16, hash: [" + Categories() + "]";
  const auto compare = [&](const std::string& model, const std::string& data, int workers = 2) {
    CAPTURE(data);
    const Json csv = job.Train("csv", model, data, {}, workers),
               records = job.Train("tfrecord", model, data, {}, workers);
    CHECK(records.at("model_crc") == csv.at("model_crc"));
    CHECK(records.at("test_loss") == csv.at("test_loss"));
  };
  compare("kind: mlp, head: logistic, hidden: [8]", dense);
  compare("kind: wide_deep, hidden: [8]", hashed);
  for (const std::string split : {"dynamic", "feed"})
    compare("kind: logistic", hashed + ", split: " + split, 1);
  compare("kind: logistic", hashed + ", cache: none");
}

TEST_CASE("tfrecord: init, check, eval and predict take records, also of a model of CSV") {
  const ClickJob job;
  const std::string yaml = job.Path("clicks.yaml");
  const Done init = Run({"init", job.Path("a.tfrecord"), "--label", "label", "--out", yaml});
  CAPTURE(init.error);
  REQUIRE(init.code == 0);
  CHECK(Contains(FileContent(yaml), "train: {format: tfrecord, path: "));
  CHECK(Run({"check", "--config", yaml}).code == 0);
  CHECK(Contains(Run({"check", job.Path("a.tfrecord")}).output,
                 ": 3000 rows of 40 columns, TFRecord; features are columns, in the order of their names\n"));
  const std::string data = "missing: mean, ignore: [" + Categories() + "]";
  const std::string checkpoints = job.Path("ckpt");
  const Json result = job.Train("csv", "kind: logistic", data, {"--set", "checkpoint.dir=" + checkpoints});
  const auto eval = [&](const std::string& file) {
    const Done done = Run({"eval", checkpoints, "--json", "--data", job.Path(file)});
    CAPTURE(done.error);
    REQUIRE(done.code == 0);
    return Json::Parse(done.output);
  };
  CHECK(eval("b.tfrecord")["loss"] == result["test_loss"]);
  const auto predict = [](const std::string& model, const std::string& rows) {
    const Done done = Run({"predict", model, "--data", rows, "--keep", "I2", "C1"});
    CAPTURE(done.error);
    REQUIRE(done.code == 0);
    return done.output;
  };
  const std::string answers = predict(checkpoints, job.Path("b.csv"));
  CHECK(predict(checkpoints, job.Path("b.tfrecord")) == answers);
  const std::string others = job.Path("others");
  job.Train("tfrecord", "kind: logistic", data, {"--set", "checkpoint.dir=" + others});
  CHECK(predict(others, "exec:gzip -c '" + job.Path("b.tfrecord") + "'") == answers);
  CHECK(predict(others, job.Path("b.csv")) == answers);
}

}  // namespace
}  // namespace dtrain::testing
