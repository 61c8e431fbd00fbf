#include "cmd/testing/counted_job.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <vector>

#include "base/check.h"
#include "base/json.h"
#include "base/testing/files.h"
#include "cmd/testing/job.h"

namespace dtrain::testing {
namespace {

const char* const kTarget = "1152921504606846976";  // 2^60; its square is a float32
// Of wide_deep a unit is so small that no activation comes to its end.
const char* const kSmallUnit = "0.00006103515625";  // 2^-14
constexpr double kSmallUnits = 16384;

// Of the table of a model: rows of an epoch, rows of a batch, epochs.
struct Rows {
  int64_t rows, batch, epochs;
};

int64_t Epochs(const CountedJob& job, int64_t otherwise) { return otherwise * job.length / job.share; }

Rows RowsOf(const CountedJob& job) {
  const bool sync = job.mode == "sync";
  switch (job.model) {
    case CountedModel::kDense:
      return {job.trains ? 3000 : 16, job.trains ? 10 : 1, 0};
    case CountedModel::kWideDeep:
      return job.trains ? Rows{3000, 50, Epochs(job, 40)} : Rows{600, 4, Epochs(job, sync ? 80 : 120)};
    case CountedModel::kRange:
      return job.trains ? Rows{3000, 50, Epochs(job, 60)} : Rows{3000, 5, Epochs(job, sync ? 20 : 30)};
    case CountedModel::kHash:
      return job.trains ? Rows{3000, 50, Epochs(job, 60)} : Rows{960, 1, Epochs(job, sync ? 12 : 20)};
  }
  DT_CHECK(false);
}

constexpr int64_t kInputs = 880, kHidden = 920;  // just above 1 MiB on each of 3 ps

// The keys of the hash table, in groups of 1,000,000,000: in every row; in a sixteenth of the rows, and of
// those of each worker; in one alone; in two that follow each other.
enum Group { kHot = 1, kRound, kAlone, kPair };
constexpr int64_t kGroup = 1000000000;
constexpr int64_t kHotKeys = 8, kRoundKeys = 4, kTurns = 16;

std::string HashRow(int64_t row) {
  std::vector<int64_t> keys;
  for (int64_t i = 0; i < kHotKeys; ++i) keys.push_back(kHot * kGroup + i);
  for (int64_t i = 0; i < kRoundKeys; ++i)
    keys.push_back(kRound * kGroup + kTurns * i + (row + row / 6) % kTurns);
  for (int64_t i = 0; i < 2; ++i) keys.push_back(kAlone * kGroup + 2 * row + i);
  keys.push_back(kPair * kGroup + row / 2);
  std::string text = kTarget;
  for (const int64_t key : keys) text += fmt::format(" {}:1", key + 1);
  return text + "\n";
}

std::string DenseRows(int64_t rows) {
  std::string text = "target", row = kTarget;
  for (int64_t i = 0; i < kInputs; ++i) {
    text += fmt::format(",c{}", i);
    row += ",0.00000095367431640625";  // 2^-20
  }
  text += "\n";
  for (int64_t i = 0; i < rows; ++i) text += row + "\n";
  return text;
}

std::string ModelOf(const CountedJob& job) {
  switch (job.model) {
    case CountedModel::kDense:
      return job.trains ? "kind: mlp, hidden: [1000]"
                        : fmt::format(
                              "kind: mlp, hidden: [{}], activation: relu, head: linear, "
                              "init: {{kind: constant, value: 1, bias: same}}",
                              kHidden);
    case CountedModel::kWideDeep:
      return job.trains ? "kind: wide_deep, hidden: [64, 16], embedding: 4"
                        // With this seed the first steps give all values of a layer one sign.
                        : "kind: wide_deep, hidden: [64], embedding: 3, activation: sigmoid, head: linear, "
                          "inputs: 600, init: {seed: 12}";
    case CountedModel::kRange:
      return job.trains ? "kind: logistic, inputs: 50000" : "kind: linear, inputs: 3000";
    case CountedModel::kHash:
      return job.trains ? "kind: logistic, table: hash, admit_after: 2, evict_after: 40"
                        : "kind: linear, table: hash, admit_after: 2, evict_after: 200";
  }
  DT_CHECK(false);
}

std::string DataOf(const CountedJob& job) {
  std::string form = "format: libsvm, path: rows";
  if (job.model == CountedModel::kDense) form = "format: csv, path: rows, label: target";
  if (job.trains && job.model == CountedModel::kDense) form = "format: synthetic, name: digits, rows: 3000";
  if (job.trains && job.model == CountedModel::kWideDeep) form = "format: criteo, path: rows";
  std::string text = fmt::format("train: {{{}}}, split: {}", form, job.split);
  if (job.trains && job.model == CountedModel::kWideDeep) text += ", hash_bits: 12";
  if (!job.trains && job.model == CountedModel::kHash) text += ", shuffle: false";
  return text;
}

std::string OptimizerOf(const CountedJob& job) {
  if (!job.trains) {
    return fmt::format("kind: sgd, learning_rate: 1, clip_value: {}",
                       job.model == CountedModel::kWideDeep ? kSmallUnit : "1");
  }
  const bool tensors = job.model == CountedModel::kDense || job.model == CountedModel::kWideDeep;
  return std::string(tensors ? "kind: adam, learning_rate: 0.001" : "kind: adagrad, learning_rate: 0.05") +
         (job.clips_norm ? ", clip_norm: 0.05" : "");
}

struct Tensor {
  std::vector<float> values;
  std::vector<uint64_t> keys;
};
using Tensors = std::map<std::string, Tensor>;

// Those of the newest checkpoint in the directory; none where they cannot be read.
Tensors Export(const std::string& checkpoints) {
  const std::string path = NewDirectory() + "/model.safetensors";
  if (Run({"export", checkpoints, "--newest", "--out", path}).code != 0) return {};
  const std::string file = FileContent(path);
  uint64_t head = 0;
  std::memcpy(&head, file.data(), sizeof head);
  const Json about_all = Json::Parse(file.substr(sizeof head, head));
  Tensors tensors;
  for (const auto& [name, about] : about_all.items()) {
    if (name == "__metadata__") continue;
    const Json offsets = about.at("data_offsets");
    const auto begin = offsets[0].get<uint64_t>(), bytes = offsets[1].get<uint64_t>() - begin;
    const char* const data = file.data() + sizeof head + head + begin;
    Tensor& tensor = tensors[name];
    if (about.at("dtype") == "F32") {
      tensor.values.resize(bytes / sizeof(float));
      std::memcpy(tensor.values.data(), data, bytes);
    } else {
      tensor.keys.resize(bytes / sizeof(uint64_t));
      std::memcpy(tensor.keys.data(), data, bytes);
    }
  }
  return tensors;
}

// How often an update was applied to each value, by the values of before.
std::vector<double> Counts(const std::vector<float>& values, const std::vector<float>& before, double units) {
  std::vector<double> counts(values.size());
  for (size_t i = 0; i < counts.size(); ++i) counts[i] = std::abs(values[i] - before[i]) * units;
  return counts;
}

// What is wrong with counts of which each has to be `expected`.
std::string WrongCounts(const std::string& of, const std::vector<double>& counts, int64_t expected) {
  std::map<double, int64_t> others;
  size_t first = counts.size();
  for (size_t i = 0; i < counts.size(); ++i) {
    if (std::abs(counts[i] - static_cast<double>(expected)) < 0.01) continue;
    first = std::min(first, i);
    if (others.size() < 6) ++others[counts[i]];
  }
  if (first == counts.size()) return "";
  std::string text =
      fmt::format("{}: not all {} updates: from value {} of {} on ", of, expected, first, counts.size());
  for (const auto& [count, values] : others) text += fmt::format("{} times {}, ", values, count);
  return text;
}

std::string WrongHash(const Tensors& tensors, const CountedJob& job, int64_t steps) {
  const Tensor& table = tensors.at("table.keys");
  const std::vector<float>& values = tensors.at("table.rows").values;
  std::map<int64_t, std::vector<double>> groups;
  for (size_t i = 0; i < table.keys.size(); ++i) {
    groups[static_cast<int64_t>(table.keys[i]) / kGroup].push_back(values[i]);
  }
  if (groups[kHot].size() != kHotKeys) return "keys of all rows are not there";
  // The first update that names a key makes it a candidate.
  std::string wrong = WrongCounts("keys of all rows", groups[kHot], steps - 1);
  if (!wrong.empty() || job.mode == "sync") return wrong;
  if (groups[kRound].size() != kRoundKeys * kTurns) return "keys of a sixteenth of the rows are not there";
  const Rows rows = RowsOf(job);
  wrong =
      WrongCounts("keys of a sixteenth of the rows", groups[kRound], rows.rows * rows.epochs / kTurns - 1);
  // Elsewhere a worker that is late may name a key when another has just named it, in the next epoch.
  if (!wrong.empty() || job.mode != "ssp" || job.split != "shard") return wrong;
  if (!groups[kAlone].empty()) return "keys of one row have come twice at once";
  return WrongCounts("keys of two rows", groups[kPair], 1);
}

}  // namespace

std::string CountedJob::Text() const {
  const char* const models[] = {"mlp", "wide_deep", "range table", "hash table"};
  return fmt::format("{}{}{}, {}, {} workers, {} in flight, {}, compress {}", trains ? "training " : "",
                     models[static_cast<int>(model)], clips_norm ? " clipped" : "", mode, workers, in_flight,
                     split, compress);
}

int64_t CountedJob::GlobalSteps() const {
  const Rows rows = RowsOf(*this);
  if (model == CountedModel::kDense) return (trains || mode == "sync" ? 100 : 300) * length;
  if (mode != "sync") return rows.rows / rows.batch * rows.epochs;
  const int64_t per_round = rows.batch * workers;
  return (rows.rows + per_round - 1) / per_round * rows.epochs;
}

int64_t CountedJob::LocalSteps() const { return mode == "sync" ? GlobalSteps() : GlobalSteps() / workers; }

int64_t CountedJob::LogEvery() const { return std::max<int64_t>(1, LocalSteps() / 40); }

std::string CountedJob::Sections() const {
  const Rows rows = RowsOf(*this);
  const std::string length =
      rows.epochs == 0 ? fmt::format("steps: {}", GlobalSteps()) : fmt::format("epochs: {}", rows.epochs);
  return fmt::format(
      "model: {{{}}}\n"
      "data: {{{}}}\n"
      "train: {{mode: {}, {}, batch_size: {}, in_flight: {}, reduce: {}, optimizer: {{{}}}}}\n"
      "net: {{compress: {}}}\n"
      "hooks: {{log_every_steps: {}, progressive: false}}\n",
      ModelOf(*this), DataOf(*this), mode, length, rows.batch, in_flight, trains ? "mean" : "sum",
      OptimizerOf(*this), compress, LogEvery());
}

void CountedJob::WriteFiles(const std::string& directory) const {
  const Rows rows = RowsOf(*this);
  const std::string path = directory + "/rows", count = fmt::format("{}", rows.rows);
  if (trains) {
    if (model == CountedModel::kDense) return;
    std::vector<std::string> words = {"synth", "criteo", "--rows", count, "--out", path};
    if (model != CountedModel::kWideDeep)
      words = {"synth", "libsvm", "--rows", count, "--width", "50000", "--out", path};
    DT_CHECK(Run(words).code == 0);
    return;
  }
  std::string text;
  if (model == CountedModel::kDense) text = DenseRows(rows.rows);
  for (int64_t row = 0; row < rows.rows && model != CountedModel::kDense; ++row) {
    // A value that leaves the gradient of a row of wide_deep above a 127th of the bias's.
    text += model == CountedModel::kHash
                ? HashRow(row)
                : fmt::format("{} {}:{}\n", kTarget, row + 1, model == CountedModel::kRange ? "1" : "0.0625");
  }
  WriteFile(path, text);
}

// Some steps with all features, behind which no gradient changes its sign.
std::string CountedJob::Beginning() const {
  if (model != CountedModel::kWideDeep || trains) return "";
  static const std::string made = [] {
    CountedJob job;
    job.model = CountedModel::kWideDeep;
    const std::string directory = NewDirectory();
    std::string row = kTarget;
    for (int64_t i = 1; i <= RowsOf(job).rows; ++i) row += fmt::format(" {}:0.00000095367431640625", i);
    WriteFile(directory + "/rows", row + "\n");
    WriteFile(directory + "/job.yaml",
              "cluster: {ps: [\"a:1\"], worker: [\"a:2\"]}\n" + job.Sections() +
                  fmt::format("checkpoint: {{dir: \"{}/checkpoints\", every_secs: 0}}\n", directory));
    const Json result =
        RunLocal(directory + "/job.yaml", {"--set", "train.epochs=32", "--set", "train.batch_size=1", "--set",
                                           "train.mode=sync", "--set", "train.optimizer.clip_value=0.0625"});
    DT_CHECK(result.is_object());
    return directory + "/checkpoints";
  }();
  return made;
}

std::string CountedJob::Wrong(const std::string& checkpoints, int64_t steps) const {
  const Tensors tensors = Export(checkpoints);
  if (tensors.empty()) return "dtrain export fails";
  if (trains) return "";
  const double units = model == CountedModel::kWideDeep ? kSmallUnits : 1;
  const Tensors before = Beginning().empty() ? Tensors() : Export(Beginning());
  for (const auto& [name, tensor] : tensors) {
    if (name == "table.keys" || (name == "table.rows" && model == CountedModel::kHash)) continue;
    std::vector<float> begun(tensor.values.size(), model == CountedModel::kDense ? 1 : 0);
    if (!before.empty()) begun = before.at(name).values;
    if (begun.size() != tensor.values.size()) return name + " has another size";
    std::vector<double> counts = Counts(tensor.values, begun, units);
    if (name == "bias") counts.resize(1);  // it has no embedding
    std::string wrong = WrongCounts(name, counts, name == "table.rows" ? RowsOf(*this).epochs : steps);
    if (!wrong.empty()) return wrong;
  }
  if (model == CountedModel::kHash) return WrongHash(tensors, *this, steps);
  const bool table = model != CountedModel::kDense;
  const auto rows = static_cast<size_t>(RowsOf(*this).rows);
  return table && tensors.at("table.keys").keys.size() != rows ? "not all rows are there" : "";
}

}  // namespace dtrain::testing
