#include "bench/report/save_log.h"

#include <time.h>

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <sstream>
#include <stdexcept>

#include "bench/report/rows.h"

namespace dtrain::bench {
namespace {

// Reads "2026-11-22T04:18:23.399+01:00". All lines are of one machine, so their offset does not matter.
double Seconds(const std::string& time) {
  tm parts{};
  const char* const rest = strptime(time.c_str(), "%Y-%m-%dT%H:%M:%S", &parts);
  if (rest == nullptr) throw std::runtime_error("no time of a log line: " + time);
  return static_cast<double>(timegm(&parts)) + std::stod(std::string("0") + rest);
}

template <typename Use>
void ForEachLine(const std::string& log, Use&& use) {
  std::istringstream lines(log);
  for (std::string line; std::getline(lines, line);) {
    const auto object = nlohmann::json::parse(line, nullptr, false);
    if (object.is_object() && object.contains("time") && object.contains("text")) use(object);
  }
}

bool Meets(const LoggedSave& save, const LoggedStep& step) {
  return step.begin < save.end && step.end > save.begin;
}

}  // namespace

std::vector<LoggedSave> SavesIn(const std::string& log) {
  std::vector<LoggedSave> saves;
  ForEachLine(log, [&](const nlohmann::json& line) {
    const std::string text = line.at("text");
    const size_t name = text.find("/step-"), figures = text.find(" in ", name);
    LoggedSave save;
    double seconds = 0;
    if (text.rfind("saved ", 0) != 0 || figures == std::string::npos ||
        std::sscanf(text.c_str() + figures, " in %lf s; steps were held for %lf ms", &seconds,
                    &save.held_ms) != 2) {
      return;
    }
    save.step = std::stoll(text.substr(name + 6));
    save.end = Seconds(line.at("time"));
    save.begin = save.end - seconds;
    saves.push_back(save);
  });
  return saves;
}

std::vector<LoggedStep> StepsIn(const std::string& log) {
  std::vector<LoggedStep> steps;
  ForEachLine(log, [&](const nlohmann::json& line) {
    if (!line.contains("ms_per_step")) return;
    const double end = Seconds(line.at("time"));
    steps.push_back({line.at("local_step"), end - line.at("ms_per_step").get<double>() / 1000, end});
  });
  return steps;
}

StepCost CostOf(const std::vector<LoggedSave>& saves, const std::vector<LoggedStep>& steps) {
  std::vector<double> usual;
  for (const LoggedStep& step : steps) {
    const auto meets = [&](const LoggedSave& save) { return Meets(save, step); };
    if (std::none_of(saves.begin(), saves.end(), meets)) usual.push_back((step.end - step.begin) * 1000);
  }
  if (usual.empty()) throw std::runtime_error("a checkpoint was being written all the time");
  StepCost cost;
  cost.usual = Median(usual);
  cost.slowest_usual = *std::max_element(usual.begin(), usual.end()) - cost.usual;
  for (const LoggedSave& save : saves) {
    std::vector<double> more;
    for (const LoggedStep& step : steps) {
      if (Meets(save, step)) more.push_back((step.end - step.begin) * 1000 - cost.usual);
    }
    if (more.empty()) throw std::runtime_error("no step was made while a checkpoint was written");
    cost.slowest.push_back(*std::max_element(more.begin(), more.end()));
    double added = 0;
    for (const double one : more) added += one;
    cost.added.push_back(added);
  }
  return cost;
}

}  // namespace dtrain::bench
