#include "cmd/models/output_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "base/error.h"
#include "base/json.h"
#include "base/names.h"
#include "trainer/config/model_config.h"
#include "trainer/config/user_text.h"
#include "trainer/metrics/metrics.h"
#include "trainer/worker/evaluate.h"

namespace dtrain {

std::string CsvFieldText(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == std::string::npos && !text.empty() && text.front() != ' ' &&
      text.back() != ' ') {
    return text;
  }
  std::string field = "\"";
  for (const char c : text) field += c == '"' ? std::string(2, c) : std::string(1, c);
  return field + '"';
}

namespace {

constexpr size_t kMaxShownInMatrix = 20;
constexpr size_t kMaxShownClasses = 100;

std::string ClassName(const EvaluationOutcome& outcome, size_t number) {
  return number < outcome.class_names.size() ? Shown(outcome.class_names[number]) : fmt::format("{}", number);
}

std::string Share(std::optional<double> figure) { return figure ? fmt::format("{:.4f}", *figure) : "-"; }

// Means over the classes that have a figure.
struct Means {
  std::optional<double> precision, recall, f1;
};

template <typename Of>
std::optional<double> Mean(const std::vector<ClassFigures>& classes, Of of) {
  double sum = 0;
  int count = 0;
  for (const ClassFigures& figures : classes) {
    if (const std::optional<double> figure = of(figures)) {
      sum += *figure;
      ++count;
    }
  }
  if (count == 0) return std::nullopt;
  return sum / count;
}

Means MeansOf(const std::vector<ClassFigures>& classes) {
  return {Mean(classes, [](const ClassFigures& of) { return of.precision(); }),
          Mean(classes, [](const ClassFigures& of) { return of.recall(); }),
          Mean(classes, [](const ClassFigures& of) { return of.f1(); })};
}

// Returns "test loss 0.25, accuracy 0.9, AUC 0.95 of 100 rows".
std::string FiguresText(const EvaluationOutcome& outcome) {
  const EvaluationFigures& figures = outcome.reported;
  std::string text = SetName(outcome.set);
  const auto add = [&](const char* format, const std::optional<double>& figure) {
    if (figure) text += fmt::format(fmt::runtime(format), *figure);
  };
  add(" loss {:.6g}", figures.loss);
  add(", accuracy {:.4f}", figures.accuracy);
  add(", AUC {:.4f}", figures.auc);
  add(", deviance {:.6g}", figures.deviance);
  add(", D2 {:.4f}", figures.d2);
  add(", RMSE {:.6g}", figures.rmse);
  add(", MAE {:.6g}", figures.mae);
  add(", R2 {:.6g}", figures.r2);
  return text + fmt::format(" of {}", Plural(outcome.evaluation.rows,
                                             outcome.set == EvalOn::kTest ? "row" : "held-out row"));
}

// Returns precision and recall over thresholds, as far as a reader can choose between them.
std::string ThresholdTable(const EvaluationFigures& figures) {
  if (!figures.thresholds) return "";
  std::string text =
      fmt::format("{:<10}  {:>9}  {:>9}  {:>9}\n", "threshold", "of rows", "precision", "recall");
  for (const ThresholdFigures& each : *figures.thresholds) {
    text += fmt::format("{:<10g}  {:>7.2f} %  {:>9.4f}  {:>9.4f}\n", each.from, 100 * each.share,
                        each.precision, each.recall);
  }
  return text;
}

size_t NameWidth(const EvaluationOutcome& outcome, size_t classes) {
  size_t width = 10;
  for (size_t k = 0; k < classes; ++k) width = std::max(width, ClassName(outcome, k).size());
  return width;
}

std::string ClassTable(const EvaluationOutcome& outcome) {
  const std::vector<ClassFigures>& classes = outcome.figures.confusion.classes();
  const size_t shown = std::min(classes.size(), kMaxShownClasses);
  const size_t width = NameWidth(outcome, shown);
  const auto line = [&](const std::string& name, const std::string& rows, const std::string& precision,
                        const std::string& recall, const std::string& f1) {
    return fmt::format("{:<{}}  {:>9}  {:>9}  {:>9}  {:>9}\n", name, width, rows, precision, recall, f1);
  };
  std::string text = line("class", "rows", "precision", "recall", "F1");
  for (size_t k = 0; k < shown; ++k) {
    const ClassFigures& of = classes[k];
    text += line(ClassName(outcome, k), fmt::format("{}", of.support), Share(of.precision()),
                 Share(of.recall()), Share(of.f1()));
  }
  if (shown < classes.size()) text += fmt::format("{} more\n", classes.size() - shown);
  const Means means = MeansOf(classes);
  return text + line("mean", fmt::format("{}", outcome.evaluation.rows), Share(means.precision),
                     Share(means.recall), Share(means.f1));
}

std::string ConfusionTable(const EvaluationOutcome& outcome) {
  const Confusion& confusion = outcome.figures.confusion;
  const size_t classes = confusion.classes().size();
  if (!confusion.has_matrix() || classes > kMaxShownInMatrix) return "";
  const size_t width = NameWidth(outcome, classes);
  std::string text = fmt::format("{:<{}}  taken for\n{:<{}}", "", width, "class", width);
  for (size_t k = 0; k < classes; ++k) text += fmt::format("  {:>7}", ClassName(outcome, k));
  for (size_t label = 0; label < classes; ++label) {
    text += fmt::format("\n{:<{}}", ClassName(outcome, label), width);
    for (size_t k = 0; k < classes; ++k) {
      const auto count = confusion.at(static_cast<int64_t>(label), static_cast<int64_t>(k));
      text += fmt::format("  {:>{}}", count, std::max<size_t>(7, ClassName(outcome, k).size()));
    }
  }
  return text + "\n";
}

Json OrNull(std::optional<double> figure) { return figure ? Json(*figure) : Json(); }

Json ClassesJson(const EvaluationOutcome& outcome) {
  Json list = Json::array();
  const std::vector<ClassFigures>& classes = outcome.figures.confusion.classes();
  for (size_t k = 0; k < classes.size(); ++k) {
    const ClassFigures& of = classes[k];
    const Json name = k < outcome.class_names.size() ? Json(outcome.class_names[k]) : Json(k);
    list.push_back({{"class", name},
                    {"rows", of.support},
                    {"precision", OrNull(of.precision())},
                    {"recall", OrNull(of.recall())},
                    {"f1", OrNull(of.f1())}});
  }
  return list;
}

Json ConfusionJson(const Confusion& confusion) {
  if (!confusion.has_matrix()) return Json();
  Json rows = Json::array();
  const auto classes = static_cast<int64_t>(confusion.classes().size());
  for (int64_t label = 0; label < classes; ++label) {
    Json row = Json::array();
    for (int64_t k = 0; k < classes; ++k) row.push_back(confusion.at(label, k));
    rows.push_back(std::move(row));
  }
  return rows;
}

std::string JsonText(const std::string& text) { return Json(text).dump(); }

// The field of a CSV row that holds what was kept. An empty field stays empty.
std::string KeptCsv(const KeptField& kept) {
  if (kept.text.empty()) return "";
  if (!kept.is_json) return CsvFieldText(kept.text);
  return CsvFieldText(kept.text[0] == '"' ? Json::Parse(kept.text).get<std::string>() : kept.text);
}

std::string KeptJson(const KeptField& kept) { return kept.is_json ? kept.text : JsonText(kept.text); }

// What is no number has no sign.
std::string CsvNumber(float value) { return std::isnan(value) ? "nan" : fmt::format("{}", value); }

// JSON has no infinity and no NaN.
std::string JsonNumber(float value) { return std::isfinite(value) ? fmt::format("{}", value) : "null"; }

std::string TextOf(const EvaluationOutcome& outcome) {
  std::string text = fmt::format("{}: global step {}, model crc {}\n{}\n", outcome.checkpoint,
                                 outcome.global_step, outcome.model_crc, FiguresText(outcome));
  for (const std::string& line : outcome.lines) text += line + "\n";
  if (!outcome.evaluation.classifies) return text;
  if (*outcome.figures.scores.why_none() != '\0') {
    text += fmt::format("no AUC: {}\n", outcome.figures.scores.why_none());
  }
  for (const std::string& table :
       {ThresholdTable(outcome.reported), ClassTable(outcome), ConfusionTable(outcome)}) {
    if (!table.empty()) text += "\n" + table;
  }
  return text;
}

Json JsonOf(const EvaluationOutcome& outcome) {
  Json json = {{"checkpoint", outcome.checkpoint},
               {"global_step", outcome.global_step},
               {"model_crc", outcome.model_crc},
               {"set", SetName(outcome.set)},
               {"warning", outcome.warning.empty() ? Json() : Json(outcome.warning)}};
  const Json figures = Json::Parse(EvaluationToJson(outcome.reported));
  for (const auto& [key, value] : figures.items()) json[key] = value;
  if (outcome.groups) {
    json["group_auc"] = OrNull(outcome.groups->auc());
    json["groups"] = outcome.groups->groups.size();
    json["groups_of_one_class"] = outcome.groups->without();
  }
  if (!outcome.evaluation.classifies) return json;
  json["threshold"] = OrNull(outcome.figures.threshold);
  json["classes"] = ClassesJson(outcome);
  const Means means = MeansOf(outcome.figures.confusion.classes());
  json["mean"] = {
      {"precision", OrNull(means.precision)}, {"recall", OrNull(means.recall)}, {"f1", OrNull(means.f1)}};
  json["confusion"] = ConfusionJson(outcome.figures.confusion);
  return json;
}

}  // namespace

std::string EvaluationText(const std::vector<EvaluationOutcome>& outcomes) {
  std::string text;
  for (const EvaluationOutcome& outcome : outcomes) text += (text.empty() ? "" : "\n") + TextOf(outcome);
  return text;
}

std::string EvaluationLine(const EvaluationOutcome& outcome) {
  return fmt::format("global step {}: {}\n", outcome.global_step, FiguresText(outcome));
}

std::string EvaluationJson(const std::vector<EvaluationOutcome>& outcomes) {
  Json json = JsonOf(outcomes[0]);
  for (size_t i = 1; i < outcomes.size(); ++i) json[SetName(outcomes[i].set)] = JsonOf(outcomes[i]);
  return json.dump() + "\n";
}

RunSummary EvaluationSummary(const std::vector<EvaluationOutcome>& outcomes) {
  RunSummary summary;
  summary.status = "done";
  for (const EvaluationOutcome& outcome : outcomes) {
    (outcome.set == EvalOn::kTest ? summary.test : summary.validation) = outcome.reported;
  }
  summary.global_step = outcomes[0].global_step;
  summary.model_crc = outcomes[0].model_crc;
  summary.checkpoint = outcomes[0].checkpoint;
  return summary;
}

PredictionText::PredictionText(PredictionFormat format, const ModelConfig& model, bool raw,
                               std::vector<std::string> class_names, const std::vector<std::string>& kept,
                               std::optional<double> threshold)
    : format_(format),
      linear_(!HasClasses(model)),
      log_link_(HasLogLink(model)),
      scores_(HasScores(model)),
      raw_(raw && !linear_),
      outputs_(*model.outputs),
      threshold_(threshold) {
  std::set<std::string> names;
  if (!raw_) names.insert("prediction");
  if (format == PredictionFormat::kJsonLines)
    names.insert(scores_ ? "score" : !raw_ ? "probabilities" : outputs_ == 1 ? "logit" : "logits");
  AddClasses(class_names, &names);
  for (const std::string& name : kept) {
    if (!names.insert(name).second) {
      throw UserError(
          "--keep {}: the predictions would have two columns of this name. Name it once, or rename "
          "it in the file.",
          Shown(name));
    }
    kept_.push_back(format == PredictionFormat::kCsv ? CsvFieldText(name) : JsonText(name));
    keeps_id_ = keeps_id_ || name == "id";
  }
}

void PredictionText::AddClasses(const std::vector<std::string>& class_names, std::set<std::string>* names) {
  if (linear_) return;
  const auto classes = static_cast<size_t>(raw_ ? outputs_ : ClassCount(outputs_));
  probabilities_.resize(scores_ ? 1 : classes);
  for (size_t k = 0; k < classes; ++k) {
    const bool named = k < class_names.size();
    const std::string name = named ? class_names[k] : fmt::format("{}", k);
    const std::string column = !raw_ ? "probability_" + name : outputs_ == 1 ? "logit" : "logit_" + name;
    const bool csv = format_ == PredictionFormat::kCsv;
    if (csv && !scores_) names->insert(column);
    texts_.push_back(csv ? CsvFieldText(name) : named ? JsonText(name) : name);
    columns_.push_back(csv ? CsvFieldText(column) : JsonText(name));
  }
  if (!scores_) return;
  columns_ = {"score"};
  names->insert("score");
}

std::string PredictionText::Header() const {
  if (format_ == PredictionFormat::kJsonLines) return "";
  std::string line;
  for (const std::string& name : kept_) line += name + ",";
  if (!raw_) line += "prediction,";
  for (const std::string& column : columns_) line += column + ",";
  line.back() = '\n';
  return line;
}

std::string PredictionText::Row(const float* outputs, const std::string& id, const KeptField* kept) {
  float mean = 0;
  if (log_link_) {
    mean = static_cast<float>(std::exp(static_cast<double>(*outputs)));
    outputs = &mean;
  }
  if (scores_) probabilities_[0] = *outputs;
  if (!linear_ && !raw_ && !scores_) Probabilities(outputs, outputs_, probabilities_.data());
  return format_ == PredictionFormat::kCsv ? CsvRow(outputs, kept) : JsonRow(outputs, id, kept);
}

std::string PredictionText::CsvRow(const float* outputs, const KeptField* kept) {
  std::string row;
  for (size_t i = 0; i < kept_.size(); ++i) row += KeptCsv(kept[i]) + ",";
  if (linear_ || raw_) {
    for (int64_t i = 0; i < outputs_; ++i) row += CsvNumber(outputs[i]) + ",";
    row.back() = '\n';
    return row;
  }
  row += ClassText(static_cast<size_t>(PredictedClass(outputs, outputs_, threshold_)));
  for (const float probability : probabilities_) row += "," + CsvNumber(probability);
  return row + "\n";
}

std::string PredictionText::JsonRow(const float* outputs, const std::string& id, const KeptField* kept) {
  std::string row = id.empty() || keeps_id_ ? "{" : "{\"id\":" + id + ",";
  for (size_t i = 0; i < kept_.size(); ++i) row += kept_[i] + ":" + KeptJson(kept[i]) + ",";
  if (linear_) return row + "\"prediction\":" + JsonNumber(*outputs) + "}\n";
  if (raw_ && scores_) return row + "\"score\":" + JsonNumber(*outputs) + "}\n";
  if (raw_ && outputs_ == 1) return row + "\"logit\":" + JsonNumber(*outputs) + "}\n";
  if (raw_) return row + "\"logits\":" + ByClass(outputs) + "}\n";
  row += "\"prediction\":" + ClassText(static_cast<size_t>(PredictedClass(outputs, outputs_, threshold_)));
  if (scores_) return row + ",\"score\":" + JsonNumber(*outputs) + "}\n";
  return row + ",\"probabilities\":" + ByClass(probabilities_.data()) + "}\n";
}

// A JSON object with a number for each class.
std::string PredictionText::ByClass(const float* numbers) const {
  std::string text = "{";
  for (size_t k = 0; k < columns_.size(); ++k) {
    text += (k > 0 ? "," : "") + columns_[k] + ":" + JsonNumber(numbers[k]);
  }
  return text + "}";
}

}  // namespace dtrain
