#include "cmd/testing/drawn_columns.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace dtrain::testing {
namespace {

using Texts = std::vector<std::string>;

// 1234567 -> 1,234,567
std::string Grouped(const std::string& digits, const std::string& separator) {
  std::string text;
  for (size_t i = 0; i < digits.size(); ++i) {
    if (i > 0 && (digits.size() - i) % 3 == 0) text += separator;
    text += digits[i];
  }
  return text;
}

std::string WithComma(std::string number) {
  std::replace(number.begin(), number.end(), '.', ',');
  return number;
}

// The spellings of numbers. Each writes a value with some decimals.
const Texts kSpellings = {"exponent", "plus",     "thousands", "european", "comma",  "percent", "dollar",
                          "euro",     "brackets", "minus",     "hex",      "blanks", "unit",    "savetxt"};

std::string Spelled(const std::string& spelling, double exact, int decimals) {
  const std::string plain = fmt::format("{:.{}f}", exact, decimals);
  const double value = std::stod(plain);
  const bool negative = plain[0] == '-';
  const std::string sign = negative ? "-" : "", positive = plain.substr(negative ? 1 : 0);
  const size_t point = std::min(positive.find('.'), positive.size());
  const std::string whole = positive.substr(0, point), rest = positive.substr(point);
  if (spelling == "exponent") return fmt::format("{:.9e}", value);
  if (spelling == "savetxt") return fmt::format("{:.18e}", value);
  if (spelling == "plus") return negative ? plain : "+" + plain;
  if (spelling == "thousands") return sign + Grouped(whole, ",") + rest;
  if (spelling == "european") return sign + Grouped(whole, ".") + WithComma(rest);
  if (spelling == "comma") return WithComma(plain);
  if (spelling == "percent") return plain + "%";
  if (spelling == "dollar") return sign + "$" + positive;
  if (spelling == "euro") return plain + " €";
  if (spelling == "brackets") return negative ? "(" + positive + ")" : plain;
  if (spelling == "minus") return negative ? "\u2212" + positive : plain;
  if (spelling == "hex") return fmt::format("0x{:x}", static_cast<int64_t>(value));
  if (spelling == "blanks") return "  " + plain + " ";
  if (spelling == "unit") return plain + " kg";
  return plain;
}

struct Day {
  int year, month, day;
};

// The spellings of dates.
std::string Dated(const std::string& spelling, const Day& day, int minute) {
  static const Texts months = {"JAN", "FEB", "MAR", "APR", "MAY", "JUN",
                               "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"};
  const auto [y, m, d] = day;
  const std::string iso = fmt::format("{}-{:02}-{:02}", y, m, d);
  const std::string clock = fmt::format("{:02}:{:02}", minute / 60, minute % 60);
  if (spelling == "american") return fmt::format("{:02}/{:02}/{}", m, d, y);
  if (spelling == "american time") {
    const int hour = minute / 60 % 12 == 0 ? 12 : minute / 60 % 12;
    return fmt::format("{:02}/{:02}/{} {:02}:{:02} {}", m, d, y, hour, minute % 60,
                       minute < 720 ? "AM" : "PM");
  }
  if (spelling == "european") return fmt::format("{:02}.{:02}.{}", d, m, y);
  if (spelling == "british") return fmt::format("{:02}/{:02}/{}", d, m, y);
  if (spelling == "oracle") return fmt::format("{:02}-{}-{}", d, months[static_cast<size_t>(m - 1)], y);
  if (spelling == "slashes") return fmt::format("{}/{:02}/{:02}", y, m, d);
  if (spelling == "time") return iso + " " + clock + ":00";
  if (spelling == "zone") return iso + "T" + clock + ":00Z";
  return iso;
}

int64_t DaysOf(const Day& day) {  // since 1970; Howard Hinnant's days_from_civil
  const int64_t y = day.year - (day.month <= 2 ? 1 : 0), era = y / 400, of_era = y - era * 400;
  const int64_t of_year = (153 * (day.month + (day.month > 2 ? -3 : 9)) + 2) / 5 + day.day - 1;
  return era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719468;
}

std::string Plain(double value, int decimals) { return fmt::format("{:.{}f}", value, decimals); }

}  // namespace

Column ColumnDrawer::Any() {
  const int kind = draws_.Below(20);
  if (kind < 9) return Numbers(false);
  if (kind < 13) return Categories();
  if (kind < 15) return Dates();
  if (kind < 17) return Id();
  if (kind == 17) return FreeTexts();
  return Constant(kind == 18);
}

Column ColumnDrawer::Signal() {
  const int kind = draws_.Below(10);
  return kind < 6 ? Numbers(true) : kind < 9 ? Categories() : Dates();
}

Column ColumnDrawer::Numbers(bool is_signal) {
  Column column;
  column.numbers = true;
  const int size = draws_.Of(std::vector<int>{1, 1, 10, 100, 1000, 5000, 1000000});
  int decimals = draws_.Of(std::vector<int>{0, 0, 1, 2, 3});
  const bool negative = draws_.Chance(0.3);
  std::string spelling = draws_.Rarely(0.7) ? draws_.Of(kSpellings) : "";
  if (size == 1 && decimals == 0) decimals = 2;
  if (spelling == "hex") decimals = 0;
  // A point before three digits alone is one of decimals where other columns have such.
  if (spelling == "european" && decimals == 0) decimals = 2;
  const bool whole = decimals == 0;
  if (writing_.decimal_comma && spelling != "hex") spelling = "comma";
  // Grouped thousands need numbers that have some, and negative spellings negative ones.
  const double limit = spelling == "thousands" || spelling == "european" ? 20000
                       : spelling == "hex"                               ? 4000
                                                                         : size;
  const bool below = spelling != "hex" && (negative || spelling == "brackets" || spelling == "minus");
  const bool grouped = spelling == "thousands" || spelling == "european";
  bool small = false, large = false;  // 131 and 19.839, whose points may also stand before decimals
  for (int64_t row = 0; row < rows_; ++row) {
    const double meaning = draws_.Uniform(-1, 1);
    const double value = below ? meaning * limit : (meaning + 1) / 2 * limit + (size > 100 ? 0.1 * size : 0);
    column.cells.push_back({Spelled(spelling, value, decimals), Plain(value, decimals)});
    const double size = std::abs(std::round(value));
    small = small || (size > 0 && size < 1000);
    large = large || size >= 1000;
    column.meaning.push_back(whole && size == 1 ? std::round(meaning) : meaning);
  }
  column.doubtful = grouped && whole && small && large;
  if (!spelling.empty())
    traits_.push_back(fmt::format("{} numbers {}", is_signal ? "signal" : "a column of", spelling));
  AddGaps(&column, is_signal);
  return column;
}

// Markers that are known without a key, and those that recur among numbers.
void ColumnDrawer::AddGaps(Column* column, bool is_signal) {
  if (!draws_.Rarely(0.7)) return;
  static const Texts known = {"", "", "NA", "nan", "?", "N/A", "null", "NaN"};
  static const Texts others = {"\\N",  "NULL",   "None",    "-",       ".",   "#N/A",
                               "<NA>", "#NULL!", "unknown", "missing", "n.d."};
  const bool is_known = !column->numbers || draws_.Chance(0.5);
  std::string marker = draws_.Of(is_known ? known : others);
  if (!writing_.has_empty_fields && marker.empty()) marker = "NA";
  const int share = draws_.Of(std::vector<int>{3, 8, 25});
  int64_t gaps = 0;
  for (int64_t row = 0; row < rows_; ++row) {
    // One that is there but once could be a slip as well.
    if (draws_.Below(100) >= share && (is_known || gaps >= 3 || row < rows_ / 2)) continue;
    ++gaps;
    column->cells[static_cast<size_t>(row)] = {marker, ""};
    if (is_signal) column->meaning[static_cast<size_t>(row)] = 0;
  }
  if (gaps > 0)
    traits_.push_back(
        fmt::format("{} gaps \"{}\" {}", is_signal ? "the signal's" : "a column's", marker, gaps));
}

Column ColumnDrawer::Categories() {
  static const std::vector<Texts> sets = {{"red", "green", "blue"},
                                          {"yes", "no"},
                                          {"A", "B", "C", "D"},
                                          {"north side", "south side", "east", "west"},
                                          {"Zürich", "Genève", "Bern"},
                                          {"4up", "2up", "lots"},
                                          {"True", "False"},
                                          {"1a", "2b", "3c", "10d"},
                                          {"<18", "18-40", "41-65", ">65"},
                                          {"O'Neil", "de \"Vries\"", "Smith, J", "a;b", "x|y"},
                                          {"男", "女"}};
  Column column;
  const Texts& texts = draws_.Of(sets);
  const auto count = static_cast<int>(texts.size());
  const bool padded = draws_.Rarely(0.1);
  for (int64_t row = 0; row < rows_; ++row) {
    const int drawn = draws_.Below(count);
    const std::string& text = texts[static_cast<size_t>(drawn)];
    column.cells.push_back({padded && draws_.Chance(0.3) ? text + "  " : text, text});
    column.meaning.push_back(2.0 * drawn / (count - 1) - 1);
  }
  if (padded) traits_.push_back("categories with blanks behind them");
  AddGaps(&column, true);
  return column;
}

Column ColumnDrawer::Dates() {
  static const Texts spellings = {"iso",    "iso",     "american", "american time", "european", "british",
                                  "oracle", "slashes", "time",     "zone",          "epoch",    "epoch ms"};
  Column column;
  const std::string& spelling = draws_.Of(spellings);
  const bool timed =
      spelling.find("time") != spelling.npos || spelling == "zone" || spelling.substr(0, 5) == "epoch";
  bool tells = false;  // whether a day above 12 tells day and month apart
  for (int64_t row = 0; row < rows_; ++row) {
    const Day day{2019 + draws_.Below(6), draws_.Between(1, 12), draws_.Between(1, 28)};
    const int minute = draws_.Below(1440);
    tells = tells || day.day > 12;
    const int64_t seconds = (DaysOf(day) * 1440 + minute) * 60;
    const std::string plain = Dated(timed ? "time" : "iso", day, minute);
    const std::string text = spelling == "epoch"      ? fmt::format("{}", seconds)
                             : spelling == "epoch ms" ? fmt::format("{}000", seconds)
                                                      : Dated(spelling, day, minute);
    column.cells.push_back({text, plain});
    column.meaning.push_back(static_cast<double>(DaysOf(day) - DaysOf({2019, 1, 1})) / (365.25 * 3) - 1);
  }
  const bool two = spelling == "american" || spelling == "american time" || spelling == "british";
  column.doubtful = two && !tells;
  traits_.push_back(fmt::format("dates {}{}", spelling, column.doubtful ? ", ambiguous" : ""));
  return column;
}

Column ColumnDrawer::Id() {
  Column column;
  column.name = draws_.Of(Texts{"id", "customer_id", "PassengerId", "uuid", "key"});
  const int kind = draws_.Below(3);
  for (int64_t row = 0; row < rows_; ++row) {
    const std::string text = kind == 0   ? fmt::format("{}", row + 1)
                             : kind == 1 ? fmt::format("{:08x}-{:04x}", draws_.Below(1 << 30), row)
                                         : fmt::format("{}", 100000000 + row * 7 + draws_.Below(7));
    column.cells.push_back({text, text});
  }
  return column;
}

Column ColumnDrawer::FreeTexts() {
  static const Texts words = {"the",        "long",  "road",        "to",  "a",
                              "small, old", "house", "said \"no\"", "and", "6'2\""};
  Column column;
  for (int64_t row = 0; row < rows_; ++row) {
    std::string text = fmt::format("note {}", row);
    for (int word = draws_.Below(5); word >= 0; --word) text += " " + draws_.Of(words);
    column.cells.push_back({text, text});
  }
  traits_.push_back(fmt::format("free texts"));
  return column;
}

Column ColumnDrawer::Constant(bool is_empty) {
  Column column;
  const std::string text = is_empty ? (!writing_.has_empty_fields ? "NA" : "") : draws_.Of(Texts{"1", "EUR"});
  column.cells.assign(static_cast<size_t>(rows_), {text, is_empty ? "" : text});
  return column;
}

Column ColumnDrawer::ClassesOf(const Column& signal, Texts* classes) {
  struct Kind {
    const char* name;
    Texts classes;
    std::vector<Texts> others;  // further spellings of each class
  };
  static const std::vector<Kind> kinds = {
      {"texts", {"no", "yes"}, {}},
      {"texts in any case", {"no", "yes"}, {{"No"}, {"Yes", "YES"}}},
      {"texts", {"setosa", "versicolor", "virginica"}, {}},
      {"0 and 1", {"0", "1"}, {}},
      {"0 and 1", {"0", "1"}, {}},
      {"-1 and 1", {"-1", "1"}, {{}, {"+1"}}},
      {"1 and 2", {"1", "2"}, {}},
      {"1 to 3", {"1", "2", "3"}, {}},
      {"0 to 3", {"0", "1", "2", "3"}, {}},
      {"-1 to 1", {"-1", "0", "1"}, {{}, {"-0", "0.0"}, {"+1", "1.0"}}},
      {"floats", {"0.0", "1.0"}, {}},
      {"floats beside whole", {"0", "1"}, {{"-0", "0.0"}, {"1.0", "01", "1e0"}}},
      {"savetxt", {"0.000000000000000000e+00", "1.000000000000000000e+00"}, {}},
      {"booleans", {"False", "True"}, {}},
      {"years", {"1995", "2001"}, {}},
      {"5 and 10", {"5", "10"}, {}},
      {"quoted", {"low, bad", "high \"good\""}, {}},
      {"letters", {"N", "Y"}, {}}};
  const Kind& kind = draws_.Of(kinds);
  traits_.push_back(fmt::format("label {}", kind.name));
  Column label;
  const auto count = static_cast<int>(kind.classes.size());
  for (int64_t row = 0; row < rows_; ++row) {
    const double at = (signal.meaning[static_cast<size_t>(row)] + 1) / 2 * count;
    int chosen = std::clamp(static_cast<int>(at), 0, count - 1);
    if (draws_.Chance(0.05)) chosen = draws_.Below(count);
    if (row < count) chosen = static_cast<int>(row);  // each is there
    const std::string& plain = kind.classes[static_cast<size_t>(chosen)];
    std::string text = plain;
    if (!kind.others.empty() && !kind.others[static_cast<size_t>(chosen)].empty() && draws_.Chance(0.3))
      text = draws_.Of(kind.others[static_cast<size_t>(chosen)]);
    label.cells.push_back({text, plain});
  }
  // Each twice at least, so that none is there in a held-out row alone.
  for (int64_t row = 0; row < count && row + count < rows_; ++row)
    label.cells[static_cast<size_t>(row + count)] = label.cells[static_cast<size_t>(row)];
  *classes = kind.classes;
  return label;
}

Column ColumnDrawer::QuantityOf(const Column& signal) {
  Column label;
  const std::string kind =
      draws_.Of(Texts{"plain", "plain", "plain", "large", "dollar", "thousands", "savetxt", "percent"});
  for (int64_t row = 0; row < rows_; ++row) {
    double value = 50 + 40 * signal.meaning[static_cast<size_t>(row)] + draws_.Uniform(-2, 2);
    if (kind == "large" || kind == "thousands") value *= 1000;
    std::string text = Spelled(kind, value, 2);
    if (writing_.decimal_comma) text = WithComma(Plain(value, 2));
    label.cells.push_back({text, Plain(value, 2)});
  }
  traits_.push_back(fmt::format("label a quantity, {}", kind));
  return label;
}

}  // namespace dtrain::testing
