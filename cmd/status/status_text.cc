#include "cmd/status/status_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

#include "base/machine_memory.h"
#include "base/names.h"
#include "base/printable.h"
#include "trainer/config/config.h"
#include "trainer/hooks/progress.h"

namespace dtrain {
namespace {

std::string TextOf(const Json& object, const char* key) { return Printable(TextIn(object, key)); }

// "worker 1"
std::string NameOf(const Json& task) {
  return fmt::format("{} {:.0f}", TextOf(task, "role"), NumberIn(task, "index").value_or(0));
}

// A figure with its unit, or "-".
std::string Figure(std::optional<double> number, const char* format) {
  return number ? fmt::format(fmt::runtime(format), *number) : "-";
}

std::string PaceText(std::optional<double> per_s) {
  return Figure(per_s, per_s && *per_s < 100 ? "{:.1f}" : "{:.0f}");
}

// ", without worker 1 and worker 3"; empty: none is lost.
std::string WithoutText(const std::vector<std::string>& lost) {
  std::string text;
  for (size_t i = 0; i < lost.size(); ++i) {
    text += (i == 0 ? ", without " : i + 1 < lost.size() ? ", " : " and ") + lost[i];
  }
  return text;
}

std::vector<std::string> LostTasks(const Json& status) {
  std::vector<std::string> lost;
  const Json* const tasks = status.Find("tasks");
  if (tasks == nullptr || !tasks->is_array()) return lost;
  for (const Json& task : *tasks) {
    if (task.is_object() && TextIn(task, "state") == "lost") lost.push_back(NameOf(task));
  }
  return lost;
}

// "training, step 300 of 1200 (25 %), 4100 steps/s, 410000 examples/s, 0:13 left, loss 0.42".
std::string RunLine(const Json& status) {
  std::string line = TextOf(status, "phase");
  const std::optional<double> step = NumberIn(status, "global_step"), steps = NumberIn(status, "steps");
  if (step.value_or(0) == 0 && line != "training") return line;  // nothing has begun
  if (step) line += fmt::format(", step {:.0f}", *step);
  if (step && steps && *steps > 0) {
    line += fmt::format(" of {:.0f} ({:.0f} %)", *steps, std::floor(std::min(100 * *step / *steps, 100.0)));
  }
  if (const auto pace = NumberIn(status, "steps_per_s")) line += fmt::format(", {} steps/s", PaceText(pace));
  if (const auto pace = NumberIn(status, "examples_per_s")) {
    line += fmt::format(", {} examples/s", PaceText(pace));
  }
  if (const auto left = NumberIn(status, "left_s")) line += fmt::format(", {} left", DurationText(*left));
  if (const auto loss = NumberIn(status, "loss")) line += fmt::format(", loss {:.4g}", *loss);
  return line + WithoutText(LostTasks(status));
}

// "sent 312.4 MiB (1.2 GiB before compression)".
std::string TrafficLine(const Json& status) {
  const auto sent = NumberIn(status, "bytes_sent");
  if (!sent) return "";
  const double saved = NumberIn(status, "bytes_saved").value_or(0);
  return fmt::format("sent {}{}", BytesText(*sent),
                     saved > 0 ? fmt::format(" ({} before compression)", BytesText(*sent + saved)) : "");
}

std::string CheckpointLine(const Json& status) {
  const Json* const found = status.Find("checkpoint");
  if (found == nullptr || !found->is_object()) return "";
  std::string line = fmt::format("checkpoint of step {:.0f}", NumberIn(*found, "step").value_or(0));
  if (const auto age = NumberIn(*found, "age_s")) line += fmt::format(", {} old", DurationText(*age));
  return fmt::format("{}: {}", line, TextOf(*found, "path"));
}

// "replica of ps 1 on ps 2: complete, 3 records behind" of each ps that has one.
std::string ReplicaLines(const Json& status) {
  std::string lines;
  const Json* const tasks = status.Find("tasks");
  if (tasks == nullptr || !tasks->is_array()) return lines;
  for (const Json& task : *tasks) {
    const Json* const replica = task.is_object() ? task.Find("replica") : nullptr;
    if (replica == nullptr || !replica->is_object()) continue;
    const Json* const counts = replica->Find("counts");
    const bool complete = counts != nullptr && counts->is_boolean() && counts->get<bool>();
    const double behind = NumberIn(*replica, "behind").value_or(0);
    lines += fmt::format("replica of {} on {}: {}{}\n", NameOf(task), TextOf(*replica, "on"),
                         complete ? "complete" : "not complete yet",
                         behind > 0 ? ", " + Plural(static_cast<int64_t>(behind), "record") + " behind" : "");
  }
  return lines;
}

// The parts of the time that count: "compute 62 % network 30 %".
std::string TimeText(const Json& task) {
  const Json* const found = task.Find("time");
  if (found == nullptr || !found->is_object()) return "-";
  std::string text;
  for (const char* const part : {"data", "compute", "hooks", "wait", "network"}) {
    const double share = std::round(100 * NumberIn(*found, part).value_or(0));
    if (share >= 1) text += fmt::format("{}{} {:.0f} %", text.empty() ? "" : ", ", part, share);
  }
  return text.empty() ? "-" : text;
}

using Row = std::vector<std::string>;

// `leases`: the run deals batches to workers as they ask (data.split: dynamic).
Row RowOf(const Json& task, bool leases) {
  const std::string process = TextOf(task, "process");
  const auto heard = NumberIn(task, "heard_s");
  const auto memory = NumberIn(task, "memory_bytes");
  const bool worker = TextOf(task, "role") == "worker";
  Row row{NameOf(task),
          TextOf(task, "state"),
          process.empty() ? TextOf(task, "address") : process,
          Figure(heard, "{:.1f} s"),
          memory ? BytesText(*memory) : "-",
          worker ? PaceText(NumberIn(task, "steps_per_s")) : "",
          worker ? TimeText(task) : ""};
  if (!leases) return row;
  row.insert(row.end() - 1, {worker ? Figure(NumberIn(task, "examples"), "{:.0f}") : "",
                             worker ? Figure(NumberIn(task, "leases"), "{:.0f}") : ""});
  return row;
}

std::string TableOf(const Json& tasks, int columns) {
  const bool leases = std::any_of(tasks.begin(), tasks.end(),
                                  [](const Json& task) { return NumberIn(task, "leases").has_value(); });
  std::vector<Row> rows = {{"task", "state", "process", "heard", "memory", "steps/s", "time of steps"}};
  if (leases) rows[0].insert(rows[0].end() - 1, {"rows", "leases"});
  for (const Json& task : tasks) {
    if (task.is_object()) rows.push_back(RowOf(task, leases));
  }
  return AlignedTable(rows, columns);
}

// Each line within `columns`. The texts are ASCII but for names of hosts.
std::string Cut(const std::string& text, int columns) {
  std::string cut;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    const std::string line = text.substr(begin, end - begin);
    const auto room = static_cast<size_t>(std::max(columns, 4));
    cut += (line.size() <= room ? line : Printable(line, room - 3)) + "\n";
    begin = end + 1;
  }
  return cut;
}

}  // namespace

std::string AlignedTable(const std::vector<std::vector<std::string>>& rows, int columns) {
  std::vector<size_t> widths(rows.at(0).size());
  for (const auto& row : rows) {
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string table;
  for (const auto& row : rows) {
    std::string line;
    for (size_t i = 0; i < row.size(); ++i) line += fmt::format("{:<{}}  ", row[i], widths[i]);
    line.erase(line.find_last_not_of(' ') + 1);
    table += line + "\n";
  }
  return Cut(table, columns);
}

std::string StatusText(const Json& status, int columns, bool with_run) {
  std::string text = with_run ? RunLine(status) + "\n" : "", warned;
  if (const std::string waiting = TextOf(status, "waiting"); !waiting.empty()) text += waiting + "\n";
  if (const std::string line = TrafficLine(status); !line.empty()) text += line + "\n";
  if (const std::string line = CheckpointLine(status); !line.empty()) text += line + "\n";
  text += ReplicaLines(status);
  const Json* const best = status.Find("evaluation");
  if (best != nullptr && best->is_object()) {
    const std::string set = TextOf(*best, "set");  // empty: of an older dtrain
    for (const EvalMetric each : kEvalMetrics) {
      const char* const metric = MetricName(each);
      const std::optional<double> figure = NumberIn(*best, fmt::format("best_{}", metric));
      if (!figure) continue;
      text += fmt::format("best evaluation: {}{} {:.4g} at step {:.0f}\n", set.empty() ? set : set + " ",
                          metric, *figure, NumberIn(*best, "best_step").value_or(0));
    }
  }
  const Json* const warnings = status.Find("warnings");
  if (warnings != nullptr && warnings->is_array()) {
    for (const Json& warning : *warnings) {
      if (warning.is_string()) warned += "warning: " + Printable(warning.get<std::string>()) + "\n";
    }
  }
  // The cause stands at the end of a warning, so it is whole.
  text = Cut(text, columns) + warned;
  const Json* const tasks = status.Find("tasks");
  if (tasks != nullptr && tasks->is_array()) text += "\n" + TableOf(*tasks, columns);
  return text;
}

std::string ResultLine(const Json& result) {
  std::string line = TextOf(result, "status");
  if (const auto step = NumberIn(result, "global_step")) line += fmt::format(", step {:.0f}", *step);
  const size_t before = line.size();
  const auto add = [&](const char* key, const char* name) {
    if (const auto figure = NumberIn(result, key)) line += fmt::format(", {} {:.4g}", name, *figure);
  };
  for (const std::string set : {"validation_", "test_"}) {
    for (const auto& [key, name] :
         {std::pair("loss", "loss"), std::pair("accuracy", "accuracy"), std::pair("auc", "AUC"),
          std::pair("deviance", "deviance"), std::pair("d2", "D2"), std::pair("rmse", "RMSE"),
          std::pair("mae", "MAE"), std::pair("r2", "R2")}) {
      add((set + key).c_str(), (set.substr(0, set.size() - 1) + " " + name).c_str());
      const auto base = NumberIn(result, (set + "base_" + key).c_str());
      if (base && *base != 0) line += fmt::format(" (without a model {:.4g})", *base);
    }
  }
  if (line.size() == before) add("final_loss", "loss of the last 100 steps");
  std::vector<std::string> lost;
  const Json* const workers = result.Find("lost_workers");
  if (workers != nullptr && workers->is_array()) {
    for (const Json& worker : *workers) {
      if (worker.is_number_integer()) lost.push_back(fmt::format("worker {}", worker.get<int64_t>()));
    }
  }
  line += WithoutText(lost);
  if (const auto wall = NumberIn(result, "wall_s")) line += fmt::format(", in {}", DurationText(*wall));
  if (const std::string error = TextOf(result, "error"); !error.empty()) line += ": " + error;
  return line;
}

std::string FirstLines(const std::string& text, int lines) {
  const auto count = std::count(text.begin(), text.end(), '\n');
  if (count <= lines || lines < 1) return text;
  size_t end = 0;
  for (int line = 1; line < lines; ++line) end = text.find('\n', end) + 1;
  return fmt::format("{}... and {} more lines\n", text.substr(0, end), count - lines + 1);
}

}  // namespace dtrain
