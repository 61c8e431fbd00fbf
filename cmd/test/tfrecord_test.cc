// TFRecord in the real binary: the bits of the same rows as CSV, and what each command makes of such files.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <zlib.h>

#include <filesystem>
#include <string>
#include <vector>

#include "base/testing/files.h"
#include "base/tfrecord.h"
#include "cmd/testing/job.h"
#include "trainer/rows/example_fields.h"

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
  const std::string plain = FileContent(job.Path("a.tfrecord"));
  std::string packed(compressBound(plain.size()), '\0');
  uLongf size = packed.size();
  REQUIRE(compress(reinterpret_cast<Bytef*>(packed.data()), &size,
                   reinterpret_cast<const Bytef*>(plain.data()), plain.size()) == Z_OK);
  WriteFile(job.Path("zlib"), packed.substr(0, size));
  CHECK(Contains(Run({"check", job.Path("zlib")}).output, ": 3000 rows of 40 columns, TFRecord; "));
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
  // Features that the model has not are left out, as columns of a table are.
  const std::string hashed = job.Path("hashed"), extra = job.Path("extra");
  std::string plain_record, record;
  ExampleWriter example;
  for (int i = 1; i <= 13; ++i) example.AddInts(fmt::format("I{}", i), {i});
  for (int i = 1; i <= 26; ++i) example.AddTexts(fmt::format("C{}", i), {"x"});
  const std::string known = example.Take();
  example.AddTexts("Z", {"text"});
  AppendTfrecord(known, &plain_record);
  AppendTfrecord(known + example.Take(), &record);
  WriteFile(job.Path("known"), plain_record);
  WriteFile(extra, record);
  job.Train("tfrecord", "kind: logistic", "missing: zero, hash: [" + Categories() + "]",
            {"--set", "checkpoint.dir=" + hashed});
  CHECK(predict(hashed, extra) == predict(hashed, job.Path("known")));
}

TEST_CASE("tfrecord: init and check count the records that a run would not take, and tell the first") {
  const std::string directory = NewDirectory(), path = directory + "/odd.tfrecord";
  std::string content;
  for (int row = 0; row < 3000; ++row) {
    ExampleWriter example;
    example.AddInts("y", {row % 2});
    const auto value = static_cast<float>(row % 7);
    row == 10 ? example.AddFloats("x", {value}) : example.AddFloats("x", {value, 1 / (1 + value)});
    if (row == 2000) example.AddInts("z", {1});
    AppendTfrecord(example.Take(), &content);
  }
  WriteFile(path, content);
  const Done check = Run({"check", path});
  CHECK(check.code == 0);
  CHECK(Contains(check.output, ": 2998 rows of 3 columns, TFRecord; "));
  CHECK(Contains(check.output, ", record 11 at byte "));
  CHECK(Contains(check.output,
                 ": the feature \"x\" has 1 value; must have 2, as in most of the first records. "));
  CHECK(Contains(check.output, " (2 records)\n"));
  const std::string yaml = directory + "/odd.yaml";
  REQUIRE(Run({"init", path, "--label", "y", "--out", yaml}).code == 0);
  CHECK(Contains(FileContent(yaml), "bad_rows: skip"));
  const Json result = RunLocal(yaml, {"--set", "train.epochs=1", "--workers", "1"});
  REQUIRE(result.is_object());
  CHECK(result["workers"][0]["rows_skipped"] == 2);
}

}  // namespace
}  // namespace dtrain::testing
