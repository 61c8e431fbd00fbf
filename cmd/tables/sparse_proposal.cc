#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/names.h"
#include "cmd/tables/model_plan.h"
#include "cmd/tables/proposal.h"

namespace dtrain {
namespace {

constexpr int64_t kMaxEpochs = 400;   // as of dense rows
constexpr int64_t kMaxFewEpochs = 5;  // more fit features of few rows too closely
constexpr int64_t kManyRows = 10;     // for each feature, which are no longer few
constexpr double kRate = 0.1;         // of adagrad, for a label whose deviation is 1

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

std::string BadRowsNote(const SparseProfile& rows, int64_t bad) {
  return fmt::format("{} left out (data.bad_rows: skip): without a label, or with faults{}",
                     bad == 1 ? "1 row is" : fmt::format("{} rows are", bad),
                     rows.faults.count == 0 ? "" : ", the first at " + FaultText(rows));
}

// Throws if a run would refuse the file, or leave out most of its rows.
void CheckRows(const SparseProfile& rows) {
  if (rows.faults.count > rows.rows - rows.label.missing) {
    throw UserError("{} So it is in {} of {}.", FaultText(rows), rows.faults.count,
                    Plural(rows.rows + rows.faults.count, "row"));
  }
  if (rows.said_base.value_or(rows.index_base) == rows.index_base) return;
  throw UserError(
      "{}: its comment says that indexes begin at 1, and an index is 0. Correct the comment, or remove it.",
      rows.path);
}

// `unlike`: how it is in the other file.
UserError DoubtfulLabels(const SparseProfile& rows, const std::string& unlike) {
  return UserError(
      "{}: its rows begin with numbers as in 1:0.5{}: labels and their weights, or features of rows without "
      "a label. Write a label before each row, or for weights the config by hand, with data.weight: label.",
      rows.path, unlike);
}

// Throws unless one config reads both files.
void CompareFiles(const SparseProfile& rows, const SparseProfile& test) {
  const auto refuse = [&](const std::string& difference, const char* more = "") {
    throw UserError("{}: {}. One config reads both files: make them alike.{}", test.path, difference, more);
  };
  if (test.format != rows.format)
    refuse(fmt::format("its lines are not those of {}, as in {}", NameOf(rows.format), rows.path));
  CheckRows(test);
  if (test.has_weights && !rows.has_weights) throw DoubtfulLabels(test, ", and not so in " + rows.path);
  const int64_t base = rows.index_base, other = test.said_base.value_or(std::min(base, test.index_base));
  if (other == base) return;
  refuse(fmt::format("its indexes begin at {}, and those of {} at {}", other, rows.path, base),
         " If the others begin there too, a first line must say so, as # zero-based indexes.");
}

}  // namespace

Proposal ProposeSparseConfig(const SparseProfile& rows, const std::string& path, const SparseProfile& test,
                             const std::string& test_path) {
  const bool has_test = !test_path.empty(), libsvm = rows.format == DataFormat::kLibsvm;
  const char* const format = NameOf(rows.format);
  const ModelPlan plan = PlanModel(rows.label);
  const int64_t base = rows.index_base, good = rows.rows - rows.label.missing;
  CheckRows(rows);
  if (good < 2) throw UserError("{}: at least 2 rows with a label are needed.", rows.path);
  if (rows.may_lack_labels && (rows.label.max > 1 || !plan.problem.empty())) throw DoubtfulLabels(rows, "");
  if (!plan.problem.empty()) {
    throw UserError("{}: its label {}. Is it the right file?", rows.path, plan.problem);
  }
  CheckScale(rows.path, "its label", rows.label, plan);
  const int64_t inputs = std::max(rows.inputs, has_test ? test.inputs + test.index_base - base : 0);
  int64_t bad = CountBad(rows) + CountBad(test) + (plan.IsLinear() ? rows.label.not_a_number.count : 0);
  Proposal proposal;
  std::vector<std::string>& notes = proposal.notes;
  notes = {fmt::format("{} of {}{}", Plural(rows.rows, "row"), format,
                       libsvm ? fmt::format(", {}", Plural(inputs, "feature")) : ""),
           LabelNote(rows.label, plan, "the label")};
  if (rows.format == DataFormat::kVw && rows.label.missing > 0)
    notes.push_back(fmt::format("left out: {} without a label", Plural(rows.label.missing, "row")));
  if (bad > 0) notes.push_back(BadRowsNote(rows.faults.count > 0 ? rows : test, bad));
  if (has_test) {
    CompareFiles(rows, test);
    CompareLabels(rows.path, rows.label, plan, test.path, test.label, &bad, &notes);
    if (base < test.index_base && !test.said_base)
      notes.push_back(fmt::format("No index of {} is 0, as of {}: if they begin at 1 there, all are one off.",
                                  test.path, rows.path));
  }
  const RunPlan run = PlanRun(good, has_test, rows.features * kManyRows > good ? kMaxFewEpochs : kMaxEpochs);
  const auto source = [&](const char* name, const std::string& of) {
    return fmt::format("  {}: {{format: {}, path: {}}}\n", name, format, YamlText(of));
  };
  std::string& yaml = proposal.yaml;
  yaml = fmt::format("# Made by dtrain from {} of {}, {}. docs/config.md explains each key.\n",
                     Plural(rows.rows, "row"), rows.path, format);
  yaml += plan.Yaml("the label",
                    (libsvm ? fmt::format(", inputs: {}", inputs) : "") + BiasText(rows.label, plan));
  yaml += "data:\n" + source("train", path);
  if (has_test) yaml += source("test", test_path);
  if (base == 0)
    yaml += fmt::format("  index_base: 0    # {}\n",
                        rows.said_base ? "as a comment of the file says" : "a feature has the index 0");
  if (rows.has_weights || test.has_weights) yaml += "  weight: label    # it stands behind the label\n";
  if (plan.names) yaml += "  label_type: names    # numbers, too\n";
  yaml += run.RowsYaml(bad, plan);
  yaml += fmt::format(
      "train:\n  batch_size: {}\n  epochs: {}\n"
      "  reduce: sum    # a feature of few rows learns from each of them\n"
      "  optimizer: {{kind: adagrad, learning_rate: {:g}, initial_accumulator: {:.2g}}}\n",
      run.batch, run.epochs, LearningRate(kRate, rows.label, plan),
      plan.IsLinear() && !plan.log_link ? std::min(1.0, std::pow(rows.label.deviation, 2)) : 1);
  yaml += run.EvalYaml();
  run.AddNote(&notes);
  return proposal;
}

}  // namespace dtrain
