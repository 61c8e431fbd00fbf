// CsvColumns: the columns of a CSV file: their number, their names from the header if there is one, and which
// is the label. In training data all others that are not ignored are inputs, in their order. Thread: any;
// plain values and free functions. Errors are UserErrors with file, line and column.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "trainer/config/config.h"
#include "trainer/data/files/csv_reader.h"
#include "trainer/data/files/label_rules.h"

namespace dtrain {

struct CsvColumns {
  std::vector<std::string> names;  // empty without a header
  int64_t count = 0;
  int64_t label = 0;            // column of the label, from 0; -1: there is none
  int64_t weight = -1;          // column of the rows' weights; -1: there is none
  std::vector<int64_t> inputs;  // the columns that are read, in the order of the model
};

// Returns the columns of data.train; all but the label, data.weight and data.ignore are inputs. Reads the
// first record, which stays the reader's current one.
CsvColumns ReadTrainColumns(const DataConfig& data, CsvReader* reader);

// Returns the columns of data.test for a model of the training file with `train`: inputs are found by their
// names where both files have them, else they stand where they do in the training file. Reads the first
// record, which stays the reader's current one.
CsvColumns ReadTestColumns(const DataConfig& data, const CsvColumns& train, CsvReader* reader);

// Reads the first record of a later file of a source, which stays the reader's current one. Throws UserError
// unless the file has the columns of the first one, `first` in `first_path`: as many, and with a header of
// the same names.
void CheckNextFile(const CsvColumns& first, const std::string& first_path, CsvReader* reader);

// Returns a column by its name in the header or its number, from 0, for `key` of the config. A text that is
// the name of one column and the number of another is refused.
int64_t FindColumn(const CsvColumns& columns, const std::string& text, const std::string& key,
                   const CsvReader& reader);

// Returns the names in the header that the reader is at. Throws if one is not UTF-8.
std::vector<std::string> HeaderNames(const CsvReader& reader);

// Returns the names of the inputs; empty without a header.
std::vector<std::string> InputNames(const CsvColumns& columns);

// Returns how a message names a column: "width"; without a name "the label", or the place in a row, counted
// from 1: "column 4" for number 3.
std::string ColumnTitle(const CsvColumns& columns, int64_t column);

// CsvLabels: the label column of one CSV file, row by row: real targets, classes by number, or classes by
// name. Classes are either an integer in 0..classes-1 (label_rules.h) in every row of both files, or a name
// in every row, which is any text that is not a number. The first label of the training file decides which.
// Names are numbered in sorted order (by bytes), so that every reader of the file gets the same numbers; the
// test file uses those of the training file.
// Owner: a CsvTable, or a CsvRowReader. Thread: one. Errors are UserErrors with file, line and column.
class CsvLabels {
 public:
  // For a training file.
  CsvLabels(const LabelRules& rules, std::string path, std::string title);
  // For a test file. `train_names` are the training file's names, empty if it has numbers.
  CsvLabels(const LabelRules& rules, std::string path, std::string title,
            const std::vector<std::string>& train_names);

  // The rows that follow are those of another file, for messages.
  void NextFile(std::string path) { path_ = std::move(path); }
  // Reserves memory for `rows` labels.
  void Reserve(size_t rows);
  void Add(const CsvField& field);
  size_t size() const { return kind_ == Kind::kTargets ? targets_.size() : classes_.size(); }
  // Forgets the labels behind the first `rows`.
  void Truncate(size_t rows);
  // Call it after the last row: it numbers the names.
  void Finish();

  // The labels, after Finish(): the one that the rules ask for.
  std::vector<int32_t>& classes() { return classes_; }
  std::vector<float>& targets() { return targets_; }
  const std::vector<std::string>& names() const { return names_; }  // by number; empty: labels are numbers

 private:
  enum class Kind { kUnknown, kTargets, kNumbers, kNames };

  bool IsName(const CsvField& field) const;
  void AddRenamed(const CsvField& field);
  void AddTarget(const CsvField& field);
  void AddNumber(const CsvField& field);
  void AddName(const CsvField& field);
  std::string KindRule(const char* kind) const;
  [[noreturn]] void Refuse(const CsvField& field, const std::string& rule) const;
  [[noreturn]] void RefuseNewName(const CsvField& field) const;

  const LabelRules rules_;
  std::string path_;
  const std::string title_;
  const bool is_test_ = false;
  std::string first_;  // the first label of a training file
  Kind kind_ = Kind::kUnknown;
  std::vector<std::string> names_;                      // in order of appearance until Finish()
  std::map<std::string, int32_t, std::less<>> number_;  // the number of each name
  std::optional<bool> first_class_is_minus_;  // of two classes: it is -1 and not 0; unset: none came yet
  std::vector<int32_t> classes_;
  std::vector<float> targets_;
};

}  // namespace dtrain
