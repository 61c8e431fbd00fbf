#include "cmd/report/run_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>
#include <vector>

#include "base/machine_memory.h"
#include "base/names.h"
#include "cmd/report/charts.h"
#include "cmd/report/curves.h"
#include "cmd/report/html.h"
#include "cmd/report/model_figures.h"
#include "cmd/report/run_events.h"
#include "trainer/config/config.h"
#include "trainer/config/dump.h"
#include "trainer/result/run_account.h"

namespace dtrain {
namespace {

constexpr size_t kShownEvents = 200;
constexpr int64_t kMaxClassesInMatrix = 20;
constexpr size_t kMaxMistakes = 20;

std::string Tile(const std::string& value, const std::string& name) {
  return fmt::format("<div><b>{}</b><span>{}</span></div>\n", Html(value), Html(name));
}

std::string PercentText(double share) { return fmt::format("{:.2f} %", 100 * share); }

// The figures of the result, or of a run without one what its status knows.
std::string Tiles(const RunFiles& run) {
  std::string html;
  const auto add = [&](const Json& from, const char* key, const char* name) {
    if (const auto number = NumberIn(from, key)) html += Tile(NumberText(*number), name);
  };
  const Json &result = run.result, &status = run.status;
  for (const std::string set : {"validation", "test"}) {
    const auto accuracy = NumberIn(result, (set + "_accuracy").c_str());
    if (accuracy) html += Tile(PercentText(*accuracy), set + " accuracy");
    add(result, (set + "_auc").c_str(), (set + " AUC").c_str());
    add(result, (set + "_average_precision").c_str(), (set + " average precision").c_str());
    add(result, (set + "_loss").c_str(), (set + " loss").c_str());
    add(result, (set + "_d2").c_str(), (set + " D²").c_str());
    add(result, (set + "_rmse").c_str(), (set + " RMSE").c_str());
    add(result, (set + "_r2").c_str(), (set + " R²").c_str());
  }
  add(result, "final_loss", "loss of the last 100 steps");
  add(result, "progressive_loss", "progressive loss");
  if (!result.is_object()) add(status, "loss", "loss");
  const bool steps_here = NumberIn(result, "global_step").has_value();
  add(steps_here ? result : status, "global_step", "global steps");
  add(result.is_object() ? result : status, "steps_per_s", "steps/s");
  add(result.is_object() ? result : status, "examples_per_s", "examples/s");
  if (const auto seconds = NumberIn(result, "train_s")) html += Tile(SpanText(*seconds), "of training");
  const auto wall_s =
      NumberIn(result.is_object() ? result : status, result.is_object() ? "wall_s" : "elapsed_s");
  if (wall_s) html += Tile(SpanText(*wall_s), "in all");
  const auto left_s = NumberIn(status, "left_s");
  if (run.state == "running" && left_s) html += Tile(SpanText(*left_s), "left");
  return html.empty() ? "" : "<div class=\"tiles\">\n" + html + "</div>\n";
}

// What a reader of a run without a result wants to know first.
std::string StateSentence(const RunFiles& run) {
  const std::string time = TextIn(run.status, "time");
  const std::string last = time.empty() ? "It has written no status." : "Its last status is of " + time + ".";
  if (run.state == "running") return "The run has not ended. " + last;
  if (run.state != "dead") return "";
  return "The run has no result, and nobody seems to work on it: it was killed, or its machine went down. " +
         last;
}

std::string Head(const RunFiles& run) {
  std::string html = fmt::format("<section>\n<h1>{}</h1>\n<p>{} <span class=\"soft\">{}</span></p>\n",
                                 Html(run.name), StateHtml(run), Html(TextIn(run.record, "start_time")));
  const std::string error = TextIn(run.result, "error");
  if (!error.empty()) html += fmt::format("<p class=\"error\">{}</p>\n", Html(error));
  const std::string sentence = StateSentence(run);
  if (!sentence.empty()) html += fmt::format("<p>{}</p>\n", Html(sentence));
  return html + Tiles(run) + HtmlNotes(run.problems) + "</section>\n";
}

double BeganAt(const RunFiles& run, const RunCurves& curves) {
  double first = WallSeconds(TextIn(run.record, "start_time")).value_or(0);
  for (const auto& [tag, tasks] : curves.by_tag) {
    for (const auto& [task, curve] : tasks) {
      const double at = curve.points().front().wall_s;
      first = first == 0 ? at : std::min(first, at);
    }
  }
  return first;
}

// A worker has its colour in every chart; all other tasks are grey.
size_t ColourOf(const std::string& task) {
  const std::optional<TaskId> id = TaskNamed(task);
  return id && id->role == Role::kWorker ? static_cast<size_t>(id->index) : kColours;
}

std::string Curves(const RunFiles& run, const RunCurves& curves) {
  const double began_s = BeganAt(run, curves);
  std::string html;
  const auto chart = [&](const char* tag, ChartOptions options) {
    std::vector<Series> series;
    for (const auto& [task, curve] : curves.Of(tag)) {
      series.push_back({task, &curve, began_s, ColourOf(task)});
    }
    options.note = options.by_time ? "by time since the start" : "by global step";
    html += LineChart(options, series);
  };
  chart("validation/loss", {"Validation loss", "", false, false, true});
  chart("validation/accuracy", {"Validation accuracy", "", false, false, true});
  chart("validation/auc", {"Validation AUC", "", false, false, true});
  chart("test/loss", {"Test loss", "", false, false, true});
  chart("test/accuracy", {"Test accuracy", "", false, false, true});
  chart("test/auc", {"Test AUC", "", false, false, true});
  chart("loss", {"Training loss", "", false, false, false});
  chart("accuracy", {"Training accuracy", "", false, false, false});
  const auto moves = [&](const std::string& part) {
    const std::string schedule = "train.optimizer." + part + "schedule.";
    const std::string kind = TextIn(run.config, schedule + "kind");
    return (kind != "constant" && !(kind.empty() && !part.empty())) ||
           NumberIn(run.config, schedule + "warmup_steps").value_or(0) > 0;
  };
  const bool scheduled = moves("") || moves("deep.") || moves("factors.");
  if (scheduled) chart("learning_rate", {"Learning rate", "", false, false, false});
  chart("global_step/sec", {"Pace: global steps/s", "", true, true, false});
  chart("examples/sec", {"Pace: examples/s of each worker", "", true, true, false});
  chart("staleness", {"Staleness, the mean", "", true, true, false});
  chart("staleness/p95", {"Staleness, 95 % quantile", "", true, true, false});
  chart("workers", {"Workers that are connected", "", true, true, false});
  std::vector<std::string> notes = curves.problems;
  if (html.empty()) notes.push_back("There are no curves: no summaries were found (summary.dir).");
  if (!html.empty()) html = "<div class=\"charts\">\n" + html + "</div>\n";
  return html + HtmlNotes(notes);
}

std::string Events(const RunFiles& run) {
  const RunEvents found = EventsOf(run);
  if (found.events.empty()) return HtmlNotes({"No event was found in the logs."});
  std::vector<std::vector<std::string>> rows;
  for (const RunEvent& event : found.events) {
    if (rows.size() == kShownEvents) break;
    rows.push_back({SpanText(event.wall_s - found.events.front().wall_s), LaneName(event.kind),
                    Html(event.task), Html(event.text)});
  }
  std::vector<std::string> notes = found.problems;
  if (found.events.size() > kShownEvents) {
    notes.push_back(fmt::format("The first {} of {} are listed.", kShownEvents, found.events.size()));
  }
  return TimeLine(found.events) +
         HtmlDetails("All events", HtmlTable({"after", "what", "task", ""}, rows, 4) + HtmlNotes(notes));
}

constexpr const char* kParts[] = {"data", "compute", "hooks", "wait", "network"};

// The parts of a worker's time: seconds, by the result; or shares of the last ten seconds, by the status.
std::string Time(const RunFiles& run) {
  std::vector<Bar> bars;
  std::vector<std::vector<std::string>> rows;
  const auto add = [&](const std::string& name, const Json& worker, const Json& parts, bool seconds) {
    Bar bar{name, {}};
    std::vector<std::string> row = {Html(name),
                                    FigureText(NumberIn(worker, seconds ? "steps" : "local_steps"))};
    for (const char* const part : kParts) {
      const auto value = seconds ? NumberIn(PartOf(parts, part), "total_s") : NumberIn(parts, part);
      bar.parts.push_back(std::max(0.0, value.value_or(0)));
      row.push_back(!value ? "-" : seconds ? fmt::format("{:.2f} s", *value) : PercentText(*value));
    }
    const Json& staleness = PartOf(worker, "staleness");
    for (const char* const key : {"mean", "p95", "max"}) row.push_back(FigureText(NumberIn(staleness, key)));
    bars.push_back(std::move(bar));
    rows.push_back(std::move(row));
  };
  int index = 0;
  for (const Json& worker : ListOf(run.result, "workers"))
    add(fmt::format("worker {}", index++), worker, worker, true);
  if (bars.empty()) {
    for (const Json& task : ListOf(run.status, "tasks")) {
      const Json& parts = PartOf(task, "time");
      if (TextIn(task, "role") != "worker" || !parts.is_object()) continue;
      add(fmt::format("worker {:.0f}", NumberIn(task, "index").value_or(0)), task, parts, false);
    }
  }
  if (bars.empty()) return "";
  const std::vector<std::string> names(std::begin(kParts), std::end(kParts));
  return ShareBars(names, bars) +
         HtmlDetails("The figures", HtmlTable({"worker", "steps", "data", "compute", "hooks", "wait",
                                               "network", "staleness, mean", "p95", "max"},
                                              rows));
}

std::string Tasks(const RunFiles& run) {
  std::vector<std::vector<std::string>> rows;
  const Json &steps = ListOf(run.result, "local_steps"), &hosts = PartOf(run.result, "hosts"),
             &workers = ListOf(run.result, "workers");
  for (const Json& task : ListOf(run.status, "tasks")) {
    const auto index = static_cast<size_t>(std::clamp(NumberIn(task, "index").value_or(0), 0.0, 1e9));
    const bool worker = TextIn(task, "role") == "worker";
    const std::string name = fmt::format("{} {}", TextIn(task, "role"), index);
    const auto memory = NumberIn(task, "memory_bytes");
    const bool known = worker && index < steps.size() && steps.at(index).is_number();
    const auto local =
        known ? std::make_optional(steps.at(index).get<double>()) : NumberIn(task, "local_steps");
    const bool ended = worker && index < workers.size();
    const auto taken = ended ? NumberIn(workers.at(index), "rows") : NumberIn(task, "examples");
    const auto leases = NumberIn(task, "leases");
    const std::string process = TextIn(task, "process");
    rows.push_back({Html(name), Html(process.empty() ? TextIn(hosts, name.c_str()) : process),
                    Html(TextIn(task, "state")), worker ? FigureText(local) : "",
                    worker ? FigureText(taken) : "", leases ? FigureText(leases) : "",
                    memory ? Html(BytesText(*memory)) : "-"});
  }
  return rows.empty()
             ? ""
             : HtmlTable({"task", "process", "last state", "local steps", "rows", "leases", "memory"}, rows,
                         3);
}

std::string Placement(const ModelFigures& model) {
  std::vector<std::vector<std::string>> rows;
  for (size_t ps = 0; ps < model.placement.size(); ++ps) {
    std::string parts;
    for (const std::string& part : model.placement[ps].parts)
      parts += (parts.empty() ? "" : "<br>") + Html(part);
    rows.push_back(
        {fmt::format("ps {}", ps), parts, NumberText(static_cast<double>(model.placement[ps].values))});
  }
  return rows.empty() ? "" : "<h3>Placement</h3>\n" + HtmlTable({"ps", "holds", "values"}, rows, 2);
}

std::string ClassName(const EvaluationOutcome& outcome, size_t number) {
  return number < outcome.class_names.size() ? outcome.class_names[number] : fmt::format("{}", number);
}

// Rows are the true classes. A cell is as dark as the root of its share of the row: a few mistakes show, too.
std::string Matrix(const EvaluationOutcome& outcome) {
  const Confusion& confusion = outcome.figures.confusion;
  const auto classes = static_cast<int64_t>(confusion.classes().size());
  std::string html = "<div class=\"scroll\"><table class=\"matrix\">\n<tr><th></th>";
  for (int64_t i = 0; i < classes; ++i) {
    html += fmt::format("<th>{}</th>", Html(ClassName(outcome, static_cast<size_t>(i))));
  }
  html += "</tr>\n";
  for (int64_t label = 0; label < classes; ++label) {
    html += fmt::format("<tr><th>{}</th>", Html(ClassName(outcome, static_cast<size_t>(label))));
    const int64_t all = std::max<int64_t>(1, confusion.classes()[static_cast<size_t>(label)].support);
    for (int64_t predicted = 0; predicted < classes; ++predicted) {
      const int64_t rows = confusion.at(label, predicted);
      html += fmt::format("<td class=\"{}\" style=\"--p:{:.0f}%\">{}</td>", label == predicted ? "c2" : "c7",
                          60 * std::sqrt(static_cast<double>(rows) / static_cast<double>(all)),
                          rows == 0 ? "" : fmt::format("{}", rows));
    }
    html += "</tr>\n";
  }
  return html + "</table></div>\n";
}

// For many classes, the pairs that the model confuses most often.
std::string Mistakes(const EvaluationOutcome& outcome) {
  const Confusion& confusion = outcome.figures.confusion;
  if (!confusion.has_matrix()) return "";
  std::vector<std::pair<int64_t, std::pair<int64_t, int64_t>>> pairs;
  const auto classes = static_cast<int64_t>(confusion.classes().size());
  for (int64_t label = 0; label < classes; ++label) {
    for (int64_t predicted = 0; predicted < classes; ++predicted) {
      const int64_t rows = confusion.at(label, predicted);
      if (label != predicted && rows > 0) pairs.push_back({rows, {label, predicted}});
    }
  }
  std::stable_sort(pairs.begin(), pairs.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  std::vector<std::vector<std::string>> rows;
  for (size_t i = 0; i < std::min(pairs.size(), kMaxMistakes); ++i) {
    const auto& [label, predicted] = pairs[i].second;
    rows.push_back({Html(ClassName(outcome, static_cast<size_t>(label))),
                    Html(ClassName(outcome, static_cast<size_t>(predicted))),
                    NumberText(static_cast<double>(pairs[i].first))});
  }
  return HtmlTable({"class", "predicted as", "rows"}, rows, 2);
}

std::string Calibration(const EvaluationOutcome& outcome) {
  std::vector<double> predicted, observed;
  std::vector<std::vector<std::string>> rows;
  for (const Reliability::Bin& bin : outcome.figures.reliability.bins()) {
    if (!(bin.weight > 0)) continue;
    predicted.push_back(bin.predicted / bin.weight);
    observed.push_back(bin.observed / bin.weight);
    rows.push_back({PercentText(predicted.back()), PercentText(observed.back()), NumberText(bin.weight)});
  }
  if (rows.empty()) return "";
  return ReliabilityChart(predicted, observed) +
         HtmlDetails("The figures", HtmlTable({"predicted, mean", "came true", "rows, by weight"}, rows, 0));
}

std::string Thresholds(const EvaluationFigures& figures) {
  if (!figures.thresholds) return "";
  std::vector<std::vector<std::string>> rows;
  for (const ThresholdFigures& each : *figures.thresholds) {
    rows.push_back({NumberText(each.from), PercentText(each.share), PercentText(each.precision),
                    PercentText(each.recall)});
  }
  return HtmlDetails("Precision and recall over thresholds",
                     HtmlTable({"from this probability on", "of the rows", "precision", "recall"}, rows, 0));
}

std::string Evaluated(const ModelFigures& model) {
  if (!model.evaluation) return "";
  const EvaluationOutcome& outcome = *model.evaluation;
  std::string html = fmt::format("<p class=\"soft\">The weights of step {}:</p>\n<pre>{}</pre>\n",
                                 NumberText(static_cast<double>(model.step)),
                                 Html(fmt::format("{}\n", fmt::join(outcome.lines, "\n"))));
  if (!outcome.evaluation.classifies) return html;
  const auto classes = static_cast<int64_t>(outcome.figures.confusion.classes().size());
  const bool small = classes <= kMaxClassesInMatrix;
  html += small ? "<h3>Confusion: true classes in rows, predicted ones in columns</h3>\n" + Matrix(outcome)
                : "<h3>Mixed up most often</h3>\n" + Mistakes(outcome);
  return html + Calibration(outcome) + Thresholds(outcome.reported);
}

std::string Pictures(const ModelFigures& model) {
  if (model.pictures.empty()) return "";
  std::string html = fmt::format(
      "<p class=\"soft\">What each {} makes of each pixel: blue speaks for it, red against.</p>\n"
      "<div class=\"pictures\">\n",
      Html(model.pictures_of));
  for (const ModelFigures::Picture& picture : model.pictures) {
    html += fmt::format("<div><img src=\"{}\" alt=\"weights of {}\">{}</div>\n", picture.uri,
                        Html(picture.name), Html(picture.name));
  }
  return html + "</div>\n";
}

std::string LargestWeightsHtml(const ModelFigures& model) {
  if (model.weights.rows.empty()) return "";
  std::vector<std::vector<std::string>> rows = model.weights.rows;
  for (std::vector<std::string>& row : rows) {
    for (std::string& cell : row) cell = Html(cell);
  }
  return "<p class=\"soft\">The largest ones. One unit: what a step of 1 of the feature adds, before "
         "data.scale.</p>\n" +
         HtmlTable(model.weights.heading, rows);
}

std::string ValueText(const Json& value) {
  return value.is_string() ? value.get<std::string>() : value.dump();
}

// The keys that are not at their defaults, and all of them.
std::string ConfigHtml(const RunFiles& run) {
  if (!run.config.is_object()) return "";
  const Json defaults = FlatConfig(Config());
  std::vector<std::vector<std::string>> rows;
  std::string all;
  for (const auto& [key, value] : run.config.items()) {
    all += key + ": " + ValueText(value) + "\n";
    const Json* const usual = defaults.Find(key);
    const bool differs = usual == nullptr || *usual != value;
    if (differs) rows.push_back({Html(key), "<code>" + Html(ValueText(value)) + "</code>"});
  }
  return HtmlTable({"key", "not at its default"}, rows, 2) +
         HtmlDetails("All keys", "<pre>" + Html(all) + "</pre>\n");
}

std::string Provenance(const RunFiles& run) {
  std::vector<std::vector<std::string>> rows;
  const auto add = [&](const char* name, const std::string& text) {
    if (!text.empty()) rows.push_back({name, "<code>" + Html(text) + "</code>"});
  };
  std::string command;
  for (const Json& word : ListOf(run.record, "command_line")) {
    if (word.is_string()) command += (command.empty() ? "" : " ") + word.get<std::string>();
  }
  add("command", command);
  for (const char* const key : {"working_directory", "config_file", "version", "commit", "host", "start_time",
                                "end_time", "run_id", "config_digest", "checkpoints", "logs", "summaries"}) {
    add(key, TextIn(run.record, key));
  }
  add("model_crc", TextIn(run.result, "model_crc"));
  add("device", TextIn(run.result, "device"));
  if (const auto code = NumberIn(run.result, "exit_code")) add("exit_code", NumberText(*code));
  return HtmlTable({}, rows, 2);
}

std::string Warnings(const RunFiles& run) {
  std::string html;
  for (const Json& warning : ListOf(run.result, "warnings")) {
    if (warning.is_string()) html += fmt::format("<li>{}</li>\n", Html(warning.get<std::string>()));
  }
  return html.empty() ? "" : "<ul>\n" + html + "</ul>\n";
}

}  // namespace

std::string StateHtml(const RunFiles& run) {
  const char* const colour = run.ended_well()                                   ? "good"
                             : run.state == "running" || run.state == "stopped" ? "warn"
                                                                                : "bad";
  return fmt::format("<span class=\"state {}\">{}</span>", colour, Html(run.state));
}

std::string RunPage(const RunFiles& run) {
  const RunCurves curves = ReadRunCurves(run);
  const ModelFigures model = LookAtModel(run);
  return HtmlPage(run.name + " - dtrain",
                  Head(run) + HtmlSection("Warnings", Warnings(run)) +
                      HtmlSection("Curves", Curves(run, curves)) + HtmlSection("Events", Events(run)) +
                      HtmlSection("Where the time of the workers went", Time(run)) +
                      HtmlSection("Tasks", Tasks(run) + Placement(model)) +
                      HtmlSection("The model", Evaluated(model) + HtmlNotes(model.notes)) +
                      HtmlSection("Weights", LargestWeightsHtml(model) + Pictures(model)) +
                      HtmlSection("Config", ConfigHtml(run)) + HtmlSection("The run", Provenance(run)));
}

}  // namespace dtrain
