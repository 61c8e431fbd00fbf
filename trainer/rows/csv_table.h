// A CSV file as numbers, row by row. Errors are UserErrors with file, line and column.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/batch/input_form.h"
#include "trainer/config/choices.h"
#include "trainer/input/csv_reader.h"
#include "trainer/rows/csv_columns.h"
#include "trainer/rows/csv_header.h"
#include "trainer/rows/row_file.h"
#include "trainer/rows/row_labels.h"

namespace dtrain {

// CsvRows: the rows of a CSV file as numbers, one by one: features as float32, in the model's order, and the
// label if there is one. The caller chooses the columns. Owner: the reader of the file. Thread: one. Errors
// are UserErrors with file, line and column. Of several errors in a row the leftmost is reported; if features
// are not in column order, those of features before those of labels.

// CsvLayout: which columns are read, and as what.
struct CsvLayout {
  CsvColumns columns;            // their names are used in messages
  std::vector<InputColumn> how;  // how each of columns.inputs becomes features; empty: numbers without gaps
  bool drops_gaps = false;       // Read() skips rows with a missing value
  bool refuses_unseen = false;   // a text that is in no list of categories is an error
  bool first_is_row = false;     // the reader's current record is a row and not a header
  bool pixels = false;           // features are in 0 to 255
  bool records = false;          // rows stay texts (RowContext::records)
  bool takes_numbers = true;     // as RowContext::numbers
  // What to do about a value that is no number: in the first row, and in others.
  std::string first_row_remedy = "Correct it, or remove the row.";
  std::string gap_remedy;  // about a missing value; empty: as for others
};

class CsvRows {
 public:
  // `reader` is at the first record and must outlive this.
  CsvRows(CsvReader* reader, CsvLayout layout);

  // Call it before the first row: a second line of names or units is no row, and is told in `skipped`.
  void SkipSecondHeader(SkippedRows* skipped);
  // Goes to the next row. Returns false at the end of the file. A header that comes again is no row, and is
  // told in `skipped`. Throws UserError for too few or too many fields, unless rows stay texts.
  bool Next(SkippedRows* skipped);
  // Whether the record of that text, which the reader has gone behind, is the header again. It stays there.
  bool IsHeaderAgain(std::string_view* text);
  // Whether the row has as many fields as there are columns.
  bool is_whole() const { return IsWholeRow(reader_.fields(), static_cast<size_t>(layout_.columns.count)); }
  // Appends the row to `features` and `labels`; null: the label is not read. False: a value is missing, and
  // such rows are dropped; what was appended of the row is undefined then, as after a UserError.
  bool Read(std::vector<float>* features, RowLabels* labels);
  // After a UserError: the next call of Next() goes to the next row that can be read.
  void SkipFault() { reader_.SkipFault(); }
  // Appends the weight and the offset of the row that was read last, where there are columns of them.
  void AddNumbers(ParsedRows* rows) const;
  // The inputs of the row that was read last whose text is in no list of categories.
  const std::vector<size_t>& unseen() const { return unseen_; }
  const CsvField& FieldOf(size_t input) const {
    return reader_.fields()[static_cast<size_t>(layout_.columns.inputs[input])];
  }

  // Whether the reader's current record is the next row.
  bool next_is_read() const { return next_is_read_; }
  // The reader has gone to another record, which is the first row or not.
  void Restart(bool is_first) {
    next_is_read_ = false;
    row_ = is_first ? -1 : 0;
  }

  // Whether Next() can return without waiting for more of the file, as far as is known.
  bool HasMore() const { return next_is_read_ || reader_.HasWholeLine(); }

  const CsvLayout& layout() const { return layout_; }

 private:
  void TakeColumns();
  void NoteHeader(const std::string& what, SkippedRows* skipped) const;
  void CheckWhole() const;
  bool ReadInputs(size_t begin, size_t end, std::vector<float>* out);
  void ReadNumbers(size_t begin, size_t end, std::vector<float>* out);
  bool ReadInput(size_t input, std::vector<float>* out);
  bool ReadCategory(size_t input, std::vector<float>* out);
  bool ReadNumber(int64_t column, const char* rule, float min, float* number);
  [[noreturn]] void Refuse(size_t input, NumberText state) const;

  CsvReader& reader_;
  const CsvLayout layout_;
  size_t before_label_ = 0;  // inputs before the label
  std::vector<size_t> unseen_;
  float weight_ = 1, offset_ = 0;
  bool next_is_read_ = false;  // the reader's current record is the next row
  int64_t row_ = -1;           // 0: it is the first of the file
};

// Returns the layout of a file of data.train or data.test, which `section` says, with such columns. `header`:
// whether the reader's current record is one, and no row.
CsvLayout LayoutOf(const DataConfig& data, const std::string& section, bool header, const CsvColumns& columns,
                   std::vector<InputColumn> how);

// Returns the features of a row. `how`: as in CsvLayout.
int64_t FeaturesOf(const CsvColumns& columns, const std::vector<InputColumn>& how);

// CsvFile: one open file of a table. Owner: who reads the rows. Thread: one. Errors are UserErrors with file,
// line and column.
class CsvFile : public RowFile {
 public:
  // `reader` is at the first record, a header or a row as `layout` says. `skipped`: as for RowFile.
  CsvFile(const DataConfig& data, std::unique_ptr<CsvReader> reader, CsvLayout layout, SkippedRows* skipped);

  TextMark mark() const override { return rows_.next_is_read() ? reader_->record_mark() : reader_->mark(); }
  void GoTo(TextMark mark, int64_t bytes) override;
  bool NextText(RowText* row) override;
  bool CanSeek() const override { return reader_->CanSeek(); }
  const std::string& path() const override { return reader_->path(); }
  int64_t content_bytes() const override { return reader_->content_bytes(); }
  int64_t inputs() const override;
  const CsvColumns& columns() const override { return rows_.layout().columns; }
  bool has_header() const override { return columns().count > 0 && !rows_.layout().first_is_row; }
  bool HasMore() const override { return rows_.HasMore(); }
  void SkipFault() override { rows_.SkipFault(); }
  // A file without a record has no columns, and no row that could be asked for a field.
  int64_t FindField(const std::string& name, const char* key) const override;
  std::string_view Field(int64_t field) const override {
    return reader_->WholeText(reader_->fields()[static_cast<size_t>(field)]);
  }
  CsvField label() const override { return reader_->fields()[static_cast<size_t>(columns().label)]; }

  CsvReader& reader() const { return *reader_; }
  // Gives the bytes back. Nothing may be read from this any more.
  std::unique_ptr<InputBytes> Release() { return reader_->Release(); }

 protected:
  Read ReadRow(ParsedRows* rows, RowLabels* labels) override;

 private:
  // As RowText has them.
  virtual int64_t MaxRowBytes(std::string_view /*row*/) const {
    return static_cast<int64_t>(sizeof(float)) * inputs();
  }

  const std::unique_ptr<CsvReader> reader_;
  CsvRows rows_;
  int64_t first_byte_ = 0;  // of the first row
};

}  // namespace dtrain
