// Charts of a report, as HTML with inline SVG that fits any width: its texts keep their size. Thread: any;
// free functions.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "cmd/report/curves.h"
#include "cmd/report/run_events.h"

namespace dtrain {

// Colours are numbers of the page's style sheet; those beyond the last are the last, a grey.
constexpr size_t kColours = 8;

struct Series {
  std::string name;
  const Curve* curve = nullptr;
  double began_s = 0;                           // by time: the seconds since 1970 from which it counts
  std::optional<size_t> colour = std::nullopt;  // unset: by its place among the series
};

struct ChartOptions {
  std::string title, note;
  bool by_time = false;    // the x axis is seconds in place of steps
  bool from_zero = false;  // the y axis begins at 0
  bool dots = false;       // points are marked
};

// Returns a chart of the series; empty if none has two points. The y axis is logarithmic if the values are
// far apart.
std::string LineChart(const ChartOptions& options, const std::vector<Series>& series);

// Returns a chart of how often predictions of a probability came true; `observed` of each of `predicted`.
std::string ReliabilityChart(const std::vector<double>& predicted, const std::vector<double>& observed);

// Bar: parts of a whole, in the order of the names that are given to ShareBars().
struct Bar {
  std::string name;
  std::vector<double> parts;
};
std::string ShareBars(const std::vector<std::string>& names, const std::vector<Bar>& bars);

// Returns the events on lanes, one for each kind.
std::string TimeLine(const std::vector<RunEvent>& events);

// "0:07", "1:02:03"; of less than ten seconds "3.2 s".
std::string SpanText(double seconds);

}  // namespace dtrain
