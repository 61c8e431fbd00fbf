#include "cmd/tables/model_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <set>

#include "base/error.h"
#include "base/names.h"
#include "base/printable.h"
#include "cmd/tables/profile_text.h"
#include "trainer/batch/class_names.h"
#include "trainer/config/data_config.h"
#include "trainer/config/user_text.h"

namespace dtrain {
namespace {

constexpr int64_t kMaxClasses = 1000;      // of texts
constexpr int64_t kMaxNumberClasses = 10;  // of whole numbers; more are a quantity
constexpr int64_t kMaybeClasses = 20;      // so few values of a quantity could be classes
constexpr int64_t kRowsToHoldOut = 10;     // fewer are all trained on
constexpr int64_t kDefaultBadRows = 1000;  // data.bad_rows_limit
constexpr int64_t kSteps = 8000;           // of a run, if its epochs are within bounds
constexpr int64_t kMinEpochs = 3;
constexpr int64_t kMinPoints = 6, kMaxPoints = 20;  // of the curve of held-out rows
constexpr int64_t kWorkers = 2;                     // of dtrain local
constexpr size_t kMaxName = 24;                     // bytes of a class in a note
constexpr int64_t kFewOf = 20;                      // one in so many rows may have a class of its own
constexpr double kSkewed = 3;                       // skewness; that of an exponential distribution is 2

// Chooses the loss of a quantity where its values say clearly what they are; the comment says why.
void PlanLoss(const ColumnProfile& label, bool whole, ModelPlan* plan) {
  constexpr double kFewZeros = 0.01, kManyZeros = 0.1;  // shares of the rows
  constexpr double kMoney = 50;                         // a larger mean of what is not 0 is no small count
  constexpr double kLongTail = 2;                       // skewness, that of an exponential distribution
  constexpr double kCountsSkewed = 0.5;                 // of poisson with a mean of 4
  constexpr double kAboutMean = 0.8;                    // variance over mean, which is 1 of poisson
  constexpr double kHeavy = 15, kFarOff = 5;            // kurtosis; deviations
  const double zeros =
      static_cast<double>(label.zeros) / static_cast<double>(std::max<int64_t>(label.numbers, 1));
  const double variance = label.deviation * label.deviation;
  const auto choose = [&](std::string keys, bool log_link, const std::string& why) {
    plan->loss = std::move(keys);
    plan->log_link = log_link;
    plan->comment += why;
  };
  if (label.min == 0 && label.mean > 0) {
    const double others = label.mean / (1 - zeros);  // the mean of what is not 0
    if (zeros >= kManyZeros && label.skewness >= kLongTail && (!whole || others >= kMoney)) {
      choose("loss: tweedie, loss_power: 1.5", true,
             fmt::format("; {:.0f} % are 0 and the others have a long tail, so tweedie", 100 * zeros));
    } else if (whole && zeros >= kFewZeros && others < kMoney && label.skewness >= kCountsSkewed &&
               variance >= kAboutMean * label.mean) {
      choose("loss: poisson", true,
             fmt::format("; whole from 0 on with a variance {:.2g} times the mean, as counts have: poisson",
                         variance / label.mean));
    }
  } else if (label.kurtosis >= kHeavy && label.max - label.mean > kFarOff * label.deviation &&
             label.mean - label.min > kFarOff * label.deviation) {
    choose(fmt::format("loss: huber, loss_delta: {:.2g}", label.deviation), false,
           fmt::format("; heavy tails on both sides (kurtosis {:.0f}), so huber", label.kurtosis));
  }
}

// Whether whole numbers from 0 on become rarer as they grow and spread as counts do.
bool MayCount(const ColumnProfile& label) {
  const double spread = label.deviation * label.deviation / label.mean;
  for (size_t i = 0; i < label.frequent.size(); ++i) {
    if (std::strtod(label.frequent[i].text.c_str(), nullptr) != static_cast<double>(i)) return false;
  }
  return label.min == 0 && spread > 0.8 && spread < 3;
}

ModelPlan PlanForClasses(const ColumnProfile& label) {
  ModelPlan plan;
  if (label.distinct < 2) {
    plan.problem = "has one value in all rows; there is nothing to learn";
  } else if (label.distinct > kMaxClasses) {
    plan.problem = fmt::format("has {} different texts; a label has classes or numbers", label.distinct);
  } else if (label.distinct == 2) {
    plan.kind = "logistic";
    plan.comment = "two classes";
  } else {
    plan.kind = "softmax";
    plan.outputs = label.distinct;
    plan.comment = fmt::format("{} classes", label.distinct);
  }
  plan.names = label.numbers > 0;
  return plan;
}

// Two values, and whole numbers that count from -1, 0 or 1, are classes. Other numbers are a quantity.
ModelPlan PlanForNumbers(const ColumnProfile& label) {
  ModelPlan plan;
  const bool whole = label.type == ColumnType::kWhole && !label.more_distinct && label.not_float.count == 0;
  const bool counts =
      whole && std::abs(label.min) <= 1 && label.max == label.min + static_cast<double>(label.distinct) - 1;
  if (label.distinct < 2) return PlanForClasses(label);
  if (label.distinct == 2) {
    plan.kind = "logistic";
    plan.comment = fmt::format("two classes, {} and {}", label.min, label.max);
    plan.names = !whole || label.max != 1 || (label.min != 0 && label.min != -1);
  } else if (counts && label.distinct <= kMaxNumberClasses) {
    plan.kind = "softmax";
    plan.outputs = label.distinct;
    plan.names = label.min != 0;
    plan.comment = fmt::format("the classes {} to {}; for a quantity: kind: linear{}", label.min, label.max,
                               MayCount(label) ? ", for counts with loss: poisson" : "");
  } else {
    plan.comment = fmt::format("a quantity, {:.6g} to {:.6g}{}", label.min, label.max,
                               whole && label.distinct <= kMaybeClasses
                                   ? "; for classes: kind: softmax, and data.label_type: names"
                                   : "");
    PlanLoss(label, whole, &plan);
  }
  return plan;
}

// Returns why a column cannot be a label; empty: it can. Rows without a label teach nothing, so a column with
// many gaps is hardly one.
std::string NoLabelBecause(const ColumnProfile& column) {
  constexpr int64_t kFew = 2;  // are none too many in a table of few rows
  const bool many = column.missing > kFew && column.missing * 10 > column.known;
  return many ? "has many gaps" : PlanModel(column).problem;
}

bool CanBeLabel(const ColumnProfile& column) {
  return NoLabelBecause(column).empty() && !column.index && !column.identifier;
}

std::string ColumnList(const TableProfile& table) {
  constexpr size_t kShown = 20;
  std::vector<std::string> names;
  for (size_t i = 0; i < std::min(kShown, table.columns.size()); ++i)
    names.push_back(YamlText(table.has_names() ? table.columns[i].name : fmt::format("{}", i)));
  return fmt::format("{}{}", fmt::join(names, ", "), table.columns.size() > kShown ? ", ..." : "");
}

LabelChoice FindWanted(const TableProfile& table, const std::string& wanted) {
  std::vector<std::string> names;
  for (size_t i = 0; i < table.columns.size(); ++i) {
    if (table.has_names() && table.columns[i].name == wanted) return {i, ""};
    names.push_back(table.columns[i].name);
  }
  const std::optional<int64_t> number = ColumnNumber(wanted);
  if (number && *number < static_cast<int64_t>(table.columns.size()))
    return {static_cast<size_t>(*number), ""};
  const std::string close = ClosestName(wanted, names);
  throw UserError("--label {}: {} has no such column; the columns are {}.{}", Shown(wanted), table.path,
                  ColumnList(table),
                  close.empty() ? " Choose one of them." : fmt::format(" Did you mean {}?", Shown(close)));
}

}  // namespace

ModelPlan PlanModel(const ColumnProfile& label) {
  if (label.IsNumber()) return PlanForNumbers(label);
  if (label.type == ColumnType::kCategory) return PlanForClasses(label);
  ModelPlan plan;
  plan.problem = label.type == ColumnType::kEmpty ? "has no values"
                 : label.type == ColumnType::kDate
                     ? "has dates; a label has classes or numbers"
                     : "has texts that nearly all differ; a label has classes or numbers";
  return plan;
}

LabelChoice ChooseLabel(const TableProfile& table, const std::string& wanted) {
  CheckRows(table);
  if (!wanted.empty()) return FindWanted(table, wanted);
  constexpr const char* kNames[] = {"label",    "target",   "class",     "y",       "click",   "clicked",
                                    "clk",      "is_click", "survived",  "outcome", "churned", "churn",
                                    "response", "species",  "diagnosis", "income"};
  std::string not_it;  // why a column of such a name, or the last, is passed over
  const auto passed_over = [&](size_t i, const std::string& why) {
    return fmt::format(", and {} cannot be the label: it {}", ColumnName(table, i), why);
  };
  for (const char* const name : kNames) {
    for (size_t i = 0; i < table.columns.size(); ++i) {
      if (LowerCase(table.columns[i].name) != name) continue;
      const std::string why = NoLabelBecause(table.columns[i]);
      if (why.empty()) return {i, "its name says so"};
      if (not_it.empty()) not_it = passed_over(i, why);
    }
  }
  for (size_t i = table.columns.size(); i-- > 0;) {
    if (!CanBeLabel(table.columns[i])) {
      const bool for_gaps = i + 1 == table.columns.size() && PlanModel(table.columns[i]).problem.empty();
      const std::string why = NoLabelBecause(table.columns[i]);
      if (for_gaps && not_it.empty() && !why.empty()) not_it = passed_over(i, why);
      continue;
    }
    return {i, (i + 1 == table.columns.size() ? "it is the last column" : "it is the last that can be one") +
                   not_it};
  }
  throw UserError("{}: no column can be a label: classes, or numbers that differ. Choose one: --label NAME.",
                  table.path);
}

std::string ModelPlan::Yaml(const std::string& label, const std::string& more) const {
  const std::string wide = outputs > 1 ? fmt::format(", outputs: {}", outputs) : "";
  const std::string of_loss = loss.empty() ? "" : ", " + loss;
  return fmt::format("model: {{kind: {}{}{}{}}}    # {}: {}\n", kind, wide, of_loss, more, label, comment);
}

std::string LabelNote(const ColumnProfile& label, const ModelPlan& plan, const std::string& name) {
  if (plan.IsLinear()) {
    if (!plan.loss.empty() || std::abs(label.skewness) < kSkewed)
      return fmt::format("model: linear; {} is {}", name, plan.comment);
    return fmt::format(
        "model: linear; {} is {}, and skewed (skewness {:.1f}): few rows decide the squared error. Its "
        "logarithm, or weights, may serve you better: docs/data.md, A skewed target.",
        name, plan.comment, label.skewness);
  }
  const std::string model = fmt::format("model: {}; {} has {}", plan.kind, name, plan.comment);
  if (label.frequent.empty() || label.known == 0) return model;
  const auto percent = [&](int64_t rows) {
    return 100.0 * static_cast<double>(rows) / static_cast<double>(label.known);
  };
  // Numbers as the plan's comment has them: 1, where the file has +1.
  const auto name_of = [&](const std::string& text) {
    return label.IsNumber() && !plan.names ? fmt::format("{}", std::strtod(text.c_str(), nullptr))
                                           : Printable(text, kMaxName);
  };
  return fmt::format("{}; the rarest, {}, is {:.1f} % of the rows; always \"{}\" is right in {:.1f} %", model,
                     name_of(label.rarest.text), percent(label.rarest.rows), name_of(label.frequent[0].text),
                     percent(label.frequent[0].rows));
}

void CheckScale(const std::string& path, const std::string& name, const ColumnProfile& label,
                const ModelPlan& plan) {
  constexpr double kMinDeviation = 1e-6, kMaxSize = 1e15;  // optimizers add 1e-8, and squares are float32
  const double size = std::max(std::abs(label.min), std::abs(label.max));
  if (!plan.IsLinear() || (label.deviation >= kMinDeviation && size <= kMaxSize)) return;
  throw UserError("{}: {} is {}: too {} to learn from in float32. Multiply the column by {:g}, or so.", path,
                  name, plan.comment, size > kMaxSize ? "large" : "small",
                  std::pow(10, -std::round(std::log10(label.deviation))));
}

std::string BiasText(const ColumnProfile& label, const ModelPlan& plan) {
  const double mean = plan.log_link ? std::log(label.mean) : label.mean;
  return plan.IsLinear() ? fmt::format(", init: {{output_bias: {:.6g}}}", mean) : "";
}

void CompareLabels(const std::string& path, const ColumnProfile& label, const ModelPlan& plan,
                   const std::string& test_path, const ColumnProfile& test, int64_t* bad_rows,
                   std::vector<std::string>* notes) {
  std::vector<std::string> known, there, others;
  for (const ValueCount& value : label.frequent) known.push_back(value.text);
  for (const ValueCount& value : test.frequent) there.push_back(value.text);
  if (!plan.IsLinear() && static_cast<int64_t>(known.size()) < label.distinct) return;
  // Beside 0 and 1 a run takes -1 and 1, too.
  const bool signs = !plan.names && known.size() == 2 && FindClass(known, "0") && !FindClass(there, "0");
  int64_t rows = 0;
  const bool lacks =
      !plan.IsLinear() && std::any_of(known.begin(), known.end(), [&](const std::string& text) {
        return !FindClass(there, signs && ClassKey(text) == "0" ? "-1" : text);
      });
  for (const ValueCount& value : test.frequent) {
    const bool minus = signs && ClassKey(value.text) == "-1";
    if (plan.IsLinear() ? ExactNumber(value.text).has_value() : minus || FindClass(known, value.text))
      continue;
    others.push_back(value.text);
    rows += value.rows;
  }
  // A class that is there alone, where one of these is not, is a spelling of its own.
  if (test.known == 0 || rows * 2 > test.known || (lacks && rows * kFewOf > test.known)) {
    throw UserError("{}: {}. One config reads both files: make them alike.", test_path,
                    test.known == 0
                        ? "no row has a label"
                        : fmt::format("its label is {}, and in {} {}", ListNames(others, "or"), path,
                                      plan.IsLinear() ? plan.comment : ListNames(known, "or")));
  }
  if (rows == 0) return;
  *bad_rows += rows;
  notes->push_back(
      fmt::format("{} of {} with a class that {} has not, {}: data.bad_rows: skip leaves them out.",
                  Plural(rows, "row"), test_path, path, ListNames(others, "or")));
}

RunPlan PlanRun(int64_t rows, bool has_test, int64_t max_epochs) {
  RunPlan plan;
  plan.has_test = has_test;
  plan.holds_out = !has_test && rows >= kRowsToHoldOut;
  plan.rows = rows = std::max<int64_t>(1, plan.holds_out ? rows * 4 / 5 : rows);
  const int64_t batch = rows < 10000 ? 32 : rows < 1000000 ? 128 : 1024;
  plan.batch = std::clamp<int64_t>(rows / 4, 1, batch);  // each of some workers needs one
  plan.epochs = std::clamp(kSteps * plan.batch / rows, kMinEpochs, max_epochs);
  const int64_t points = std::clamp(2 * plan.epochs, kMinPoints, kMaxPoints);
  plan.eval_every = std::max<int64_t>(1, plan.epochs * rows / plan.batch / kWorkers / points);
  return plan;
}

std::string RunPlan::RowsYaml(int64_t bad, const ModelPlan& model) const {
  std::string text;
  if (bad > 0) text += "  bad_rows: skip    # rows with faults are left out and counted\n";
  if (bad > kDefaultBadRows) text += fmt::format("  bad_rows_limit: {}\n", bad);
  if (!holds_out) return text;
  return text + fmt::format(
                    "  validation: 0.2    # of the rows, held out to measure the model on\n"
                    "  validation_by: {}\n",
                    model.IsLinear() ? "seed" : "stratified");
}

std::string RunPlan::EvalYaml() const {
  if (!holds_out && !has_test) return "";
  return fmt::format(
      "eval: {{on: {}, every_steps: {}}}    # steps of one worker: the curve of rows not trained on\n",
      holds_out ? "validation" : "test", eval_every);
}

void RunPlan::AddNote(std::vector<std::string>* notes) const {
  if (holds_out || has_test) return;
  notes->push_back("So few rows are all trained on: no accuracy is measured on rows that are held out.");
}

double LearningRate(double rate, const ColumnProfile& label, const ModelPlan& plan) {
  if (!plan.IsLinear() || plan.log_link || label.deviation == 0) return rate;
  rate *= label.deviation;
  const double unit = std::pow(10, std::floor(std::log10(rate)) - 1);
  return std::round(rate / unit) * unit;
}

std::string YamlText(const std::string& text) {
  constexpr char kPlain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_/0123456789.-";
  static const std::set<std::string> words = {"true", "false", "yes", "no",  "on", "off",
                                              "null", "y",     "n",   "nan", "inf"};
  const bool plain = text.find_first_not_of(kPlain) == std::string::npos;
  const bool begins = text.find_first_of("0123456789.-") != 0 && !text.empty();
  return plain && begins && words.count(LowerCase(text)) == 0 ? text : Quoted(text);
}

}  // namespace dtrain
