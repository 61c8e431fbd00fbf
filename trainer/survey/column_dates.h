// DateCounts: the forms of dates that the values of one column of a table have, and what stands for no day
// among them. Owner: ColumnBuilder. Thread: one.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/input/csv_reader.h"
#include "trainer/survey/faults.h"

namespace dtrain {

// Whether a text is a day that databases write for none: 0000-00-00, 00-JAN-0000, 9999-99-99 00:00:00, and
// any day of the years 1 and 9999.
bool IsDayZero(std::string_view text);

class DateCounts {
 public:
  // Counts a text that is no number. Returns whether it is a date of any form.
  bool AddText(const CsvField& field);
  // Counts a number. Returns whether it is one of no_days().
  bool AddNumber(double number, const CsvField& field);
  // What follows is of another file than this.
  void EndFile(const std::string& path);

  // How many texts are dates of the form that most have.
  int64_t texts() const { return dates_ == 0 ? 0 : DatesOf(BestForm()); }
  // The form of the texts, one of DateForms(), or "" for YYYY-MM-DD; another one that all of them have, too;
  // and those that have it not. Without dates it changes nothing.
  void FindForm(std::string* form, std::string* other, Faults* faults) const;
  // Whether a text that is no date is written as the first one: 2023-02-30, or 1/0/1900.
  bool IsWrittenAsDate(std::string_view text) const;

  // Whether it is a day that its month has not: 2023-02-30.
  bool IsDayTooMany(std::string_view text) const;

  // The form of all numbers without no_days(), if they are `few` at least: YYYYMMDD if they have eight digits
  // and are days, or 14 and have a time too; or the seconds, milliseconds or microseconds since 1970 of the
  // years 1990 to 2040. Empty: they are no dates.
  std::string NumberForm(int64_t few) const;
  // The form of a good part of the numbers, at least `few`, where others are few values or the form is
  // YYYYMMDD; *count: how many have it. Empty: there is none.
  std::string LikelyForm(int64_t few, int64_t* count) const;
  // The numbers that stand for no day in files of other programs: 0, -1, 99999999 or 20240100, as they are
  // written, those that came first.
  const std::map<std::string, Faults, std::less<>>& no_days() const { return no_days_; }

 private:
  size_t BestForm() const;
  int64_t DatesOf(size_t form) const { return dates_ - other_forms_[form].count; }

  int64_t dates_ = 0, iso_dates_ = 0;  // texts of any form, and of YYYY-MM-DD
  std::vector<Faults> other_forms_;    // of each of DateForms() the dates that have it not
  int64_t looked_ = 0;                 // texts that were looked at for dates
  std::string shape_;                  // of the first date

  std::map<std::string, Faults, std::less<>> no_days_;
  int64_t numbers_ = 0;                // all but no_days_
  std::array<int64_t, 4> of_forms_{};  // of them those of each form of numbers
  std::set<double> others_;            // those of none of the epochs: the first values
};

}  // namespace dtrain
