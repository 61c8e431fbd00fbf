#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/names.h"
#include "cmd/tables/model_plan.h"
#include "cmd/tables/proposal.h"

namespace dtrain {
namespace {

constexpr int64_t kMaxEpochs = 5;  // more fit features of few rows too closely
constexpr double kRate = 0.1;      // of adagrad, for a label whose deviation is 1

const char* NameOf(DataFormat format) {
  return format == DataFormat::kLibsvm ? "libsvm" : format == DataFormat::kVw ? "vw" : "criteo";
}

// Those of vw that have no label are left out in any case.
int64_t CountBad(const SparseProfile& rows) {
  return rows.faults.count + (rows.format == DataFormat::kVw ? 0 : rows.label.missing);
}

std::string FaultText(const SparseProfile& rows) {
  return fmt::format("{}:{}:{}: {}", rows.faults.file, rows.faults.first.line, rows.faults.first.column,
                     rows.faults.example);
}

// A config in which the run would refuse a comment about the indexes must not be written.
void CheckSaidBase(const SparseProfile& rows, int64_t base) {
  if (rows.said_base.value_or(base) == base) return;
  throw UserError(
      "{}: its comment says that indexes begin at {}, and an index of the data is 0, or another comment says "
      "so. Correct the comment, or remove it.",
      rows.path, *rows.said_base);
}

std::string BadRowsNote(const SparseProfile& rows, int64_t bad) {
  return fmt::format("{} left out (data.bad_rows: skip): without a label, or with faults{}",
                     bad == 1 ? "1 row is" : fmt::format("{} rows are", bad),
                     rows.faults.count == 0 ? "" : ", the first at " + FaultText(rows));
}

}  // namespace

Proposal ProposeSparseConfig(const SparseProfile& rows, const std::string& path, const SparseProfile& test,
                             const std::string& test_path) {
  const bool has_test = !test_path.empty(), libsvm = rows.format == DataFormat::kLibsvm;
  const char* const format = NameOf(rows.format);
  const ModelPlan plan = PlanModel(rows.label);
  const int64_t good = rows.rows - rows.label.missing;
  if (rows.faults.count > good) {
    throw UserError("{} So it is in {} of {}.", FaultText(rows), rows.faults.count,
                    Plural(rows.rows + rows.faults.count, "row"));
  }
  if (good < 2) throw UserError("{}: at least 2 rows with a label are needed.", rows.path);
  if (!plan.problem.empty()) {
    throw UserError("{}: its label {}. Is it the right file?", rows.path, plan.problem);
  }
  if (has_test && test.format != rows.format) {
    throw UserError(
        "{}: its lines are not those of {}, as in {}. One config reads both files: make them alike.",
        test.path, format, rows.path);
  }
  const int64_t bad = CountBad(rows) + CountBad(test);
  const int64_t base = std::min(rows.index_base, test.index_base);
  CheckSaidBase(rows, base);
  CheckSaidBase(test, base);
  const int64_t inputs =
      std::max(rows.inputs + rows.index_base - base, has_test ? test.inputs + test.index_base - base : 0);
  const RunPlan run = PlanRun(good, has_test, kMaxEpochs);
  const auto source = [&](const char* name, const std::string& of) {
    return fmt::format("  {}: {{format: {}, path: {}}}\n", name, format, YamlText(of));
  };
  Proposal proposal;
  std::string& yaml = proposal.yaml;
  yaml = fmt::format("# Made by dtrain from {} of {}, {}. docs/config.md explains each key.\n",
                     Plural(rows.rows, "row"), rows.path, format);
  yaml += plan.Yaml("the label", libsvm ? fmt::format(", inputs: {}", inputs) : "");
  yaml += "data:\n" + source("train", path);
  if (has_test) yaml += source("test", test_path);
  if (libsvm && base == 0) {
    yaml += rows.said_base || test.said_base ? "  index_base: 0    # as a comment of the file says\n"
                                             : "  index_base: 0    # a feature has the index 0\n";
  }
  if (rows.has_weights || test.has_weights) yaml += "  weight: label    # it stands behind the label\n";
  if (plan.names) yaml += "  label_type: names    # numbers, too\n";
  yaml += run.RowsYaml(bad, plan);
  yaml += fmt::format(
      "train:\n  batch_size: {}\n  epochs: {}\n"
      "  reduce: sum    # a feature of few rows learns from each of them\n"
      "  optimizer: {{kind: adagrad, learning_rate: {:g}, initial_accumulator: 1}}\n",
      run.batch, run.epochs, LearningRate(kRate, rows.label, plan));
  yaml += run.EvalYaml();
  proposal.notes = {fmt::format("{} of {}{}", Plural(rows.rows, "row"), format,
                                libsvm ? fmt::format(", {}", Plural(inputs, "feature")) : ""),
                    LabelNote(rows.label, plan, "the label")};
  if (rows.format == DataFormat::kVw && rows.label.missing > 0) {
    proposal.notes.push_back(fmt::format("left out: {} without a label", Plural(rows.label.missing, "row")));
  }
  if (bad > 0) proposal.notes.push_back(BadRowsNote(rows, bad));
  run.AddNote(&proposal.notes);
  return proposal;
}

}  // namespace dtrain
