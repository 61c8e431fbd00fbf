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
#include <utility>

#include "trainer/config/data_config.h"
#include "trainer/config/item_text.h"
#include "trainer/input/iso_date.h"

namespace dtrain {
namespace {

constexpr size_t kRowsBelow = 100;  // that a run looks at below a header

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

bool AreEqual(const std::vector<CsvField>& a, const std::vector<CsvField>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const CsvField& x, const CsvField& y) { return x.text == y.text; });
}

// Whether the first row comes again and again, and so do others, which share no text with different rows, as
// names share none with values.
bool ComesAsOthers(const std::vector<CsvRecord>& rows) {
  std::map<std::vector<std::string_view>, size_t> counts;
  std::vector<std::string_view> first;
  for (const CsvRecord& row : rows) {
    std::vector<std::string_view> texts;
    for (const CsvField& field : row.fields) texts.push_back(field.text);
    if (&row == &rows[0]) first = texts;
    ++counts[std::move(texts)];
  }
  const size_t times = counts[first];
  if (times < 3 || counts.size() < 2) return false;
  std::map<std::pair<size_t, std::string_view>, size_t> different;  // by column and text: rows that differ
  for (const auto& [texts, count] : counts) {
    for (size_t column = 0; column < texts.size(); ++column) ++different[{column, texts[column]}];
  }
  const auto is_as_first = [&](const auto& row) {
    for (size_t column = 0; column < row.first.size(); ++column) {
      if (different[{column, row.first[column]}] > 1) return false;
    }
    return true;
  };
  const auto as_often = [&](const auto& row) { return row.second < times || is_as_first(row); };
  const auto often =
      std::count_if(counts.begin(), counts.end(), [&](const auto& row) { return row.second >= times; });
  return often > 1 && std::all_of(counts.begin(), counts.end(), as_often);
}

// What the first record has in a column, beside what the others have there.
enum class Beside {
  kGap,     // no value, or a text that can hardly be a name, such as \N or <NA>
  kName,    // a text that is not there again, above numbers or dates
  kFresh,   // a text that is not there again, where the others come again and again
  kNumber,  // a plain number above numbers
  kOdd,     // a plain number above none
  kValue,   // what is there again, or a number or date in the spelling of the others
  kOpen,    // a text above texts that all differ
};

// FirstLine: what the first of some records is, by what the others have in its columns.
class FirstLine {
 public:
  FirstLine(const std::vector<CsvRecord>& rows, size_t columns, Decimal decimal,
            const std::vector<FieldReading>& readings)
      : decimal_(decimal), readings_(columns) {
    for (const FieldReading& reading : readings) {
      if (static_cast<size_t>(reading.column) < columns)
        readings_[static_cast<size_t>(reading.column)] = &reading;
    }
    if (rows.empty() || !IsWholeRow(rows[0].fields, columns)) return;
    for (const CsvRecord& row : rows) {
      const bool again = AreEqual(row.fields, rows[0].fields);
      if (IsWholeRow(row.fields, columns) && (&row == &rows[0] || !again)) rows_.push_back(&row);
    }
  }

  // `rows`: those of the constructor.
  HeaderKind FindHeader(const std::string& label, const std::vector<CsvRecord>& rows) {
    if (rows_.empty()) return HeaderKind::kNone;
    const std::vector<CsvField>& first = rows_[0]->fields;
    const auto is_label = [&](const CsvField& field) { return !ColumnNumber(label) && field.text == label; };
    if (!label.empty() && std::any_of(first.begin(), first.end(), is_label)) return HeaderKind::kNames;
    for (size_t column = 0; column < readings_.size(); ++column) Count(column);
    const size_t names = count_[Beside::kName], values = count_[Beside::kValue];
    const bool is_counting = IsCounting();
    if (names == 0 && !is_counting && ComesAsOthers(rows)) return HeaderKind::kNone;
    if (numbers_.empty()) return names >= values ? HeaderKind::kNames : HeaderKind::kNone;
    if (AreYears() || AreNumbersBesideNoName()) return HeaderKind::kNames;
    // A column may be named by a number where others have texts over numbers, or new texts over classes.
    if (names > values && (names > 1 || AreWholeOrRise())) return HeaderKind::kNames;
    if (values == 0 && count_[Beside::kFresh] > 1 && AreWholeOrRise()) return HeaderKind::kNames;
    if (!is_counting) return HeaderKind::kNone;
    if (count_[Beside::kFresh] + count_[Beside::kOdd] > 0) return HeaderKind::kNames;
    if (values > names)
      return HeaderKind::kNone;  // 0 and 1 beside values of other columns: "5,5","1.024,61",0,1
    const bool whole = rows_.size() > 1 && std::all_of(numbers_.begin(), numbers_.end(),
                                                       [&](size_t column) { return IsWholeBelow(column); });
    return whole ? HeaderKind::kCounting : HeaderKind::kNumbered;
  }

  // Whether it has names or units: texts alone, and at least two of them above numbers or classes.
  bool IsNoRow() {
    constexpr size_t kFewRows = 3;
    if (rows_.size() < kFewRows) return false;
    for (size_t column = 0; column < readings_.size(); ++column) {
      const Beside beside = Count(column);
      if (beside != Beside::kName && beside != Beside::kFresh && beside != Beside::kOpen) return false;
    }
    return count_[Beside::kName] > 0 && count_[Beside::kName] + count_[Beside::kFresh] > 1;
  }

 private:
  enum class Kind { kGap, kNumber, kSpelled, kDate, kText };

  double NumberAt(size_t column) const { return *ExactNumber(First(column).text, decimal_); }
  const CsvField& First(size_t column) const { return rows_[0]->fields[column]; }

  Kind KindOf(const CsvField& field, size_t column) const {
    std::string plain;
    const FieldReading* const reading = readings_[column];
    const std::string_view text =
        reading == nullptr ? field.text : PlainText(*reading, field.text, decimal_, &plain);
    if (IsMissing(text)) return Kind::kGap;
    if (ExactNumber(text, decimal_)) return text == field.text ? Kind::kNumber : Kind::kSpelled;
    return IsDate(text) ? Kind::kDate : Kind::kText;
  }
  static bool IsDate(std::string_view text) {
    const auto has_form = [&](const std::string& form) {
      return form.find('D') != form.npos && IsoDate(text, form).has_value();
    };
    return text.find_first_of("0123456789") != text.npos &&
           (DaysOfDate(text) || std::any_of(DateForms().begin(), DateForms().end(), has_form));
  }

  Beside Count(size_t column) {
    const Beside beside = Look(column);
    ++count_[beside];
    if (beside == Beside::kNumber || beside == Beside::kOdd) numbers_.push_back(column);
    return beside;
  }

  Beside Look(size_t column) const {
    std::set<std::string_view> texts;
    std::map<Kind, size_t> kinds;
    for (size_t row = 1; row < rows_.size(); ++row) {
      const CsvField& field = rows_[row]->fields[column];
      texts.insert(field.text);
      if (row <= kLooked) ++kinds[KindOf(field, column)];
    }
    const size_t known = std::min(rows_.size() - 1, kLooked) - kinds[Kind::kGap];
    const bool numbers = (kinds[Kind::kNumber] + kinds[Kind::kSpelled]) * 2 > known;
    const bool dates = kinds[Kind::kDate] * 2 > known;
    const CsvField& first = First(column);
    // A number in quotes is a name, unless the rows below have quotes there too, and so is inf, for
    // inflation.
    const bool quotes = first.quoted && !(rows_.size() > 1 && rows_[1]->fields[column].quoted);
    const bool digits = first.text.find_first_of("0123456789") != std::string_view::npos;
    const Kind kind = KindOf(first, column);
    if (kind == Kind::kNumber && !quotes && digits)
      return numbers || known == 0 ? Beside::kNumber : Beside::kOdd;
    if (kind == Kind::kGap) return known == 0 ? Beside::kOpen : Beside::kGap;
    const bool alike = (numbers && kind == Kind::kSpelled) || (dates && kind == Kind::kDate);
    if (alike || texts.count(first.text) > 0) return Beside::kValue;
    if (!CanBeName(first)) return Beside::kGap;
    if (numbers || dates) return Beside::kName;
    return texts.size() * 3 <= (rows_.size() - 1) * 2 ? Beside::kFresh : Beside::kOpen;
  }

  // Whether a text may be a name or a unit, and is no marker of a gap.
  static bool CanBeName(const CsvField& field) {
    const auto first = static_cast<unsigned char>(field.text[0]);
    return field.quoted || std::isalpha(first) != 0 || first >= 0x80 ||
           std::string_view("_[(%").find(field.text[0]) != std::string_view::npos;
  }

  // Whether the numbers are 0, 1, 2 .. or 1, 2, 3 .., one after the other or as their columns are.
  bool IsCounting() const {
    if (numbers_.size() < 2) return false;
    const double begin = NumberAt(numbers_[0]), base = begin - static_cast<double>(numbers_[0]);
    bool follow = begin == 0 || begin == 1, are_places = base == 0 || base == 1;
    for (size_t i = 0; i < numbers_.size(); ++i) {
      const double number = NumberAt(numbers_[i]);
      follow = follow && number == begin + static_cast<double>(i);
      are_places = are_places && number == base + static_cast<double>(numbers_[i]);
    }
    return follow || are_places;
  }

  // Texts, and years that rise with hardly a gap: "country,1970,1971,1972".
  bool AreYears() const {
    if (numbers_.size() < 3 || numbers_.size() == readings_.size()) return false;
    const double begin = NumberAt(numbers_[0]), end = NumberAt(numbers_.back());
    if (begin < 1500 || end > 2200 || (end - begin) > 1.1 * static_cast<double>(numbers_.size() - 1))
      return false;
    for (size_t i = 1; i < numbers_.size(); ++i) {
      const double year = NumberAt(numbers_[i]);
      if (year != std::floor(year) || year <= NumberAt(numbers_[i - 1])) return false;
    }
    return true;
  }

  bool IsWholeBelow(size_t column) const {
    return std::all_of(rows_.begin() + 1, rows_.end(), [&](const CsvRecord* row) {
      const std::optional<double> number = ExactNumber(row->fields[column].text, decimal_);
      return number && std::isfinite(*number) && *number == std::floor(*number);
    });
  }

  // ",0,1,2", as pandas writes rows with their numbers: no row has a gap below the empty name.
  bool AreNumbersBesideNoName() const {
    if (numbers_[0] != 1 || !First(0).text.empty() || NumberAt(1) != 0) return false;
    if (numbers_.size() > 1 && !IsCounting()) return false;
    return std::none_of(rows_.begin() + 1, rows_.end(),
                        [](const CsvRecord* row) { return row->fields[0].text.empty(); });
  }

  // Numbers that may be names: whole and not negative, or three and more that rise.
  bool AreWholeOrRise() const {
    bool whole = true, rises = numbers_.size() > 2;
    for (size_t i = 0; i < numbers_.size(); ++i) {
      const double number = NumberAt(numbers_[i]);
      whole = whole && number >= 0 && number == std::floor(number);
      rises = rises && (i == 0 || number > NumberAt(numbers_[i - 1]));
    }
    return whole || rises;
  }

  static constexpr size_t kLooked = 100;  // rows whose values are looked at

  const Decimal decimal_;
  std::vector<const FieldReading*> readings_;  // by column; null: plain
  std::vector<const CsvRecord*> rows_;         // whole ones, the first too; empty: that is not whole
  std::map<Beside, size_t> count_;             // of columns
  std::vector<size_t> numbers_;                // columns in which the first has a plain number
};

}  // namespace

HeaderKind FindHeader(const std::vector<CsvRecord>& records, size_t columns, Decimal decimal,
                      const std::vector<FieldReading>& readings, const std::string& label) {
  return FirstLine(records, columns, decimal, readings).FindHeader(label, records);
}

bool SkipSecondHeader(size_t columns, const std::vector<FieldReading>& readings, CsvReader* reader) {
  if (reader->names_columns()) return false;
  const std::vector<CsvRecord> below = reader->PeekNext(kRowsBelow);
  if (below.empty() || AreEqual(below[0].fields, reader->fields())) return false;
  return FirstLine(below, columns, reader->decimal(), readings).IsNoRow() && reader->Next();
}

namespace {

// Whether the first fields of rows may be the rows' names: they all differ, and none is a fraction.
bool AreNamesOfRows(const std::vector<CsvRecord>& rows, size_t columns) {
  std::set<std::string_view> names;
  return std::all_of(rows.begin(), rows.end(), [&](const CsvRecord& row) {
    if (row.fields.size() != columns) return true;
    const CsvField& first = row.fields[0];
    const double number = first.quoted ? 0 : ExactNumber(first.text).value_or(0);
    return names.insert(first.text).second && number == std::floor(number);
  });
}

}  // namespace

size_t FitHeader(const std::vector<CsvRecord>& below, CsvRecord* header) {
  std::vector<CsvField>& names = header->fields;
  if (!names[0].quoted && names[0].text.substr(0, 2) == "# ") {
    names[0].text.remove_prefix(std::min(names[0].text.find_first_not_of(' ', 1), names[0].text.size()));
  }
  std::map<size_t, size_t> counts;  // of rows, by how many fields they have
  for (const CsvRecord& row : below) ++counts[row.fields.size()];
  size_t usual = names.size(), most = 0;
  for (const auto& [fields, count] : counts) {
    if (count > most) std::tie(usual, most) = std::tie(fields, count);
  }
  const auto ends_empty = [&](const CsvRecord& row) {
    return row.fields.size() != usual || row.fields.back().text.empty();
  };
  // A delimiter may end each row, beside the names of rows or without them.
  const bool ends_rows = usual > names.size() && !names.back().text.empty() &&
                         std::all_of(below.begin(), below.end(), ends_empty);
  const size_t columns = usual - (ends_rows ? 1 : 0);
  if (columns == names.size()) return columns;
  if (columns == names.size() + 1) {
    if (AreNamesOfRows(below, usual)) names.insert(names.begin(), CsvField{"", header->begin()});
  } else if (usual + 1 == names.size() && names.back().text.empty()) {
    names.pop_back();
  } else if (usual + 1 == names.size() && names[0].text == "#" && !names[0].quoted) {
    names.erase(names.begin());
  }
  return columns;
}

void FitHeader(CsvReader* reader) {
  if (reader->names_columns()) return;
  const std::vector<CsvRecord> below = reader->PeekNext(kRowsBelow);
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
  if (reader.names_columns()) return;
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
