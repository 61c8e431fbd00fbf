#include "trainer/survey/table_profile.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <unordered_map>
#include <utility>

#include "base/error.h"
#include "trainer/config/user_text.h"
#include "trainer/input/csv_reader.h"
#include "trainer/input/sources.h"
#include "trainer/rows/sparse_file.h"

namespace dtrain {
namespace {

constexpr size_t kAllDistinct = 1 << 20;  // of all columns, which bounds the memory of wide tables
constexpr size_t kMinDistinct = 100;
constexpr size_t kDelimiterRows = 200;
constexpr size_t kHeaderRows = 1000;

struct Form {
  char delimiter = ',';
  size_t columns = 1;
};

// Returns the most frequent number of fields, and how many rows have it.
std::pair<size_t, size_t> UsualFields(const std::vector<CsvRecord>& rows) {
  std::unordered_map<size_t, size_t> counts;
  std::pair<size_t, size_t> usual{1, 0};
  for (const CsvRecord& row : rows) {
    const size_t count = ++counts[row.fields.size()];
    if (count > usual.second) usual = {row.fields.size(), count};
  }
  return usual;
}

// The delimiter with which most of the first rows have the same number of fields. The comma comes last,
// because it also stands in the numbers and texts of files with other delimiters.
Form FindForm(CsvReader* table) {
  Form best{',', UsualFields(table->Peek(',', kDelimiterRows)).first};
  double best_share = 0;
  for (const char delimiter : {'\t', ';', '|', ','}) {
    const std::vector<CsvRecord> rows = table->Peek(delimiter, kDelimiterRows);
    const auto [fields, count] = UsualFields(rows);
    const double share = static_cast<double>(count) / static_cast<double>(std::max<size_t>(rows.size(), 1));
    if (fields == 1 || share <= best_share) continue;
    best_share = share;
    best = {delimiter, fields};
  }
  return best;
}

// Finds lines at the front that have far fewer fields than the rows behind them: a title, or comments.
void FindPreamble(const std::vector<CsvRecord>& rows, size_t columns, TableProfile* table) {
  constexpr size_t kMaxLines = 20;
  size_t lines = 0;
  while (lines < rows.size() && rows[lines].fields.size() * 2 <= columns) ++lines;
  if (lines == 0 || lines > kMaxLines || lines == rows.size()) return;
  const auto begin = [](const CsvRecord& row) {
    const std::string_view text = row.fields[0].text;
    return text.empty() || row.fields[0].quoted ? ' ' : text.front();
  };
  const char first = begin(rows[0]);
  const bool marks = std::string_view("#%|;!").find(first) != std::string_view::npos;
  const bool comments = marks && std::all_of(rows.begin(), rows.begin() + static_cast<int64_t>(lines),
                                             [&](const CsvRecord& row) { return begin(row) == first; });
  if (comments && first != table->delimiter) {
    table->comment = std::string(1, first);
  } else {
    table->skip_lines = rows[lines].begin().line - 1;
  }
}

// Whether numbers are written with a comma before their decimals: some are, and none with a point.
bool HasDecimalCommas(const std::vector<CsvRecord>& rows) {
  bool commas = false;
  for (const CsvRecord& row : rows) {
    for (const CsvField& field : row.fields) {
      const bool comma = field.text.find(',') != std::string_view::npos;
      if (!comma && field.text.find('.') != std::string_view::npos && ExactNumber(field.text)) return false;
      commas = commas || (comma && ExactNumber(field.text, Decimal::kComma));
    }
  }
  return commas;
}

// Reads all rows into `builders`, and the names of columns into `names` if the table has them.
void ReadRows(CsvReader* rows, std::vector<ColumnBuilder>* builders, std::vector<std::string>* names,
              TableProfile* table) {
  bool is_header = table->has_names();
  while (rows->Next()) {
    const CsvRecord& row = rows->record();
    if (row.quote_faults > 0) {
      table->quotes.Add(row.quote_place, "");
      table->quotes.count += row.quote_faults - 1;
    }
    for (const CsvField& field : row.fields) table->quoted_blanks = table->quoted_blanks || field.trimmed;
    const size_t count = row.fields.size();
    if (std::exchange(is_header, false)) {
      for (size_t i = 0; i < count; ++i) (*names)[i] = std::string(row.fields[i].text);
    } else if (count != builders->size()) {
      Faults& faults = count < builders->size() ? table->short_rows : table->long_rows;
      faults.Add(row.begin(), fmt::format("{}", count));
    } else {
      ++table->rows;
      for (size_t i = 0; i < count; ++i) (*builders)[i].Add(row.fields[i], rows->IsTrimmed(row.fields[i]));
    }
  }
  table->empty_lines = {rows->empty_lines(), rows->empty_place(), ""};
}

// A label and INDEX:VALUE.
bool LooksLikeLibsvm(const std::vector<CsvField>& words) {
  const auto is_feature = [](const CsvField& word) {
    const size_t colon = word.text.find(':');
    return colon != word.text.npos && ExactNumber(word.text.substr(0, colon)) &&
           ExactNumber(word.text.substr(colon + 1));
  };
  return words.size() > 1 && ExactNumber(words[0].text) &&
         std::all_of(words.begin() + 1, words.end(), is_feature);
}

// A label, and namespaces with features: bars stand before names, and alone at most once.
bool LooksLikeVw(const std::vector<CsvField>& words) {
  const auto bars = [&](bool alone) {
    return std::count_if(words.begin(), words.end(), [&](const CsvField& word) {
      return !word.text.empty() && word.text.front() == '|' && (word.text.size() == 1) == alone;
    });
  };
  return words.size() > 2 && ExactNumber(words[0].text) &&
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
DataFormat SparseFormatOf(CsvReader* rows) {
  constexpr size_t kLooked = 20;
  size_t lines = 0, libsvm = 0, vw = 0;
  for (const CsvRecord& row : rows->Peek(' ', kLooked)) {
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
  const std::vector<CsvRecord> tabbed = rows->Peek('\t', kLooked);
  const bool criteo = std::all_of(tabbed.begin(), tabbed.end(),
                                  [](const CsvRecord& row) { return LooksLikeCriteo(row.fields); });
  return criteo && !tabbed.empty() ? DataFormat::kCriteo : DataFormat::kNone;
}

}  // namespace

TableProfile ProfileTable(const std::string& path) {
  std::unique_ptr<InputBytes> file = OpenInput(path, "the table's path");
  TableProfile table;
  table.path = file->path();
  CsvReader rows(std::move(file), CsvReader::Lenient());
  if (const DataFormat format = SparseFormatOf(&rows);
      format == DataFormat::kLibsvm || format == DataFormat::kVw) {
    throw UserError(
        "{}: its lines look like those of {} and not like a table. dtrain init {} writes a config for them.",
        path, format == DataFormat::kLibsvm ? "libsvm" : "Vowpal Wabbit", path);
  }
  const Form form = FindForm(&rows);
  table.delimiter = form.delimiter;
  FindPreamble(rows.Peek(form.delimiter, kHeaderRows), form.columns, &table);
  CsvDialect dialect;
  dialect.delimiter = DelimiterOf(form.delimiter);
  dialect.skip_lines = table.skip_lines;
  dialect.comment = table.comment;
  rows.Begin(dialect);
  const std::vector<CsvRecord> first = rows.Peek(form.delimiter, kHeaderRows);
  table.decimal_comma = form.delimiter != ',' && HasDecimalCommas(first);
  const Decimal decimal = table.decimal_comma ? Decimal::kComma : Decimal::kPoint;
  table.header = FindHeader(first, form.columns, decimal);
  const size_t max_distinct = std::clamp(kAllDistinct / form.columns, kMinDistinct, kMaxDistinct);
  std::vector<ColumnBuilder> builders(form.columns, ColumnBuilder(max_distinct, decimal));
  std::vector<std::string> names(form.columns);
  ReadRows(&rows, &builders, &names, &table);
  for (size_t i = 0; i < form.columns; ++i) table.columns.push_back(builders[i].Finish(std::move(names[i])));
  return table;
}

SparseProfile ProfileSparseRows(const std::string& path) {
  SparseProfile profile;
  profile.path = path;
  if (path == "-") return profile;  // it is read once, as a table
  CsvReader records(OpenInput(path, "the table's path"), CsvReader::Lenient());
  profile.format = SparseFormatOf(&records);
  if (profile.format == DataFormat::kNone) return profile;
  DataConfig data;
  data.train.format = profile.format;
  data.index_base = 0;
  const std::unique_ptr<LineParser> parser = MakeLineParser(data, std::nullopt);
  LineReader lines(OpenInput(path, "the table's path"));
  ColumnBuilder label(kMaxDistinct, Decimal::kPoint);
  SparseLine row;
  uint64_t first = 1, end = 0;
  while (lines.Next()) {
    std::optional<LineFault> fault;
    if (!parser->Parse(lines.line(), &row, &fault)) {
      if (fault) profile.faults.Add({lines.number(), static_cast<int64_t>(fault->at) + 1}, fault->rule);
      continue;
    }
    ++profile.rows;
    label.Add({row.label, {lines.number(), 1}});
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
