// FieldReading: how the texts of one column are written, where that is not plainly: with markers for missing
// values, in another spelling of numbers, or in another form of dates (data.missing_values,
// data.number_format, data.dates). CsvReader turns such fields into plain ones as it reads them, so whoever
// reads its fields knows none of this. Thread: any; plain data and free functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/config/choices.h"
#include "trainer/config/item_text.h"

namespace dtrain {

struct FieldReading {
  int64_t column = 0;  // in the file, from 0
  std::vector<std::string> missing;
  std::vector<double> missing_numbers;  // of them those that are numbers
  std::optional<NumberFormat> number;
  std::string date;  // one of DateForms(); empty: as DaysOfDate() takes it

  bool is_plain() const { return missing.empty() && !number && date.empty(); }
};

// Returns how a column is written, by its place and its name in the training data; `column` is that place.
FieldReading ReadingOf(const DataConfig& data, int64_t place, const std::string& name);

// Returns the columns of data.dates.
std::vector<std::string> DateColumns(const DataConfig& data);

// Returns a text of the column as a plain number, with `decimal`, or as a date that DaysOfDate() takes; ""
// for a missing value; and else `text` itself, which a name is. A plain number that has another meaning in
// the column's format becomes a text that is none. The result may point into *plain.
std::string_view PlainText(const FieldReading& reading, std::string_view text, Decimal decimal,
                           std::string* plain);

// SpelledNumber: a number in any spelling.
struct SpelledNumber {
  std::string plain;          // with a point
  std::string front, behind;  // its currency or unit, without blanks

  std::string unit() const { return front + behind; }
};
// Returns the number that `text` is with `decimal`, and with the other mark, blanks, apostrophes or
// underlines between its thousands. Unset: it is none.
std::optional<SpelledNumber> ReadNumber(std::string_view text, Decimal decimal);

}  // namespace dtrain
