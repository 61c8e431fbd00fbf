// Wide & deep models, whose weights are both tensors and rows of a table: the same bits for any number of ps,
// checkpoints that any number of ps reads, and what each command makes of them.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <string>
#include <vector>

#include "base/json.h"
#include "base/testing/files.h"
#include "cmd/testing/job.h"

namespace dtrain::testing {
namespace {

const char kModel[] = "embedding: 4, hidden: [16, 8], activation: relu";
const char kHashed[] =
    "embedding: 4, hidden: [16, 8], table: hash, admit_after: 2, evict_after: 40, max_rows: 65536";

// A job of 3,000 rows of Criteo's form, and its files.
class WideDeepJob {
 public:
  explicit WideDeepJob(const std::string& model = kModel, const std::string& data = "hash_bits: 12")
      : job_(fmt::format(
            "model: {{kind: wide_deep, {}}}\n"
            "data: {{train: {{format: criteo, path: train}}, test: {{format: criteo, path: test}},\n"
            "  {}}}\n"
            "train: {{mode: sync, batch_size: 50, epochs: 2,\n"
            "  optimizer: {{kind: adam, learning_rate: 0.003}}}}\n",
            model, data)) {
    Make("train", {"--rows", "3000"});
    Make("test", {"--rows", "1000", "--first", "3000"});
  }
  const std::string& directory() const { return job_.directory; }
  const std::string& config() const { return job_.config; }
  std::string checkpoints() const { return job_.directory + "/checkpoints"; }
  Json Run(int ps, std::vector<std::string> more = {}) const {
    more.insert(more.end(), {"--ps", fmt::to_string(ps), "--workers", "2"});
    const Json result = RunLocal(job_.config, more);
    REQUIRE(result.is_object());
    return result;
  }
  std::string Crc(int ps, const std::vector<std::string>& more = {}) const {
    return Run(ps, more).at("model_crc").get<std::string>();
  }
  std::string Path(const char* name) const { return job_.directory + "/" + name; }

 private:
  void Make(const char* name, std::vector<std::string> more) const {
    more.insert(more.begin(), {"synth", "criteo", "--out", Path(name)});
    REQUIRE(testing::Run(more).code == 0);
  }

  const LocalJob job_;
};

TEST_CASE("wide_deep: in sync the bits are the same for 1, 2, 3 and 5 ps, as processes and as threads") {
  for (const char* combine : {"join", "sum"}) {
    CAPTURE(combine);
    const WideDeepJob job(fmt::format("embedding: 4, hidden: [16], combine: {}", combine));
    const Json one = job.Run(1);
    CHECK(one.at("deterministic") == true);
    CHECK(one.at("test_loss").get<double>() < 0.6);
    for (const int ps : {2, 3, 5}) CHECK(job.Crc(ps) == one.at("model_crc"));
    for (const int ps : {1, 3}) CHECK(job.Crc(ps, {"--in-process"}) == one.at("model_crc"));
  }
}

TEST_CASE("wide_deep: placement, layers of many blocks and rows of many blocks do not change the bits") {
  const WideDeepJob job("embedding: 64, hidden: [200], combine: join");
  const std::vector<std::string> large = {"--set", "train.batch_size=500"};
  const std::string one = job.Crc(1, large);
  CHECK(job.Crc(3, large) == one);
  std::vector<std::string> pinned = large;
  pinned.insert(pinned.end(), {"--set", "placement.policy=pin", "--set", "placement.pin=[\"deep/*=1\"]"});
  CHECK(job.Crc(2, pinned) == one);  // ps 0 has rows alone
}

TEST_CASE(
    "wide_deep: half a run and the other half by another number of ps end with the bits of a whole one") {
  const WideDeepJob job;
  const std::string whole = job.Crc(1), dir = "checkpoint.dir=" + job.checkpoints();
  CHECK(job.Crc(2, {"--set", "train.epochs=1", "--set", dir}) != whole);
  CHECK(job.Crc(3, {"--set", dir}) == whole);
}

TEST_CASE("wide_deep: clip_norm, checksums, ssp and several open exchanges are as for others") {
  const WideDeepJob job;
  const std::vector<std::string> clipped = {"--set", "train.optimizer.clip_norm=0.01"};
  const std::string crc = job.Crc(1, clipped);
  CHECK(crc != job.Crc(1));
  CHECK(job.Crc(3, clipped) == crc);
  CHECK(job.Crc(2, {"--set", "net.checksum=true"}) == job.Crc(1));
  CHECK(job.Run(2, {"--set", "train.mode=ssp"}).at("test_loss").get<double>() < 0.6);
  const Json open = job.Run(2, {"--set", "train.mode=async", "--set", "train.in_flight=3"});
  CHECK(open.at("test_loss").get<double>() < 0.6);
  const Json best = job.Run(2, {"--set", "eval.every_steps=10", "--set", "eval.keep_best=true", "--set",
                                "checkpoint.dir=" + job.checkpoints(), "--set", "train.optimizer.kind=ftrl"});
  CHECK(best.at("status") == "done");
}

// An optimizer for each part, in place of the job's.
const char kTwo[] =
    "train.optimizer={kind: adagrad, learning_rate: 0.05, wide: {kind: ftrl, l1: 0.02}, deep: "
    "{initial_accumulator: 0.5}}";

TEST_CASE("wide_deep: two optimizers have the same bits for any number of ps, whole or in two halves") {
  for (const bool hashed : {false, true}) {
    CAPTURE(hashed);
    const WideDeepJob job(hashed ? kHashed : kModel, hashed ? "scale: standard" : "hash_bits: 12");
    const auto with = [](std::vector<std::string> sets) {
      sets.insert(sets.begin(), kTwo);
      std::vector<std::string> more;
      for (const std::string& set : sets) more.insert(more.end(), {"--set", set});
      return more;
    };
    const Json whole = job.Run(1, with({}));
    const std::string crc = whole.at("model_crc");
    CHECK(whole.at("deterministic") == true);
    CHECK(whole.at("test_loss").get<double>() < 0.6);
    CHECK(job.Crc(3, with({})) == crc);
    CHECK(job.Crc(1, {"--set", "train.optimizer={kind: adagrad, learning_rate: 0.05}"}) != crc);
    // The second half goes on from a delta.
    const std::string dir = "checkpoint.dir=" + job.checkpoints();
    CHECK(job.Crc(2, with({dir, "train.epochs=1", "checkpoint.every_steps=7", "checkpoint.delta=3"})) != crc);
    const Done inspected = Run({"inspect", job.checkpoints()});
    CHECK(inspected.code == 0);
    CHECK(Contains(inspected.output, "a delta: "));
    CHECK(job.Crc(3, with({dir})) == crc);
    const std::string clip = "train.optimizer.clip_norm=0.05";
    const std::string clipped = job.Crc(1, with({clip}));
    CHECK(clipped != crc);
    CHECK(job.Crc(3, with({clip, "failure.replicas=1"})) == clipped);
    for (const char* mode : {"ssp", "async"}) {
      CAPTURE(mode);
      CHECK(job.Run(2, with({std::string("train.mode=") + mode})).at("test_loss").get<double>() < 0.6);
    }
  }
}

TEST_CASE("wide_deep: a checkpoint of two optimizers is read by all commands, and begins and is begun with") {
  const WideDeepJob job;
  const std::string dir = "checkpoint.dir=" + job.checkpoints();
  const Json result = job.Run(
      2, {"--set", kTwo, "--set", dir, "--set", "eval.every_steps=20", "--set", "eval.keep_best=true"});
  const Done inspected = Run({"inspect", job.checkpoints()});
  CHECK(inspected.code == 0);
  CHECK(Contains(inspected.output, "optimizer ftrl and adagrad (z, n for the linear part, and accumulator)"));
  CHECK(Contains(inspected.output, "  z "));
  const Done json = Run({"inspect", job.checkpoints(), "--json"});
  CHECK(json.code == 0);
  std::string columns;
  const Json document = Json::Parse(json.output);
  for (const Json& tensor : document.at("newest").at("tensors")) {
    if (tensor.at("tensor") == "table")
      columns += tensor.at("slot").get<std::string>() + tensor.at("columns").dump() + " ";
  }
  CHECK(columns == "weights5 z1 accumulator4 n1 ");
  CHECK(Run({"predict", job.checkpoints(), "--data", job.Path("test")}).code == 0);
  CHECK(Run({"export", job.checkpoints(), "--out", job.Path("model.safetensors")}).code == 0);
  const std::string out = job.Path("eval.json");
  REQUIRE(Run({"eval", job.checkpoints(), "--result", out}).code == 0);
  CHECK(ReadResult(out).at("test_loss").get<double>() < 0.6);
  const Done plan = Run({"plan", "--config", job.config(), "--ps", "2", "--set", kTwo});
  CHECK(plan.code == 0);
  CHECK(Contains(plan.output, "5 values each, 11 with the optimizer's slots; at most 4.8 MiB on all ps"));
  // The run's own optimizer is one, adam.
  const Done refused = Run({"check", "--config", job.config(), "--set", dir});
  CHECK(refused.code == 2);
  CHECK(Contains(refused.error,
                 "another optimizer: the checkpoint is of ftrl and adagrad (z, n for the linear part, and "
                 "accumulator), and train.optimizer of this run has m, v."));
  const std::string from = "checkpoint.start_from=" + job.checkpoints();
  const std::string one = "checkpoint.dir=" + job.Path("one");
  CHECK(job.Run(1, {"--set", from, "--set", one}).at("test_loss").get<double>() < 0.6);
  const Done begins = Run({"check", "--config", job.config(), "--set",
                           "checkpoint.start_from=" + job.Path("one"), "--set", kTwo});
  CHECK(begins.code == 0);
  CHECK(Contains(begins.output, "its optimizer was adam: the slots begin anew"));
  const std::string crc = job.Crc(1, {"--set", "checkpoint.start_from=" + job.Path("one"), "--set", kTwo});
  CHECK(job.Crc(3, {"--set", "checkpoint.start_from=" + job.Path("one"), "--set", kTwo}) == crc);
  // A run goes on with another rate of a part, and says so.
  const Done goes_on = Run({"check", "--config", job.config(), "--set", dir, "--set", kTwo, "--set",
                            "train.optimizer.wide.learning_rate=0.25", "--set", "train.epochs=3"});
  CHECK(goes_on.code == 0);
  CHECK(Contains(goes_on.output, "  train.optimizer.wide.learning_rate  null               0.25\n"));
  const Json more = job.Run(3, {"--set", from, "--set", kTwo});
  CHECK(more.at("test_loss").get<double>() < 0.6);
}

TEST_CASE("wide_deep: a checkpoint is evaluated, predicted from, looked at and exported") {
  const WideDeepJob job;
  const Json result = job.Run(2, {"--set", "checkpoint.dir=" + job.checkpoints()});
  const std::string out = job.Path("eval.json");
  REQUIRE(Run({"eval", job.checkpoints(), "--result", out}).code == 0);
  const Json evaluated = ReadResult(out);
  CHECK(evaluated.at("model_crc") == result.at("model_crc"));
  CHECK(evaluated.at("test_loss").get<double>() ==
        doctest::Approx(result.at("test_loss").get<double>()).epsilon(1e-6));
  const Done predicted = Run({"predict", job.checkpoints(), "--data", job.Path("test")});
  CHECK(predicted.code == 0);
  const Done inspected = Run({"inspect", job.checkpoints()});
  CHECK(inspected.code == 0);
  CHECK(Contains(inspected.output, "table: 106496 features and the bias, 5 values each"));
  CHECK(Contains(inspected.output, "deep/W1"));
  CHECK(Contains(inspected.output, "117 x 16"));
  const Done exported = Run({"export", job.checkpoints(), "--out", job.Path("model.safetensors")});
  CHECK(exported.code == 0);
  CHECK(Contains(exported.output, "rows and the bias, 6 tensors, "));
  for (const char* format : {"onnx", "npz", "tsv", "liblinear"}) {
    CAPTURE(format);
    const Done refused = Run({"export", job.checkpoints(), "--to", format, "--out", job.Path("model")});
    CHECK(refused.code == 2);
    CHECK(Contains(refused.error,
                   "has no embeddings in front of layers, and the model is wide_deep. Try --to "
                   "safetensors."));
  }
}

TEST_CASE("wide_deep: plan and check say what is where, and a run that goes on as another model is refused") {
  const WideDeepJob job;
  const std::string dir = "checkpoint.dir=" + job.checkpoints();
  job.Run(1, {"--set", dir, "--set", "train.epochs=1"});
  const Done plan = Run({"plan", "--config", job.config(), "--ps", "2"});
  CHECK(plan.code == 0);
  CHECK(Contains(plan.output, "table: 106496 features and the bias, 5 values each"));
  CHECK(Contains(plan.output, "Beside the table there are 2033 parameters, 7.9 KiB, which travel whole."));
  CHECK(Contains(plan.output, "deep/W1 ["));
  const Done check = Run({"check", "--config", job.config()});
  CHECK(check.code == 0);
  CHECK(Contains(check.output, "model: wide_deep with a logistic head, 106509 inputs, 1 output"));
  CHECK(Contains(check.output, "deep/b3 [0:1)"));
  for (const auto& [set, expected] :
       {std::pair("model.embedding=5", "model.embedding = 5; must be 4"),
        std::pair("model.combine=sum", "model.combine = sum; must be join"),
        std::pair("data.numbers=plain", "data.numbers = plain; must be log"),
        std::pair("model.hidden=[16, 9]", "deep/W2 is 16 x 8 in the checkpoint and 16 x 9 in this run")}) {
    const Done refused = Run({"check", "--config", job.config(), "--set", dir, "--set", set});
    CHECK(refused.code == 2);
    CHECK(Contains(refused.error, expected));
  }
}

TEST_CASE(
    "wide_deep: the bits of a hash table are the same for 1, 2, 3 and 5 ps, while rows come and leave") {
  const WideDeepJob job(kHashed, "scale: standard");
  const Json one = job.Run(1);
  CHECK(one.at("deterministic") == true);
  CHECK(one.at("table").at("evicted").get<int64_t>() > 1000);
  CHECK(one.at("test_loss").get<double>() < 0.6);
  for (const int ps : {2, 3, 5}) {
    const Json other = job.Run(ps);
    CHECK(other.at("model_crc") == one.at("model_crc"));
    CHECK(other.at("table").at("rows") == one.at("table").at("rows"));
  }
  CHECK(job.Crc(3, {"--in-process"}) == one.at("model_crc"));
  // Layers that lie on one ps alone, and an optimizer that needs the norm of a round.
  const std::vector<std::string> pinned = {"--set", "placement.policy=pin",
                                           "--set", "placement.pin=[\"deep/*=1\"]",
                                           "--set", "train.optimizer.clip_norm=0.05"};
  const std::vector<std::string> clipped(pinned.end() - 2, pinned.end());
  CHECK(job.Crc(2, pinned) == job.Crc(1, clipped));
}

TEST_CASE(
    "wide_deep: half a run with a hash table and the other half by another number of ps are a whole one") {
  const WideDeepJob job(kHashed, "scale: standard");
  const Json whole = job.Run(1);
  const std::string dir = "checkpoint.dir=" + job.checkpoints();
  CHECK(job.Crc(2, {"--set", "train.epochs=1", "--set", dir}) != whole.at("model_crc"));
  const Json rest = job.Run(3, {"--set", dir});
  CHECK(rest.at("model_crc") == whole.at("model_crc"));
  CHECK(rest.at("table").at("rows") == whole.at("table").at("rows"));
  const Json begun = job.Run(2, {"--set", "checkpoint.start_from=" + job.checkpoints()});
  CHECK(begun.at("test_loss").get<double>() < 0.6);
}

TEST_CASE("wide_deep: a checkpoint with a hash table is evaluated, predicted from, looked at and exported") {
  const WideDeepJob job(kHashed, "scale: standard");
  const Json result = job.Run(
      2, {"--set", "checkpoint.dir=" + job.checkpoints(), "--set", "summary.dir=" + job.Path("curves")});
  const std::string out = job.Path("eval.json");
  REQUIRE(Run({"eval", job.checkpoints(), "--result", out}).code == 0);
  const Json evaluated = ReadResult(out);
  CHECK(evaluated.at("model_crc") == result.at("model_crc"));
  CHECK(evaluated.at("test_loss").get<double>() ==
        doctest::Approx(result.at("test_loss").get<double>()).epsilon(1e-6));
  CHECK(Run({"predict", job.checkpoints(), "--data", job.Path("test")}).code == 0);
  const Done inspected = Run({"inspect", job.checkpoints()});
  CHECK(inspected.code == 0);
  CHECK(Contains(inspected.output, "table: any keys and the bias, 5 values each"));
  CHECK(Contains(inspected.output, "117 x 16"));
  const Done exported = Run({"export", job.checkpoints(), "--out", job.Path("model.safetensors")});
  CHECK(exported.code == 0);
  CHECK(Contains(exported.output, "rows and the bias, 6 tensors, "));
  const std::string file = FileContent(job.Path("model.safetensors"));
  for (const char* key : {R"("data.train.format":"criteo")", R"("data.hash_bits":"58")", R"("columns":"26")",
                          R"("data.numbers":")"}) {
    CAPTURE(key);
    CHECK(Contains(file, key));
  }
  const Done plan = Run({"plan", "--config", job.config(), "--ps", "2"});
  CHECK(plan.code == 0);
  CHECK(
      Contains(plan.output, "table: any keys and the bias, 5 values each, 15 with the optimizer's slots; "));
  CHECK(Contains(plan.output, "Beside the table there are 2033 parameters, 7.9 KiB, which travel whole."));
  const Done check = Run({"check", "--config", job.config(), "--set", "checkpoint.dir=" + job.checkpoints()});
  CHECK(check.code == 0);
  CHECK(Contains(check.output, "model: wide_deep with a logistic head, any keys, 1 output"));
  const Done refused = Run({"check", "--config", job.config(), "--set", "checkpoint.dir=" + job.checkpoints(),
                            "--set", "model.hidden=[16, 9]"});
  CHECK(refused.code == 2);
  CHECK(Contains(refused.error, "deep/W2 is 16 x 8 in the checkpoint and 16 x 9 in this run"));
}

TEST_CASE("wide_deep: the scale of numbers is the run's, wherever rows lie, and is kept in its checkpoint") {
  const WideDeepJob job(kModel, "hash_bits: 12, scale: standard, shuffle: false");
  const std::string dir = "checkpoint.dir=" + job.checkpoints();
  const Json memory = job.Run(2, {"--set", dir});
  CHECK(memory.at("model_crc") != job.Crc(2, {"--set", "data.scale=none"}));
  CHECK(job.Crc(3) == memory.at("model_crc"));
  const std::string cache = "data.cache_dir=" + job.Path("cache");
  const std::string streamed = job.Crc(2, {"--set", "data.cache=none"});
  CHECK(job.Crc(1, {"--set", "data.cache=file", "--set", cache}) == streamed);
  // Its rows are other ones than those that the scale is of: the checkpoint's counts.
  const std::string out = job.Path("eval.json");
  REQUIRE(Run({"eval", job.checkpoints(), "--result", out}).code == 0);
  CHECK(ReadResult(out).at("test_loss").get<double>() ==
        doctest::Approx(memory.at("test_loss").get<double>()).epsilon(1e-6));
  const Done refused = Run({"check", "--config", job.config(), "--set", dir, "--set", "data.scale=none"});
  CHECK(refused.code == 2);
  CHECK(Contains(refused.error, "data.scale = none; must be standard"));
  // A run that goes on with other rows keeps the scale.
  const Done more = Run({"synth", "criteo", "--rows", "3000", "--first", "9000", "--out", job.Path("other")});
  REQUIRE(more.code == 0);
  const Json other =
      job.Run(2, {"--set", dir, "--set", "data.train.path=" + job.Path("other"), "--set", "train.epochs=3"});
  REQUIRE(Run({"eval", job.checkpoints(), "--result", out}).code == 0);
  CHECK(ReadResult(out).at("test_loss").get<double>() ==
        doctest::Approx(other.at("test_loss").get<double>()).epsilon(1e-6));
}

TEST_CASE("wide_deep: CSV with hashed columns joins them, and lines of vw add up, on any number of ps") {
  const std::string train =
      "train: {mode: sync, batch_size: 100, epochs: 1, reduce: sum,\n"
      "  optimizer: {kind: adagrad, learning_rate: 0.02}}\n";
  const LocalJob csv(
      "model: {kind: wide_deep, hidden: [8], embedding: 3}\n"
      "data: {train: {format: csv, path: rows, label: label}, hash: [C1, C2, C9], hash_bits: 10,\n"
      "  missing: zero, ignore: [C3, C4, C5, C6, C7, C8, C10, C11, C12, C13, C14, C15, C16, C17, C18, C19,\n"
      "  C20, C21, C22, C23, C24, C25, C26]}\n" +
      train);
  const LocalJob vw(
      "model: {kind: wide_deep, hidden: [8], embedding: 3, head: linear}\n"
      "data: {train: {format: vw, path: rows}, hash_bits: 12}\n" +
      train);
  const LocalJob keys(
      "model: {kind: wide_deep, hidden: [8], embedding: 3, head: linear, table: hash}\n"
      "data: {train: {format: vw, path: rows}}\n" +
      train);
  const LocalJob csv_keys(
      "model: {kind: wide_deep, hidden: [8], embedding: 3, table: hash}\n"
      "data: {train: {format: csv, path: rows, label: label}, hash: [C1, C2], scale: unit,\n"
      "  missing: zero, ignore: [C3, C4, C5, C6, C7, C8, C9, C10, C11, C12, C13, C14, C15, C16, C17, C18,\n"
      "  C19, C20, C21, C22, C23, C24, C25, C26]}\n" +
      train);
  for (const LocalJob* job : {&csv, &csv_keys}) {
    REQUIRE(Run({"synth", "criteo", "--rows", "2000", "--header", "--out", job->directory + "/rows"}).code ==
            0);
  }
  for (const LocalJob* job : {&vw, &keys}) {
    REQUIRE(Run({"synth", "vw", "--rows", "2000", "--out", job->directory + "/rows"}).code == 0);
  }
  for (const LocalJob* job : {&csv, &vw, &keys, &csv_keys}) {
    Json first;
    for (const char* ps : {"1", "3"}) {
      const Json result = RunLocal(job->config, {"--ps", ps, "--workers", "2"});
      REQUIRE(result.is_object());
      if (!first.is_object()) first = result;
      CHECK(result.at("model_crc") == first.at("model_crc"));
    }
  }
}

}  // namespace
}  // namespace dtrain::testing
