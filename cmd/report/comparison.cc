#include "cmd/report/comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <set>
#include <tuple>
#include <utility>

#include "base/error.h"
#include "base/names.h"
#include "base/printable.h"
#include "cmd/report/charts.h"
#include "cmd/report/curves.h"
#include "cmd/report/html.h"
#include "cmd/report/run_page.h"
#include "trainer/config/fields.h"
#include "trainer/config/user_text.h"
#include "trainer/result/verdict.h"

namespace dtrain {
namespace {

// The figures of a result that runs are compared by, in the order of their columns.
std::vector<std::string> Figures() {
  std::vector<std::string> figures;
  for (const std::string set : {"validation_", "test_"}) {
    for (const char* const name : {"accuracy", "auc", "average_precision", "loss", "log_loss", "deviance",
                                   "d2", "rmse", "mae", "r2"}) {
      figures.push_back(set + name);
    }
  }
  for (const char* const name :
       {"progressive_loss", "final_loss", "global_step", "train_s", "steps_per_s", "examples_per_s"}) {
    figures.push_back(name);
  }
  return figures;
}
// How the names of those end that are better the larger they are.
constexpr const char* kMoreIsBetter[] = {"accuracy", "auc", "precision", "r2", "d2", "global_step", "per_s"};
// What makes a run the best one if nobody says.
constexpr const char* kUsual[] = {"validation_accuracy", "test_accuracy",    "validation_loss",
                                  "test_loss",           "progressive_loss", "final_loss"};

// Keys that say where a run was and what it wrote, and nothing about its job. A key that ends with a point
// stands for a section.
constexpr const char* kNoDifference[] = {"run.",          "log.",           "metrics.",         "launch.",
                                         "security.",     "checkpoint.dir", "summary.",         "net.bind",
                                         "placement.log", "data.cache_dir", "data.cache_wait_s"};

// The keys that say most about a job, in their order. Seeds come behind all of them.
constexpr const char* kFirst[] = {"model.kind",
                                  "train.mode",
                                  "train.optimizer.kind",
                                  "train.optimizer.learning_rate",
                                  "train.batch_size",
                                  "train.epochs",
                                  "train.steps",
                                  "cluster.ps",
                                  "cluster.worker",
                                  "model.hidden",
                                  "model.",
                                  "train.",
                                  "cluster.",
                                  "data."};
// A table for people has no more keys.
constexpr size_t kMaxKeys = 6;
constexpr size_t kMaxCell = 40;

// `name`: a key, or a section with its point.
bool Names(const std::string& name, const std::string& key) {
  return name.back() == '.' ? key.compare(0, name.size(), name) == 0 : key == name;
}

bool SaysNothing(const std::string& key) {
  return std::any_of(std::begin(kNoDifference), std::end(kNoDifference),
                     [&](const std::string& each) { return Names(each, key); });
}

// Whether a key names files or an address, which are others each time and too long for a table.
bool IsPlace(const std::string& key) {
  const Field* const field = FindField(key);
  return field != nullptr && (field->type == FieldType::kInputPath || field->type == FieldType::kInputPaths ||
                              field->type == FieldType::kOutputPath || field->type == FieldType::kAddress);
}

// The place of a key among those that differ: the less, the more it says.
ptrdiff_t RankOf(const std::string& key) {
  const ptrdiff_t last = std::size(kFirst);
  if (IsPlace(key)) return last + 2;
  if (key == "data.seed" || key == "model.init.seed") return last + 1;
  const auto* const found =
      std::find_if(std::begin(kFirst), std::end(kFirst), [&](const char* name) { return Names(name, key); });
  return found - std::begin(kFirst);
}

// A key that may be a share or a number of rows is a double; as a number it is shown without a point.
std::string Shown(const Json& value) {
  if (value.is_null()) return "-";
  if (value.is_string()) return value.get<std::string>();
  const bool whole = value.is_number_float() && std::abs(value.get<double>()) < 1e15 &&
                     value.get<double>() == std::floor(value.get<double>());
  return whole ? fmt::format("{:.0f}", value.get<double>()) : value.dump();
}

// The value of a key. Of addresses only their number is of interest: ports are others each time. Of
// device.kind: auto, what the run took.
Json ComparedValue(const RunFiles& run, const std::string& key) {
  const Json* const found = run.config.Find(key);
  if (found == nullptr) return nullptr;
  const std::string took = TextIn(run.result, "device"), kind = took.substr(0, took.find(':'));
  if (key == "device.kind" && !kind.empty()) return kind;
  if (key == "device.tf32" && kind == "cpu") return nullptr;
  const bool addresses = key == "cluster.ps" || key == "cluster.worker";
  return addresses && found->is_array() ? Json(static_cast<int64_t>(found->size())) : *found;
}

// A figure of the result, as it stands there; the steps of a run without one are those of its status. Null:
// it has none.
Json FigureIn(const RunFiles& run, const std::string& figure) {
  if (NumberIn(run.result, figure.c_str())) return *run.result.Find(figure);
  const bool of_status = figure == "global_step" && NumberIn(run.status, "global_step");
  return of_status ? *run.status.Find(figure) : Json(nullptr);
}

std::optional<double> NumberOf(const RunFiles& run, const std::string& figure) {
  return NumberIn({{figure, FigureIn(run, figure)}}, figure.c_str());
}

bool MoreIsBetter(const std::string& figure) {
  return std::any_of(std::begin(kMoreIsBetter), std::end(kMoreIsBetter), [&](const std::string& end) {
    return figure.size() >= end.size() && figure.compare(figure.size() - end.size(), end.size(), end) == 0;
  });
}

std::string CsvField(const std::string& text) {
  if (text.find_first_of(",\"\r\n") == text.npos) return text;
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' ? "\"\"" : std::string(1, c);
  return quoted + "\"";
}

std::string CsvLine(const std::vector<std::string>& fields) {
  std::string line;
  for (const std::string& field : fields) line += (line.empty() ? "" : ",") + CsvField(field);
  return line + "\n";
}

}  // namespace

Comparison::Comparison(std::vector<RunFiles> runs, const std::string& by) : runs_(std::move(runs)) {
  ChooseFigure(by);
  // Worse than any number: there is none, or the run is not done.
  const auto rank = [&](const RunFiles& run) {
    const std::optional<double> number = NumberOf(run, by_);
    const double sign = MoreIsBetter(by_) ? -1 : 1;
    return std::tuple(!number, !run.ended_well(), sign * number.value_or(0));
  };
  std::stable_sort(runs_.begin(), runs_.end(),
                   [&](const RunFiles& a, const RunFiles& b) { return rank(a) < rank(b); });
  FindFigures();
  FindKeys();
}

// Refuses a figure that there is not, or that no run has, and names those that are like it.
void Comparison::CheckFigure(const std::string& by) const {
  const std::vector<std::string> names = Figures();
  const bool known = std::count(names.begin(), names.end(), by) > 0;
  if (known && IsThere(by)) return;
  std::string kind = by;
  for (const std::string set : {"eval_", "validation_", "test_"}) {
    if (by.compare(0, set.size(), set) == 0) kind = by.substr(set.size());
  }
  std::vector<std::string> alike, there;
  for (const std::string& name : names) {
    const bool is_alike = name == "validation_" + kind || name == "test_" + kind;
    if (is_alike && (!known || IsThere(name))) alike.push_back(name);
    if (IsThere(name)) there.push_back(name);
  }
  if (known) {
    throw UserError("--by {}: no run has it. There is {}.", by,
                    there.empty() ? "no figure yet" : ListText(alike.empty() ? there : alike, "and"));
  }
  throw UserError("--by {}: must be {}.{}", by, ListText(names, "or"),
                  alike.empty() ? "" : fmt::format(" Did you mean {}?", ListText(alike, "or")));
}

void Comparison::ChooseFigure(const std::string& by) {
  if (!by.empty()) {
    CheckFigure(by);
    by_ = by;
    return;
  }
  std::vector<const char*> figures(std::begin(kUsual), std::end(kUsual));
  const auto is_uneven = [](const RunFiles& run) {
    const auto share = [&](const char* key) { return NumberIn(run.result, key).value_or(0); };
    return std::max(share("validation_base_accuracy"), share("test_base_accuracy")) > kUnevenShare;
  };
  if (std::any_of(runs_.begin(), runs_.end(), is_uneven)) {
    figures.insert(figures.begin(), {"validation_log_loss", "test_log_loss"});
  }
  for (const char* const usual : figures) {
    by_ = usual;
    const auto has = [&](const RunFiles& run) {
      return !run.ended_well() || NumberOf(run, usual).has_value();
    };
    const auto is_done = [&](const RunFiles& run) { return run.ended_well(); };
    if (std::any_of(runs_.begin(), runs_.end(), is_done) && std::all_of(runs_.begin(), runs_.end(), has))
      return;
  }
}

bool Comparison::IsThere(const std::string& figure) const {
  return std::any_of(runs_.begin(), runs_.end(),
                     [&](const RunFiles& run) { return NumberOf(run, figure).has_value(); });
}

void Comparison::FindFigures() {
  const auto add = [&](const std::string& name) {
    if (IsThere(name)) figures_.push_back(name);
  };
  add(by_);
  for (const std::string& figure : Figures()) {
    if (figure != by_) add(figure);
  }
}

void Comparison::FindKeys() {
  std::set<std::string> seen;
  for (const RunFiles& run : runs_) {
    if (!run.config.is_object()) continue;
    for (const auto& [key, value] : run.config.items()) {
      if (SaysNothing(key) || !seen.insert(key).second) continue;
      const auto differs = [&, &name = key](const RunFiles& other) {
        return other.config.is_object() && ComparedValue(other, name) != ComparedValue(run, name);
      };
      if (std::any_of(runs_.begin(), runs_.end(), differs)) keys_.push_back(key);
    }
  }
  std::stable_sort(keys_.begin(), keys_.end(),
                   [](const std::string& a, const std::string& b) { return RankOf(a) < RankOf(b); });
}

std::vector<Comparison::Column> Comparison::Columns(const std::vector<std::string>& keys) const {
  std::vector<Column> columns = {{figures_.empty() ? by_ : figures_[0], true}};
  for (const std::string& key : keys) columns.push_back({key, false});
  for (size_t i = 1; i < figures_.size(); ++i) columns.push_back({figures_[i], true});
  return columns;
}

// The keys of a table for people.
std::vector<std::string> Comparison::FirstKeys() const {
  std::vector<std::string> first;
  for (const std::string& key : keys_) {
    if (first.size() < kMaxKeys && !IsPlace(key)) first.push_back(key);
  }
  return first;
}

// As people read it; "-": there is none.
std::string Comparison::CellOf(const RunFiles& run, const Column& column) {
  return column.is_figure ? FigureText(NumberOf(run, column.name)) : Shown(ComparedValue(run, column.name));
}

// A heading is the section of a key above its name, so that columns are narrow.
std::string Comparison::Text(size_t width) const {
  const std::vector<Column> columns = Columns(FirstKeys());
  std::vector<std::vector<std::string>> rows = {{"", ""}, {"run", "state"}};
  for (const Column& column : columns) {
    const size_t name = column.name.rfind('.') + 1;  // 0 without a section
    rows[0].push_back(column.name.substr(0, name));
    rows[1].push_back(column.name.substr(name));
  }
  for (const RunFiles& run : runs_) {
    std::vector<std::string>& row = rows.emplace_back();
    row = {Printable(run.name, kMaxCell), Printable(run.state)};
    for (const Column& column : columns) row.push_back(Printable(CellOf(run, column), kMaxCell));
  }
  std::vector<size_t> widths(rows[0].size());
  for (const auto& row : rows) {
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  // The figure that counts is always there, the others as far as there is room.
  constexpr size_t kAlways = 3;
  size_t shown = 0, length = 0;
  while (shown < widths.size() && (shown < kAlways || length + widths[shown] <= width)) {
    length += widths[shown++] + 2;
  }
  std::string text;
  for (const auto& row : rows) {
    std::string line;
    for (size_t i = 0; i < shown; ++i) {
      const bool number = i >= 2 && columns[i - 2].is_figure;
      line +=
          number ? fmt::format("{:>{}}  ", row[i], widths[i]) : fmt::format("{:<{}}  ", row[i], widths[i]);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    if (!line.empty()) text += line + "\n";
  }
  const auto last = columns.begin() + static_cast<ptrdiff_t>(shown) - 2;
  const auto is_figure = [](const Column& column) { return column.is_figure; };
  const auto figures = std::count_if(last, columns.end(), is_figure);
  const auto keys = static_cast<int64_t>(keys_.size()) - (last - columns.begin()) +
                    std::count_if(columns.begin(), last, is_figure);
  std::vector<std::string> more;
  if (keys > 0) more.push_back(Plural(keys, "more key differs", "more keys differ"));
  if (figures > 0) more.push_back(Plural(figures, "more figure"));
  if (more.empty()) return text;
  return text + fmt::format("{}: --csv or the page (-o) has them all\n", ListText(more, "and"));
}

std::string Comparison::Csv() const {
  const std::vector<Column> columns = Columns(keys_);
  std::vector<std::string> fields = {"run", "path", "state"};
  for (const Column& column : columns) fields.push_back(column.name);
  std::string csv = CsvLine(fields);
  for (const RunFiles& run : runs_) {
    fields = {run.name, run.path, run.state};
    for (const Column& column : columns) {
      const Json value = column.is_figure ? FigureIn(run, column.name) : ComparedValue(run, column.name);
      fields.push_back(value.is_null() ? "" : Shown(value));
    }
    csv += CsvLine(fields);
  }
  return csv;
}

Json Comparison::ToJson() const {
  Json list = Json::array();
  for (const RunFiles& run : runs_) {
    Json row = {{"run", run.name}, {"path", run.path}, {"state", run.state}};
    for (const std::string& figure : figures_) row[figure] = FigureIn(run, figure);
    Json config = Json::object();
    for (const std::string& key : keys_) config[key] = ComparedValue(run, key);
    row["config"] = config;
    list.push_back(row);
  }
  return {{"by", by_}, {"runs", list}};
}

std::string Comparison::Curves() const {
  std::vector<RunCurves> curves;
  std::vector<std::string> notes;
  for (const RunFiles& run : runs_) {
    curves.push_back(ReadRunCurves(run));
    for (const std::string& problem : curves.back().problems) notes.push_back(run.name + ": " + problem);
  }
  std::string html;
  const auto chart = [&](const char* tag, const ChartOptions& options) {
    std::vector<Series> series;
    for (size_t i = 0; i < runs_.size(); ++i) {
      const CurvesByTask& tasks = curves[i].Of(tag);
      if (tasks.empty()) continue;
      const Curve& curve = tasks.begin()->second;  // of the first task: the others have the like
      series.push_back({runs_[i].name, &curve, curve.points().front().wall_s});
    }
    html += LineChart(options, series);
  };
  chart("validation/loss", {"Validation loss", "by global step", false, false, true});
  chart("validation/accuracy", {"Validation accuracy", "by global step", false, false, true});
  chart("test/loss", {"Test loss", "by global step", false, false, true});
  chart("test/accuracy", {"Test accuracy", "by global step", false, false, true});
  chart("loss", {"Training loss", "of the first worker, by global step", false, false, false});
  chart("loss", {"Training loss", "of the first worker, by time", true, false, false});
  chart("accuracy", {"Training accuracy", "of the first worker, by global step", false, false, false});
  chart("global_step/sec", {"Pace: global steps/s", "by time", true, true, false});
  if (!html.empty()) html = "<div class=\"charts\">\n" + html + "</div>\n";
  return html + HtmlNotes(notes);
}

// A table with a row for each key and a column for each run; empty if the first table has all of them.
std::string Comparison::AllKeys() const {
  if (FirstKeys().size() == keys_.size()) return "";
  std::vector<std::string> heading = {"key"};
  for (const RunFiles& run : runs_) heading.push_back(Html(run.name));
  std::vector<std::vector<std::string>> rows;
  for (const std::string& key : keys_) {
    std::vector<std::string>& row = rows.emplace_back();
    row.push_back(Html(key));
    for (const RunFiles& run : runs_)
      row.push_back("<code>" + Html(Shown(ComparedValue(run, key))) + "</code>");
  }
  return HtmlDetails(fmt::format("All {} keys that differ", keys_.size()),
                     HtmlTable(heading, rows, heading.size()));
}

std::string Comparison::Page() const {
  std::vector<std::string> heading = {"run", "state"};
  const std::vector<Column> columns = Columns(FirstKeys());
  for (const Column& column : columns) heading.push_back(Html(column.name));
  std::vector<std::vector<std::string>> rows;
  std::vector<std::string> notes;
  for (const RunFiles& run : runs_) {
    std::vector<std::string>& row = rows.emplace_back();
    row = {Html(run.name), StateHtml(run)};
    for (const Column& column : columns) row.push_back(Html(CellOf(run, column)));
    for (const std::string& problem : run.problems) notes.push_back(run.name + ": " + problem);
    if (const std::string error = TextIn(run.result, "error"); !error.empty()) {
      notes.push_back(run.name + ": " + error);
    }
  }
  const std::string title = fmt::format("{} runs", runs_.size());
  const std::string head = fmt::format(
      "<section>\n<h1>{}</h1>\n<p class=\"soft\">The best one first, by {}. Of the config: the keys that "
      "differ.</p>\n{}{}</section>\n",
      title, Html(by_), HtmlTable(heading, rows, 2) + AllKeys(), HtmlNotes(notes));
  return HtmlPage(title + " - dtrain", head + HtmlSection("Curves", Curves()));
}

}  // namespace dtrain
