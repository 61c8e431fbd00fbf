// The rows, and how they are read: data of the YAML file. Plain data.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "trainer/config/choices.h"

namespace dtrain {

struct DataSourceConfig {
  DataFormat format = DataFormat::kNone;
  // csv, tfrecord, libsvm, vw, criteo: files, patterns of names, "-" or "exec:COMMAND"; never empty there
  std::vector<std::string> path;
  std::string label;  // a column's name, or its number (ColumnNumber)
  bool header = true;
  std::vector<std::string> images;  // idx: files and patterns of names, in the order of their `labels`
  std::vector<std::string> labels;
  SyntheticName name = SyntheticName::kLinear;
  std::optional<int64_t> rows;  // synthetic; unset: without end for linear
};

// As many as there are processors for each worker of the machine.
constexpr int64_t kAutoThreads = 0;

struct DataConfig {
  DataSourceConfig train;
  DataSourceConfig test;
  int64_t validation = 0;       // rows held out; data.validation, where that is a whole number
  double validation_share = 0;  // of the rows; data.validation, where that is below 1
  HeldOutBy validation_by = HeldOutBy::kFirst;
  Split split = Split::kShard;
  bool shuffle = true;
  uint64_t seed = 1;
  LastBatch last_batch = LastBatch::kKeep;
  FeatureScale scale = FeatureScale::kNone;
  NumberScale numbers = NumberScale::kLog;  // where by_column is set
  // Hashed features are numbered column by column, and numbers are features of their own behind those of
  // categories. Loading a file sets it for wide_deep.
  bool by_column = false;
  // csv, tfrecord: columns by name or number (ColumnNumber)
  std::vector<std::string> ignore;
  std::vector<std::string> categories;
  int64_t max_categories = 100;  // of one column; rarer ones are one
  UnseenCategory unseen = UnseenCategory::kOther;
  std::vector<std::string> dates;  // columns of dates, which become days; "COLUMN=FORM" (ParseDateColumn)
  std::string weight;              // a column's name or number; empty: all rows weigh 1
  std::string offset;              // as weight, of vw kInitialOffset; empty: nothing is added to outputs
  std::vector<std::string> class_weights;  // "balanced", or "NAME=3" for each class; empty: all weigh 1
  std::vector<std::string> rename_labels;  // "FROM -> TO"
  LabelType label_type = LabelType::kAuto;
  std::vector<std::string> classes;  // names by number, sorted; empty: those that come
  MissingValues missing = MissingValues::kError;
  std::vector<std::string> missing_values;  // "MARKER", or "COLUMN=MARKER" (ParseColumnItem)
  std::vector<std::string> number_format;   // "EXAMPLE", or "COLUMN=EXAMPLE" (ParseNumberFormat)
  Delimiter delimiter = Delimiter::kAuto;
  Quotes quotes = Quotes::kDouble;
  Decimal decimal = Decimal::kPoint;
  int64_t skip_lines = 0;  // at the front of each file
  std::string comment;     // lines that begin with it are no rows; empty: there are none
  bool trim = false;       // blanks round a field
  BadRows bad_rows = BadRows::kStop;
  int64_t bad_rows_limit = 1000;
  DataCache cache = DataCache::kMemory;
  int64_t threads = kAutoThreads;  // that parse rows for memory
  std::string cache_dir;           // of cache: file; empty: "dtrain-cache" in the working directory
  double cache_wait_s = 3600;      // for another task that makes it
  int64_t shuffle_rows = 65536;    // of cache: none and file
  int64_t fit_rows = 1'000'000;    // behind those held out
  int64_t index_base = 1;          // libsvm: the index of the first feature, 0 or 1
  // Features are numbered by a hash of so many bits of their names; unset: libsvm and csv number them as they
  // stand, vw and criteo have a default (HashBits).
  std::optional<int64_t> hash_bits;
  // Set by loading a file: features are keys of 64 bits (model.table: hash), with by_column of 63, and
  // hash_bits is not read.
  bool whole_keys = false;
  std::vector<std::string> hash;           // csv, tfrecord: columns whose texts are hashed, by name or number
  std::vector<std::string> bags;           // columns of several texts, which are hashed (ParseBag)
  std::optional<Delimiter> bag_separator;  // of the texts of a bag in CSV; unset: kSemicolon
  std::vector<std::string> crosses;        // vw: pairs of namespaces, by their first letters: "ab"
};

// Whether rows of data.train have few features that are not 0, and are read as these.
bool HasSparseRows(const DataConfig& data);
// data.offset of vw, whose rows have their offsets behind their weights.
constexpr char kInitialOffset[] = "initial";
// Whether rows have weights of their own, beside those of their classes.
inline bool HasRowWeights(const DataConfig& data) {
  return !data.weight.empty() || data.train.format == DataFormat::kVw;
}

// The bits of the numbers of hashed features; unset: features are not hashed.
std::optional<int64_t> HashBits(const DataConfig& data);
// Whether a table has columns whose texts are hashed: its rows are sparse.
inline bool HashesColumns(const DataConfig& data) { return !data.hash.empty() || !data.bags.empty(); }
// The columns and numbers of a line of Criteo's logs.
constexpr int64_t kCriteoNumbers = 13, kCriteoCategories = 26;
// Returns which of a line's columns behind the label a text names, from 0: I1 to I13, C1 to C26, or the
// number 1 to 39; unset: none.
std::optional<size_t> CriteoColumn(const std::string& column);
// Where data.by_column is set: the columns of categories of a row.
int64_t CategoryColumns(const DataConfig& data);

// A column as the config keeps it is a text: 3 is the column of this number, where the first column is 0, and
// "3" with its quotes the column of this name. Any other text is a name.
// Returns the number; unset: `column` is a name.
std::optional<int64_t> ColumnNumber(const std::string& column);
// Returns the column's name; of a number its digits.
std::string ColumnNameIn(const std::string& column);

// What data.train and data.test may read beside files: standard input, and a command's output. Both end, and
// cannot be read again.
inline bool IsStandardInput(const std::string& path) { return path == "-"; }
inline bool IsCommand(const std::string& path) { return path.compare(0, 5, "exec:") == 0; }
inline bool IsPipe(const std::string& path) { return IsStandardInput(path) || IsCommand(path); }
// Whether rows have columns with names, as a table has them.
inline bool IsTable(DataFormat format) {
  return format == DataFormat::kCsv || format == DataFormat::kTfrecord;
}
// Whether rows are lines or records of what `path` names.
inline bool IsText(DataFormat format) {
  return IsTable(format) || format == DataFormat::kLibsvm || format == DataFormat::kVw ||
         format == DataFormat::kCriteo;
}
inline bool ReadsPipe(const DataSourceConfig& source) {
  return IsText(source.format) && source.path.size() == 1 && IsPipe(source.path[0]);
}
// The files of rows: "a.csv", or "a.csv and 3 others".
std::string PathText(const DataSourceConfig& source);

struct DataFile {
  std::string key;  // "data.train.path"
  std::string path;
};
// The files of data.train, then of data.test; none for data that are made.
std::vector<DataFile> DataFiles(const DataConfig& data);

}  // namespace dtrain
