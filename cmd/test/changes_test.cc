// dtrain export --since: what has changed since an older checkpoint makes the newer export of the older one.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <filesystem>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "base/testing/files.h"
#include "cmd/testing/job.h"
#include "cmd/testing/python.h"

namespace dtrain::testing {
namespace {

// A job whose first run ends at step 20, and whose next one, with more keys, at step 40.
struct TwoRuns {
  std::string directory = NewDirectory();
  std::string checkpoints = directory + "/ckpt";

  // `synth`: the format of the rows; `job`: the sections model and data; `more`: keys of both runs.
  TwoRuns(const std::string& synth, const std::string& job, const std::vector<std::string>& more = {}) {
    std::vector<std::string> rows = {"synth", synth, "--rows", "2000", "--out", Path("rows.txt")};
    if (synth == "libsvm") rows.insert(rows.end(), {"--features", "20", "--width", "3000"});
    REQUIRE(Run(rows).code == 0);
    WriteFile(Path("job.yaml"),
              job +
                  "train: {mode: sync, batch_size: 10, optimizer: {kind: adagrad, learning_rate: 0.1}}\n"
                  "checkpoint: {every_secs: 0, every_steps: 20, keep: 9}\n");
    Train(20, more);
    Train(40, more);
  }
  void Train(int steps, std::vector<std::string> more) const {
    more.insert(more.end(), {"--ps", steps == 20 ? "1" : "2", "--workers", "1", "--set",
                             fmt::format("train.steps={}", steps), "--set", "checkpoint.dir=" + checkpoints});
    REQUIRE(RunLocal(Path("job.yaml"), more).is_object());
  }
  std::string Path(const std::string& name) const { return directory + "/" + name; }
  std::string Step(int step) const { return fmt::format("{}/step-{:09}", checkpoints, step); }
  // Exports, and returns what the command says.
  std::string Export(const std::string& checkpoint, const std::string& name,
                     const std::string& since = "") const {
    std::vector<std::string> arguments = {"export", checkpoint, "--out", Path(name)};
    if (!since.empty()) arguments.insert(arguments.end(), {"--since", since});
    const Done done = Run(arguments);
    CAPTURE(done.error);
    REQUIRE(done.code == 0);
    return done.output;
  }
  // Exports both checkpoints and the changes between them.
  void ExportAll(const std::string& ending) const {
    Export(Step(20), "old." + ending);
    Export(Step(40), "new." + ending);
    Export(Step(40), "changes." + ending, "20");
  }
};

// The lines of a tsv file behind the first one, by feature or key.
std::map<std::string, std::string> LinesOf(const std::string& path) {
  std::map<std::string, std::string> lines;
  std::istringstream text(FileContent(path));
  std::string line;
  std::getline(text, line);
  CHECK(line == "feature\tname\tweight");
  while (std::getline(text, line)) lines[line.substr(0, line.find('\t'))] = line;
  return lines;
}

// Applies the changes of a table with one weight in each row. Returns the number of keys that left.
int CheckTexts(const TwoRuns& job) {
  job.ExportAll("tsv");
  std::map<std::string, std::string> lines = LinesOf(job.Path("old.tsv"));
  int left = 0;
  for (const auto& [key, line] : LinesOf(job.Path("changes.tsv"))) {
    const std::string weight = line.substr(line.rfind('\t') + 1);
    left += weight.empty() ? 1 : 0;
    weight.empty() || weight == "0" ? void(lines.erase(key)) : void(lines[key] = line);
  }
  CHECK(lines == LinesOf(job.Path("new.tsv")));
  return left;
}

const char kRange[] =
    "model: {kind: logistic, inputs: 3000}\ndata: {train: {format: libsvm, path: rows.txt}}\n";

const TwoRuns& Range() {
  static const TwoRuns job("libsvm", kRange);
  return job;
}

const char kHash[] =
    "model: {kind: logistic, table: hash, admit_after: 2, evict_after: 15}\n"
    "data: {train: {format: criteo, path: rows.txt}}\n";

TEST_CASE("changes: as text they make the newer export of the older one, of a range and of a hash table") {
  CHECK(CheckTexts(Range()) == 0);
  const TwoRuns hashed("criteo", kHash);
  CHECK(CheckTexts(hashed) > 100);
  CHECK(Contains(hashed.Export(hashed.checkpoints, "x.tsv", "20"), " keys that left, since step 20, "));
}

TEST_CASE("changes: those between deltas of different bases") {
  // The first save of each run has all rows.
  const std::vector<std::string> deltas = {"--set", "checkpoint.delta=9", "--set",
                                           "checkpoint.every_steps=10"};
  const TwoRuns range("libsvm", kRange, deltas), hashed("criteo", kHash, deltas);
  for (const TwoRuns* job : {&range, &hashed}) {
    CHECK(Contains(Run({"inspect", job->Step(20)}).output, "a delta: what changed since step-000000000"));
    CHECK(Contains(Run({"inspect", job->Step(40)}).output, "a delta: what changed since step-000000030"));
  }
  CHECK(CheckTexts(range) == 0);
  CHECK(CheckTexts(hashed) > 100);
}

TEST_CASE("changes: what docs/models.md says makes the newer tensors of the older ones, bit by bit") {
  if (Python().empty()) return;
  const TwoRuns hashed("criteo",
                       "model: {kind: fm, factors: 3, table: hash, evict_after: 15}\n"
                       "data: {train: {format: criteo, path: rows.txt}}\n");
  const TwoRuns deep("criteo",
                     "model: {kind: wide_deep, embedding: 2, hidden: [4]}\n"
                     "data: {train: {format: criteo, path: rows.txt}, hash_bits: 14}\n");
  std::string command = Python() + " cmd/test/testdata/apply_changes.py";
  for (const TwoRuns* job : {&Range(), &hashed, &deep}) {
    job->ExportAll("safetensors");
    command += " " + job->directory;
  }
  std::istringstream found(OutputOf(command));
  for (const bool evicts : {false, true, false}) {
    std::string same;
    int left = -1;
    found >> same >> left;
    CHECK(same == "same");
    CHECK((left > 0) == evicts);
  }
}

TEST_CASE("changes: --since takes a step, a name or a path, and says so where nothing has changed") {
  const TwoRuns& job = Range();
  job.Export(job.Step(40), "by-step.safetensors", "20");
  for (const std::string& since : {job.Step(20), job.Step(20) + "/", std::string("step-000000020")}) {
    job.Export(job.checkpoints, "x.safetensors", since);
    CHECK(FileContent(job.Path("x.safetensors")) == FileContent(job.Path("by-step.safetensors")));
  }
  CHECK(Contains(job.Export(job.checkpoints, "x.safetensors", "40"), ": no change since step 40, "));
  CHECK(Contains(FileContent(job.Path("x.safetensors")), R"("table.rows":{"dtype":"F32","shape":[0,1])"));
  job.Export(job.checkpoints, "x.tsv", "40");
  CHECK(FileContent(job.Path("x.tsv")) == "feature\tname\tweight\n");
  const Done parts =
      Run({"export", job.checkpoints, "--out", job.Path("p.safetensors"), "--since", "20", "--parts", "3"});
  CHECK(Contains(parts.output, " changed rows and the bias in 3 files, since step 20, "));
}

TEST_CASE("changes: what --since cannot name, and what has no changes, is refused with the remedy") {
  const TwoRuns& job = Range();
  const auto refused = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), "export");
    const Done done = Run(arguments);
    CHECK(done.code == 2);
    return done.error;
  };
  const std::string out = job.Path("no.safetensors");
  for (const std::string& since : {std::string("7"), job.Step(7)}) {
    CHECK(Contains(refused({job.checkpoints, "--out", out, "--since", since}),
                   "--since " + since + ": neither a checkpoint nor the name or step of one in " +
                       job.checkpoints + ", which has those of steps 0, 20, 40. Name one of them"));
  }
  CHECK(Contains(refused({job.Step(20), "--out", out, "--since", "40"}),
                 "--since 40: is of step 40, and " + job.Step(20) + ", which is exported, of step 20"));
  CHECK(Contains(refused({job.checkpoints, "--out", out, "--since", ""}), "--since: is empty"));
  for (const char* ending : {"onnx", "npz", "liblinear"}) {
    CHECK(Contains(refused({job.checkpoints, "--out", job.Path("no.") + ending, "--since", "20"}),
                   "--since 20: is for rows of a table as safetensors or tsv. Try --to safetensors."));
  }
  CHECK(Contains(refused({job.checkpoints, "--out", out, "--since", "20", "--dense"}), "Leave --dense out."));
  for (const std::string& since : {job.checkpoints, job.checkpoints + "/"}) {
    CHECK(Contains(refused({job.checkpoints, "--out", out, "--since", since}),
                   "--since " + since + ": is a directory of checkpoints. Name one of them: dtrain inspect " +
                       since + " shows them."));
  }
  const auto other = [&](const char* model) {
    const TwoRuns run(
        "libsvm", fmt::format("model: {{{}}}\ndata: {{train: {{format: libsvm, path: rows.txt}}}}\n", model));
    return refused({job.checkpoints, "--out", out, "--since", run.Step(20)});
  };
  const std::string than = ": is of another model than " + job.Step(40) + ", which is exported: ",
                    name = ". Name an older checkpoint of the same run.";
  CHECK(Contains(other("kind: logistic, inputs: 4000"), than + "table is 4001 x 1; must be 3001 x 1" + name));
  CHECK(Contains(other("kind: linear, inputs: 3000"), than + "model.kind = linear; must be logistic" + name));
  const TwoRuns dense("libsvm",
                      "model: {kind: logistic, inputs: 3000, table: none}\n"
                      "data: {train: {format: libsvm, path: rows.txt}}\n");
  CHECK(Contains(refused({dense.checkpoints, "--out", out, "--since", "20"}),
                 "--since 20: is for tables, and this model has none (model.table): each step changes all "));
  CHECK(!std::filesystem::exists(out));
}

// A copy of the checkpoints of Range(), to change.
std::string CopyOfRange() {
  const std::string copy = NewDirectory() + "/ckpt";
  std::filesystem::copy(Range().checkpoints, copy, std::filesystem::copy_options::recursive);
  return copy;
}

std::string RefusedSince(const std::string& checkpoint, const std::string& since) {
  const Done done = Run({"export", checkpoint, "--out", NewDirectory() + "/x.tsv", "--since", since});
  CHECK(done.code == 2);
  return done.error;
}

TEST_CASE("changes: a damaged checkpoint is told however --since names it, and where there is none that") {
  const std::string copy = CopyOfRange(), damaged = copy + "/step-000000020";
  std::filesystem::resize_file(damaged + "/manifest", 10);
  const std::string by_path = RefusedSince(copy, damaged);
  CHECK(Contains(by_path, damaged + ": manifest"));
  CHECK(RefusedSince(copy, "20") == by_path);
  CHECK(RefusedSince(copy, "step-000000020") == by_path);

  const std::string alone = NewDirectory() + "/model";
  std::filesystem::copy(copy + "/step-000000040", alone);
  CHECK(Contains(RefusedSince(alone, "20"), ", which has none. Name the path of one, or leave --since out"));
}

TEST_CASE("changes: the file best stands for the checkpoint that it names") {
  const std::string copy = CopyOfRange();
  WriteFile(copy + "/best", "step-000000020\n");
  const Done done =
      Run({"export", copy + "/step-000000040", "--out", copy + ".tsv", "--since", copy + "/best"});
  CHECK(Contains(done.output, " changed rows and the bias, since step 20, "));
}

TEST_CASE("changes: of a step that was saved twice --since means the last save before the exported one") {
  const TwoRuns job("libsvm", kRange);
  job.Train(20, {"--set", "checkpoint.resume=" + job.Step(0), "--set", "train.optimizer.learning_rate=0.5"});
  const std::string replaced = job.checkpoints + "/replaced-step-000000020-2";
  REQUIRE(std::filesystem::exists(replaced));
  job.Export(job.Step(40), "by-step.tsv", "20");
  job.Export(job.Step(40), "by-path.tsv", replaced);
  CHECK(FileContent(job.Path("by-step.tsv")) == FileContent(job.Path("by-path.tsv")));
  CHECK(Contains(job.Export(replaced, "x.tsv", "20"), ": no change since step 20, "));
  CHECK(Contains(job.Export(job.Step(20), "x.tsv", replaced), " changed rows and the bias, since step 20, "));
  CHECK(Contains(RefusedSince(replaced, "step-000000020"), "--since step-000000020: " + job.Step(20) +
                                                               " was saved after " + replaced +
                                                               ", which is exported (sequence "));
}

TEST_CASE("changes: a bias with which another run began is written though no update has changed it") {
  const TwoRuns other("libsvm", kRange, {"--set", "model.init.output_bias=0.5"});
  const std::string said = other.Export(other.Step(0), "x.tsv", Range().Step(0));
  CHECK(Contains(said, ": 0 changed rows and the bias, since step 0, "));
  CHECK(FileContent(other.Path("x.tsv")) == "feature\tname\tweight\n3000\tbias\t0.5\n");
}

}  // namespace
}  // namespace dtrain::testing
