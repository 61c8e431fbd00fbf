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

int64_t CountBad(const SparseProfile& rows) { return rows.faults.count + rows.label.missing; }

std::string BadRowsNote(const SparseProfile& rows, int64_t bad) {
  return fmt::format("{} left out (data.bad_rows: skip): without a label, or with faults{}",
                     bad == 1 ? "1 row is" : fmt::format("{} rows are", bad),
                     rows.faults.count == 0
                         ? ""
                         : fmt::format(", the first at {}:{}:{}: {}", rows.faults.file, rows.faults.first.line,
                                       rows.faults.first.column, rows.faults.example));
}

}  // namespace

Proposal ProposeSparseConfig(const SparseProfile& rows, const std::string& path, const SparseProfile& test,
                             const std::string& test_path) {
  const bool has_test = !test_path.empty(), libsvm = rows.format == DataFormat::kLibsvm;
  const char* const format = NameOf(rows.format);
  const ModelPlan plan = PlanModel(rows.label);
  const int64_t good = rows.rows - rows.label.missing;
  if (good < 2) throw UserError("{}: at least 2 rows with a label are needed.", rows.path);
  if (!plan.problem.empty()) {
    throw UserError("{}: its label {}. Is it the right file?", rows.path, plan.problem);
  }
  if (has_test && test.format != rows.format) {
    throw UserError(
        "{}: its lines are not those of {}, as in {}. One config reads both files: make them alike.",
        test.path, format, rows.path);
  }
  const int64_t inputs = std::max(rows.inputs, test.inputs), bad = CountBad(rows) + CountBad(test);
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
  if (libsvm && std::min(rows.index_base, test.index_base) == 0) {
    yaml += "  index_base: 0    # a feature has the index 0\n";
  }
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
  if (bad > 0) proposal.notes.push_back(BadRowsNote(rows, bad));
  run.AddNote(&proposal.notes);
  return proposal;
}

}  // namespace dtrain
