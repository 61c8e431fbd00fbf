#include "cmd/tables/column_pair.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>

#include "base/names.h"

#include "trainer/config/item_text.h"
#include "trainer/config/user_text.h"

namespace dtrain {
namespace {

bool AreZeros(const ColumnProfile& column) { return column.min == 0 && column.max == 0; }

double Largest(const ColumnProfile& column) { return std::max(std::abs(column.min), std::abs(column.max)); }

// Whether numbers of two columns are unlike ones: in two formats, with % or K in one alone, or 8.007 beside
// whole numbers, where it may be 8007. `plain`: the decimals of numbers without a format.
bool AreOtherNumbers(const ColumnProfile& a, const ColumnProfile& b, Decimal plain) {
  static const std::set<std::string> scales = {"%", "\u2030", "k", "K", "M", "B", "T", "mn", "bn"};
  const std::string &one = a.number_format, &other = b.number_format;
  if (!one.empty() && !other.empty() && one != other) return true;
  const bool decimals = b.type == ColumnType::kNumber;
  if (const std::optional<NumberFormat> format = ParseNumberFormat(one); format && other.empty()) {
    const bool mixed = a.no_unit.count * 10 >= a.known;  // as values below 1K are plain
    if (scales.count(format->unit) > 0 && !AreZeros(b) && !mixed) return true;
    if (format->decimal != plain && decimals) return true;
  }
  return a.type == ColumnType::kWhole && Largest(a) >= 1000 && decimals && b.maybe_thousands;
}

bool AreOtherDates(const ColumnProfile& here, const ColumnProfile& there) {
  if (here.date_form == there.date_form) return false;
  if (here.type == ColumnType::kDate && there.type == ColumnType::kDate)
    return here.date_form != there.other_date_form || there.other_date_form.empty();
  if (!here.IsNumber() || !there.IsNumber() || here.date_form.empty()) return false;
  return !there.date_form.empty() || DatesAs(here, there) * 2 < there.known;
}

std::string Written(const ColumnProfile& column) {
  return !column.number_format.empty() ? column.number_format
         : !column.date_form.empty()   ? column.date_form
                                       : Shown(column.example);
}

}  // namespace

std::string WrittenUnlike(const TableProfile& table, size_t column, const TableProfile& test,
                          const ColumnProfile& there, bool is_label) {
  const ColumnProfile& here = table.columns[column];
  const Decimal plain = table.decimal_comma ? Decimal::kComma : Decimal::kPoint;
  const bool numbers = here.IsNumber() && there.IsNumber();
  const bool points = table.decimal_comma && !test.decimal_comma && there.type == ColumnType::kNumber &&
                      there.number_format.empty();
  const bool dates = !is_label && AreOtherDates(here, there);
  const bool others =
      numbers && (points || AreOtherNumbers(here, there, plain) || AreOtherNumbers(there, here, plain));
  if (!dates && !others) return "";
  const bool no_dates = dates && numbers && there.date_form.empty();
  return fmt::format(
      "{} is written as {}, and in {} as {}", ColumnName(table, column),
      no_dates ? fmt::format("numbers from {:.10g} to {:.10g}", there.min, there.max) : Written(there),
      table.path, Written(here));
}

std::vector<std::string> UnitNotes(const TableProfile& table, size_t column, const TableProfile& test,
                                   const ColumnProfile& there) {
  constexpr double kFar = 20;  // times
  const ColumnProfile& here = table.columns[column];
  const std::string name = ColumnName(table, column);
  std::vector<std::string> notes;
  if (!here.IsNumber() || !there.IsNumber()) return notes;
  const std::optional<NumberFormat> format = ParseNumberFormat(here.number_format);
  const Faults& without = there.no_unit;
  if (without.count > 0 && here.no_unit.count == 0) {
    notes.push_back(
        fmt::format("{}: {} of {} without the unit of {}, such as {} in line {}, read as if it were there",
                    name, Plural(without.count, "value"), test.path, there.number_format,
                    Shown(without.example), without.first.line));
  } else if (format && !format->unit.empty() && there.number_format.empty() && !AreZeros(there)) {
    notes.push_back(fmt::format("{}: no value of {} has the unit of {}: they are read as if it were there",
                                name, test.path, here.number_format));
  }
  const bool larger = std::abs(there.mean) > std::abs(here.mean);
  const ColumnProfile &large = larger ? there : here, &small = larger ? here : there;
  const double mean = std::abs(large.mean);
  const bool apart = mean > kFar * std::abs(small.mean) && mean > Largest(small);
  if (apart && !AreZeros(small) && !here.IsDate()) {
    notes.push_back(
        fmt::format("{}: from {:g} to {:g} in {}, and from {:g} to {:g} in {}. Are the units the same?", name,
                    there.min, there.max, test.path, here.min, here.max, table.path));
  }
  return notes;
}

int64_t DatesAs(const ColumnProfile& here, const ColumnProfile& there) {
  if (there.date_form == here.date_form) return there.known;
  return there.likely_form == here.date_form ? there.likely_dates : 0;
}

}  // namespace dtrain
