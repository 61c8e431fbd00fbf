#include "cmd/report/curves.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <utility>

namespace dtrain {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxFiles = 10000;
constexpr size_t kMaxTags = 1000;

void Join(const Curve::Point& next, Curve::Point* point) {
  const auto count = static_cast<double>(point->count + next.count);
  const double share = static_cast<double>(next.count) / count;
  point->step += share * (next.step - point->step);
  point->wall_s += share * (next.wall_s - point->wall_s);
  point->mean += share * (next.mean - point->mean);
  point->min = std::min(point->min, next.min);
  point->max = std::max(point->max, next.max);
  point->count += next.count;
  point->last_step = next.last_step;
}

// The task that writes into a folder of the summaries: "worker 1" of worker-1, and worker 0 of none.
std::string TaskOf(const std::string& folder) {
  if (folder.empty() || folder == ".") return "worker 0";
  std::string task = folder;
  std::replace(task.begin(), task.end(), '-', ' ');
  return task;
}

// The event files in the order in which they were begun, which their names tell: "...tfevents.TIME.HOST...".
std::vector<std::string> EventFiles(const std::string& directory) {
  std::vector<std::string> paths;
  std::error_code failed;
  fs::recursive_directory_iterator entry(directory, failed);
  for (; !failed && entry != fs::recursive_directory_iterator(); entry.increment(failed)) {
    const bool is_file = fs::is_regular_file(entry->symlink_status());
    if (is_file && entry->path().filename().string().find("tfevents") != std::string::npos) {
      paths.push_back(entry->path().string());
    }
    if (paths.size() >= kMaxFiles) break;
  }
  std::sort(paths.begin(), paths.end());
  return paths;
}

// An older dtrain wrote eval/loss for the loss of either set.
std::string PresentTag(const std::string& tag, bool held_out) {
  if (tag.compare(0, 5, "eval/") != 0) return tag;
  return (held_out ? "validation" : "test") + tag.substr(4);
}

}  // namespace

void Curve::Add(const CurvePoint& point) {
  if (!std::isfinite(point.value) || !std::isfinite(point.wall_s)) return;
  while (!points_.empty() && points_.back().last_step >= point.step) points_.pop_back();
  last_ = point.value;
  const Point one{
      static_cast<double>(point.step), point.wall_s, point.value, point.value, point.value, 1, point.step};
  if (!points_.empty() && points_.back().count < in_a_row_) return Join(one, &points_.back());
  points_.push_back(one);
  if (points_.size() < 2 * kMaxPoints) return;
  in_a_row_ *= 2;
  for (size_t i = 0; i < kMaxPoints; ++i) {
    Point pair = points_[2 * i];
    Join(points_[2 * i + 1], &pair);
    points_[i] = pair;
  }
  points_.resize(kMaxPoints);
}

const CurvesByTask& RunCurves::Of(const std::string& tag) const {
  static const CurvesByTask none;
  const auto found = by_tag.find(tag);
  return found == by_tag.end() ? none : found->second;
}

RunCurves ReadRunCurves(const RunFiles& run) {
  const std::string directory = run.Place("summaries", "summaries");
  const bool held_out = TextIn(run.config, "eval.on") == "validation";
  RunCurves curves;
  for (const std::string& path : EventFiles(directory)) {
    const fs::path relative = fs::path(path).lexically_relative(directory);
    const std::string task = TaskOf(relative.parent_path().string());
    const std::string problem = ReadCurves(path, [&](const std::string& read, const CurvePoint& point) {
      const std::string tag = PresentTag(read, held_out);
      if (curves.by_tag.size() >= kMaxTags && curves.by_tag.count(tag) == 0) return;
      curves.by_tag[tag][task].Add(point);
    });
    if (problem.empty()) continue;
    curves.problems.push_back(
        fmt::format("{}: {}; the curves have what comes before.", relative.string(), problem));
  }
  for (auto& [tag, tasks] : curves.by_tag) {
    for (auto task = tasks.begin(); task != tasks.end();) {
      task = task->second.points().empty() ? tasks.erase(task) : std::next(task);
    }
  }
  return curves;
}

}  // namespace dtrain
