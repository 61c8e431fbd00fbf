#include "bench/report/table.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

namespace dtrain::bench {
namespace {

using Json = nlohmann::ordered_json;

// Both sides count the bytes themselves; more than this apart and the row compares different things.
constexpr double kBytesApart = 0.03;

// Three digits at least, and no more after the point than they need.
std::string Number(double value) {
  if (value >= 100) return fmt::format("{:.0f}", value);
  return value >= 10 ? fmt::format("{:.1f}", value) : fmt::format("{:.3f}", value);
}

std::string MedianText(const std::vector<double>& values) {
  return values.empty() ? "" : Number(Median(values));
}

std::string Spread(const std::vector<double>& values) {
  if (values.empty()) return "";
  const auto [least, most] = std::minmax_element(values.begin(), values.end());
  return fmt::format("{:.2f} to {:.2f}", *least, *most);
}

Json SeriesJson(const std::vector<double>& values) {
  if (values.empty()) return nullptr;
  const auto [least, most] = std::minmax_element(values.begin(), values.end());
  return {{"median", Median(values)}, {"min", *least}, {"max", *most}, {"rounds", values}};
}

Json OptionalJson(const std::optional<double>& value) { return value ? Json(*value) : Json(nullptr); }

}  // namespace

void PrintTableHead() {
  fmt::print("| {:56} | {:15} | {:>9} | {:>9} | {:>5} | {:13} | {:20} |\n", "what", "unit", "dtrain", "limit",
             "ratio", "ratios", "to reach");
  fmt::print("|{:-<58}|{:-<17}|{:->11}|{:->11}|{:->7}|{:-<15}|{:-<22}|\n", "", "", ":", ":", ":", "", "");
  std::fflush(stdout);
}

void PrintRow(const Row& row) {
  const std::vector<double> ratios = row.Ratios();
  fmt::print("| {:56} | {:15} | {:>9} | {:>9} | {:>5} | {:13} | {:20} |\n", row.what, row.unit,
             MedianText(row.dtrain), MedianText(row.limit),
             ratios.empty() ? "" : fmt::format("{:.2f}", Median(ratios)), Spread(ratios), row.to_reach);
  std::fflush(stdout);
  if (!row.dtrain_bytes || !row.limit_bytes) return;
  if (std::abs(*row.limit_bytes / *row.dtrain_bytes - 1) < kBytesApart) return;
  fmt::print(stderr, "{}: dtrain moved {:.0f} bytes an exchange and the limit {:.0f}\n", row.name,
             *row.dtrain_bytes, *row.limit_bytes);
}

std::string ReportJson(const std::string& machine, int rounds, const std::vector<Row>& rows) {
  Json list = Json::array();
  for (const Row& row : rows) {
    list.push_back(
        {{"name", row.name},
         {"what", row.what},
         {"unit", row.unit},
         {"dtrain", SeriesJson(row.dtrain)},
         {"limit", SeriesJson(row.limit)},
         {"ratio", SeriesJson(row.Ratios())},
         {"to_reach", row.to_reach},
         {"bytes_per_exchange",
          {{"dtrain", OptionalJson(row.dtrain_bytes)}, {"limit", OptionalJson(row.limit_bytes)}}}});
  }
  return Json({{"machine", machine}, {"rounds", rounds}, {"rows", list}}).dump(2) + "\n";
}

}  // namespace dtrain::bench
