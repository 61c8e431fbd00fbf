#include "cmd/report/charts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <utility>

#include "cmd/report/html.h"
#include "trainer/hooks/progress.h"

namespace dtrain {
namespace {

constexpr double kUnits = 1000;      // the width and the height of a chart's picture
constexpr double kManyDecades = 30;  // a largest value so many times the smallest has a logarithmic axis
constexpr size_t kManySeries = 20;   // of more, the legend has the first ones

std::string ColourClass(size_t number) { return fmt::format("c{}", std::min(number, kColours)); }
std::string ColourClass(const std::vector<Series>& series, size_t i) {
  return ColourClass(series[i].colour.value_or(i));
}

// Axis: maps values to [0, kUnits], and knows the values to mark.
struct Axis {
  double low = 0, high = 1;
  bool logarithmic = false;

  double Scale(double value) const { return logarithmic ? std::log10(value) : value; }
  double At(double value) const { return kUnits * (Scale(value) - Scale(low)) / (Scale(high) - Scale(low)); }
  std::vector<double> Ticks(int count) const;
};

// The smallest of 1, 2 and 5 times a power of ten that is at least `step`.
double RoundStep(double step) {
  const double power = std::pow(10, std::floor(std::log10(step)));
  for (const double factor : {1.0, 2.0, 5.0}) {
    if (factor * power >= step * 0.9999) return factor * power;
  }
  return 10 * power;
}

std::vector<double> Axis::Ticks(int count) const {
  std::vector<double> ticks;
  if (!logarithmic) {
    const double step = RoundStep((high - low) / count);
    for (double at = std::ceil(low / step - 1e-6) * step; at <= high + step * 1e-6 && ticks.size() < 20;
         at += step) {
      ticks.push_back(std::abs(at) < step * 1e-6 ? 0 : at);
    }
    return ticks;
  }
  const double decades = std::log10(high / low);
  const int every = std::max(1, static_cast<int>(decades / count));
  for (auto decade = static_cast<int>(std::floor(std::log10(low))); std::pow(10, decade) <= high;
       decade += every) {
    for (const double factor : {1.0, 2.0, 5.0}) {
      const double at = factor * std::pow(10, decade);
      const bool shown = factor == 1.0 || decades < 2;
      if (shown && at >= low * 0.999 && at <= high * 1.001) ticks.push_back(at);
    }
  }
  return ticks;
}

Axis AxisOf(double low, double high, bool from_zero, bool may_be_logarithmic) {
  if (may_be_logarithmic && low > 0 && high > kManyDecades * low) return {low, high, true};
  if (from_zero) low = std::min(low, 0.0);
  if (!(high > low)) {
    const double room = high == 0 ? 1 : std::abs(high) * 0.1;
    return {from_zero && low == 0 && high > 0 ? 0 : low - room, high + room};
  }
  const double room = (high - low) * 0.04;
  return {low == 0 ? 0 : low - room, high + room};
}

std::string AxisNumber(double value) {
  if (std::abs(value) < 1e4) return fmt::format("{:.4g}", value);
  for (const auto& [unit, name] : {std::pair(1e9, "G"), std::pair(1e6, "M")}) {
    if (std::abs(value) >= unit) return fmt::format("{:.4g}{}", value / unit, name);
  }
  return fmt::format("{:.4g}k", value / 1e3);
}

// The labels and the lines of both axes.
struct Frame {
  Axis x, y;
  std::function<std::string(double)> x_text = AxisNumber, y_text = AxisNumber;

  std::string Grid() const {
    std::string path;
    for (const double tick : y.Ticks(6)) path += fmt::format("M0 {:.1f}H{}", kUnits - y.At(tick), kUnits);
    return fmt::format("<path class=\"grid\" d=\"{}\"/><path class=\"axis\" d=\"M0 0V{}H{}\"/>", path, kUnits,
                       kUnits);
  }
  std::string Labels() const {
    std::string html = "<div class=\"y\">";
    for (const double tick : y.Ticks(6)) {
      html += fmt::format("<span style=\"bottom:{:.1f}%\">{}</span>", y.At(tick) / kUnits * 100,
                          Html(y_text(tick)));
    }
    html += "</div><div class=\"x\">";
    for (const double tick : x.Ticks(4)) {
      const double at = x.At(tick) / kUnits * 100;
      // The last label must not stand beyond the edge of the page.
      const char* const align = at > 93 ? ";transform:translateX(-100%)" : "";
      html += fmt::format("<span style=\"left:{:.1f}%{}\">{}</span>", at, align, Html(x_text(tick)));
    }
    return html + "</div>";
  }
  std::string Around(const std::string& svg, const std::string& label) const {
    return fmt::format(
        "<div class=\"plot\"><svg viewBox=\"0 0 {0} {0}\" preserveAspectRatio=\"none\" role=\"img\" "
        "aria-label=\"{1}\">{2}{3}</svg>{4}</div>\n",
        kUnits, Html(label), Grid(), svg, Labels());
  }
};

std::string Caption(const std::string& title, const std::string& note) {
  return fmt::format("<figcaption><b>{}</b><span>{}</span></figcaption>\n", Html(title), Html(note));
}

using Points = std::vector<std::pair<double, double>>;  // in the units of the picture

std::string PathOf(const Points& points) {
  std::string path;
  for (const auto& [x, y] : points) {
    path += fmt::format("{}{:.1f} {:.1f}", path.empty() ? "M" : "L", x, kUnits - y);
  }
  return path;
}

std::string Dots(const Points& points) {
  std::string path;
  for (const auto& [x, y] : points) path += fmt::format("M{:.1f} {:.1f}h0", x, kUnits - y);
  return fmt::format("<path class=\"dots\" d=\"{}\"/>", path);
}

double XOf(const Curve::Point& point, const Series& series, bool by_time) {
  return by_time ? point.wall_s - series.began_s : point.step;
}

std::string Lines(const ChartOptions& options, const Frame& frame, const Series& series) {
  Points line, area;
  const auto clamped = [&](double value) { return std::clamp(value, frame.y.low, frame.y.high); };
  for (const Curve::Point& point : series.curve->points()) {
    const double x = frame.x.At(XOf(point, series, options.by_time));
    line.emplace_back(x, frame.y.At(point.mean));
    area.emplace_back(x, frame.y.At(clamped(point.max)));
  }
  const std::vector<Curve::Point>& points = series.curve->points();
  std::string svg;
  if (std::any_of(points.begin(), points.end(), [](const auto& point) { return point.count > 1; })) {
    for (size_t i = points.size(); i-- > 0;) {
      area.emplace_back(line[i].first, frame.y.At(clamped(points[i].min)));
    }
    svg += fmt::format("<path class=\"band\" d=\"{}Z\"/>", PathOf(area));
  }
  svg += fmt::format("<path class=\"line\" d=\"{}\"/>", PathOf(line));
  return options.dots || line.size() == 1 ? svg + Dots(line) : svg;
}

std::string Legend(const std::vector<Series>& series) {
  std::string html = "<ul class=\"legend\">";
  for (size_t i = 0; i < std::min(series.size(), kManySeries); ++i) {
    html += fmt::format("<li class=\"{}\">{} <b>{}</b></li>", ColourClass(series, i), Html(series[i].name),
                        NumberText(series[i].curve->last()));
  }
  if (series.size() > kManySeries)
    html += fmt::format("<li class=\"c8\">{} more</li>", series.size() - kManySeries);
  return html + "</ul>\n";
}

// The smallest and largest x and y of all series. The range of the means counts: a single value far off must
// not flatten the curve.
Frame FrameOf(const ChartOptions& options, const std::vector<Series>& series) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  double x_low = kInfinity, x_high = -kInfinity, y_low = kInfinity, y_high = -kInfinity;
  for (const Series& each : series) {
    for (const Curve::Point& point : each.curve->points()) {
      x_low = std::min(x_low, XOf(point, each, options.by_time));
      x_high = std::max(x_high, XOf(point, each, options.by_time));
      y_low = std::min(y_low, point.mean);
      y_high = std::max(y_high, point.mean);
    }
  }
  Frame frame;
  frame.x = x_high > x_low ? Axis{std::min(x_low, std::max(0.0, x_low - (x_high - x_low) * 0.1)), x_high}
                           : Axis{x_low - 1, x_low + 1};
  if (x_low < (x_high - x_low) * 0.1 && x_low >= 0) frame.x.low = 0;
  frame.y = AxisOf(y_low, y_high, options.from_zero, !options.from_zero);
  if (options.by_time) frame.x_text = SpanText;
  return frame;
}

}  // namespace

std::string SpanText(double seconds) {
  return seconds == 0 ? "0" : seconds < 10 ? fmt::format("{:.3g} s", seconds) : DurationText(seconds);
}

std::string LineChart(const ChartOptions& options, const std::vector<Series>& series) {
  const bool drawable = std::any_of(series.begin(), series.end(),
                                    [](const Series& each) { return each.curve->points().size() > 1; });
  if (!drawable) return "";
  const Frame frame = FrameOf(options, series);
  std::string svg;
  for (size_t i = series.size(); i-- > 0;) {  // the first one is drawn last, above all others
    svg += fmt::format("<g class=\"{}{}\"><title>{}</title>{}</g>", ColourClass(series, i),
                       series.size() > kColours && i > 0 ? " faint" : "", Html(series[i].name),
                       Lines(options, frame, series[i]));
  }
  const std::string note = options.note + (frame.y.logarithmic ? ", logarithmic" : "");
  const std::string label = fmt::format("{}: {}, at the end {}", options.title, series[0].name,
                                        NumberText(series[0].curve->last()));
  return fmt::format("<figure>\n{}{}{}</figure>\n", Caption(options.title, note), frame.Around(svg, label),
                     Legend(series));
}

std::string ReliabilityChart(const std::vector<double>& predicted, const std::vector<double>& observed) {
  Frame frame;
  frame.x = frame.y = Axis{0, 1};
  Points points;
  for (size_t i = 0; i < predicted.size(); ++i) {
    points.emplace_back(frame.x.At(predicted[i]), frame.y.At(observed[i]));
  }
  const std::string svg = fmt::format(
      "<path class=\"diagonal\" d=\"M0 {0}L{0} 0\"/><g class=\"c0\"><path class=\"line\" d=\"{1}\"/>{2}</g>",
      kUnits, PathOf(points), Dots(points));
  return fmt::format("<figure>\n{}{}</figure>\n",
                     Caption("Calibration",
                             "how often class 1 came true, by the predicted probability; on the "
                             "dashed line the model is right"),
                     frame.Around(svg, "observed frequency by predicted probability"));
}

std::string ShareBars(const std::vector<std::string>& names, const std::vector<Bar>& bars) {
  std::string html = "<ul class=\"legend\">";
  for (size_t i = 0; i < names.size(); ++i) {
    html += fmt::format("<li class=\"{}\">{}</li>", ColourClass(i), Html(names[i]));
  }
  html += "</ul>\n<div class=\"shares\">\n";
  for (const Bar& bar : bars) {
    double all = 0;
    for (const double part : bar.parts) all += part;
    html += fmt::format("<span>{}</span><div class=\"bar\">", Html(bar.name));
    for (size_t i = 0; i < bar.parts.size() && all > 0; ++i) {
      const double share = 100 * bar.parts[i] / all;
      if (share < 0.05) continue;
      html += fmt::format("<span class=\"{}\" style=\"width:{:.2f}%\" title=\"{} {:.1f} %\"></span>",
                          ColourClass(i), share, Html(names[i]), share);
    }
    html += "</div>\n";
  }
  return html + "</div>\n";
}

std::string TimeLine(const std::vector<RunEvent>& events) {
  if (events.empty()) return "";
  const double begin = events.front().wall_s, span = events.back().wall_s - begin;
  std::map<RunEventKind, std::string> lanes;
  for (const RunEvent& event : events) {
    const double at = span > 0 ? 100 * (event.wall_s - begin) / span : 0;
    lanes[event.kind] += fmt::format("<i style=\"left:{:.2f}%\" title=\"{} {}: {}\"></i>", at,
                                     SpanText(event.wall_s - begin), Html(event.task), Html(event.text));
  }
  static const std::map<RunEventKind, int> colours = {
      {RunEventKind::kStart, 0}, {RunEventKind::kCheckpoint, 2}, {RunEventKind::kWarning, 3},
      {RunEventKind::kLoss, 7},  {RunEventKind::kRecovery, 6},   {RunEventKind::kError, 7},
      {RunEventKind::kEnd, 0}};
  std::string html = "<div class=\"lanes\">\n";
  for (const auto& [kind, marks] : lanes) {
    html += fmt::format("<span>{}</span><div class=\"lane c{}\">{}</div>\n", LaneName(kind), colours.at(kind),
                        marks);
  }
  return html + fmt::format("<span></span><div class=\"ends\"><span>0</span><span>{}</span></div>\n</div>\n",
                            SpanText(span));
}

}  // namespace dtrain
