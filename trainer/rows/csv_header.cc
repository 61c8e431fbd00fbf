#include "trainer/rows/csv_header.h"

#include <fmt/core.h>
#include <strings.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "trainer/input/iso_date.h"

namespace dtrain {
namespace {

std::optional<double> FiniteNumber(const CsvReader& reader, int64_t column) {
  const std::string_view text = reader.fields()[static_cast<size_t>(column)].text;
  const std::optional<double> number = ExactNumber(text, reader.decimal());
  return number && std::isfinite(*number) ? number : std::nullopt;
}

// Returns the column of a label given by number, if its text in the first row is a name of a header or of a
// class; else -1.
int64_t TextLabel(const CsvReader& reader, const std::string& label) {
  const std::optional<int64_t> column = ColumnNumber(label);
  if (!column || *column >= static_cast<int64_t>(reader.fields().size())) return -1;
  return FiniteNumber(reader, *column) ? -1 : *column;
}

// HeaderFinder: decides from the first rows of a table whether the first names the columns.
class HeaderFinder {
 public:
  HeaderFinder(const std::vector<CsvRecord>& rows, size_t columns, Decimal decimal)
      : columns_(columns), decimal_(decimal) {
    for (const CsvRecord& row : rows) {
      if (row.fields.size() == columns) rows_.push_back(&row);
    }
    is_first_whole_ = !rows.empty() && rows[0].fields.size() == columns;
  }

  HeaderKind Find() const {
    if (!is_first_whole_) return HeaderKind::kNone;
    const std::vector<size_t> numbers = NumbersOfFirst();
    if (numbers.empty()) return AreNames() ? HeaderKind::kNames : HeaderKind::kNone;
    if (AreYears(numbers)) return HeaderKind::kNames;
    // One column may be named by a number where several others have texts over numbers.
    if (!IsCounting(numbers)) return TextsOverNumbers() > 1 ? HeaderKind::kNames : HeaderKind::kNone;
    if (rows_.size() == 1) return HeaderKind::kNumbered;
    for (const size_t column : numbers) {
      if (!IsWholeBelow(column)) return HeaderKind::kNumbered;
    }
    return HeaderKind::kCounting;
  }

 private:
  std::optional<double> Number(const CsvField& field) const { return ExactNumber(field.text, decimal_); }
  const CsvField& First(size_t column) const { return rows_[0]->fields[column]; }

  // A number in quotes is a name, and so is inf, for inflation.
  std::vector<size_t> NumbersOfFirst() const {
    std::vector<size_t> numbers;
    for (size_t column = 0; column < columns_; ++column) {
      const CsvField& field = First(column);
      const bool digits = field.text.find_first_of("0123456789") != std::string_view::npos;
      if (!field.quoted && digits && Number(field)) numbers.push_back(column);
    }
    return numbers;
  }

  bool IsCounting(const std::vector<size_t>& numbers) const {
    if (numbers.size() < 2) return false;
    const double begin = *Number(First(numbers[0]));
    for (size_t i = 0; i < numbers.size(); ++i) {
      if (*Number(First(numbers[i])) != begin + static_cast<double>(i)) return false;
    }
    return begin == 0 || begin == 1;
  }

  // Texts, and years that rise with hardly a gap: "country,1970,1971,1972".
  bool AreYears(const std::vector<size_t>& numbers) const {
    if (numbers.size() < 3 || numbers.size() == columns_) return false;
    const double begin = *Number(First(numbers[0])), end = *Number(First(numbers.back()));
    if (begin < 1500 || end > 2200 || (end - begin) > 1.1 * static_cast<double>(numbers.size() - 1))
      return false;
    for (size_t i = 1; i < numbers.size(); ++i) {
      const double year = *Number(First(numbers[i]));
      if (year != std::floor(year) || year <= *Number(First(numbers[i - 1]))) return false;
    }
    return true;
  }

  bool IsWholeBelow(size_t column) const {
    return std::all_of(rows_.begin() + 1, rows_.end(), [&](const CsvRecord* row) {
      const std::optional<double> number = Number(row->fields[column]);
      return number && std::isfinite(*number) && *number == std::floor(*number);
    });
  }

  // The first row has no numbers: it is names if other rows have some, or if its texts are nowhere below.
  bool AreNames() const {
    if (TextsOverNumbers() > 0) return true;
    for (size_t column = 0; column < columns_; ++column) {
      for (size_t row = 1; row < rows_.size(); ++row) {
        if (rows_[row]->fields[column].text == First(column).text) return false;
      }
    }
    return true;
  }

  // In how many columns the first row has a text and most others have numbers or dates.
  size_t TextsOverNumbers() const {
    size_t columns = 0;
    for (size_t column = 0; column < columns_; ++column) {
      const CsvField& first = First(column);
      if (IsMissing(first.text) || (!first.quoted && Number(first))) continue;
      int64_t numbers = 0, dates = 0;
      for (size_t row = 1; row < rows_.size(); ++row) {
        numbers += Number(rows_[row]->fields[column]) ? 1 : 0;
        dates += DaysOfDate(rows_[row]->fields[column].text) ? 1 : 0;
      }
      const int64_t half = static_cast<int64_t>(rows_.size() - 1) / 2;
      columns += numbers > half || (dates > half && !DaysOfDate(first.text)) ? 1 : 0;
    }
    return columns;
  }

  const size_t columns_;
  const Decimal decimal_;
  std::vector<const CsvRecord*> rows_;
  bool is_first_whole_ = false;
};

}  // namespace

HeaderKind FindHeader(const std::vector<CsvRecord>& records, size_t columns, Decimal decimal) {
  return HeaderFinder(records, columns, decimal).Find();
}

void CheckHeader(const CsvReader& reader, const DataSourceConfig& source, const std::string& section) {
  const int64_t label = TextLabel(reader, source.label);
  double before = -1;
  bool counting = true;
  for (int64_t i = 0; i < static_cast<int64_t>(reader.fields().size()); ++i) {
    if (i == label) continue;
    const std::optional<double> number = FiniteNumber(reader, i);
    if (!number) return;
    const bool any = i == 0 && label < 0, may_skip = i == 0 || i == label + 1;
    counting = counting && (any || *number == before + 1 || (may_skip && *number == before + 2));
    before = *number;
  }
  if (counting) return;
  throw reader.FaultAtRecord(
      fmt::format("the header has only numbers{}; it must name the columns. If the file has no header, set "
                  "{}.header to false.{}",
                  label < 0 ? "" : " beside the label", section,
                  label < 0 ? "" : fmt::format(" If it has one, give {}.label as a name.", section)));
}

bool HasNamesInOrder(const CsvReader& reader, const std::vector<std::string>& names, int64_t label) {
  const std::vector<CsvField>& fields = reader.fields();
  if (names.empty() || fields.size() != names.size() + (label >= 0 ? 1 : 0)) return false;
  for (size_t i = 0; i < names.size(); ++i) {
    if (fields[i + (label >= 0 && i >= static_cast<size_t>(label) ? 1 : 0)].text != names[i]) return false;
  }
  return true;
}

bool IsHeaderOf(const CsvReader& reader, const std::vector<std::string>& names, const std::string& label) {
  const std::vector<CsvField>& fields = reader.fields();
  const auto is_there = [&](const std::string& name) {
    return std::any_of(fields.begin(), fields.end(), [&](const CsvField& f) { return f.text == name; });
  };
  const auto is_number = [&](std::string_view text) {
    return ExactNumber(text, reader.decimal()).has_value();
  };
  const auto is_number_field = [&](const CsvField& field) { return is_number(field.text); };
  const auto is_label = [&](const CsvField& f) { return IsLabelName(std::string(f.text), label); };
  const std::optional<int64_t> number = ColumnNumber(label);
  if (!number && std::any_of(fields.begin(), fields.end(), is_label)) return true;
  if (std::none_of(fields.begin(), fields.end(), is_number_field)) return true;
  if (std::all_of(names.begin(), names.end(), is_number)) {
    return HasNamesInOrder(reader, names, -1) || (number && HasNamesInOrder(reader, names, *number));
  }
  return std::all_of(names.begin(), names.end(), is_there);
}

bool IsLabelName(const std::string& name, const std::string& label) {
  return label.empty() ? strcasecmp(name.c_str(), "label") == 0 : name == ColumnNameIn(label);
}

}  // namespace dtrain
