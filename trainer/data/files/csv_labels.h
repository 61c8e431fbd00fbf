// CsvLabels: the label column of one CSV file, row by row: real targets, classes by number, or classes by
// name. The rule of classes: in every row of both files a whole number in 0..classes-1 (label_rules.h), or in
// every row a name, which is any text that is no number. The first label of the training file tells which.
// Names get the numbers of their sorted order (by bytes), so that every reader of the file comes to the same;
// the test file takes them over.
// Owner: a CsvTable, or a CsvRowReader. Thread: one. Errors are UserErrors with file, line and column.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "trainer/data/files/csv_columns.h"
#include "trainer/data/files/label_rules.h"

namespace dtrain {

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
