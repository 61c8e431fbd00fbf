#include "trainer/rows/csv_table.h"

#include <fmt/core.h>

#include <algorithm>
#include <cctype>
#include <limits>
#include <numeric>
#include <utility>

#include "base/names.h"
#include "trainer/config/item_text.h"
#include "trainer/config/user_text.h"
#include "trainer/input/iso_date.h"

namespace dtrain {
namespace {

constexpr float kLowest = std::numeric_limits<float>::lowest();
constexpr size_t kMaxBefore = 8;  // quotes, blanks and a delimiter in front of the first name

}  // namespace

CsvRows::CsvRows(CsvReader* reader, CsvLayout layout)
    : reader_(*reader),
      layout_(std::move(layout)),
      before_label_(layout_.columns.inputs.size()),
      next_is_read_(layout_.first_is_row) {
  TakeColumns();
  const std::vector<int64_t>& inputs = layout_.columns.inputs;
  if (layout_.columns.label < 0 || !std::is_sorted(inputs.begin(), inputs.end())) return;
  before_label_ = static_cast<size_t>(std::lower_bound(inputs.begin(), inputs.end(), layout_.columns.label) -
                                      inputs.begin());
}

void CsvRows::TakeColumns() {
  const CsvColumns& columns = layout_.columns;
  for (size_t i = 0; i < columns.inputs.size(); ++i) {
    const bool is_text = !layout_.how.empty() && (layout_.how[i].is_category || layout_.how[i].is_date);
    reader_.Take(columns.inputs[i], layout_.takes_numbers && !is_text);
  }
  if (columns.label >= 0) reader_.Take(columns.label, false);
  for (const int64_t column : {columns.weight, columns.offset}) {
    if (column >= 0) reader_.Take(column, true);
  }
}

bool CsvRows::Next(SkippedRows* skipped) {
  const int64_t empty_lines = reader_.empty_lines();
  while (!std::exchange(next_is_read_, false)) {
    if (!reader_.Next()) return false;
    const std::vector<std::string>& names = layout_.columns.names;
    if (names.empty() || reader_.names_columns()) break;
    if ((reader_.fields()[0].text != names[0] && !names[0].empty())) break;  // most rows
    if (!dtrain::IsHeaderAgain(reader_.fields(), names)) break;
    NoteHeader(kHeaderAgain, skipped);
  }
  ++row_;
  if (layout_.columns.count == 1 && reader_.empty_lines() > empty_lines) {
    throw reader_.FaultAtRecord(
        "an empty line stands before this row, and rows have one field: is it a missing value? Write NA, or "
        "remove the line.");
  }
  if (!layout_.records) CheckWhole();
  return true;
}

void CsvRows::SkipSecondHeader(SkippedRows* skipped) {
  const bool header = layout_.columns.count > 0 && !layout_.first_is_row;
  const auto count = static_cast<size_t>(layout_.columns.count);
  if (header && dtrain::SkipSecondHeader(count, reader_.readings(), &reader_))
    NoteHeader(kSecondHeader, skipped);
}

void CsvRows::NoteHeader(const std::string& what, SkippedRows* skipped) const {
  if (skipped->headers.size() < SkippedRows::kToldFaults)
    skipped->headers.emplace_back(reader_.FaultAtRecord(what + ", which is no row").what());
}

// Names are looked for where they can begin, so that most rows are not split.
bool CsvRows::IsHeaderAgain(std::string_view* text) {
  const std::vector<std::string>& names = layout_.columns.names;
  if (names.empty() || reader_.names_columns()) return false;
  const std::string& name = names[names[0].empty() && names.size() > 1 ? 1 : 0];
  const std::string_view begin = std::string_view(name).substr(0, name.find_first_of("\"'\\"));
  if (text->substr(0, name.size() + kMaxBefore).find(begin) == text->npos) return false;
  reader_.GoTo(reader_.record_mark());
  reader_.Next();
  if (dtrain::IsHeaderAgain(reader_.fields(), names)) return true;
  reader_.GoTo(reader_.record_mark());
  reader_.NextText(text);
  return false;
}

// Throws for a record with too few or too many fields, at the first one missing or superfluous.
void CsvRows::CheckWhole() const {
  if (is_whole()) return;
  const int64_t fields = static_cast<int64_t>(reader_.fields().size()), count = layout_.columns.count;
  const TextPlace place =
      fields < count ? reader_.record_end() : reader_.fields()[static_cast<size_t>(count)].place;
  throw FaultAt(reader_.path(), place,
                fmt::format("{}; must be {}, as in the first line. Correct the row, or remove it.",
                            Plural(fields, "field"), count));
}

bool CsvRows::Read(std::vector<float>* features, RowLabels* labels) {
  unseen_.clear();
  if (!ReadInputs(0, before_label_, features)) return false;
  if (labels != nullptr) {
    const CsvField& label = reader_.fields()[static_cast<size_t>(layout_.columns.label)];
    if (layout_.drops_gaps && IsMissing(label.text)) return false;
    labels->Add(label);
  }
  return ReadInputs(before_label_, layout_.columns.inputs.size(), features) &&
         ReadNumber(layout_.columns.weight, "must be a finite number >= 0 (data.weight)", 0, &weight_) &&
         ReadNumber(layout_.columns.offset, "must be a finite number (data.offset)", kLowest, &offset_);
}

// The number of a column that is no input; false: it is missing, and such rows are dropped.
bool CsvRows::ReadNumber(int64_t column, const char* rule, float min, float* number) {
  if (column < 0) return true;
  const CsvField& field = reader_.fields()[static_cast<size_t>(column)];
  if (layout_.drops_gaps && IsMissing(field.text)) return false;
  const NumberText state = ParseNumber(field, reader_.decimal(), number);
  if (state == NumberText::kGood && *number >= min) return true;
  throw FieldError(reader_.path(), ColumnTitle(layout_.columns, column), field,
                   fmt::format("{}{}. Correct it, or remove the row.", rule,
                               IsMissing(field.text) && field.raw != nullptr
                                   ? ", and data.missing_values says that this is none"
                                   : ""));
}

void CsvRows::AddNumbers(ParsedRows* rows) const {
  if (layout_.columns.weight >= 0) rows->weights.push_back(weight_);
  if (layout_.columns.offset >= 0) rows->row_offsets.push_back(offset_);
}

bool CsvRows::ReadInputs(size_t begin, size_t end, std::vector<float>* out) {
  if (layout_.how.empty() && !layout_.drops_gaps) {
    ReadNumbers(begin, end, out);
    return true;
  }
  for (size_t input = begin; input < end; ++input) {
    const CsvField& field = FieldOf(input);
    if (field.is_number && !layout_.how.empty()) {
      AppendNumber(layout_.how[input], field.number, out);
    } else if (!ReadInput(input, out)) {
      return false;
    }
  }
  return true;
}

void CsvRows::ReadNumbers(size_t begin, size_t end, std::vector<float>* out) {
  const size_t size = out->size();
  out->resize(size + end - begin);
  float* number = out->data() + size;
  for (size_t input = begin; input < end; ++input, ++number) {
    const NumberText state = ParseNumber(FieldOf(input), reader_.decimal(), number);
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
      how.is_date ? ParseDate(text, &number) : ParseNumber(FieldOf(input), reader_.decimal(), &number);
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
  unseen_.push_back(input);
  if (!layout_.refuses_unseen) return true;
  throw FieldError(
      reader_.path(), ColumnTitle(layout_.columns, layout_.columns.inputs[input]), FieldOf(input),
      fmt::format("must be a category of the training rows: {}. Set data.unseen to other, correct "
                  "it, or remove the row.",
                  ListNames(how.categories, "or")));
}

namespace {

// Returns what to do about a number or date in a spelling that the column has not; empty: it is none.
std::string SpellingRemedy(std::string_view text, NumberText state) {
  std::vector<std::string> forms;
  for (const std::string& form : DateForms()) {
    if (form.find('D') != form.npos && IsoDate(text, form)) forms.push_back(Quoted("COLUMN=" + form));
  }
  if (state == NumberText::kNotADate && !forms.empty())
    return fmt::format("If all of its dates are written so, say it in data.dates: {}.",
                       ListText(forms, "or"));
  const bool is_number = state == NumberText::kNotANumber &&
                         std::isalpha(static_cast<unsigned char>(text[0])) == 0 &&
                         (ReadNumber(text, Decimal::kPoint) || ReadNumber(text, Decimal::kComma));
  if (!is_number) return "";
  return "If all of its numbers are written so, say it in data.number_format (dtrain check TABLE finds it).";
}

}  // namespace

void CsvRows::Refuse(size_t input, NumberText state) const {
  const CsvField& field = FieldOf(input);
  const bool gap = IsMissing(field.text) && !layout_.gap_remedy.empty();
  const std::string spelling = row_ == 0 ? SpellingRemedy(field.in_file(), state) : "";
  const bool first = row_ == 0 && state == NumberText::kNotANumber && spelling.empty();
  throw FieldError(reader_.path(), ColumnTitle(layout_.columns, layout_.columns.inputs[input]), field,
                   fmt::format("{}. {}{}", state == NumberText::kGood ? kPixelRule : NumberRule(state),
                               gap     ? layout_.gap_remedy
                               : first ? layout_.first_row_remedy
                                       : "Correct it, or remove the row.",
                               spelling.empty() ? "" : " " + spelling));
}

CsvLayout LayoutOf(const DataConfig& data, const std::string& section, bool header, const CsvColumns& columns,
                   std::vector<InputColumn> how) {
  CsvLayout layout;
  layout.columns = columns;
  layout.how = std::move(how);
  layout.drops_gaps = data.missing == MissingValues::kDrop;
  layout.refuses_unseen = data.unseen == UnseenCategory::kError;
  layout.first_is_row = !header;
  layout.first_row_remedy = fmt::format(
      "{} If all of the column is text, name it in {} (a feature for each text) or in data.ignore.",
      columns.names.empty() ? fmt::format("If this line is a header, set {}.header to true.", section)
                            : "Correct it, or remove the row.",
      HashesColumns(data) ? "data.hash" : "data.categories");
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
    : RowFile(data, skipped), reader_(std::move(reader)), rows_(reader_.get(), std::move(layout)) {
  rows_.SkipSecondHeader(skipped);
  first_byte_ = CsvFile::mark().byte;
}

int64_t CsvFile::inputs() const { return FeaturesOf(rows_.layout().columns, rows_.layout().how); }

int64_t CsvFile::FindField(const std::string& name, const char* key) const {
  if (columns().count == 0) return 0;
  const int64_t field = FindColumn(columns(), name, key, *reader_);
  reader_->Take(field, false);
  return field;
}

void CsvFile::GoTo(TextMark mark, int64_t bytes) {
  reader_->GoTo(mark, bytes);
  rows_.Restart(mark.byte == first_byte_);
}

bool CsvFile::NextText(RowText* row) {
  if (rows_.next_is_read()) GoTo(mark(), 0);
  row->is_exact = !HasSparseRows(data());
  do {
    if (!reader_->NextText(&row->text)) return false;
  } while (rows_.IsHeaderAgain(&row->text));
  row->feature_bytes = MaxRowBytes(row->text);
  return true;
}

RowFile::Read CsvFile::ReadRow(ParsedRows* rows, RowLabels* labels) {
  if (!rows_.Next(skipped())) return Read::kEnd;
  if (rows_.layout().records) return rows_.is_whole() ? Read::kRow : Read::kGap;
  if (!rows_.Read(&rows->features, labels)) return Read::kGap;
  for (const size_t input : rows_.unseen()) {
    skipped()->AddUnseen(ColumnTitle(rows_.layout().columns, rows_.layout().columns.inputs[input]),
                         rows_.FieldOf(input).text);
  }
  rows_.AddNumbers(rows);
  return Read::kRow;
}

}  // namespace dtrain
