#include "bench/report/rows.h"

#include <fmt/core.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <exception>
#include <stdexcept>
#include <utility>

namespace dtrain::bench {

double Median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
}

std::vector<double> Row::Ratios() const {
  std::vector<double> ratios;
  for (size_t i = 0; i < std::min(dtrain.size(), limit.size()); ++i) {
    ratios.push_back(smaller_is_better ? limit[i] / dtrain[i] : dtrain[i] / limit[i]);
  }
  return ratios;
}

namespace {

bool HasChosenRow(const Case& one, const std::vector<std::string>& only) {
  return std::any_of(one.rows.begin(), one.rows.end(),
                     [&](const std::string& row) { return IsChosen(row, only); });
}

std::string AllNames(const std::vector<Case>& cases) {
  std::string names;
  for (const Case& one : cases) {
    for (const std::string& row : one.rows) names += "\n  " + row;
  }
  return names;
}

}  // namespace

bool IsChosen(const std::string& name, const std::vector<std::string>& only) {
  return only.empty() || std::any_of(only.begin(), only.end(), [&](const std::string& beginning) {
           return name.rfind(beginning, 0) == 0;
         });
}

std::vector<Case> Choose(const std::vector<Case>& cases, const std::vector<std::string>& only) {
  for (const std::string& beginning : only) {
    const bool found = std::any_of(cases.begin(), cases.end(),
                                   [&](const Case& one) { return HasChosenRow(one, {beginning}); });
    if (found) continue;
    throw std::runtime_error(
        fmt::format("--only {}: no row's name begins so; the rows are{}", beginning, AllNames(cases)));
  }
  std::vector<Case> chosen;
  std::copy_if(cases.begin(), cases.end(), std::back_inserter(chosen),
               [&](const Case& one) { return HasChosenRow(one, only); });
  return chosen;
}

void TakeTurns(int rounds, const std::function<void()>& dtrain, const std::function<void()>& limit) {
  for (int round = 0; round < rounds; ++round) {
    const bool dtrain_first = round % 2 == 0;
    (dtrain_first ? dtrain : limit)();
    (dtrain_first ? limit : dtrain)();
  }
}

namespace {

// OtherLacks: thrown where settings.beside has never done the job of a row.
struct OtherLacks : std::runtime_error {
  using std::runtime_error::runtime_error;
};

}  // namespace

void MeasureSides(const Settings& settings, const std::function<Rate(const std::string& program)>& dtrain,
                  const std::function<std::function<Rate()>()>& make_limit, Row* row,
                  const char* limit_name) {
  std::function<Rate()> other = [&] { return dtrain(settings.beside); };
  if (!settings.beside.empty()) {
    row->to_reach = "1";
  } else {
    other = make_limit();
    if (limit_name != nullptr) row->what += fmt::format(", beside {}", limit_name);
  }
  const auto add = [](const Rate& rate, std::vector<double>* values, std::optional<double>* bytes) {
    values->push_back(rate.per_s);
    *bytes = rate.bytes;
  };
  TakeTurns(
      settings.rounds, [&] { add(dtrain(settings.Program("cmd/dtrain")), &row->dtrain, &row->dtrain_bytes); },
      [&] {
        try {
          add(other(), &row->limit, &row->limit_bytes);
        } catch (const std::exception& error) {
          if (settings.beside.empty() || !row->limit.empty()) throw;
          throw OtherLacks(fmt::format("{} does not do it: {}", settings.beside, error.what()));
        }
      });
}

namespace {

using Json = nlohmann::ordered_json;

// Both sides count their bytes. If they differ by more than this, the row compares different things.
constexpr double kBytesApart = 0.03;

// Formats with at least three digits, and no more decimals than that needs.
std::string Number(double value) {
  if (value >= 100) return fmt::format("{:.0f}", value);
  return value >= 10 ? fmt::format("{:.1f}", value) : fmt::format("{:.3f}", value);
}

std::string MedianText(const std::vector<double>& values) {
  return values.empty() ? "" : Number(Median(values));
}

std::string Spread(const std::vector<double>& values) {
  if (values.empty()) return "";
  const auto [min, max] = std::minmax_element(values.begin(), values.end());
  return fmt::format("{:.2f} to {:.2f}", *min, *max);
}

Json SeriesJson(const std::vector<double>& values) {
  if (values.empty()) return nullptr;
  const auto [min, max] = std::minmax_element(values.begin(), values.end());
  return {{"median", Median(values)}, {"min", *min}, {"max", *max}, {"rounds", values}};
}

Json OptionalJson(const std::optional<double>& value) { return value ? Json(*value) : Json(nullptr); }

}  // namespace

void PrintTableHead(const char* other) {
  fmt::print("| {:56} | {:15} | {:>9} | {:>9} | {:>5} | {:13} | {:20} |\n", "what", "unit", "dtrain", other,
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
  fmt::print(stderr, "{}: dtrain moved {:.0f} bytes an exchange and the other side {:.0f}\n", row.name,
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

Measured MeasureAll(const std::vector<Case>& cases, const std::vector<std::string>& only) {
  Measured measured;
  for (const Case& one : cases) {
    try {
      for (Row& row : one.measure()) {
        if (!IsChosen(row.name, only)) continue;
        PrintRow(row);
        measured.rows.push_back(std::move(row));
      }
    } catch (const std::exception& error) {
      fmt::print(stderr, "{} is left out: {}\n", fmt::join(one.rows, ", "), error.what());
      ++(dynamic_cast<const OtherLacks*>(&error) != nullptr ? measured.lacking : measured.failed);
    }
  }
  return measured;
}

}  // namespace dtrain::bench
