// CsvColumns: the columns of a CSV file, how many there are, their names where a header tells, and which is
// the label. In training data all others are features, in their order. Thread: any; plain values and free
// functions. Errors are UserErrors with file, line and column.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "trainer/config/config.h"
#include "trainer/data/files/csv_reader.h"
#include "trainer/data/files/label_rules.h"

namespace dtrain {

struct CsvColumns {
  std::vector<std::string> names;  // empty without a header
  int64_t count = 0;
  int64_t label = 0;  // its number, from 0; -1: there is none

  int64_t features() const { return count - 1; }
};

// The columns of a data source, from the first record, which becomes the reader's. `section` is "data.train"
// or "data.test".
CsvColumns ReadColumns(const DataSourceConfig& source, const std::string& section, CsvReader* reader);

// ReadColumns() of source.path, and no more of the file.
CsvColumns PeekCsv(const DataSourceConfig& source, const std::string& section);

// The names in the header that the reader stands at. Refuses one that is not UTF-8.
std::vector<std::string> HeaderNames(const CsvReader& reader);

// The names of all columns but the label; none without a header.
std::vector<std::string> FeatureNames(const CsvColumns& columns);

// Refuses a test file, whose header `reader` stands at, that does not have the training file's features in
// the training file's order. Names are compared where both files have them.
void CheckSameFeatures(const CsvColumns& columns, const CsvReader& reader, const CsvColumns& train,
                       const std::string& train_path);

// As a message calls column number `column`: "width", or where it has no name "the label", or its place in a
// row, from 1 as all places in messages: "column 4" of number 3.
std::string ColumnTitle(const CsvColumns& columns, int64_t column);

// What to do about a file that lacks the columns that are needed and whose first record is the reader's: to
// save it with commas where something else separates its fields, else `otherwise`.
std::string ColumnsRemedy(const CsvReader& reader, const std::string& otherwise);

// CsvLabels: the label column of one CSV file, row by row: real targets, classes by number, or classes by
// name. The rule of classes: in every row of both files a whole number in 0..classes-1 (label_rules.h), or in
// every row a name, which is any text that is no number. The first label of the training file tells which.
// Names get the numbers of their sorted order (by bytes), so that every reader of the file comes to the same;
// the test file takes them over.
// Owner: a CsvTable, or a CsvRowReader. Thread: one. Errors are UserErrors with file, line and column.
class CsvLabels {
 public:
  // For a training file.
  CsvLabels(const LabelRules& rules, std::string path, std::string title);
  // For a test file; `train_names` are the training file's, empty where it has numbers.
  CsvLabels(const LabelRules& rules, std::string path, std::string title,
            const std::vector<std::string>& train_names);

  // Takes memory for so many labels.
  void Reserve(size_t rows);
  void Add(const CsvField& field);
  // After the last row: the names get their numbers.
  void Finish();

  // After Finish(). Of the two, the one that the rules ask for.
  std::vector<int32_t>& classes() { return classes_; }
  std::vector<float>& targets() { return targets_; }
  const std::vector<std::string>& names() const { return names_; }  // by number; empty: labels are numbers

 private:
  enum class Kind { kUnknown, kTargets, kNumbers, kNames };

  void AddTarget(const CsvField& field);
  void AddNumber(const CsvField& field);
  void AddName(const CsvField& field);
  std::string KindRule(const char* kind) const;
  [[noreturn]] void Refuse(const CsvField& field, const std::string& rule) const;
  [[noreturn]] void RefuseNewName(const CsvField& field) const;

  const LabelRules rules_;
  const std::string path_;
  const std::string title_;
  const bool is_test_ = false;
  std::string first_;  // label of a training file
  Kind kind_ = Kind::kUnknown;
  std::vector<std::string> names_;                      // until Finish() in the order of appearance
  std::map<std::string, int32_t, std::less<>> number_;  // of each name
  std::vector<int32_t> classes_;
  std::vector<float> targets_;
};

}  // namespace dtrain
