// Hash tables in the real binary: one checksum whatever the number of ps, saves and restores, and what every
// command makes of such a model. Tasks that are killed: recovery_test.cc.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "base/testing/files.h"
#include "cmd/testing/job.h"

namespace dtrain::testing {
namespace {

class HashJob {
 public:
  // `model`: more of that section; `train`: how data.train is read.
  explicit HashJob(const std::string& format, const std::string& model = "kind: logistic") {
    Synthesize(format, "a.txt", 3000, 0);
    Synthesize(format, "b.txt", 700, 3000);
    WriteFile(config_,
              fmt::format("model: {{table: hash, {}}}\n"
                          "data: {{train: {{format: {}, path: a.txt}}, test: {{format: {}, path: b.txt}}}}\n"
                          "train: {{mode: sync, batch_size: 50, epochs: 2, optimizer: {{kind: adagrad, "
                          "learning_rate: 0.1}}}}\n",
                          model, format, format));
  }
  ~HashJob() { std::filesystem::remove_all(directory_); }
  HashJob(const HashJob&) = delete;
  HashJob& operator=(const HashJob&) = delete;

  Json Train(int ps, std::vector<std::string> more = {}) const {
    more.insert(more.end(), {"--ps", fmt::format("{}", ps), "--workers", "2"});
    const Json result = RunLocal(config_, more);
    REQUIRE(result.is_object());
    return result;
  }
  std::vector<std::string> Saving() const { return {"--set", "checkpoint.dir=" + checkpoints()}; }
  std::string checkpoints() const { return directory_ + "/ckpt"; }
  std::string Path(const std::string& name) const { return directory_ + "/" + name; }

 private:
  void Synthesize(const std::string& format, const std::string& name, int rows, int first) const {
    std::vector<std::string> arguments = {
        "synth", format,    "--rows", fmt::format("{}", rows), "--first", fmt::format("{}", first),
        "--out", Path(name)};
    if (format != "criteo") arguments.insert(arguments.end(), {"--features", "20", "--width", "3000"});
    REQUIRE(Run(arguments).code == 0);
  }

  const std::string directory_ = NewDirectory();
  const std::string config_ = directory_ + "/job.yaml";
};

const char kLimits[] = "kind: logistic, admit_after: 3, evict_after: 30, max_rows: 65536";

TEST_CASE("hash table: in sync the bits are the same for 1, 2, 3 and 5 ps, while rows come and leave") {
  const HashJob job("criteo", kLimits);
  const Json one = job.Train(1);
  CHECK(one.at("deterministic") == true);
  CHECK(one.at("table").at("evicted").get<int64_t>() > 1000);
  for (const int ps : {2, 3, 5}) {
    const Json other = job.Train(ps);
    CHECK(other.at("model_crc") == one.at("model_crc"));
    CHECK(other.at("table").at("rows") == one.at("table").at("rows"));
    CHECK(other.at("table").at("candidates") == one.at("table").at("candidates"));
  }
  CHECK(job.Train(3, {"--in-process"}).at("model_crc") == one.at("model_crc"));
}

TEST_CASE(
    "hash table: half a run and the other half by another number of ps end with the bits of a whole one") {
  const HashJob job("libsvm", kLimits);
  const Json whole = job.Train(1, {"--set", "summary.dir=" + job.Path("curves")});
  std::vector<std::string> half = job.Saving();
  half.insert(half.end(), {"--set", "train.epochs=1"});
  job.Train(2, half);
  CHECK(job.Train(3, job.Saving()).at("model_crc") == whole.at("model_crc"));
}

TEST_CASE(
    "hash table: saves of what has changed are a part of the bytes, and are read as those of all rows") {
  const HashJob job("criteo", kLimits);
  const std::vector<std::string> often = {"--set", "checkpoint.every_steps=20", "--set",
                                          "checkpoint.keep=99"};
  const auto train = [&](const std::string& name, std::vector<std::string> more) {
    more.insert(more.end(), often.begin(), often.end());
    more.insert(more.end(), {"--set", "checkpoint.dir=" + job.Path(name)});
    return job.Train(2, more);
  };
  const Json whole = train("whole", {}), deltas = train("deltas", {"--set", "checkpoint.delta=99"});
  CHECK(deltas.at("model_crc") == whole.at("model_crc"));
  CHECK(deltas.at("table").at("evicted").get<int64_t>() > 1000);
  const std::string last = "/step-000000060";
  CHECK(
      Contains(Run({"inspect", job.Path("deltas") + last}).output, "\n  a delta: what changed since step-0"));
  const auto exported = [&](const std::string& name) {
    const std::string file = job.Path(name + ".tsv");
    const Done done = Run({"export", job.Path(name) + last, "--out", file});
    CAPTURE(done.error);
    CHECK(done.code == 0);
    return FileContent(file);
  };
  CHECK(exported("deltas") == exported("whole"));
  for (const std::string ps : {"1", "3", "5"}) {
    const std::string copy = job.Path("copy-" + ps);
    std::filesystem::copy(job.Path("deltas"), copy, std::filesystem::copy_options::recursive);
    std::filesystem::remove_all(copy + last);
    const Json resumed =
        RunLocal(job.Path("job.yaml"), {"--ps", ps, "--workers", "2", "--set", "checkpoint.dir=" + copy});
    CHECK(resumed.at("model_crc") == whole.at("model_crc"));
  }
}

TEST_CASE(
    "hash table: eval gives the figures of the run's own evaluation, and predict answers, for each format") {
  for (const std::string format : {"libsvm", "vw", "criteo"}) {
    CAPTURE(format);
    const HashJob job(format, "kind: fm, factors: 3");
    const Json result = job.Train(2, job.Saving());
    const Done eval = Run({"eval", job.checkpoints(), "--json"});
    CAPTURE(eval.error);
    REQUIRE(eval.code == 0);
    const Json figures = Json::Parse(eval.output);
    CHECK(figures["loss"] == result["test_loss"]);
    CHECK(figures["model_crc"] == result["model_crc"]);
    const Done predicted = Run({"predict", job.checkpoints(), "--data", job.Path("b.txt")});
    CHECK(predicted.code == 0);
    CHECK(std::count(predicted.output.begin(), predicted.output.end(), '\n') == 701);
  }
}

TEST_CASE("hash table: the keys of libsvm are the indexes of the file, up to the largest") {
  const HashJob job("libsvm");
  WriteFile(job.Path("a.txt"), "1 1:1 18446744073709551614:1\n0 2:1 1099511627777:1\n");
  WriteFile(job.Path("b.txt"), "1 1:1\n");
  std::vector<std::string> each_row = job.Saving();
  each_row.insert(each_row.end(), {"--set", "train.batch_size=1"});
  job.Train(2, each_row);
  REQUIRE(Run({"export", job.checkpoints(), "--out", job.Path("m.tsv")}).code == 0);
  const std::string text = FileContent(job.Path("m.tsv"));
  CHECK(Contains(text, "\n18446744073709551613\t18446744073709551614\t"));
  CHECK(Contains(text, "\n1099511627776\t1099511627777\t"));
  CHECK(Contains(text, "\n-\tbias\t"));
  WriteFile(job.Path("c.txt"), "1 18446744073709551616:1\n");
  const Done predicted = Run({"predict", job.checkpoints(), "--data", job.Path("c.txt")});
  CHECK(predicted.code == 0);
  CHECK(Contains(predicted.error, "1 feature that the model has not"));
}

TEST_CASE("hash table: it is exported as keys and rows, and what numbers features from 0 is refused") {
  const HashJob job("vw");
  job.Train(2, job.Saving());
  const std::string file = job.Path("m.safetensors");
  REQUIRE(Run({"export", job.checkpoints(), "--out", file}).code == 0);
  CHECK(Contains(FileContent(file), R"("table.keys":{"dtype":"U64")"));
  for (const char* name : {"m.liblinear", "m.npz", "m.onnx"}) {
    CAPTURE(name);
    const Done refused = Run({"export", job.checkpoints(), "--out", job.Path(name)});
    CHECK(refused.code == 2);
    CHECK(Contains(refused.error, "features of model.table: hash are any keys. Try --to safetensors"));
  }
  CHECK(Run({"export", job.checkpoints(), "--dense", "--out", file}).code == 2);
}

TEST_CASE("hash table: check, plan and inspect tell of keys and of the memory for the limit") {
  const HashJob job("libsvm", kLimits);
  job.Train(2, job.Saving());
  const std::string config = job.Path("job.yaml");
  const Done plan = Run({"plan", "--config", config, "--ps", "2", "--workers", "1"});
  CHECK(plan.code == 0);
  CHECK(Contains(plan.output, "table: any keys and the bias, 1 value each, 2 with the optimizer's slots; "));
  CHECK(Contains(plan.output, " on all ps for 65536 rows, the max"));
  const Done open =
      Run({"plan", "--config", config, "--ps", "2", "--workers", "1", "--set", "model.max_rows=null"});
  CHECK(open.code == 0);
  CHECK(Contains(open.output, "no limit"));
  const Done check = Run({"check", "--config", config, "--ps", "2", "--workers", "1"});
  CHECK(check.code == 0);
  CHECK(Contains(check.output, "model: logistic, any keys, 1 output"));
  const Done inspect = Run({"inspect", job.checkpoints()});
  CHECK(inspect.code == 0);
  CHECK(Contains(inspect.output, "table: any keys and the bias, 1 value each;"));
  const Done other =
      Run({"local", "--config", config, "--ps", "2", "--workers", "1", "--set",
           "checkpoint.dir=" + job.checkpoints(), "--set", "model.table=range", "--set",
           "model.admit_after=null", "--set", "model.evict_after=null", "--set", "model.max_rows=null"});
  CHECK(other.code == 2);
  CHECK(Contains(other.error, "model.table = range; must be hash"));
}

TEST_CASE("hash table: a flipped byte of its rows is found") {
  const HashJob job("libsvm");
  job.Train(1, job.Saving());
  const std::string best = Run({"inspect", job.checkpoints()}).output;
  REQUIRE(!best.empty());
  std::string shard;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(job.checkpoints())) {
    if (entry.path().filename() == "shard-0-of-1") shard = std::max(shard, entry.path().string());
  }
  std::fstream file(shard, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(1000);
  file.put('\x55');
  file.close();
  const Done damaged = Run({"eval", shard.substr(0, shard.rfind('/'))});
  CHECK(damaged.code == 2);
  CHECK(Contains(damaged.error, "shard-0-of-1 is damaged at byte"));
}

}  // namespace
}  // namespace dtrain::testing
