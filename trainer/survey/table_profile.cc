#include "trainer/survey/table_profile.h"

#include <fmt/format.h>
#include <strings.h>

#include <algorithm>
#include <cctype>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "base/error.h"
#include "base/names.h"
#include "trainer/config/data_config.h"
#include "trainer/config/user_text.h"
#include "trainer/input/csv_reader.h"
#include "trainer/input/iso_date.h"
#include "trainer/input/sources.h"
#include "trainer/rows/csv_columns.h"
#include "trainer/rows/example_reader.h"
#include "trainer/survey/sparse_profile.h"

namespace dtrain {
namespace {

constexpr size_t kAllDistinct = 1 << 20;  // of all columns, which bounds the memory of wide tables
constexpr size_t kMinDistinct = 100;
constexpr size_t kHeaderRows = 1000;

// Form: how the fields of a table are written.
struct Form {
  char delimiter = ',';
  Quotes quotes = Quotes::kDouble;
  size_t columns = 1;
  size_t rows = 0;    // the first ones
  size_t good = 0;    // of them those that have so many fields, and no fault of quotes
  size_t faults = 0;  // and those with a fault of quotes
  size_t quoted = 0;  // of the others those with a field in quotes
  size_t first = 0;   // fields of the first row

  double share() const { return static_cast<double>(good) / static_cast<double>(std::max<size_t>(rows, 1)); }
  // Whether the first line may be one of them, or their names; R writes one name less.
  bool FitsFirst() const { return first == columns || (first > 1 && first + 1 == columns); }
};

// Takes the most frequent number of fields.
Form FormOf(const std::vector<CsvRecord>& rows, char delimiter, Quotes quotes) {
  std::map<size_t, size_t> counts;  // of rows, by their fields
  Form form;
  form.delimiter = delimiter;
  form.quotes = quotes;
  form.rows = rows.size();
  if (!rows.empty()) form.first = rows[0].fields.size();
  for (const CsvRecord& row : rows) {
    if (row.quote_faults > 0) {
      ++form.faults;
      continue;
    }
    const auto is_quoted = [](const CsvField& field) { return field.quoted; };
    form.quoted += std::any_of(row.fields.begin(), row.fields.end(), is_quoted) ? 1 : 0;
    const size_t count = ++counts[row.fields.size()];
    if (count <= form.good) continue;
    form.columns = row.fields.size();
    form.good = count;
  }
  return form;
}

// Of quotes that a delimiter can have those with which most rows are good. Other quotes than "" must be
// better by rows that have some, or, of '', stand in most rows; quotes that are characters must be better
// than all.
Form FormWith(CsvReader* table, char delimiter) {
  const auto look = [&](Quotes quotes) {
    return FormOf(table->Peek(delimiter, quotes, kHeaderRows), delimiter, quotes);
  };
  Form best = look(Quotes::kDouble);
  const bool quoted = best.quoted > 0;
  const Form escaped = look(Quotes::kBackslash);
  const bool better = escaped.faults < best.faults || escaped.columns < best.columns;
  if (escaped.good > best.good || (escaped.good == best.good && better)) best = escaped;
  const Form single = look(Quotes::kSingle);
  if (single.quoted * 2 > single.good && single.good >= best.good + (quoted ? 1 : 0)) best = single;
  const Form none = look(Quotes::kNone);
  return none.good > best.good + best.quoted ? none : best;
}

// How many of the first values are numbers or dates with such fields, as a share. A text without quotes
// counts against the form where something else in it may separate fields: runs of blanks, or `other`.
double ValueShare(CsvReader* table, const Form& form, char other) {
  constexpr size_t kLooked = 100;
  int64_t texts = 0, values = 0;
  for (const CsvRecord& row : table->Peek(form.delimiter, form.quotes, kLooked)) {
    for (const CsvField& field : row.fields) {
      if (row.quote_faults > 0 || IsMissing(field.text)) continue;
      ++texts;
      const auto is_number = [&](Decimal decimal) {
        const std::optional<SpelledNumber> number = ReadNumber(field.text, decimal);
        if (!number || number->unit().find(other) != std::string::npos) return false;
        const bool blank = field.text.find(' ') != std::string_view::npos && !number->unit().empty();
        return !blank &&
               (number->front.empty() || !std::isalpha(static_cast<unsigned char>(number->front[0])));
      };
      const bool is_value = DaysOfDate(field.text) || is_number(Decimal::kPoint) ||
                            (form.delimiter != ',' && is_number(Decimal::kComma));
      const auto has = [&](std::string_view text) { return field.text.find(text) != text.npos; };
      values += is_value ? 1 : !field.quoted && (has("  ") || has({&other, 1})) ? -1 : 0;
    }
  }
  return static_cast<double>(values) / static_cast<double>(std::max<int64_t>(texts, 1));
}

// The delimiter with which most of the first rows have the same number of fields. The comma comes last,
// because it also stands in the numbers and texts of files with other delimiters; bytes that stand in texts
// more often separate fields only where nothing else does, or, of blanks, where more values become numbers.
Form FindForm(CsvReader* table) {
  const auto are_most = [](const Form& form) { return (form.good + 1) * 10 >= form.rows * 9; };
  Form best;
  for (const char delimiter : {'\t', ';', '|', '\x01', ','}) {
    const Form form = FormWith(table, delimiter);
    if (form.columns > 1 && form.share() > best.share()) best = form;
  }
  const bool usual = best.share() > 0.5;
  for (const char delimiter : {' ', '^', '~', ':'}) {
    if (usual && delimiter != ' ') break;
    const Form form = FormWith(table, delimiter);
    if (form.columns < 2 || !are_most(form)) continue;
    if (!usual && form.columns > best.columns) return form;
    if (!usual) continue;
    const double values = ValueShare(table, form, best.delimiter), others = ValueShare(table, best, '\n');
    if (best.delimiter == '\t' && others >= 0) break;  // a tab is a blank, too
    const bool better = values > others && (form.FitsFirst() || !best.FitsFirst());
    const bool fits = values == others && form.FitsFirst() && !best.FitsFirst();
    if (better || fits) return form;
  }
  return best;
}

// Whether the text is ARFF, whose rows begin behind @DATA: then the reader is there, and `names` are those of
// its attributes.
bool FindArff(CsvReader* table, std::vector<std::string>* names, TableProfile* profile) {
  const auto is = [](const CsvRecord& row, const char* word) {
    return strcasecmp(std::string(row.fields[0].text).c_str(), word) == 0;
  };
  const std::vector<CsvRecord> lines = table->Peek(' ', Quotes::kSingle, 1 << 14);
  auto line = lines.begin();
  while (line != lines.end() && line->fields[0].text.substr(0, 1) == "%") ++line;
  if (line == lines.end() || !is(*line, "@relation")) return false;
  for (; line != lines.end() && !is(*line, "@data"); ++line) {
    if (is(*line, "@attribute") && line->fields.size() > 1) names->emplace_back(line->fields[1].text);
  }
  if (line == lines.end()) return false;
  if (line + 1 != lines.end() && line[1].fields[0].text.substr(0, 1) == "{") {
    throw UserError(
        "{}: is ARFF with sparse rows, {{INDEX VALUE, ..}}, which are not read. Convert it to libsvm.",
        table->path());
  }
  profile->arff = true;
  profile->skip_lines = line->begin().line;
  profile->comment = "%";
  return true;
}

// Throws for a text whose first line is JSON. A row of a table may begin with a field of JSON.
void CheckNoJson(CsvReader* table) {
  const std::vector<CsvRecord> first = table->Peek('\x01', Quotes::kNone, 1);
  if (first.empty() || first[0].fields[0].text.empty()) return;
  const std::string_view line = first[0].fields[0].text;
  const size_t second = std::min(line.find_first_not_of(" \t", 1), line.size() - 1);
  const auto is_of = [](char c, std::string_view some) { return some.find(c) != some.npos; };
  if (!is_of(line[0], "{[") || !is_of(line[second], "{[\"") || !is_of(line.back(), "{}[],")) return;
  throw UserError(
      "{}: is JSON, and no table. Convert it: python3 -c 'import pandas; pandas.read_json(\"a.json\"{})"
      ".to_csv(\"a.csv\", index=False)'",
      table->path(), line[0] == '{' && line.back() == '}' ? ", lines=True" : "");
}

// Finds lines at the front that have other numbers of fields than the rows behind them: a title, or comments.
void FindPreamble(const std::vector<CsvRecord>& rows, size_t columns, TableProfile* table) {
  constexpr size_t kMaxLines = 20;
  // A title of words between blanks may have more; one that could be the names beside those of rows stands
  // above names.
  const auto has_number = [](const CsvField& field) { return ExactNumber(field.text).has_value(); };
  const auto is_words = [&] {
    if (table->delimiter != ' ' || rows.size() < 2 || rows[0].fields.size() == columns) return false;
    if (rows[0].fields.size() == columns + 1 && rows[0].fields[0].text == "#") return false;  // FitHeader()
    const std::vector<CsvField>& next = rows[1].fields;
    if (rows[0].fields.size() + 1 != columns) return next.size() == columns || next.size() + 1 == columns;
    return next.size() == columns && std::none_of(next.begin(), next.end(), has_number);
  };
  const auto is_title = [&](size_t row) {
    return rows[row].fields.size() * 2 <= columns || (row == 0 && is_words());
  };
  size_t lines = 0;
  while (lines < rows.size() && is_title(lines)) ++lines;
  if (lines == 0 || lines > kMaxLines || lines == rows.size()) return;
  const auto begin = [](const CsvRecord& row) {
    const std::string_view text = row.fields[0].text;
    return text.empty() || row.fields[0].quoted ? ' ' : text.front();
  };
  const char first = begin(rows[0]);
  const bool marks = std::string_view("#%|;!").find(first) != std::string_view::npos;
  // Where rows begin so too, as those with #N/A do, they are none.
  const bool comments = marks && std::all_of(rows.begin(), rows.end(), [&](const CsvRecord& row) {
                          const bool is_front = &row < &rows[lines], is_short = row.fields.size() < columns;
                          return is_front ? begin(row) == first : begin(row) != first || is_short;
                        });
  if (comments && first != table->delimiter) {
    table->comment = std::string(1, first);
  } else {
    table->skip_lines = rows[lines].begin().line - 1;
  }
}

// DecimalMarks: which marks stand before the decimals of numbers. Those that may stand between
// thousands as well, 1,234 and 1.234, are told apart.
struct DecimalMarks {
  bool commas = false, points = false, maybe_commas = false, maybe_points = false;

  explicit DecimalMarks(const std::vector<CsvRecord>& rows) {
    for (const CsvRecord& row : rows) {
      for (const CsvField& field : row.fields) {
        const bool comma = field.text.find(',') != field.text.npos;
        const Decimal mark = comma ? Decimal::kComma : Decimal::kPoint;
        if ((!comma && field.text.find('.') == field.text.npos) || !IsNumberWith(field.text, mark)) continue;
        const bool maybe = ReadNumber(field.text, comma ? Decimal::kPoint : Decimal::kComma).has_value();
        (comma ? maybe ? maybe_commas : commas : maybe ? maybe_points : points) = true;
      }
    }
  }
  // Where semicolons separate fields, commas stand between thousands hardly ever.
  bool AreCommas(char delimiter) const {
    return !points && (commas || (delimiter == ';' && maybe_commas && !maybe_points));
  }
  std::optional<Decimal> Shown() const {
    if (commas == points) return std::nullopt;
    return commas ? Decimal::kComma : Decimal::kPoint;
  }
};

// Whether what a column has decides nothing about its rows: a run ignores it.
bool IsIgnored(const ColumnProfile& column) { return column.index || column.identifier || column.constant; }

// Returns the first column of numbers or dates in which a row has neither, of columns that are known; where
// there is none, their number. Such a row is left out by a run.
size_t FaultyColumn(const CsvRecord& row, const std::vector<ColumnProfile>& columns, Decimal decimal) {
  size_t i = 0;
  for (; i < columns.size(); ++i) {
    std::string plain;
    const std::string_view text = PlainText(columns[i].Reading(), row.fields[i].text, decimal, &plain);
    if (IsMissing(text) || IsIgnored(columns[i])) continue;
    if (columns[i].not_a_number.count > 0 && !ExactNumber(text, decimal)) break;
    if (columns[i].not_a_date.count > 0 && !DaysOfDate(text)) break;
  }
  return i;
}

// Goes to the next row. Records that cannot be rows are counted.
bool NextRow(CsvReader* rows, TableProfile* table) {
  while (true) {
    try {
      return rows->Next();
    } catch (const RowFault& fault) {
      if (!rows->names_columns()) throw;
      const TextPlace place = rows->record().begin();
      const size_t begin = std::string_view(FaultAt(rows->path(), place, "").what()).size();
      table->records.Add(place, "");
      if (table->records.count == 1) table->records.example = std::string(fault.what()).substr(begin);
      rows->SkipFault();
    }
  }
}

// Reads the rows of a file into `builders`. `is_read`: the reader is at a row. `known`: what the columns are;
// null: that is not known yet. If it is, rows that cannot be read give no category, class and number, but the
// fault in their first column.
void ReadRows(CsvReader* rows, bool is_read, const std::vector<std::string>& names,
              const std::vector<ColumnProfile>* known, std::vector<ColumnBuilder>* builders,
              TableProfile* table) {
  const Decimal decimal = table->decimal_comma ? Decimal::kComma : Decimal::kPoint;
  while (std::exchange(is_read, false) || NextRow(rows, table)) {
    const CsvRecord& row = rows->record();
    if (row.quote_faults > 0) {
      table->quotes.Add(row.quote_place, "");
      continue;
    }
    for (const CsvField& field : row.fields) table->quoted_blanks = table->quoted_blanks || field.trimmed;
    const size_t count = row.fields.size();
    if (table->has_names() && IsHeaderAgain(row.fields, names)) {
      table->headers.Add(row.begin(), kHeaderAgain);
    } else if (!IsWholeRow(row.fields, builders->size())) {
      Faults& faults = count < builders->size() ? table->short_rows : table->long_rows;
      faults.Add(row.begin(), fmt::format("{}", count));
    } else {
      ++table->rows;
      const size_t faulty = known == nullptr ? builders->size() : FaultyColumn(row, *known, decimal);
      table->unreadable += faulty < builders->size() ? 1 : 0;
      for (size_t i = 0; i < builders->size(); ++i) {
        if (faulty < builders->size() && i != faulty && !IsIgnored((*known)[i])) continue;
        (*builders)[i].Add(row.fields[i], rows->IsTrimmed(row.fields[i]) && table->delimiter != ' ');
      }
    }
  }
  if (rows->empty_lines() > 0 && table->empty_lines.count == 0)
    table->empty_lines.first = rows->empty_place();
  table->empty_lines.count += rows->empty_lines();
}

constexpr char kKey[] = "the table's path";

// TableReader: reads a table, perhaps twice. Owner and thread: ProfileTable().
class TableReader {
 public:
  TableReader(const std::string& path, const std::string& label, const TableProfile* like)
      : files_(SourceFiles({path}, kKey)), label_(label), like_(like) {
    table_.path = files_.size() == 1 ? "" : path;
  }

  TableProfile Read() {
    std::unique_ptr<CsvReader> first = Open(files_[0]);
    if (table_.path.empty()) table_.path = first->path();
    Look(first.get());
    const TableProfile form = table_;
    ReadAll(std::move(first), nullptr);
    const bool faulty = std::any_of(
        table_.columns.begin(), table_.columns.end(),
        [](const ColumnProfile& column) { return column.not_a_number.count + column.not_a_date.count > 0; });
    if (!faulty || IsPipe(files_[0])) return std::move(table_);
    const std::vector<ColumnProfile> known = std::exchange(table_, form).columns;
    ReadAll(nullptr, &known);
    return std::move(table_);
  }

 private:
  // Finds how the table is written, from its first lines.
  void Look(CsvReader* rows) {
    if (rows->names_columns()) return LookAtRecords(static_cast<ExampleReader*>(rows));
    if (const DataFormat format = SparseFormatOf(rows); format != DataFormat::kNone) {
      const bool pipe = IsPipe(files_[0]);
      throw UserError(
          "{}: its lines look like those of {} and not like a table. {}dtrain init {} writes a config for "
          "them.",
          table_.path,
          format == DataFormat::kLibsvm ? "libsvm"
          : format == DataFormat::kVw   ? "Vowpal Wabbit"
                                        : "Criteo's logs",
          pipe ? "Save them to a file: " : "", pipe ? "FILE" : table_.path);
    }
    CheckNoJson(rows);
    const bool arff = FindArff(rows, &names_, &table_);
    if (arff) rows->Begin(Dialect());
    const Form form = FindForm(rows);
    table_.delimiter = form.delimiter;
    table_.quoting = form.quotes;
    if (!arff) FindPreamble(rows->Peek(form.delimiter, form.quotes, kHeaderRows), form.columns, &table_);
    CsvDialect dialect = Dialect();
    if (arff) dialect.skip_lines = 0;
    dialect.delimiter = Delimiter::kAuto;
    rows->Begin(dialect);
    table_.finds_delimiter = rows->delimiter() == form.delimiter;
    dialect.skip_lines = 0;
    dialect.delimiter = DelimiterOf(form.delimiter);
    rows->Begin(dialect);
    std::vector<CsvRecord> first = rows->Peek(form.delimiter, form.quotes, kHeaderRows);
    const DecimalMarks marks(first);
    table_.decimal_comma = form.delimiter != ',' && marks.AreCommas(form.delimiter);
    if (like_ != nullptr && !marks.commas && !marks.points) table_.decimal_comma = like_->decimal_comma;
    columns_ = form.columns;
    FindFormats(first);
    if (arff || first.empty()) {
      table_.header = HeaderKind::kNone;
      if (names_.size() != columns_) names_.assign(columns_, "");
      return;
    }
    const std::vector<CsvRecord> below(std::make_move_iterator(first.begin() + 1),
                                       std::make_move_iterator(first.end()));
    const auto fields = static_cast<int64_t>(first[0].fields.size()), faults = first[0].quote_faults;
    columns_ = FitHeader(below, &first[0]);
    // Names that do not fit are no reason to read the rows without them: then rows are those at fault.
    const auto is_text = [&](const CsvField& f) {
      return !f.text.empty() && !ExactNumber(f.text, DecimalOf());
    };
    const std::vector<CsvField>& names = first[0].fields;
    if (names.size() > 1 && std::all_of(names.begin(), names.end(), is_text)) columns_ = names.size();
    first.resize(1);
    first.insert(first.end(), below.begin(), below.end());
    table_.header = FindHeader(first, columns_, DecimalOf(), readings_, label_);
    table_.names_rows = table_.has_names() && fields < static_cast<int64_t>(first[0].fields.size());
    for (const CsvField& name : first[0].fields) {
      names_.emplace_back(table_.has_names() ? name.text : "");
      table_.quoted_blanks = table_.quoted_blanks || name.trimmed;
    }
    if (!table_.has_names() && (faults > 0 || fields != static_cast<int64_t>(columns_))) {
      table_.first_row.Add(first[0].begin(), faults > 0 ? "a fault of quotes" : Plural(fields, "field"));
      if (files_.size() > 1) table_.first_row.EndFile(files_[0]);
    }
    names_.resize(columns_);
    FindFormats(table_.has_names() ? below : first);
  }

  void LookAtRecords(ExampleReader* rows) {
    table_.tfrecord = rows->Next();
    for (const CsvField& name : rows->fields()) names_.emplace_back(name.text);
    columns_ = names_.size();
    for (size_t i = 0; i < columns_; ++i) varies_.push_back(rows->Varies(i));
    FindFormats({});
    rows->Begin({});
  }

  // Opens a file, whatever it is. One of records may lack columns of the first in its own first ones.
  std::unique_ptr<CsvReader> Open(const std::string& file) const {
    std::unique_ptr<InputBytes> input = OpenInput(file, kKey);
    if (!input->BeginsRecords(false)) {
      return std::make_unique<CsvReader>(std::move(input), CsvReader::Lenient());
    }
    ExampleRules rules;
    rules.names = names_;
    rules.all_known = true;
    rules.empty_is_gap = true;
    return std::make_unique<ExampleReader>(std::move(input), rules);
  }

  void FindFormats(const std::vector<CsvRecord>& rows) {
    const std::optional<Decimal> shown = DecimalMarks(rows).Shown();
    formats_.clear();
    readings_.resize(columns_);
    for (size_t i = 0; i < columns_; ++i) {
      formats_.push_back(FindFormat(rows, i, DecimalOf(), shown));
      const ColumnProfile* const like = Like(i);
      const auto format = like == nullptr ? std::nullopt : ParseNumberFormat(like->number_format);
      if (format && IsWrittenSo(rows, i, *format)) {
        formats_[i].format = *format;
        formats_[i].example = like->number_format;
        formats_[i].units.clear();
      }
      readings_[i].column = static_cast<int64_t>(i);
      readings_[i].number = formats_[i].format;
    }
  }

  // Reads all rows, of the first file by `first`, which has looked at them; null: anew.
  void ReadAll(std::unique_ptr<CsvReader> first, const std::vector<ColumnProfile>* known) {
    const size_t max_distinct = std::clamp(kAllDistinct / columns_, kMinDistinct, kMaxDistinct);
    std::vector<ColumnBuilder> builders;
    for (size_t i = 0; i < columns_; ++i) {
      builders.emplace_back(max_distinct, DecimalOf(), formats_[i], Like(i));
    }
    for (const std::string& file : files_) {
      std::unique_ptr<CsvReader> rows = std::move(first);
      if (rows == nullptr) {
        rows = Open(file);
        rows->Begin(Dialect());
      }
      ReadRows(rows.get(), GoToRows(file, rows.get()), names_, known, &builders, &table_);
      if (files_.size() == 1) break;
      for (ColumnBuilder& builder : builders) builder.EndFile(file);
      for (Faults* faults : {&table_.short_rows, &table_.long_rows, &table_.quotes, &table_.records,
                             &table_.empty_lines, &table_.headers}) {
        faults->EndFile(file);
      }
    }
    for (size_t i = 0; i < columns_; ++i) {
      table_.columns.push_back(builders[i].Finish(names_[i]));
      table_.columns[i].varies = table_.tfrecord && varies_[i];
    }
  }

  // Goes behind the header. Returns whether the reader is at a row. A run refuses a later file that has not
  // the columns of the first.
  bool GoToRows(const std::string& file, CsvReader* rows) {
    CsvColumns columns;
    columns.count = static_cast<int64_t>(columns_);
    if (table_.has_names()) columns.names = names_;
    const bool is_read =
        file == files_[0] ? table_.has_names() && rows->Next() : CheckNextFile(columns, files_[0], rows);
    if (!table_.has_names()) return is_read;
    if (is_read && SkipSecondHeader(columns_, readings_, rows))
      table_.headers.Add(rows->record().begin(), kSecondHeader);
    return false;
  }

  // The same column of the other table; null: there is none.
  const ColumnProfile* Like(size_t column) const {
    if (like_ == nullptr) return nullptr;
    const bool by_name = like_->has_names() && table_.has_names() && column < names_.size();
    return FindColumn(*like_, by_name ? &names_[column] : nullptr, column);
  }

  Decimal DecimalOf() const { return table_.decimal_comma ? Decimal::kComma : Decimal::kPoint; }
  CsvDialect Dialect() const {
    CsvDialect dialect;
    dialect.delimiter = DelimiterOf(table_.delimiter);
    dialect.skip_lines = table_.skip_lines;
    dialect.comment = table_.comment;
    dialect.quotes = table_.quoting;
    return dialect;
  }

  const std::vector<std::string> files_;
  const std::string label_;
  const TableProfile* const like_;  // null: there is none
  size_t columns_ = 1;
  std::vector<ColumnFormat> formats_;  // of the columns, as the first rows show them
  std::vector<FieldReading> readings_;
  std::vector<std::string> names_;  // of the columns; empty texts: there are none
  std::vector<bool> varies_;        // of the columns of TFRecord
  TableProfile table_;
};

}  // namespace

TableProfile ProfileTable(const std::string& path, const std::string& label, const TableProfile* like) {
  return TableReader(path, label, like).Read();
}

const ColumnProfile* FindColumn(const TableProfile& table, const std::string* name, size_t place) {
  const std::vector<ColumnProfile>& columns = table.columns;
  if (name == nullptr) return place < columns.size() ? &columns[place] : nullptr;
  const auto found = std::find_if(columns.begin(), columns.end(),
                                  [&](const ColumnProfile& one) { return one.name == *name; });
  return found == columns.end() ? nullptr : &*found;
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
