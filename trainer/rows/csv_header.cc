#include "trainer/rows/csv_header.h"

#include <fmt/core.h>
#include <strings.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <tuple>

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
      if (IsWholeRow(row.fields, columns)) rows_.push_back(&row);
    }
    is_first_whole_ = !rows.empty() && !rows_.empty() && rows_[0] == &rows[0];
  }

  HeaderKind Find(const std::string& label) const {
    if (!is_first_whole_) return HeaderKind::kNone;
    const std::vector<size_t> numbers = NumbersOfFirst();
    const auto is_label = [&](const CsvField& field) { return !ColumnNumber(label) && field.text == label; };
    const std::vector<CsvField>& first = rows_[0]->fields;
    if (!label.empty() && std::any_of(first.begin(), first.end(), is_label)) return HeaderKind::kNames;
    const size_t texts = TextsOverNumbers(), values = TextsThatRecur();
    if (numbers.empty()) return texts >= values ? HeaderKind::kNames : HeaderKind::kNone;
    if (AreYears(numbers) || AreNumbersBesideNoName(numbers)) return HeaderKind::kNames;
    // A column may be named by a number where others have texts over numbers, or new texts over classes.
    const bool may_name = texts > 1 || (texts == 1 && AreWholeOrRise(numbers));
    if (may_name && texts > values) return HeaderKind::kNames;
    const size_t fresh = NamesOverClasses();
    if (values == 0 && fresh > 1 && AreWholeOrRise(numbers)) return HeaderKind::kNames;
    if (!IsCounting(numbers)) return HeaderKind::kNone;
    if (fresh > 0) return HeaderKind::kNames;
    if (rows_.size() == 1) return HeaderKind::kNumbered;
    for (const size_t column : numbers) {
      if (!IsWholeBelow(column)) return HeaderKind::kNumbered;
    }
    return HeaderKind::kCounting;
  }

 private:
  std::optional<double> Number(const CsvField& field) const { return ExactNumber(field.text, decimal_); }
  const CsvField& First(size_t column) const { return rows_[0]->fields[column]; }

  // A number in quotes is a name, unless the rows below have quotes there too, and so is inf, for inflation.
  bool IsNumber(size_t column) const {
    const CsvField& field = First(column);
    const bool digits = field.text.find_first_of("0123456789") != std::string_view::npos;
    const bool quotes = field.quoted && !(rows_.size() > 1 && rows_[1]->fields[column].quoted);
    return !quotes && digits && Number(field);
  }
  std::vector<size_t> NumbersOfFirst() const {
    std::vector<size_t> numbers;
    for (size_t column = 0; column < columns_; ++column) {
      if (IsNumber(column)) numbers.push_back(column);
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

  // ",0,1,2", as pandas writes rows with their numbers: no row has a gap below the empty name.
  bool AreNumbersBesideNoName(const std::vector<size_t>& numbers) const {
    if (numbers[0] != 1 || !First(0).text.empty() || *Number(First(1)) != 0) return false;
    if (numbers.size() > 1 && !IsCounting(numbers)) return false;
    return std::none_of(rows_.begin() + 1, rows_.end(),
                        [](const CsvRecord* row) { return row->fields[0].text.empty(); });
  }

  // Numbers that may be names: whole and not negative, or three and more that rise.
  bool AreWholeOrRise(const std::vector<size_t>& numbers) const {
    bool whole = true, rises = numbers.size() > 2;
    for (size_t i = 0; i < numbers.size(); ++i) {
      const double number = *Number(First(numbers[i]));
      whole = whole && number >= 0 && number == std::floor(number);
      rises = rises && (i == 0 || number > *Number(First(numbers[i - 1])));
    }
    return whole || rises;
  }

  // In how many columns the first row has a text that is not there again, and the others come again and
  // again.
  size_t NamesOverClasses() const {
    size_t columns = 0;
    for (size_t column = 0; column < columns_; ++column) {
      std::set<std::string_view> texts;
      for (const CsvRecord* const row : rows_) texts.insert(row->fields[column].text);
      columns +=
          IsName(column) && !Recurs(column) && (texts.size() - 1) * 3 <= (rows_.size() - 1) * 2 ? 1 : 0;
    }
    return columns;
  }

  // A text that is no number and may be a name: no marker of a gap, such as \N or <NA>.
  bool IsName(size_t column) const {
    const CsvField& field = First(column);
    const std::string_view text = field.text;
    if (IsMissing(text) || IsNumber(column) || (!field.quoted && Number(field))) return false;
    const auto first = static_cast<unsigned char>(text[0]);
    return field.quoted || std::isalpha(first) != 0 || first == '_' || first >= 0x80;
  }

  // Whether the first row's text stands in its column again, in a line that is not the first one again.
  bool Recurs(size_t column) const {
    return std::any_of(rows_.begin() + 1, rows_.end(), [&](const CsvRecord* row) {
      return row->fields[column].text == First(column).text && !IsFirstAgain(*row);
    });
  }
  bool IsFirstAgain(const CsvRecord& row) const {
    for (size_t column = 0; column < columns_; ++column) {
      if (row.fields[column].text != First(column).text) return false;
    }
    return true;
  }

  // In how many columns the first row has a text that is a value: it is there again below.
  size_t TextsThatRecur() const {
    size_t columns = 0;
    for (size_t column = 0; column < columns_; ++column) {
      const CsvField& first = First(column);
      columns += !first.text.empty() && !IsNumber(column) && Recurs(column) ? 1 : 0;
    }
    return columns;
  }

  // In how many columns the first row has a text that is not there again and most others have numbers or
  // dates.
  size_t TextsOverNumbers() const {
    size_t columns = 0;
    for (size_t column = 0; column < columns_; ++column) {
      const CsvField& first = First(column);
      if (!IsName(column) || Recurs(column)) continue;
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

HeaderKind FindHeader(const std::vector<CsvRecord>& records, size_t columns, Decimal decimal,
                      const std::string& label) {
  return HeaderFinder(records, columns, decimal).Find(label);
}

namespace {

// Whether the first fields of rows may be the rows' names: they all differ, and none is a fraction.
bool AreNamesOfRows(const std::vector<CsvRecord>& rows, size_t columns) {
  std::set<std::string_view> names;
  return std::all_of(rows.begin(), rows.end(), [&](const CsvRecord& row) {
    const CsvField& first = row.fields[0];
    const double number = first.quoted ? 0 : ExactNumber(first.text).value_or(0);
    const bool can_be = names.insert(first.text).second && number == std::floor(number);
    return row.fields.size() != columns || can_be;
  });
}

}  // namespace

size_t FitHeader(const std::vector<CsvRecord>& below, CsvRecord* header) {
  std::vector<CsvField>& names = header->fields;
  std::map<size_t, size_t> counts;  // of rows, by how many fields they have
  for (const CsvRecord& row : below) ++counts[row.fields.size()];
  size_t usual = names.size(), most = 0;
  for (const auto& [fields, count] : counts) {
    if (count > most) std::tie(usual, most) = std::tie(fields, count);
  }
  const auto ends_empty = [&](const CsvRecord& row) {
    return row.fields.size() != usual || row.fields.back().text.empty();
  };
  if (usual == names.size() + 1) {
    const bool ends_alike = !names.empty() && names.back().text.empty();
    if (!ends_alike && std::all_of(below.begin(), below.end(), ends_empty)) return names.size();
    if (AreNamesOfRows(below, usual)) names.insert(names.begin(), CsvField{"", header->begin()});
  } else if (usual + 1 == names.size() && names.back().text.empty()) {
    names.pop_back();
  }
  return usual;
}

void FitHeader(CsvReader* reader) {
  constexpr size_t kRows = 100;
  const std::vector<CsvRecord> below = reader->PeekNext(kRows);
  FitHeader(below, reader->mutable_record());
}

bool IsHeaderAgain(const std::vector<CsvField>& fields, const std::vector<std::string>& names) {
  if (names.empty() || fields.empty()) return false;
  const size_t unnamed = names[0].empty() && fields.size() + 1 == names.size() ? 1 : 0;
  if (fields[0].text != names[unnamed] || !IsWholeRow(fields, names.size() - unnamed)) return false;
  return std::equal(names.begin() + static_cast<std::ptrdiff_t>(unnamed), names.end(), fields.begin(),
                    [](const std::string& name, const CsvField& field) { return name == field.text; });
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

bool HasNames(const CsvReader& reader, const std::vector<std::string>& names) {
  const std::vector<CsvField>& fields = reader.fields();
  const auto is_there = [&](const std::string& name) {
    return std::any_of(fields.begin(), fields.end(), [&](const CsvField& f) { return f.text == name; });
  };
  const auto is_number = [&](const std::string& name) {
    return ExactNumber(name, reader.decimal()).has_value();
  };
  return !names.empty() && !std::all_of(names.begin(), names.end(), is_number) &&
         std::all_of(names.begin(), names.end(), is_there);
}

bool IsHeaderOf(const CsvReader& reader, const InputForm& form, const std::string& label) {
  const std::vector<CsvField>& fields = reader.fields();
  const std::vector<std::string> names = ColumnNames(form);
  const auto is_label = [&](const CsvField& f) { return IsLabelName(std::string(f.text), label); };
  const std::optional<int64_t> number = ColumnNumber(label);
  if (!number && std::any_of(fields.begin(), fields.end(), is_label)) return true;
  if (HasNames(reader, names) || HasNamesInOrder(reader, names, -1) ||
      (number && HasNamesInOrder(reader, names, *number))) {
    return true;
  }
  // Without names each text is a value of a model that has categories, else only those that it knows are.
  const auto is_value = [&](const CsvField& field) {
    const auto knows = [&](const InputColumn& column) {
      const std::vector<std::string>& texts = column.categories;
      return column.is_category &&
             (names.empty() || std::binary_search(texts.begin(), texts.end(), field.text));
    };
    return ExactNumber(field.text, reader.decimal()) || DaysOfDate(field.text) ||
           (names.empty() && IsMissing(field.text)) ||
           std::any_of(form.columns.begin(), form.columns.end(), knows);
  };
  const bool gaps =
      std::all_of(fields.begin(), fields.end(), [](const CsvField& f) { return IsMissing(f.text); });
  return !gaps && std::none_of(fields.begin(), fields.end(), is_value);
}

bool IsLabelName(const std::string& name, const std::string& label) {
  return label.empty() ? strcasecmp(name.c_str(), "label") == 0 : name == ColumnNameIn(label);
}

}  // namespace dtrain
