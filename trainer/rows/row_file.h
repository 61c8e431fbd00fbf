// RowFile: the rows of one open file, whatever its format, one after the other, as numbers. Runs, eval and
// predict read rows through this alone: what trains in memory, reads rows again in each epoch, caches them,
// takes them from a pipe, or asks a trained model about them. OpenRowFile() (row_files.h) opens each. Errors
// are UserErrors with file, line and column.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "trainer/batch/input_form.h"
#include "trainer/batch/sparse_rows.h"
#include "trainer/config/data_config.h"
#include "trainer/input/text_reader.h"
#include "trainer/rows/csv_columns.h"
#include "trainer/rows/hashed_feature.h"
#include "trainer/rows/label_rules.h"
#include "trainer/rows/row_labels.h"

namespace dtrain {

// UnseenTexts: the texts of one column that are no category of the training rows.
struct UnseenTexts {
  // A text and in how many rows it is; there is one.
  const std::pair<const std::string, int64_t>& MostFrequent() const;

  int64_t rows = 0;
  std::map<std::string, int64_t, std::less<>> texts;  // the first ones, and in how many rows each is
};

// SkippedRows: what of a file was not used as it stands: rows that were left out, and what is told of others.
struct SkippedRows {
  static constexpr size_t kToldFaults = 10;
  static constexpr size_t kMaxTexts = 100;  // of a column
  static constexpr size_t kMaxUnused = 100;

  void AddUnseen(const std::string& column, std::string_view text);
  void AddUnused(std::string_view name) {
    if (unused.size() < kMaxUnused) unused.emplace(name);
  }
  void Add(const SkippedRows& more);
  // What came behind `before`, without how columns were found.
  SkippedRows Since(const SkippedRows& before) const;

  int64_t bad = 0;                     // could not be read (data.bad_rows: skip)
  int64_t with_gaps = 0;               // data.missing: drop
  int64_t unseen = 0;                  // texts of the other rows that are no category of the training rows
  int64_t unlabelled = 0;              // of vw
  int64_t beyond = 0;                  // features of the other rows that the model has not
  std::vector<std::string> faults;     // the first ones, with their places
  std::vector<std::string> headers{};  // lines that are the header again, the first ones, with their places
  std::map<std::string, UnseenTexts> unseen_in;  // by column
  std::set<std::string> unused;  // names of columns that are neither the model's nor left out by the config
  std::set<std::string> notes;   // how columns were found
};

// RowText: a row that is not parsed.
struct RowText {
  std::string_view text;  // from its begin to that of what follows; valid until the next row
  // What its features take when they are parsed (ParsedRows::feature_bytes): so many bytes, or at most.
  int64_t feature_bytes = 0;
  bool is_exact = false;
};

constexpr int64_t kSparseFeatureBytes = sizeof(uint64_t) + sizeof(float);

// ParsedRows: rows that follow each other, as numbers. Plain data.
struct ParsedRows {
  std::vector<float> features;  // [rows, inputs]; where rows are sparse they are in `sparse`
  std::vector<uint8_t> bytes;   // of IDX images in their place: 255 times the features
  SparseBuffer sparse;
  std::vector<int32_t> classes;  // or targets
  std::vector<float> targets;
  std::vector<float> weights;      // empty where all rows count 1
  std::vector<float> row_offsets;  // empty where nothing is added to outputs
  // The names that RowSpec::names wants, of hashed features in the order of `sparse`.
  std::vector<NamedFeature> names;

  int64_t feature_bytes() const {
    return static_cast<int64_t>(sizeof(float) * features.size()) +
           kSparseFeatureBytes * static_cast<int64_t>(sparse.ids.size());
  }
  void Clear() {
    features.clear();
    bytes.clear();
    sparse.Clear();
    classes.clear();
    targets.clear();
    for (const auto numbers : kNumbersOf<ParsedRows>) (this->*numbers).clear();
    names.clear();
  }
  // Appends the weights and offsets of `more`.
  void AddNumbers(const ParsedRows& more) {
    for (const auto numbers : kNumbersOf<ParsedRows>) {
      (this->*numbers).insert((this->*numbers).end(), (more.*numbers).begin(), (more.*numbers).end());
    }
  }
};

// Owner: who reads the rows. Thread: one.
class RowFile {
 public:
  // What is left out is counted in `skipped`, beside what it has of other files. It and `data` must outlive
  // this.
  RowFile(const DataConfig& data, SkippedRows* skipped) : data_(data), skipped_(*skipped) {}
  virtual ~RowFile() = default;
  RowFile(const RowFile&) = delete;
  RowFile& operator=(const RowFile&) = delete;

  // Appends the features, the weight and the offset of the next row to `rows`, and its label to `labels`;
  // null: labels are not read (RowContext::labels). False at the end of the file. Throws for a row that
  // cannot be read, unless such rows are skipped.
  bool Next(ParsedRows* rows, RowLabels* labels);

  // Goes behind the next row and parses none of its fields: what is wrong with them is not seen. False at the
  // end of the file. Only of files of a run that leaves out no row.
  virtual bool NextText(RowText* row);

  // As TextReader has them. The mark is where the next row begins, or an empty line or a comment before it.
  virtual TextMark mark() const = 0;
  virtual void GoTo(TextMark mark, int64_t bytes) = 0;
  virtual bool CanSeek() const = 0;
  virtual const std::string& path() const = 0;
  virtual int64_t content_bytes() const = 0;

  // Whether Next() can return without waiting for more of the file, as far as is known.
  virtual bool HasMore() const = 0;
  // After Next() has thrown a RowFault: it goes on behind the row.
  virtual void SkipFault() = 0;
  // A field of a row that is passed on as it is: of a table a column, by its name or number; of JSON lines a
  // member of RowSpec::keep; of a line of sparse rows "label", and of vw "tag". Throws UserError for another
  // one; `key` is what asks for it, such as "--keep".
  virtual int64_t FindField(const std::string& name, const char* key) const = 0;
  // The text of such a field in the row of the last Next(), until the next one.
  virtual std::string_view Field(int64_t field) const = 0;
  // The label of that row as it is written.
  virtual CsvField label() const { return {}; }
  // Whether such texts are JSON values; else they are the contents of fields.
  virtual bool is_json() const { return false; }
  // The id of that row, as a JSON value; empty: it has none.
  virtual std::string Id() const { return {}; }

  virtual int64_t inputs() const = 0;  // features of a row
  // The names of BatchForm::numbers, where the model tells columns from each other.
  virtual std::vector<std::string> NumberNames() const { return {}; }
  // The columns of a table; other files have none.
  virtual const CsvColumns& columns() const;
  virtual bool has_header() const { return false; }

 protected:
  enum class Read { kRow, kGap, kEnd };  // kGap: a row that is left out because it has a gap
  const DataConfig& data() const { return data_; }
  SkippedRows* skipped() const { return &skipped_; }

 private:
  // The same as Next(), for the next row whatever it is. What it has appended of a row that is left out, or
  // before it throws, is taken back.
  virtual Read ReadRow(ParsedRows* rows, RowLabels* labels) = 0;
  void Note(const RowFault& fault);

  const DataConfig& data_;
  SkippedRows& skipped_;
};

// LineFile: a file with a row, or none, in each line.
class LineFile : public RowFile {
 public:
  LineFile(const DataConfig& data, std::unique_ptr<InputBytes> file, SkippedRows* skipped)
      : RowFile(data, skipped), reader_(std::move(file)) {}

  TextMark mark() const override { return reader_.mark(); }
  void GoTo(TextMark mark, int64_t bytes) override { reader_.GoTo(mark, bytes); }
  bool CanSeek() const override { return reader_.CanSeek(); }
  const std::string& path() const override { return reader_.path(); }
  int64_t content_bytes() const override { return reader_.content_bytes(); }
  bool HasMore() const override { return reader_.HasWholeLine(); }
  void SkipFault() override {}  // the reader is behind the line

 protected:
  LineReader& reader() { return reader_; }
  const LineReader& reader() const { return reader_; }

 private:
  LineReader reader_;
};

// kLines: sparse rows, as data.train.format says; kRecords: TFRecord.
enum class RowFormat { kCsv, kJsonLines, kIdx, kLines, kRecords };

// RowSpec: what rows are read for that a trained model is asked about (dtrain eval and predict). Plain data.
struct RowSpec {
  // As the config says, with the files in data.test. Rows that cannot be read are skipped as it says.
  DataConfig data;
  int64_t inputs = 0;
  InputForm form;
  bool pixels = false;              // features are bytes of images: 0 to 255, which become 0 to 1
  std::optional<RowFormat> format;  // unset: decided by the first bytes of each file
  std::optional<bool> header;       // whether a CSV file has one; unset: decided by its first line
  // The label's column, by name or number; it is not a feature. Empty: unknown.
  std::string label;
  // If set, labels are read too and a row without one is an error. Unset: a label is ignored.
  std::optional<LabelRules> labels;
  std::string key = "--data";       // for messages
  const char* keep_key = "--keep";  // for messages
  // Columns of the file that are passed on as they are, by name or number; of JSON lines the members.
  std::vector<std::string> keep;
  // The columns of data.train, of a table with hashed ones; unset: they are those of each file.
  std::optional<CsvColumns> train_columns;
  // Whose names are read along with sparse rows; other rows keep their features as they are before they are
  // scaled (RowBlock::raw). Null: neither. It must outlive the file.
  const NameWish* names = nullptr;
  int64_t end_of_labels = INT64_MAX;  // of lines: a whole number from here on is no label of the model
};

// RowContext: what a file of rows is read by beside its own text. Plain data.
struct RowContext {
  std::vector<InputColumn> how;  // as in CsvLayout, of a table whose rows are not sparse
  int64_t inputs = 0;            // features of sparse rows; of lines 0: any number, also with the value 0
  // For a table of data.test: the columns of data.train. Null: this is data.train.
  const CsvColumns* train = nullptr;
  // For a table that is not the first of its source: the columns of the first, and its path.
  const CsvColumns* first = nullptr;
  std::string first_path;
  bool labels = true;  // each row has one; false: none is read, and a table need not have their column
  // For a table: nothing of a row is parsed, CsvFile::reader() has its texts, and a row with too few or too
  // many fields is left out. It is a first look at what may be a pipe (SourceInputs::OpenHead).
  bool records = false;
  bool numbers = false;  // with `records`: numbers of a file that is no text are no texts
  // The rows are for a trained model, which this says. Null: they are those of a run. It must outlive the
  // file.
  const RowSpec* spec = nullptr;
  std::string idx_labels;  // the file of labels of IDX images, if labels are read
};

}  // namespace dtrain
