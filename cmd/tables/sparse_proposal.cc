#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/names.h"
#include "cmd/tables/model_plan.h"
#include "cmd/tables/proposal.h"

namespace dtrain {
namespace {

constexpr int64_t kRowsToHoldOut = 10;
constexpr int64_t kDefaultBadRows = 1000;  // data.bad_rows_limit
constexpr int64_t kMaxEpochs = 5;          // more fit features of few rows too closely
constexpr double kRate = 0.1;              // of adagrad, for a label whose deviation is 1

const char* NameOf(DataFormat format) {
  return format == DataFormat::kLibsvm ? "libsvm" : format == DataFormat::kVw ? "vw" : "criteo";
}

}  // namespace

Proposal ProposeSparseConfig(const SparseProfile& rows, const std::string& path, const SparseProfile* test,
                             const std::string& test_path) {
  const char* const format = NameOf(rows.format);
  const ModelPlan plan = PlanModel(rows.label);
  if (!plan.problem.empty())
    throw UserError("{}: its label {}. Is it the right file?", rows.path, plan.problem);
  if (test != nullptr && test->format != rows.format) {
    throw UserError(
        "{}: its lines are not those of {}, as in {}. One config reads both files: make them alike.",
        test->path, format, rows.path);
  }
  const int64_t good = rows.rows - rows.label.missing;
  if (good < 2) throw UserError("{}: at least 2 rows with a label are needed.", rows.path);
  Proposal proposal;
  const auto add = [&](const std::string& text) { proposal.yaml += text; };
  add(fmt::format("# Made by dtrain from {} of {}, {}. docs/config.md explains each key.\n",
                  Plural(rows.rows, "row"), rows.path, format));
  const bool libsvm = rows.format == DataFormat::kLibsvm;
  const int64_t inputs = std::max(rows.inputs, test == nullptr ? 0 : test->inputs);
  add(plan.Yaml("the label", libsvm ? fmt::format(", inputs: {}", inputs) : ""));
  add(fmt::format("data:\n  train: {{format: {}, path: {}}}\n", format, YamlText(path)));
  if (test != nullptr) add(fmt::format("  test: {{format: {}, path: {}}}\n", format, YamlText(test_path)));
  const bool from_zero = rows.index_base == 0 || (test != nullptr && test->index_base == 0);
  if (libsvm && from_zero) add("  index_base: 0    # a feature has the index 0\n");
  if (plan.names) add("  label_type: names    # numbers, too\n");
  int64_t bad = rows.faults.count + rows.label.missing;
  if (test != nullptr) bad += test->faults.count + test->label.missing;
  if (bad > 0) add("  bad_rows: skip    # rows with faults are left out and counted\n");
  if (bad > kDefaultBadRows) add(fmt::format("  bad_rows_limit: {}\n", bad));
  const bool holds_out = test == nullptr && good >= kRowsToHoldOut;
  if (holds_out) {
    add(fmt::format(
        "  validation: 0.2    # of the rows, held out to measure the model on\n  validation_by: {}\n",
        plan.IsLinear() ? "seed" : "stratified"));
  }
  const RunPlan run = PlanRun(std::max<int64_t>(1, holds_out ? good * 4 / 5 : good), kMaxEpochs);
  const double rate =
      plan.IsLinear() && rows.label.deviation > 0 ? TwoDigits(kRate * rows.label.deviation) : kRate;
  add(fmt::format(
      "train:\n  batch_size: {}\n  epochs: {}\n  reduce: sum    # a feature of few rows learns from each "
      "of them\n  optimizer: {{kind: adagrad, learning_rate: {:g}, initial_accumulator: 1}}\n",
      run.batch, run.epochs, rate));
  if (holds_out || test != nullptr) {
    add(fmt::format(
        "eval: {{on: {}, every_steps: {}}}    # steps of one worker: the curve of rows not trained on\n",
        holds_out ? "validation" : "test", run.eval_every));
  }
  proposal.notes.push_back(fmt::format("{} of {}{}", Plural(rows.rows, "row"), format,
                                       libsvm ? fmt::format(", {}", Plural(inputs, "feature")) : ""));
  proposal.notes.push_back(LabelNote(rows.label, plan, "the label"));
  if (bad > 0) {
    proposal.notes.push_back(fmt::format(
        "{} left out (data.bad_rows: skip): without a label, or with faults{}",
        bad == 1 ? "1 row is" : fmt::format("{} rows are", bad),
        rows.faults.count == 0 ? ""
                               : fmt::format(", the first at {}:{}:{}: {}", rows.path, rows.faults.first.line,
                                             rows.faults.first.column, rows.faults.example)));
  }
  if (!holds_out && test == nullptr)
    proposal.notes.push_back(
        "So few rows are all trained on: no accuracy is measured on rows that are held out.");
  return proposal;
}

}  // namespace dtrain
