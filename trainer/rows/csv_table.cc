#include "trainer/rows/csv_table.h"

#include <fmt/core.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/names.h"

namespace dtrain {

CsvRows::CsvRows(CsvReader* reader, CsvLayout layout)
    : reader_(*reader),
      layout_(std::move(layout)),
      before_label_(layout_.columns.inputs.size()),
      next_is_read_(layout_.first_is_row) {
  const std::vector<int64_t>& inputs = layout_.columns.inputs;
  if (layout_.columns.label < 0 || !std::is_sorted(inputs.begin(), inputs.end())) return;
  before_label_ = static_cast<size_t>(std::lower_bound(inputs.begin(), inputs.end(), layout_.columns.label) -
                                      inputs.begin());
}

bool CsvRows::Next() {
  if (!next_is_read_ && !reader_.Next()) return false;
  next_is_read_ = false;
  ++row_;
  CheckWhole();
  return true;
}

// Throws for a record with too few or too many fields, at the first one missing or superfluous.
void CsvRows::CheckWhole() const {
  const int64_t fields = static_cast<int64_t>(reader_.fields().size()), count = layout_.columns.count;
  if (fields == count) return;
  const TextPlace place =
      fields < count ? reader_.record_end() : reader_.fields()[static_cast<size_t>(count)].place;
  throw FaultAt(reader_.path(), place,
                fmt::format("{}; must be {}, as in the first line. Correct the row, or remove it.",
                            Plural(fields, "field"), count));
}

bool CsvRows::Read(std::vector<float>* features, RowLabels* labels) {
  if (!ReadInputs(0, before_label_, features)) return false;
  if (labels != nullptr) {
    const CsvField& label = reader_.fields()[static_cast<size_t>(layout_.columns.label)];
    if (layout_.drops_gaps && IsMissing(label.text)) return false;
    labels->Add(label);
  }
  return ReadInputs(before_label_, layout_.columns.inputs.size(), features) && ReadWeight();
}

bool CsvRows::ReadWeight() {
  if (layout_.columns.weight < 0) return true;
  const CsvField& field = reader_.fields()[static_cast<size_t>(layout_.columns.weight)];
  if (layout_.drops_gaps && IsMissing(field.text)) return false;
  const NumberText state = ParseNumber(field.text, reader_.decimal(), &weight_);
  if (state == NumberText::kGood && weight_ >= 0) return true;
  throw FieldError(reader_.path(), ColumnTitle(layout_.columns, layout_.columns.weight), field,
                   "must be a finite number >= 0 (data.weight). Correct it, or remove the row.");
}

bool CsvRows::ReadInputs(size_t begin, size_t end, std::vector<float>* out) {
  if (layout_.how.empty() && !layout_.drops_gaps) {
    ReadNumbers(begin, end, out);
    return true;
  }
  for (size_t input = begin; input < end; ++input) {
    if (!ReadInput(input, out)) return false;
  }
  return true;
}

void CsvRows::ReadNumbers(size_t begin, size_t end, std::vector<float>* out) {
  const size_t size = out->size();
  out->resize(size + end - begin);
  float* number = out->data() + size;
  for (size_t input = begin; input < end; ++input, ++number) {
    const NumberText state = ParseNumber(FieldOf(input).text, reader_.decimal(), number);
    if (state != NumberText::kGood || (layout_.pixels && !IsPixel(*number))) Refuse(input, state);
  }
}

// A column that may be a category or have gaps.
bool CsvRows::ReadInput(size_t input, std::vector<float>* out) {
  static const InputColumn kNumber;
  const InputColumn& how = layout_.how.empty() ? kNumber : layout_.how[input];
  const std::string_view text = FieldOf(input).text;
  if (how.is_category) return ReadCategory(input, out);
  float number = 0;
  const NumberText state =
      how.is_date ? ParseDate(text, &number) : ParseNumber(text, reader_.decimal(), &number);
  if (state == NumberText::kGood) {
    AppendNumber(how, number, out);
  } else if (!IsMissing(text) || (!how.fill && !layout_.drops_gaps)) {
    Refuse(input, state);
  } else if (how.fill) {
    AppendNumber(how, std::nullopt, out);
  } else {
    return false;
  }
  return true;
}

bool CsvRows::ReadCategory(size_t input, std::vector<float>* out) {
  const InputColumn& how = layout_.how[input];
  const std::string_view text = FieldOf(input).text;
  const bool missing = IsMissing(text);
  if (missing && layout_.drops_gaps) return false;
  const std::string_view category = missing ? std::string_view() : text;
  const bool listed = !how.categories.empty() && how.categories.front().empty();
  if (missing && !listed && !how.has_other && !layout_.gap_remedy.empty()) Refuse(input, NumberText::kEmpty);
  if (AppendCategory(how, category, out)) return true;
  ++unseen_;
  if (!layout_.refuses_unseen) return true;
  throw FieldError(
      reader_.path(), ColumnTitle(layout_.columns, layout_.columns.inputs[input]), FieldOf(input),
      fmt::format("must be a category of the training rows: {}. Set data.unseen to other, correct "
                  "it, or remove the row.",
                  ListNames(how.categories, "or")));
}

void CsvRows::Refuse(size_t input, NumberText state) const {
  const CsvField& field = FieldOf(input);
  const bool gap = IsMissing(field.text) && !layout_.gap_remedy.empty();
  const bool first = row_ == 0 && state == NumberText::kNotANumber;
  throw FieldError(reader_.path(), ColumnTitle(layout_.columns, layout_.columns.inputs[input]), field,
                   fmt::format("{}. {}", state == NumberText::kGood ? kPixelRule : NumberRule(state),
                               gap     ? layout_.gap_remedy
                               : first ? layout_.first_row_remedy
                                       : "Correct it, or remove the row."));
}

namespace {

constexpr char kTextColumn[] =
    "If all of the column is text, name it in data.categories (a feature for each text) or in data.ignore.";

// Returns the remedy for a text in the first row: the column may be text, or the line may be a header.
std::string FirstRowRemedy(const CsvColumns& columns, const std::string& section) {
  if (columns.names.empty())
    return fmt::format("If this line is a header, set {}.header to true. {}", section, kTextColumn);
  return fmt::format("Correct it, or remove the row. {}", kTextColumn);
}

}  // namespace

CsvLayout LayoutOf(const DataConfig& data, const std::string& section, bool header, const CsvColumns& columns,
                   std::vector<InputColumn> how) {
  CsvLayout layout;
  layout.columns = columns;
  layout.how = std::move(how);
  layout.drops_gaps = data.missing == MissingValues::kDrop;
  layout.refuses_unseen = data.unseen == UnseenCategory::kError;
  layout.first_is_row = !header;
  layout.first_row_remedy = FirstRowRemedy(columns, section);
  if (data.missing == MissingValues::kError) {
    layout.gap_remedy = "Set data.missing to mean, zero, indicator or drop, correct it, or remove the row.";
  }
  return layout;
}

int64_t FeaturesOf(const CsvColumns& columns, const std::vector<InputColumn>& how) {
  if (how.empty()) return static_cast<int64_t>(columns.inputs.size());
  return std::accumulate(how.begin(), how.end(), int64_t{0},
                         [](int64_t sum, const InputColumn& column) { return sum + column.features(); });
}

CsvFile::CsvFile(const DataConfig& data, std::unique_ptr<CsvReader> reader, CsvLayout layout,
                 SkippedRows* skipped)
    : RowFile(data, skipped), reader_(std::move(reader)), rows_(reader_.get(), std::move(layout)) {}

int64_t CsvFile::inputs() const { return FeaturesOf(rows_.layout().columns, rows_.layout().how); }

void CsvFile::GoTo(TextMark mark, int64_t bytes) {
  reader_->GoTo(mark, bytes);
  rows_.Restart();
}

RowFile::Read CsvFile::ReadRow(ParsedRows* rows, RowLabels* labels) {
  if (!rows_.Next()) return Read::kEnd;
  const int64_t unseen = rows_.unseen();
  if (!rows_.Read(&rows->features, labels)) return Read::kGap;
  skipped()->unseen += rows_.unseen() - unseen;
  if (rows_.layout().columns.weight >= 0) rows->weights.push_back(rows_.weight());
  return Read::kRow;
}

namespace {

// TableReader: reads the rows of all files of a source into a table.
class TableReader {
 public:
  TableReader(const DataConfig& data, const DataSourceConfig& source, std::string section,
              SourceInputs* inputs, CsvTable* table);

  // Reads all rows. `first` has begun the first file. Throws UserError if there are none.
  void Read(std::unique_ptr<CsvReader> first);

 private:
  TextPlace ReadFile(std::unique_ptr<CsvReader> reader, size_t file);
  void Reserve(const CsvReader& reader, size_t file);

  const DataConfig& data_;
  const DataSourceConfig& source_;
  const std::string section_;
  SourceInputs& inputs_;
  CsvTable& table_;
  CsvReserve reserve_;
  int64_t count_ = 0;      // rows
  int64_t reserved_ = 0;   // rows
  int64_t row_bytes_ = 0;  // of the rows of the files before
};

TableReader::TableReader(const DataConfig& data, const DataSourceConfig& source, std::string section,
                         SourceInputs* inputs, CsvTable* table)
    : data_(data), source_(source), section_(std::move(section)), inputs_(*inputs), table_(*table) {
  table_.inputs = FeaturesOf(table_.columns, table_.how);
}

void TableReader::Reserve(const CsvReader& reader, size_t file) {
  const int64_t content = row_bytes_ + inputs_.ExpectedContentFrom(file, reader.content_bytes());
  reserved_ = reserve_.NextRows(count_, row_bytes_ + reader.record_bytes(), content);
  table_.parsed.features.reserve(static_cast<size_t>(reserved_ * table_.inputs));
  table_.labels.Reserve(static_cast<size_t>(reserved_));
}

// Returns the place where the last record ends.
TextPlace TableReader::ReadFile(std::unique_ptr<CsvReader> reader, size_t file) {
  CsvFile rows(data_, std::move(reader),
               LayoutOf(data_, section_, source_.header, table_.columns, table_.how), &table_.skipped);
  while (true) {
    if (count_ == reserved_) Reserve(rows.reader(), file);
    if (!rows.Next(&table_.parsed, &table_.labels)) break;
    ++count_;
  }
  row_bytes_ += rows.reader().record_bytes();
  return rows.reader().record_end();
}

void TableReader::Read(std::unique_ptr<CsvReader> first) {
  const std::string path = first->path();
  const TextPlace end = ReadFile(std::move(first), 0);
  for (size_t file = 1; file < inputs_.size(); ++file) {
    auto reader = std::make_unique<CsvReader>(inputs_.Open(file), DialectOf(data_));
    CheckNextFile(table_.columns, path, reader.get());
    table_.labels.NextFile(reader->path());
    ReadFile(std::move(reader), file);
  }
  if (count_ == 0) {
    throw FaultAt(path, end,
                  fmt::format("no rows after the header; {}.path must name a file with data. If the first "
                              "line is data, set {}.header to false.",
                              section_, section_));
  }
  table_.labels.Finish();
}

}  // namespace

CsvTable ReadTrainTable(const DataConfig& data, const LabelRules& rules, std::vector<InputColumn> how,
                        SourceInputs* inputs) {
  auto reader = std::make_unique<CsvReader>(inputs->Open(0), DialectOf(data));
  const CsvColumns columns = ReadTrainColumns(data, reader.get());
  CsvTable table{columns, std::move(how),
                 {},      RowLabels(rules, reader->path(), ColumnTitle(columns, columns.label)),
                 0,       {}};
  TableReader(data, data.train, "data.train", inputs, &table).Read(std::move(reader));
  return table;
}

CsvTable ReadTestTable(const DataConfig& data, const LabelRules& rules, const CsvTable& train,
                       SourceInputs* inputs) {
  auto reader = std::make_unique<CsvReader>(inputs->Open(0), DialectOf(data));
  const CsvColumns columns = ReadTestColumns(data, train.columns, reader.get());
  CsvTable table{
      columns, train.how,
      {},      RowLabels(rules, reader->path(), ColumnTitle(columns, columns.label), train.labels.names()),
      0,       {}};
  TableReader(data, data.test, "data.test", inputs, &table).Read(std::move(reader));
  return table;
}

int64_t CsvReserve::NextRows(int64_t rows, int64_t row_bytes, int64_t content_bytes) {
  const int64_t min_rows = rows + rows / 8 + 1;
  const int64_t new_rows = rows - rows_, new_bytes = row_bytes - row_bytes_;
  double left = 0;
  if (new_bytes > 0) {
    const double pace = static_cast<double>(new_rows) / static_cast<double>(new_bytes);
    left = static_cast<double>(content_bytes - row_bytes) * pace;
  }
  rows_ = rows;
  row_bytes_ = row_bytes;
  // A 64th more, so that slightly shorter rows at the end do not cause a copy of the table.
  const double expected = static_cast<double>(rows) + left * (1 + 1.0 / 64);
  const double max_rows = static_cast<double>(rows) * kMaxGrowth;
  // If the estimate exceeds the limit, one larger step remains: it copies an eighth and not nearly all.
  const double next = expected <= max_rows ? expected : std::min(expected / kMaxGrowth, max_rows);
  return std::max(min_rows, static_cast<int64_t>(next) + 1);
}

}  // namespace dtrain
