// ColumnProfile: what the values of one column of a table, or the labels of sparse rows, are: their type,
// gaps, spellings and faults. Thread: any; plain data.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "trainer/config/choices.h"
#include "trainer/input/csv_reader.h"
#include "trainer/input/field_reading.h"
#include "trainer/survey/column_dates.h"
#include "trainer/survey/column_format.h"
#include "trainer/survey/faults.h"

namespace dtrain {

enum class ColumnType {
  kEmpty,     // no values at all
  kNumber,    // at least nine tenths of the values are numbers
  kWhole,     // the same, and all numbers are whole
  kDate,      // at least nine tenths are dates in one form, with or without a time
  kCategory,  // few different texts
  kText,
};

// "whole number"
const char* TypeName(ColumnType type);

struct ValueCount {
  std::string text;
  int64_t rows = 0;
  int64_t number = 0;  // how many other values came before
};

struct ColumnProfile {
  std::string name;  // empty: the file does not name it
  ColumnType type = ColumnType::kEmpty;
  int64_t missing = 0;               // empty, ?, NA, N/A, nan or null, in any case, and `markers`
  int64_t known = 0;                 // all others
  int64_t distinct = 0;              // of the known; in a column of numbers 1 and +1 are the same
  bool more_distinct = false;        // distinct is where counting ended
  int64_t numbers = 0;               // known values that are numbers
  double min = 0, max = 0;           // of the numbers
  double mean = 0, deviation = 0;    // of the numbers
  double skewness = 0;               // the same; 0: they lie evenly about their mean
  double kurtosis = 0;               // the same, above that of a normal distribution
  int64_t zeros = 0;                 // numbers that are 0
  std::string example;               // the first known value
  std::vector<ValueCount> frequent;  // the most frequent first, if all distinct ones were counted
  ValueCount rarest;                 // with `frequent`

  // The texts of a category that differ by case or blanks alone: "PARIS/Paris".
  std::vector<std::string> spellings;
  // The texts in a column of numbers that are the same number as a more frequent one: "+1 -> 1".
  std::vector<std::string> respelled;
  bool padded = false;  // blanks stand at the ends of values, and are left out

  // The texts among numbers or dates that stand for missing values (data.missing_values), and their rows.
  std::vector<ValueCount> markers;
  // An example of how its numbers are written (data.number_format); empty: plainly. `other_format`: their
  // points or commas may stand between thousands, or before decimals. `spelled` is the first such number.
  std::string number_format, other_format, spelled;
  bool brackets = false;         // some of them have brackets, for a minus
  bool maybe_thousands = false;  // all that look like its decimals may be thousands
  Faults no_unit;                // numbers without the unit that most have
  std::string units;   // of a column of texts: its numbers have several, "$, EUR"; empty: they have not
  int64_t dates = 0;   // known values that are dates of one form
  bool mixed = false;  // a column of texts, and most are numbers or dates
  // The form of its dates, one of DateForms() (data.dates), and another form that all of them have too.
  // Empty: YYYY-MM-DD, or it has no dates. A column of numbers has one if all look like dates, but for
  // no_days, those that stand for none, as 0 does.
  std::string date_form, other_date_form;
  std::vector<ValueCount> no_days;
  std::string likely_form;  // of numbers: the form of dates that a good part has
  int64_t likely_dates = 0;
  std::string odd;  // the most frequent text that is neither number nor date

  Faults not_a_number;  // in a column of numbers
  Faults not_a_date;    // in a column of dates
  Faults not_float;     // infinite, or too large for float32
  Faults not_utf8;

  // Equal for two columns with the same values, and for two whose values stand for each other, one for one.
  uint64_t values_hash = 0, pattern_hash = 0;

  bool constant = false;    // one value in all rows
  bool varies = false;      // of TFRecord: it is lists of different lengths
  bool index = false;       // 0, 1, 2 .. or 1, 2, 3 .. down the rows
  bool identifier = false;  // whole numbers or texts that all differ

  // Whether it has dates of one form, which numbers may be.
  bool IsDate() const {
    return IsNumber() ? !date_form.empty() : type == ColumnType::kDate && other_date_form.empty();
  }
  // How a run reads it.
  FieldReading Reading() const;
  bool IsNumber() const { return type == ColumnType::kNumber || type == ColumnType::kWhole; }
};

// Returns what spellings of a text that differ by case or blanks alone have in common.
std::string CommonSpelling(const std::string& text);

constexpr size_t kMaxDistinct = 10000;  // different values that are counted of a column

// ColumnBuilder: what is known of one column while its rows go by. Owner: ProfileTable(). Thread: one.
class ColumnBuilder {
 public:
  // `format`: how numbers may be written; unset: plainly. `like`: the same column of another table, whose
  // gaps these are too, and which is one of dates or not; null: there is none.
  ColumnBuilder(size_t max_distinct, Decimal decimal, std::optional<ColumnFormat> format = std::nullopt,
                const ColumnProfile* like = nullptr);

  // The value of the next row. `trimmed`: it had blanks at its ends.
  void Add(const CsvField& field, bool trimmed = false);
  // The rows that follow are those of another file than this.
  void EndFile(const std::string& path);
  // Call it once, after the last row.
  ColumnProfile Finish(std::string name);

 private:
  bool IsGap(std::string_view text);
  std::optional<double> NumberOf(std::string_view text, std::string* plain) const;
  void FindMarkers();
  void FindDates();
  void CountValue(std::string_view text);
  void AddNumber(double number, const CsvField& field, int64_t row);
  void AddText(const CsvField& field);
  bool HasFewNumbers() const;
  ColumnType Type(bool recur) const;
  void KeepFrequent();
  void FindSpellings();
  void JoinNumbers();
  void Suspect();
  bool IsIdOfNumbers() const;

  const size_t max_distinct_;
  const Decimal decimal_;
  const std::optional<ColumnFormat> format_;
  const bool are_dates_, are_numbers_;  // in the other table
  FieldReading gaps_;                   // of the other table
  FieldReading reading_;
  ColumnProfile column_;
  int64_t row_ = 0;
  std::unordered_map<size_t, ValueCount> values_;  // by hash, until there are too many
  bool repeats_ = false;
  std::map<std::string, Faults, std::less<>> texts_;  // that are neither numbers nor dates: the first ones
  Faults other_texts_;                                // and all others
  DateCounts dates_;
  int64_t finite_ = 0;
  double first_number_ = 0, last_number_ = 0;
  double squares_ = 0;  // the sum of the squares of what the finite numbers are off their mean
  double cubes_ = 0;    // and of the cubes
  double fourths_ = 0;  // and of the fourth powers
  bool whole_ = true, in_order_ = true, rises_ = true, falls_ = true;
};

}  // namespace dtrain
