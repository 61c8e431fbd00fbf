#include "trainer/input/field_reading.h"

#include <doctest/doctest.h>

#include "trainer/config/data_config.h"
#include "trainer/input/csv_field.h"

namespace dtrain {
namespace {

std::string Plain(const FieldReading& reading, const std::string& text, Decimal decimal = Decimal::kPoint) {
  std::string plain;
  return std::string(PlainText(reading, text, decimal, &plain));
}

FieldReading Written(const std::string& example) {
  FieldReading reading;
  reading.number = ParseNumberFormat(example);
  REQUIRE(reading.number);
  return reading;
}

TEST_CASE("fields: an example says the decimal mark and the unit") {
  const auto is = [](const char* example, Decimal decimal, const char* unit) {
    CAPTURE(example);
    const std::optional<NumberFormat> format = ParseNumberFormat(example);
    REQUIRE(format);
    CHECK(format->decimal == decimal);
    CHECK(format->unit == unit);
  };
  is("$1,234.50", Decimal::kPoint, "$");
  is("1,234", Decimal::kPoint, "");
  is("1,234,567", Decimal::kPoint, "");
  is("12,5", Decimal::kComma, "");
  is("1.234,50 \u20ac", Decimal::kComma, "\u20ac");
  is("1.234.567", Decimal::kComma, "");
  is("(12.5%)", Decimal::kPoint, "%");
  is("-3 km/h", Decimal::kPoint, "km/h");
  CHECK_FALSE(ParseNumberFormat("money"));
}

TEST_CASE("fields: numbers in other spellings become plain ones") {
  const FieldReading money = Written("$1,234.50");
  CHECK(Plain(money, "$974.07") == "974.07");
  CHECK(Plain(money, "$1,234,567.5") == "1234567.5");
  CHECK(Plain(money, "-$5") == "-5");
  CHECK(Plain(money, "$-5") == "-5");
  CHECK(Plain(money, "($1,234.50)") == "-1234.50");
  CHECK(Plain(money, "$(12)") == "-12");
  CHECK(Plain(money, "\u22125") == "-5");
  CHECK(Plain(money, "5-") == "-5");
  CHECK(Plain(money, "$.50") == ".50");
  CHECK(Plain(money, "1,234") == "1234");
  CHECK(Plain(money, "1234.5") == "1234.5");
  CHECK(Plain(money, "12,34,567") == "1234567");
  CHECK(Plain(money, "1\u202f234 567") == "1234567");
  CHECK(Plain(money, "1'234.5") == "1234.5");
  CHECK(Plain(money, "0x1F") == "31");
  CHECK(Plain(money, "$1e3") == "1e3");
  const FieldReading euro = Written("1.234,50 \u20ac");
  CHECK(Plain(euro, "1.234,50 \u20ac") == "1234.50");
  CHECK(Plain(euro, "12,5") == "12.5");
  CHECK(Plain(euro, "12,5", Decimal::kComma) == "12,5");
  CHECK(Plain(euro, "-1.234,5", Decimal::kComma) == "-1234,5");
  CHECK(Plain(Written("Rs.500"), "Rs.1,500") == "1500");
  CHECK(Plain(Written("12.5%"), "39.2 %") == "39.2");
}

TEST_CASE(
    "fields: texts that are no number in the format stay as they are, and a number of another meaning is "
    "none") {
  const FieldReading money = Written("$1,234.50");
  for (const char* text : {"5 kg", "\u20ac5", "12,5", "1,23,4", "0,123", "1,2,3", "2024-01-31", "10-20",
                           "9:30", "6'2\"", "--5", "(5", "$", "abc", "A12", "1.2.3", "-(5)", "$5 or $6"}) {
    CAPTURE(text);
    CHECK(Plain(money, text) == text);
  }
  CHECK_FALSE(ExactNumber(Plain(Written("12,5"), "3.5")));
  CHECK(Plain(FieldReading(), "$5") == "$5");
}

TEST_CASE("fields: markers are gaps, and a number is one in each spelling") {
  FieldReading reading = Written("1,234.50");
  reading.missing = {"unknown", "-999"};
  reading.missing_numbers = {-999};
  CHECK(Plain(reading, "unknown").empty());
  CHECK(Plain(reading, "-999.0").empty());
  CHECK(Plain(reading, "(999)").empty());
  CHECK(Plain(reading, "Unknown") == "Unknown");
  CHECK(Plain(reading, "999") == "999");
}

TEST_CASE("fields: a missing value is one in any format, though it is a number of another spelling") {
  for (const char* text : {"NaN", "nan", "NA", ""}) CHECK(Plain(Written("1.234,50"), text) == text);
}

TEST_CASE("fields: the keys are of all columns, or of one by name or number") {
  DataConfig data;
  data.missing_values = {"-200", "price=.", "3=none"};
  data.number_format = {"price=$5", "1.234,5"};
  data.categories = {"kind"};
  data.dates = {"day=MM/DD/YYYY", "since"};
  const FieldReading price = ReadingOf(data, 0, "price");
  CHECK(price.missing == std::vector<std::string>{"-200", "."});
  CHECK(price.missing_numbers == std::vector<double>{-200});
  CHECK(price.number->unit == "$");
  CHECK(ReadingOf(data, 3, "x").missing == std::vector<std::string>{"-200", "none"});
  CHECK(ReadingOf(data, 3, "x").number->decimal == Decimal::kComma);
  CHECK_FALSE(ReadingOf(data, 1, "kind").number);
  CHECK(ReadingOf(data, 1, "day").date == "MM/DD/YYYY");
  CHECK(ReadingOf(data, 1, "since").date.empty());
  CHECK(DateColumns(data) == std::vector<std::string>{"day", "since"});
}

}  // namespace
}  // namespace dtrain
