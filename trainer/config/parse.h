// One scalar of YAML to the value of one key, strictly: no guessing of types, every refusal with its remedy.
#pragma once

#include <optional>
#include <string>
#include <utility>

#include "trainer/config/fields.h"
#include "trainer/config/yaml.h"

namespace dtrain {

struct Parsed {
  Value value;
  std::string problem;  // "must be >= 1 (examples per step). Try 64."; empty: the value is good
};

// The value of a key that is no list, or one item of a list. `quoted`: the text stood in quotes. Paths stay
// as written.
Parsed ParseScalar(const Field& field, const std::string& text, bool quoted);
// The same of a node; a list or map is refused.
Parsed ParseScalar(const Field& field, const YamlNode& node);

// "must be a whole number >= 1 (examples per step)", without a remedy.
std::string RuleText(const Field& field);

// " Try 64.", with the leading space; empty where no value can be proposed.
std::string RemedyText(const Field& field);
// A value to propose: the field's example, otherwise its default; empty: there is none.
std::string ExampleOf(const Field& field);

// The member of train.optimizer.schedule.decay_steps where the key says auto: the updates of the run behind
// the warm-up (AutoDecaySteps() in trainer/survey/data_shape.h).
constexpr int64_t kAutoDecay = 0;

// "must be a whole number >= 1 (examples per step). Try 64."
std::string RuleAndRemedy(const Field& field);

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

}  // namespace dtrain
