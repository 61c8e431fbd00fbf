#include "trainer/survey/column_format.h"

#include <cmath>
#include <cstdint>
#include <iterator>
#include <map>
#include <string_view>

#include "trainer/input/field_reading.h"

namespace dtrain {
namespace {

bool IsLetter(std::string_view text) {
  return !text.empty() && ((text[0] | 0x20) >= 'a' && (text[0] | 0x20) <= 'z');
}

// Whether what stands round a number is a currency or a unit: in front of an id there are other letters.
bool IsUnit(const SpelledNumber& number) {
  constexpr size_t kLongest = 12;
  constexpr std::string_view kCurrencies =
      " $ \u20ac \u00a3 \u00a5 \u20b9 \u20bd \u20a9 \u20ba \u20aa \u20ab \u20b1 \u0e3f \u20b4 \u20bf % R$ "
      "US$ A$ C$ CA$ AU$ NZ$ HK$ NT$ S$ Rs Rs. Fr Fr. kr kr. CHF USD EUR GBP JPY CNY INR RUB BRL KRW CAD "
      "AUD MXN SEK NOK DKK PLN CZK HUF TRY ZAR ";
  if (kCurrencies.find(" " + number.front + " ") == kCurrencies.npos && !number.front.empty()) return false;
  const std::string& behind = number.behind;
  return behind.empty() ||
         (behind.size() <= kLongest && behind.find_first_of("-:#_=+*@.'\"?!<>[]{}|\\") == behind.npos);
}

// Spellings: the numbers that some texts are with one decimal mark, and their units.
struct Spellings {
  struct Unit {
    int64_t count = 0;
    SpelledNumber first;
    bool codes = true;  // five or more digits, always as many, and letters right behind: 85123A
  };
  int64_t numbers = 0, zeros = 0;  // zeros: without a unit, which they need not
  std::map<std::string, Unit> units;

  // Returns the text as a plain number; empty: it is none.
  std::string Add(std::string_view text, Decimal decimal) {
    const std::optional<SpelledNumber> number = ReadNumber(text, decimal);
    if (!number || !IsUnit(*number)) return "";
    ++numbers;
    const bool is_zero = number->plain.find_first_of("123456789") == std::string::npos;
    zeros += is_zero && number->unit().empty() ? 1 : 0;
    Unit& unit = units[number->unit()];
    if (unit.count++ == 0) unit.first = *number;
    const size_t digits = number->plain.size();
    unit.codes = unit.codes && digits >= 5 && digits == unit.first.plain.size() && IsLetter(number->behind) &&
                 text == number->plain + number->behind;
    return number->plain;
  }

  // Finds the unit that most have, or several, of `known` texts.
  void FindUnit(int64_t known, ColumnFormat* format) {
    constexpr size_t kManyUnits = 6;  // more are parts of names
    for (auto it = units.begin(); it != units.end();) {
      if (it->second.codes) numbers -= it->second.count;
      it = it->second.codes ? units.erase(it) : std::next(it);
    }
    const SpelledNumber* most = nullptr;
    const bool is_one = units.size() - units.count("") == 1;
    for (const auto& [unit, count] : units) {
      if (!unit.empty()) format->units += (format->units.empty() ? "" : ", ") + unit;
      const int64_t others = unit.empty() ? 0 : zeros;
      if (count.count * 10 >= (numbers - others) * (is_one ? 5 : 9)) most = &count.first;
    }
    if (units.size() > kManyUnits || is_one || most != nullptr || numbers * 10 < known * 9)
      format->units.clear();
    if (most == nullptr) return;
    format->format.unit = most->unit();
    format->example = most->front + format->example + (IsLetter(most->behind) ? " " : "") + most->behind;
  }
};

}  // namespace

ColumnFormat FindFormat(const std::vector<CsvRecord>& rows, size_t column, Decimal decimal,
                        std::optional<Decimal> shown) {
  const Decimal other = decimal == Decimal::kPoint ? Decimal::kComma : Decimal::kPoint;
  Spellings plain, others;
  int64_t known = 0;
  bool small = false, decides = false;  // numbers below 1,000 without marks; one that has but one reading
  std::string doubtful;
  for (const CsvRecord& row : rows) {
    if (column >= row.fields.size() || IsMissing(row.fields[column].text)) continue;
    ++known;
    const std::string_view text = row.fields[column].text;
    const std::string number = plain.Add(text, decimal), second = others.Add(text, other);
    if (number != second && !number.empty() && !second.empty()) {
      if (doubtful.empty()) doubtful = text;
    } else if (!number.empty() || !second.empty()) {
      const double size = number == second ? std::abs(ExactNumber(number).value_or(1000)) : 1000;
      decides = decides || size >= 1000;
      small = small || (size > 0 && size < 1000);
    }
  }
  const bool is_other = shown == other && !doubtful.empty() && others.numbers == plain.numbers;
  const bool takes_other = others.numbers > plain.numbers || is_other;
  const auto example = [](Decimal as) { return as == Decimal::kPoint ? "1,234.50" : "1.234,50"; };
  ColumnFormat format;
  format.format.decimal = takes_other ? other : decimal;
  format.example = example(format.format.decimal);
  format.maybe_thousands = !doubtful.empty() && !decides;
  if (small && !decides && !shown) {
    format.doubtful = doubtful;
    format.other_format = example(takes_other ? decimal : other);
  }
  (takes_other ? others : plain).FindUnit(known, &format);
  return format;
}

bool IsNumberWith(std::string_view text, Decimal decimal) {
  if (ExactNumber(text, decimal)) return true;
  const std::optional<SpelledNumber> number = ReadNumber(text, decimal);
  return number && !number->unit().empty() && IsUnit(*number);
}

bool IsWrittenSo(const std::vector<CsvRecord>& rows, size_t column, const NumberFormat& format) {
  int64_t known = 0, good = 0;
  bool shows = false;
  for (const CsvRecord& row : rows) {
    if (column >= row.fields.size() || IsMissing(row.fields[column].text)) continue;
    ++known;
    const std::optional<SpelledNumber> number = ReadNumber(row.fields[column].text, format.decimal);
    if (!number || (!number->unit().empty() && number->unit() != format.unit)) continue;
    ++good;
    shows = shows || number->unit() == format.unit;
  }
  return shows && good * 10 >= known * 9;
}

}  // namespace dtrain
