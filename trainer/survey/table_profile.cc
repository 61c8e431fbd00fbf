#include "trainer/survey/table_profile.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <unordered_map>
#include <utility>

#include "base/error.h"
#include "trainer/config/user_text.h"
#include "trainer/input/input_bytes.h"
#include "trainer/input/iso_date.h"
#include "trainer/input/sources.h"
#include "trainer/rows/sparse_file.h"
#include "trainer/survey/table_rows.h"

namespace dtrain {
namespace {

constexpr size_t kMaxExample = 40;        // bytes of a text that is kept to be shown
constexpr size_t kMaxDistinct = 10000;    // of a column
constexpr size_t kAllDistinct = 1 << 20;  // of all columns, which bounds the memory of wide tables
constexpr size_t kMinDistinct = 100;
constexpr size_t kFrequent = 20;  // values that are kept to be shown
constexpr int64_t kFewRows = 10;  // fewer rows do not make an index, an id or an order
constexpr size_t kDelimiterRows = 200;
constexpr size_t kHeaderRows = 1000;
constexpr int64_t kFewTexts = 100;    // different texts of a category, at most; data.max_categories
constexpr int64_t kManyTexts = 1000;  // the same where each is there twenty times on average

bool IsDigit(char c) { return c >= '0' && c <= '9'; }

bool IsAscii(std::string_view text) {
  return std::none_of(text.begin(), text.end(), [](char c) { return (c & 0x80) != 0; });
}

// Whole numbers of up to 15 digits, which are most numbers of most tables.
std::optional<double> ParseWhole(std::string_view text) {
  const bool minus = !text.empty() && text.front() == '-';
  const std::string_view digits = text.substr(minus ? 1 : 0);
  if (digits.empty() || digits.size() > 15) return std::nullopt;
  int64_t value = 0;
  for (const char c : digits) {
    if (!IsDigit(c)) return std::nullopt;
    value = 10 * value + (c - '0');
  }
  return static_cast<double>(minus ? -value : value);
}

// Returns the number, infinity if float32 cannot hold it, or nothing.
std::optional<double> NumberOf(std::string_view text, bool decimal_comma = false) {
  if (const std::optional<double> whole = ParseWhole(text)) return whole;
  if (decimal_comma) {
    if (text.find('.') != text.npos) return std::nullopt;
    std::string point(text);
    std::replace(point.begin(), point.end(), ',', '.');
    return NumberOf(point);
  }
  float number = 0;
  const NumberText state = ParseNumber(text, &number);
  if (state == NumberText::kEmpty || state == NumberText::kNotANumber) return std::nullopt;
  if (state != NumberText::kGood) return std::numeric_limits<double>::infinity();
  double exact = number;
  std::from_chars(text.data() + (text.front() == '+' ? 1 : 0), text.data() + text.size(), exact);
  return exact;
}

std::string Example(std::string_view text) { return std::string(text.substr(0, kMaxExample)); }

// PassengerId, customer_id, ID.
bool IsNamedAsId(const std::string& name) {
  const std::string lower = LowerCase(name);
  if (lower == "id" || lower == "uuid" || lower == "index") return true;
  if (lower.size() < 3 || lower.compare(lower.size() - 2, 2, "id") != 0) return lower.substr(0, 3) == "id_";
  const char before = lower[lower.size() - 3];
  return name[name.size() - 2] == 'I' || before == '_' || before == '-' || before == ' ' || before == '.';
}

// ColumnBuilder: what is known of one column while its rows go by.
class ColumnBuilder {
 public:
  ColumnBuilder(size_t max_distinct, bool decimal_comma)
      : max_distinct_(max_distinct), decimal_comma_(decimal_comma) {}

  void Add(const CsvField& field) {
    const int64_t row = row_++;
    if (IsMissing(field.text)) {
      ++column_.missing;
      in_order_ = false;
      return;
    }
    if (column_.known++ == 0) column_.example = Example(field.text);
    CountValue(field.text);
    const std::optional<double> number = NumberOf(field.text, decimal_comma_);
    if (number) {
      AddNumber(*number, field, row);
    } else {
      AddText(field);
    }
  }

  // The last field had blanks at its ends.
  void AddPadded() { column_.padded = true; }

  ColumnProfile Finish(std::string name) {
    column_.name = std::move(name);
    const auto count = static_cast<double>(finite_);
    if (finite_ > 0) column_.deviation = std::sqrt(squares_ / count);
    if (squares_ > 0) column_.skewness = std::sqrt(count) * cubes_ / std::pow(squares_, 1.5);
    column_.type = Type();
    if (!column_.IsNumber()) column_.not_a_number = column_.not_float = {};
    if (column_.type != ColumnType::kDate) column_.not_a_date = {};
    KeepFrequent();
    Suspect();
    return std::move(column_);
  }

 private:
  // By the hash alone: two of 10,000 texts share one of 2^64 values hardly ever.
  void CountValue(std::string_view text) {
    if (column_.more_distinct) return;
    const size_t hash = std::hash<std::string_view>()(text);
    if (column_.known == 1 || hash != last_hash_) ++runs_;
    last_hash_ = hash;
    ValueCount& value = values_[hash];
    if (value.rows++ > 0) {
      repeats_ = true;
    } else if (values_.size() <= max_distinct_) {
      value.text = Example(text);
      ++column_.distinct;
    } else {
      column_.more_distinct = true;
      values_ = {};
    }
  }

  void AddNumber(double number, const CsvField& field, int64_t row) {
    ++column_.numbers;
    column_.not_a_date.Add(field.place, field.text);
    if (!std::isfinite(number)) {
      column_.not_float.Add(field.place, field.text);
      return;
    }
    whole_ = whole_ && number == std::floor(number);
    const bool first = ++finite_ == 1;
    if (first) first_number_ = number;
    in_order_ = in_order_ && number == first_number_ + static_cast<double>(row);
    rises_ = rises_ && (first || number >= last_number_);
    falls_ = falls_ && (first || number <= last_number_);
    last_number_ = number;
    column_.min = first ? number : std::min(column_.min, number);
    column_.max = first ? number : std::max(column_.max, number);
    const double off = number - column_.mean;  // Welford's method, and its third moment
    const auto count = static_cast<double>(finite_);
    const double part = off / count, square = off * part * (count - 1);
    column_.mean += part;
    cubes_ += square * part * (count - 2) - 3 * part * squares_;
    squares_ += square;
  }

  void AddText(const CsvField& field) {
    column_.not_a_number.Add(field.place, field.text);
    if (DaysOfDate(field.text)) {
      ++dates_;
    } else {
      column_.not_a_date.Add(field.place, field.text);
    }
    if (!IsAscii(field.text) && !IsUtf8(field.text)) column_.not_utf8.Add(field.place, field.text);
  }

  ColumnType Type() const {
    const auto are_most = [&](int64_t count) { return count * 10 >= column_.known * 9; };
    if (column_.known == 0) return ColumnType::kEmpty;
    if (are_most(column_.numbers)) return whole_ ? ColumnType::kWhole : ColumnType::kNumber;
    if (are_most(dates_)) return ColumnType::kDate;
    const int64_t distinct = column_.distinct;
    const bool few = distinct <= kFewTexts && (distinct * 2 <= column_.known || column_.known < kFewRows);
    const bool often = distinct <= kManyTexts && distinct * 20 <= column_.known;
    return !column_.more_distinct && (few || often) ? ColumnType::kCategory : ColumnType::kText;
  }

  void KeepFrequent() {
    for (auto& [hash, value] : values_) column_.frequent.push_back({std::move(value.text), value.rows});
    std::sort(column_.frequent.begin(), column_.frequent.end(), [](const ValueCount& a, const ValueCount& b) {
      return a.rows != b.rows ? a.rows > b.rows : a.text < b.text;
    });
    if (!column_.frequent.empty()) column_.rarest = column_.frequent.back();
    if (column_.type == ColumnType::kCategory) FindSpellings();
    if (column_.IsNumber()) JoinNumbers();
    column_.frequent.resize(std::min(kFrequent, column_.frequent.size()));
  }

  void FindSpellings() {
    std::map<std::string, std::vector<std::string>> spellings;
    for (const ValueCount& value : column_.frequent) {
      if (value.text.size() == kMaxExample) continue;  // it may go on
      spellings[CommonSpelling(value.text)].push_back(value.text);
    }
    for (const auto& [common, texts] : spellings) {
      if (texts.size() > 1) column_.spellings.push_back(fmt::format("{}", fmt::join(texts, "/")));
    }
  }

  // A double tells numbers of more than 15 digits apart no longer, which may be ids.
  void JoinNumbers() {
    std::map<double, size_t> first;  // the most frequent text of each number
    std::vector<ValueCount> joined;
    for (ValueCount& value : column_.frequent) {
      const std::optional<double> number = NumberOf(value.text, decimal_comma_);
      const bool is_exact = number && std::abs(*number) < 1e15 && value.text.size() < kMaxExample;
      const auto [same, is_new] =
          is_exact ? first.emplace(*number, joined.size()) : std::pair(first.end(), true);
      if (is_new) {
        joined.push_back(std::move(value));
        continue;
      }
      ValueCount& other = joined[same->second];
      other.rows += value.rows;
      column_.respelled.push_back(fmt::format("{} -> {}", value.text, other.text));
    }
    column_.frequent = std::move(joined);
    if (column_.respelled.empty()) return;
    column_.distinct = static_cast<int64_t>(column_.frequent.size());
    std::stable_sort(column_.frequent.begin(), column_.frequent.end(),
                     [](const ValueCount& a, const ValueCount& b) { return a.rows > b.rows; });
    column_.rarest = column_.frequent.back();
  }

  void Suspect() {
    ColumnProfile& column = column_;
    column.constant = column.distinct == 1 && column.missing == 0;
    const bool enough = column.known >= kFewRows;
    const bool numbers = column.IsNumber() && column.numbers == column.known;
    column.index = enough && numbers && whole_ && in_order_ && (first_number_ == 0 || first_number_ == 1);
    column.identifier =
        enough && !repeats_ && !column.index && (column.type == ColumnType::kText || IsIdOfNumbers());
    const bool grouped = !column_.more_distinct && runs_ == column.distinct && column.known > column.distinct;
    const bool ordered = numbers && (rises_ || falls_);
    column.sorted = enough && column.distinct > 1 && (grouped || ordered);
  }

  // Amounts of few rows all differ too, so another sign is needed: the name, numbers without many gaps
  // between them that are no years, or long numbers of equal length.
  bool IsIdOfNumbers() const {
    if (column_.type != ColumnType::kWhole || column_.numbers != column_.known) return false;
    const bool years = column_.min >= 1500 && column_.max <= 2200;
    const bool dense = !years && column_.max - column_.min < 2.0 * static_cast<double>(column_.known);
    const bool alike =
        column_.min >= 100000 && std::floor(std::log10(column_.min)) == std::floor(std::log10(column_.max));
    return IsNamedAsId(column_.name) || dense || alike;
  }

  const size_t max_distinct_;
  const bool decimal_comma_;
  ColumnProfile column_;
  int64_t row_ = 0;
  std::unordered_map<size_t, ValueCount> values_;  // by hash, until there are too many
  bool repeats_ = false;
  size_t last_hash_ = 0;
  int64_t runs_ = 0;  // of equal values
  int64_t finite_ = 0, dates_ = 0;
  double first_number_ = 0, last_number_ = 0;
  double squares_ = 0;  // the sum of the squares of what the finite numbers are off their mean
  double cubes_ = 0;    // and of the cubes
  bool whole_ = true, in_order_ = true, rises_ = true, falls_ = true;
};

struct Form {
  char delimiter = ',';
  size_t columns = 1;
};

// Returns the most frequent number of fields, and how many rows have it.
std::pair<size_t, size_t> UsualFields(const std::vector<SplitRow>& rows) {
  std::unordered_map<size_t, size_t> counts;
  std::pair<size_t, size_t> usual{1, 0};
  for (const SplitRow& row : rows) {
    const size_t count = ++counts[row.fields.size()];
    if (count > usual.second) usual = {row.fields.size(), count};
  }
  return usual;
}

// The delimiter with which most of the first rows have the same number of fields. The comma comes last,
// because it also stands in the numbers and texts of files with other delimiters.
Form FindForm(const RawRows& table) {
  Form best{',', UsualFields(table.Peek(',', kDelimiterRows)).first};
  double best_share = 0;
  for (const char delimiter : {'\t', ';', '|', ','}) {
    const std::vector<SplitRow> rows = table.Peek(delimiter, kDelimiterRows);
    const auto [fields, count] = UsualFields(rows);
    const double share = static_cast<double>(count) / static_cast<double>(std::max<size_t>(rows.size(), 1));
    if (fields == 1 || share <= best_share) continue;
    best_share = share;
    best = {delimiter, fields};
  }
  return best;
}

// HeaderFinder: decides from the first rows of a table whether the first names the columns.
class HeaderFinder {
 public:
  HeaderFinder(const std::vector<SplitRow>& rows, size_t columns, bool decimal_comma)
      : columns_(columns), decimal_comma_(decimal_comma) {
    for (const SplitRow& row : rows) {
      if (row.fields.size() == columns) rows_.push_back(&row);
    }
    is_first_whole_ = !rows.empty() && rows[0].fields.size() == columns;
  }

  Header Find() const {
    if (!is_first_whole_) return Header::kNone;
    const std::vector<size_t> numbers = NumbersOfFirst();
    if (numbers.empty()) return AreNames() ? Header::kNames : Header::kNone;
    if (AreYears(numbers)) return Header::kNames;
    // One column may be named by a number where several others have texts over numbers.
    if (!IsCounting(numbers)) return TextsOverNumbers() > 1 ? Header::kNames : Header::kNone;
    if (rows_.size() == 1) return Header::kNumbered;
    for (const size_t column : numbers) {
      if (!IsWholeBelow(column)) return Header::kNumbered;
    }
    return Header::kCounting;
  }

 private:
  std::optional<double> Number(const CsvField& field) const { return NumberOf(field.text, decimal_comma_); }
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
    return std::all_of(rows_.begin() + 1, rows_.end(), [&](const SplitRow* row) {
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
  const bool decimal_comma_;
  std::vector<const SplitRow*> rows_;
  bool is_first_whole_ = false;
};

// Finds lines at the front that have far fewer fields than the rows behind them: a title, or comments.
void FindPreamble(const std::vector<SplitRow>& rows, size_t columns, TableProfile* table) {
  constexpr size_t kMaxLines = 20;
  size_t lines = 0;
  while (lines < rows.size() && rows[lines].fields.size() * 2 <= columns) ++lines;
  if (lines == 0 || lines > kMaxLines || lines == rows.size()) return;
  const auto begin = [](const SplitRow& row) {
    const std::string_view text = row.fields[0].text;
    return text.empty() || row.fields[0].quoted ? ' ' : text.front();
  };
  const char first = begin(rows[0]);
  const bool marks = std::string_view("#%|;!").find(first) != std::string_view::npos;
  const bool comments = marks && std::all_of(rows.begin(), rows.begin() + static_cast<int64_t>(lines),
                                             [&](const SplitRow& row) { return begin(row) == first; });
  if (comments && first != table->delimiter) {
    table->comment = std::string(1, first);
  } else {
    table->skip_lines = rows[lines].begin.line - 1;
  }
}

// Whether numbers are written with a comma before their decimals: some are, and none with a point.
bool HasDecimalCommas(const std::vector<SplitRow>& rows) {
  bool commas = false;
  for (const SplitRow& row : rows) {
    for (const CsvField& field : row.fields) {
      const bool comma = field.text.find(',') != std::string_view::npos;
      if (!comma && field.text.find('.') != std::string_view::npos && NumberOf(field.text)) return false;
      commas = commas || (comma && NumberOf(field.text, true));
    }
  }
  return commas;
}

// Reads all rows into `builders`, and the names of columns into `names` if the table has them.
void ReadRows(RawRows* rows, std::vector<ColumnBuilder>* builders, std::vector<std::string>* names,
              TableProfile* table) {
  bool is_header = table->has_names();
  while (rows->Next(table->delimiter)) {
    const SplitRow& row = rows->row();
    if (row.quote_faults > 0) {
      table->quotes.Add(row.quote_place, "");
      table->quotes.count += row.quote_faults - 1;
    }
    const size_t count = row.fields.size();
    for (const size_t i : row.padded) table->quoted_blanks = table->quoted_blanks || row.fields[i].quoted;
    if (std::exchange(is_header, false)) {
      for (size_t i = 0; i < count; ++i) (*names)[i] = std::string(row.fields[i].text);
    } else if (count != builders->size()) {
      Faults& faults = count < builders->size() ? table->short_rows : table->long_rows;
      faults.Add(row.begin, fmt::format("{}", count));
    } else {
      ++table->rows;
      for (size_t i = 0; i < count; ++i) (*builders)[i].Add(row.fields[i]);
      for (const size_t i : row.padded) (*builders)[i].AddPadded();
    }
  }
  table->empty_lines = {rows->empty_lines(), rows->empty_place(), ""};
}

// A label and INDEX:VALUE.
bool LooksLikeLibsvm(const std::vector<CsvField>& words) {
  const auto is_feature = [](const CsvField& word) {
    const size_t colon = word.text.find(':');
    return colon != word.text.npos && NumberOf(word.text.substr(0, colon)) &&
           NumberOf(word.text.substr(colon + 1));
  };
  return words.size() > 1 && NumberOf(words[0].text) &&
         std::all_of(words.begin() + 1, words.end(), is_feature);
}

// A label, and namespaces with features: bars stand before names, and alone at most once.
bool LooksLikeVw(const std::vector<CsvField>& words) {
  const auto bars = [&](bool alone) {
    return std::count_if(words.begin(), words.end(), [&](const CsvField& word) {
      return !word.text.empty() && word.text.front() == '|' && (word.text.size() == 1) == alone;
    });
  };
  return words.size() > 2 && NumberOf(words[0].text) &&
         words.back().text.find('|') == std::string_view::npos &&
         (bars(true) == 1 || (bars(true) == 0 && bars(false) > 0));
}

// A label of 0 or 1, 13 whole numbers and 26 hashes.
bool LooksLikeCriteo(const std::vector<CsvField>& fields) {
  constexpr size_t kNumbers = static_cast<size_t>(kCriteoNumbers);
  if (fields.size() != 1 + kNumbers + static_cast<size_t>(kCriteoCategories)) return false;
  if (fields[0].text != "0" && fields[0].text != "1") return false;
  for (size_t i = 1; i < fields.size(); ++i) {
    const std::string_view text = fields[i].text;
    const bool hash = text.size() == 8 && text.find_first_not_of("0123456789abcdef") == text.npos;
    if (!text.empty() && !(i <= kNumbers ? ParseWhole(text).has_value() : hash)) return false;
  }
  return true;
}

// Sparse rows are no table: they have no columns that could be described.
DataFormat SparseFormatOf(const RawRows& rows) {
  constexpr size_t kLooked = 20;
  size_t lines = 0, libsvm = 0, vw = 0;
  for (const SplitRow& row : rows.Peek(' ', kLooked)) {
    std::vector<CsvField> words;
    for (const CsvField& field : row.fields) {
      if (!field.text.empty()) words.push_back(field);
    }
    if (words.empty() || words[0].text.front() == '#') continue;
    ++lines;
    libsvm += LooksLikeLibsvm(words) ? 1 : 0;
    vw += LooksLikeVw(words) ? 1 : 0;
  }
  if (lines > 0 && libsvm == lines) return DataFormat::kLibsvm;
  if (lines > 0 && vw == lines) return DataFormat::kVw;
  const std::vector<SplitRow> tabbed = rows.Peek('\t', kLooked);
  const bool criteo = std::all_of(tabbed.begin(), tabbed.end(),
                                  [](const SplitRow& row) { return LooksLikeCriteo(row.fields); });
  return criteo && !tabbed.empty() ? DataFormat::kCriteo : DataFormat::kNone;
}

}  // namespace

void Faults::Add(TextPlace place, std::string_view text) {
  if (count++ > 0) return;
  first = place;
  example = Example(text);
}

std::string CommonSpelling(const std::string& text) {
  std::string common = LowerCase(text);
  common.erase(std::remove(common.begin(), common.end(), ' '), common.end());
  return common;
}

const char* TypeName(ColumnType type) {
  constexpr const char* kNames[] = {"empty", "number", "whole number", "date", "category", "text"};
  return kNames[static_cast<size_t>(type)];
}

TableProfile ProfileTable(const std::string& path) {
  std::unique_ptr<InputBytes> file = OpenInput(path, "the table's path");
  TableProfile table;
  table.path = file->path();
  RawRows rows(std::move(file));
  if (const DataFormat format = SparseFormatOf(rows);
      format == DataFormat::kLibsvm || format == DataFormat::kVw) {
    throw UserError(
        "{}: its lines look like those of {} and not like a table. dtrain init {} writes a config for them.",
        path, format == DataFormat::kLibsvm ? "libsvm" : "Vowpal Wabbit", path);
  }
  const Form form = FindForm(rows);
  table.delimiter = form.delimiter;
  FindPreamble(rows.Peek(form.delimiter, kHeaderRows), form.columns, &table);
  for (int64_t line = 0; line < table.skip_lines; ++line) rows.SkipLine();
  rows.set_comment(table.comment);
  const std::vector<SplitRow> first = rows.Peek(form.delimiter, kHeaderRows);
  table.decimal_comma = form.delimiter != ',' && HasDecimalCommas(first);
  table.header = HeaderFinder(first, form.columns, table.decimal_comma).Find();
  const size_t max_distinct = std::clamp(kAllDistinct / form.columns, kMinDistinct, kMaxDistinct);
  std::vector<ColumnBuilder> builders(form.columns, ColumnBuilder(max_distinct, table.decimal_comma));
  std::vector<std::string> names(form.columns);
  ReadRows(&rows, &builders, &names, &table);
  for (size_t i = 0; i < form.columns; ++i) table.columns.push_back(builders[i].Finish(std::move(names[i])));
  return table;
}

SparseProfile ProfileSparseRows(const std::string& path) {
  SparseProfile profile;
  profile.path = path;
  if (path == "-") return profile;  // it is read once, as a table
  profile.format = SparseFormatOf(RawRows(OpenInput(path, "the table's path")));
  if (profile.format == DataFormat::kNone) return profile;
  DataConfig data;
  data.train.format = profile.format;
  data.index_base = 0;
  const std::unique_ptr<LineParser> parser = MakeLineParser(data, std::nullopt);
  LineReader lines(OpenInput(path, "the table's path"));
  ColumnBuilder label(kMaxDistinct, false);
  SparseLine row;
  uint64_t first = 1, end = 0;
  while (lines.Next()) {
    std::optional<LineFault> fault;
    if (!parser->Parse(lines.line(), &row, &fault)) {
      if (fault) profile.faults.Add({lines.number(), static_cast<int64_t>(fault->at) + 1}, fault->rule);
      continue;
    }
    ++profile.rows;
    label.Add({row.label, {lines.number(), 1}, false});
    for (const uint64_t id : row.ids) {
      first = std::min(first, id);
      end = std::max(end, id + 1);
    }
  }
  profile.label = label.Finish("the label");
  if (profile.format != DataFormat::kLibsvm) return profile;
  profile.index_base = static_cast<int64_t>(first);
  profile.inputs = std::max<int64_t>(1, static_cast<int64_t>(end) - profile.index_base);
  return profile;
}

std::set<std::string> RepeatedNames(const TableProfile& table) {
  std::set<std::string> seen, repeated;
  for (const ColumnProfile& column : table.columns) {
    if (table.has_names() && !seen.insert(column.name).second) repeated.insert(column.name);
  }
  return repeated;
}

std::string ColumnName(const TableProfile& table, size_t column) {
  const std::string& name = table.columns[column].name;
  return name.empty() ? fmt::format("column {} (number {})", column + 1, column) : Shown(name);
}

}  // namespace dtrain
