// The labels of rows that are texts, as numbers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "trainer/input/csv_reader.h"
#include "trainer/rows/label_rules.h"

namespace dtrain {

// RowLabels: the labels of one text of rows, row by row: real targets, classes by number, or classes by
// name. Classes are either an integer in 0..classes-1 (label_rules.h) in every row of both files, or of two
// classes -1 and 1 or any other two whole numbers, which are their names then, or a name in every row, which
// is any text that is not a number. The first label of the training file decides which. Names are numbered in
// the order of classes (class_names.h), so that every reader of the file gets the same numbers, unless they
// are given; the test file uses those of the training file. Spellings of one number are one class, which is
// called as the first of them.
// Owner: who reads the rows. Thread: one. Errors are UserErrors with file, line and column.
class RowLabels {
 public:
  // For a training file.
  RowLabels(const LabelRules& rules, std::string path, std::string title);
  // For a test file. `train_names` are the training file's names, empty if it has numbers.
  RowLabels(const LabelRules& rules, std::string path, std::string title,
            const std::vector<std::string>& train_names);

  // The rows that follow are those of another file, for messages.
  void NextFile(std::string path) { path_ = std::move(path); }
  // Whether the labels so far say what all labels are: numbers, and of two classes whether one is written as
  // -1. Names are known only when all rows were read, unless they are given.
  bool IsSettled() const {
    if (kind_ == Kind::kTargets || !rules_.given.empty()) return true;
    if (kind_ == Kind::kNames) return numbers_are_pair_ && names_.size() == 2;
    const bool is_pair = first_class_is_minus_.has_value() && (!rules_.names_pairs || has_one_);
    return kind_ == Kind::kNumbers && (*rules_.classes != 2 || is_pair);
  }
  // Reserves memory for `rows` labels.
  void Reserve(size_t rows);
  void Add(const CsvField& as_written);
  size_t size() const { return kind_ == Kind::kTargets ? targets_.size() : classes_.size(); }
  // Forgets the labels behind the first `rows`.
  void Truncate(size_t rows);
  enum class Kind { kUnknown, kTargets, kNumbers, kNames };
  // Mark: what is known before a row, so that one that is left out can be taken back: it gives no class.
  struct Mark {
    size_t rows = 0, names = 0;
    Kind kind = Kind::kUnknown;
    std::optional<bool> first_class_is_minus{};
    bool has_one = false;
  };
  Mark mark() const { return {size(), names_.size(), kind_, first_class_is_minus_, has_one_}; }
  void GoBack(const Mark& mark);
  // Whether it is known what labels are, which the first label of a training file decides.
  bool is_decided() const { return kind_ != Kind::kUnknown; }
  // Labels of rows further on in the same text, none yet, by what is known now. Call it when is_decided().
  RowLabels Continued() const;
  // Appends the labels of the next rows, which were read by labels that Continued() has made. False, and
  // nothing is appended: with what is known now some might be refused, or others.
  bool Append(const RowLabels& next);
  // Returns what Finish() makes of each number of a class so far; empty: it leaves them.
  std::vector<int32_t> FinalNumbers() const;
  // Call it after the last row: it numbers the names.
  void Finish();

  // The labels, after Finish(): the one that the rules ask for.
  std::vector<int32_t>& classes() { return classes_; }
  const std::vector<int32_t>& classes() const { return classes_; }
  std::vector<float>& targets() { return targets_; }
  const std::vector<std::string>& names() const { return names_; }  // by number; empty: numbers from 0

 private:
  void NameClasses(const std::vector<std::string>& names);
  void AddClass(size_t number, std::string_view text);
  bool IsName(const CsvField& field) const;
  void AddTarget(const CsvField& field);
  void AddNumber(const CsvField& field);
  void AddName(const CsvField& field);
  std::optional<int32_t> NumberOf(std::string_view name);
  bool NamePair(const CsvField& field);
  std::string KindRule(const char* kind) const;
  [[noreturn]] void Refuse(const CsvField& field, const std::string& rule) const;
  [[noreturn]] void RefuseNewName(const CsvField& field) const;

  const LabelRules rules_;
  std::string path_;
  const std::string title_;
  const bool is_test_ = false;
  std::string first_;  // the first label of a training file
  Kind kind_ = Kind::kUnknown;
  bool takes_numbers_ = false;                          // a name may be a number
  bool numbers_are_pair_ = false;                       // two numbers have become names
  bool is_finished_ = false;                            // or Finish() was called of what this continues
  std::vector<std::string> names_;                      // in order of appearance until Finish()
  std::map<std::string, int32_t, std::less<>> number_;  // of each spelling of a name, and of its ClassKey()
  std::optional<bool> first_class_is_minus_;  // of two classes: it is -1 and not 0; unset: none came yet
  bool has_one_ = false;                      // of two classes: 1 came
  bool is_full_ = false;                      // a name was refused because there were as many as classes
  std::vector<int32_t> classes_;
  std::vector<float> targets_;
};

// ClassCounter: the classes that the labels of rows are, at least 2: as many as names differ, or numbers.
// What is wrong with a label is told when its row is read. Owner: who passes over the rows. Thread: one.
class ClassCounter {
 public:
  explicit ClassCounter(const DataConfig& data) { AddLabelKeys(data, &rules_); }

  // Throws UserError if there are too many. `path` is for messages.
  void Count(const std::string& path, const CsvField& label);
  int64_t classes() const;
  // Returns the labels in the order of classes if they are whole numbers, and not those from 0 on: they are
  // names then (1 to 3, years, -1 to 1). Else empty.
  std::vector<std::string> NamedNumbers() const;

 private:
  bool AreNames() const;

  LabelRules rules_;
  std::set<std::string, std::less<>> seen_;  // all spellings
  std::set<std::string> names_;              // the ClassKey() of each that is a name
  std::map<double, std::string> numbers_;    // the others, as they first came
  bool are_whole_ = true;                    // the numbers
  double largest_ = -1;                      // of them
};

}  // namespace dtrain
