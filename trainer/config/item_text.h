// Items of lists that are texts of several parts: a column and what it has, a class and its weight, a label
// and its new name; and how an example writes numbers. The loader checks them, and whoever reads rows reads
// them. Thread: any; free functions.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "trainer/config/choices.h"

namespace dtrain {

// The whole of `text` as a decimal number; nothing else has the characters of one.
std::optional<double> DecimalNumber(std::string text);

// Returns the two parts of an item of data.class_weights that is "NAME=3", or nothing.
std::optional<std::pair<std::string, double>> ParseClassWeight(const std::string& text);
// Returns the two parts of an item of data.rename_labels, "FROM -> TO", or nothing.
std::optional<std::pair<std::string, std::string>> ParseRename(const std::string& text);

// ColumnItem: an item of a list that is about all columns, or begins with "COLUMN=" and is about one.
struct ColumnItem {
  std::string column;  // by name or number (ColumnNumber); empty: all columns
  std::string value;
};
ColumnItem ParseColumnItem(const std::string& text);

// NumberFormat: how numbers are written. Around them may stand a unit or a currency.
struct NumberFormat {
  Decimal decimal = Decimal::kPoint;
  std::string unit;  // what stands in front of the digits and behind them, without blanks
};
// Returns the format of a number that is written so, which has the other of comma and point between its
// thousands: "$1,234.50", "1.234,50 kg". One comma alone is between thousands if three digits follow it.
// Unset: it has no digits, or is one of C: %.2f.
std::optional<NumberFormat> ParseNumberFormat(const std::string& example);

// The forms of dates that data.dates can name.
const std::vector<std::string>& DateForms();
// Returns the two parts of an item of data.dates: the column, and the form or "" where none is named.
ColumnItem ParseDateColumn(const std::string& text);

// BagItem: an item of data.bags: COLUMN, COLUMN=WEIGHTS or COLUMN=none.
struct BagItem {
  std::string column;
  std::string weights;     // a column; empty: none has them
  bool has_colons = true;  // a text of CSV may have its weight behind a colon
};
BagItem ParseBag(const std::string& text);

}  // namespace dtrain
