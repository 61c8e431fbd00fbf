#include "trainer/survey/table_profile.h"

#include <doctest/doctest.h>
#include <fmt/core.h>

#include <functional>
#include <string>

#include "trainer/input/data_test_util.h"

namespace dtrain {
namespace {

TableProfile ProfileOf(const std::string& content) { return ProfileTable(WritePlain("table.csv", content)); }

// A table with a row for each of `rows` numbers, as `line` writes it.
template <typename Line>
std::string Table(const std::string& header, int rows, Line line) {
  std::string text = header + "\n";
  for (int i = 0; i < rows; ++i) text += line(i) + "\n";
  return text;
}

void CheckFaults(const Faults& faults, int64_t count, int64_t line, int64_t column) {
  CHECK(faults.count == count);
  CHECK(faults.first.line == line);
  CHECK(faults.first.column == column);
}

TEST_CASE("table: columns have types, gaps, distinct values, and the ends of their numbers") {
  const TableProfile table = ProfileOf(Table("day,age,height,plan,remark,none", 40, [](int i) {
    return fmt::format("2024-01-{:02},{},{},{},text {},", 1 + i % 28,
                       i == 7 ? "NA" : fmt::format("{}", 20 + i % 9), 1.5 + i % 3,
                       i % 4 == 0 ? "pro" : "free", i);
  }));
  CHECK(table.rows == 40);
  CHECK(table.delimiter == ',');
  CHECK(table.header == HeaderKind::kNames);
  REQUIRE(table.columns.size() == 6);
  CHECK(table.columns[0].type == ColumnType::kDate);
  CHECK(table.columns[1].type == ColumnType::kWhole);
  CHECK(table.columns[1].missing == 1);
  CHECK(table.columns[1].known == 39);
  CHECK(table.columns[1].distinct == 9);
  CHECK(table.columns[1].min == 20);
  CHECK(table.columns[1].max == 28);
  CHECK(table.columns[2].type == ColumnType::kNumber);
  CHECK(table.columns[2].max == 3.5);
  CHECK(table.columns[3].type == ColumnType::kCategory);
  REQUIRE(table.columns[3].frequent.size() == 2);
  CHECK(table.columns[3].frequent[0].text == "free");
  CHECK(table.columns[3].frequent[0].rows == 30);
  CHECK(table.columns[4].type == ColumnType::kText);
  CHECK(table.columns[5].type == ColumnType::kEmpty);
}

TEST_CASE("table: a text among numbers or dates that stands for a missing value is told, and is no fault") {
  const auto column = [](const std::string& marker, int every) {
    return ProfileOf(
               Table("a,b", 60,
                     [&](int i) { return (i % every == 1 ? marker : std::to_string(10 + i % 45)) + ",x"; }))
        .columns[0];
  };
  for (const char* marker :
       {"\\N", ".", "-", "None", "unknown", "#N/A", "<NA>", "#NULL!", "not asked", "n.v."}) {
    CAPTURE(marker);
    for (const int every : {3, 7, 20}) {
      const ColumnProfile found = column(marker, every);
      CHECK(found.type == ColumnType::kWhole);
      CHECK(found.missing == (58 + every) / every);
      CHECK(found.not_a_number.count == 0);
      REQUIRE(found.markers.size() == 1);
      CHECK(found.markers[0].text == marker);
    }
  }
  const ColumnProfile dates = ProfileOf(Table("a,b", 60, [](int i) {
                                return (i % 7 == 1 ? "never" : fmt::format("2024-01-{}", 10 + i % 20)) + ",x";
                              })).columns[0];
  CHECK(dates.type == ColumnType::kDate);
  CHECK(dates.missing == 9);
  CHECK(dates.not_a_date.count == 0);
  const ColumnProfile two = ProfileOf(Table("a,b", 60, [](int i) {
                              return (i % 7 == 1   ? "NULL"
                                      : i % 7 == 2 ? "."
                                      : i % 7 == 3 ? "-"
                                                   : std::to_string(i)) +
                                     std::string(",x");
                            })).columns[0];
  CHECK(two.type == ColumnType::kWhole);
  CHECK(two.missing == 27);
  CHECK(two.markers.size() == 2);
}

TEST_CASE("table: the first text may come behind any number of numbers, and dates behind any of markers") {
  const auto column = [](const std::function<std::string(int)>& value) {
    return ProfileOf(Table("a,b", 601, [&](int i) { return value(i) + ",x"; })).columns[0];
  };
  for (const char* last : {"old", "2024-01-31"}) {
    CAPTURE(last);
    const ColumnProfile late = column([&](int i) { return i == 600 ? last : std::to_string(i % 50); });
    CHECK(late.type == ColumnType::kWhole);
    CheckFaults(late.not_a_number, 1, 602, 1);
  }
  const ColumnProfile dates =
      column([](int i) { return i < 150 ? "-" : fmt::format("{:02}/{:02}/2024", 1 + i % 12, 1 + i % 28); });
  CHECK(dates.type == ColumnType::kDate);
  CHECK(dates.missing == 150);
  CHECK(dates.date_form == "MM/DD/YYYY");
}

TEST_CASE("table: a day of zeros among dates stands for a missing value") {
  const auto column = [](const char* date, const char* zero) {
    std::string text = "d,y\n";
    for (int i = 0; i < 60; ++i)
      text += (i % 6 == 0 ? zero : fmt::format(fmt::runtime(date), 1 + i % 28)) + fmt::format(",{}\n", i % 2);
    return ProfileOf(text).columns[0];
  };
  const ColumnProfile day = column("2024-01-{:02}", "0000-00-00");
  CHECK(day.type == ColumnType::kDate);
  CHECK(day.missing == 10);
  CHECK(day.markers[0].text == "0000-00-00");
  CHECK(column("2024-01-{:02} 10:00:00", "0000-00-00 00:00:00").type == ColumnType::kDate);
  CHECK(column("{:02}.01.2024", "00.00.0000").missing == 10);
  CHECK(column("2024-01-{:02} 17:26:21 UTC", "").type == ColumnType::kDate);
  CHECK(column("202401{:02}T120000Z", "").date_form == "YYYYMMDD");
  CHECK(column("202401{:02}000000", "").date_form == "YYYYMMDD");
  CHECK(column("17040672{:02}000000", "").date_form == "microseconds");
}

TEST_CASE("table: 0 and 1 beside numbers with commas are a row, and no names that count") {
  std::string text;
  for (int i = 0; i < 60; ++i)
    text +=
        fmt::format("\"5,5\",\"{}.{:03},51\",{},{}\n", 1 + i % 9, i, i % 7 == 3 ? "0.5" : "0", (i + 1) % 2);
  CHECK_FALSE(ProfileOf(text).has_names());
  CHECK(ProfileOf(text).rows == 60);
}

TEST_CASE("table: days that are none and words among dates are missing values, in texts and in numbers") {
  const auto column = [](const char* date, std::vector<std::string> others) {
    std::string text = "d,y\n";
    for (size_t i = 0; i < 120; ++i) {
      text += (i % 6 == 0 ? others[i / 6 % others.size()]
                          : fmt::format(fmt::runtime(date), 2001 + i % 23, 1 + i % 12, 1 + i % 28)) +
              fmt::format(",{}\n", i % 2);
    }
    return ProfileOf(text).columns[0];
  };
  const char* const iso = "{}-{:02}-{:02}";
  for (const std::vector<std::string>& others :
       std::vector<std::vector<std::string>>{{"9999-99-99"},
                                             {"2023-02-30"},
                                             {"1900-01-00"},
                                             {"tbd"},
                                             {"tbd", "never"},
                                             {"0"},
                                             {"0000-00-00", "NaT"}}) {
    CAPTURE(others[0]);
    const ColumnProfile days = column(iso, others);
    CHECK(days.type == ColumnType::kDate);
    CHECK(days.missing == 20);
    CHECK(days.markers.size() == others.size());
    CHECK(days.not_a_date.count == 0);
  }
  CHECK(column("{1}/{2}/{0}", {"0/0/0000"}).missing == 20);
  CHECK(column("{2:02}-JAN-{0}", {"00-JAN-0000"}).missing == 20);
  for (const std::vector<std::string>& others : std::vector<std::vector<std::string>>{
           {"0"}, {"00000000"}, {"99999999", "0"}, {"19000100"}, {"tbd", "0"}}) {
    CAPTURE(others[0]);
    const ColumnProfile days = column("{}{:02}{:02}", others);
    CHECK(days.date_form == "YYYYMMDD");
    CHECK(days.markers.size() + days.no_days.size() == others.size());
    CHECK(days.example.substr(0, 2) == "20");
  }
  CHECK(column("{}{:02}{:02}.0", {"0.0"}).no_days.size() == 1);
  CHECK(column("17{:04}{:02}{:02}", {"0", "-1"}).date_form == "seconds");
  const ColumnProfile others = column("{}{:02}{:02}", {"-999"});
  CHECK(others.date_form.empty());
  CHECK(others.likely_form == "YYYYMMDD");
  CHECK(others.likely_dates * 6 == others.known * 5);
  CHECK(column("17{:04}{:02}{:02}", {"-999"}).likely_form == "seconds");
  CHECK(column("{}{:02}{:02}120000", {"99991231235959"}).no_days.size() == 1);
  CHECK(column(iso, {"9999-12-31", "0001-01-01"}).missing == 20);
  CHECK(column("{2}.{1}.{0}", {"31.12.9999"}).missing == 20);
  // Few dates among two words or more are a category's, beside one they are dates with gaps.
  const auto rare = [](const std::function<const char*(size_t)>& word) {
    std::string text = "d,y\n";
    for (size_t i = 0; i < 400; ++i) {
      text += (i % 20 == 0 ? fmt::format("20{:02}-03-{:02}", 1 + i / 20, 1 + i / 20) : word(i)) +
              fmt::format(",{}\n", i % 2);
    }
    return ProfileOf(text).columns[0];
  };
  CHECK(rare([](size_t i) { return i % 3 == 0 ? "yes" : "no"; }).type == ColumnType::kCategory);
  CHECK(rare([](size_t i) { return i % 3 == 0 ? "0" : "-1"; }).markers.empty());
  CHECK(rare([](size_t) { return "never"; }).type == ColumnType::kDate);
  // Versions are no dates though most could be.
  CHECK(column("{2}.{1}.{0}", {"3.0.2201", "4.0.2002", "1.0.2003", "2.0.2005"}).type == ColumnType::kText);
  CHECK(column("12{0}", {"0"}).markers.empty());
  CHECK(column("{}{:02}{:02}", {"1234.500"}).date_form.empty());  // an amount, and no day 00
  // Many days that are none are faults, and many words are told.
  const ColumnProfile faulty =
      column(iso, {"2023-02-30", "2023-02-31", "2023-04-31", "2023-06-31", "2023-00-10"});
  CHECK(faulty.type == ColumnType::kDate);
  CHECK(faulty.not_a_date.count == 20);
  const ColumnProfile mixed = column(iso, {"a", "b", "c", "d", "e"});
  CHECK(mixed.type == ColumnType::kText);
  CHECK(mixed.mixed);
}

TEST_CASE("table: blanks in quotes around a name alone are left out by data.trim") {
  CHECK(ProfileOf("\"x\",\"city \",\"y\"\n1,a,2\n2,b,3\n").quoted_blanks);
  CHECK_FALSE(ProfileOf("\"x\",\"city\",\"y\"\n1,a,2\n2,b,3\n").quoted_blanks);
}

TEST_CASE("table: a marker may look like a number, and inf is one where it comes again") {
  const auto column = [](const std::string& other, int every, const char* value) {
    return ProfileOf(Table("a,b", 60,
                           [&](int i) {
                             return (i % every == 3 ? other : fmt::format(fmt::runtime(value), 10 + i % 18)) +
                                    ",x";
                           }))
        .columns[0];
  };
  for (const char* other : {"-1.#IND", "1.#QNAN", "inf", "-Infinity"}) {
    CAPTURE(other);
    const ColumnProfile found = column(other, 6, "1.{}");
    CHECK(found.type == ColumnType::kNumber);
    REQUIRE(found.markers.size() == 1);
    CHECK(found.markers[0].text == other);
    CHECK(found.missing == 10);
    CHECK(found.not_float.count == 0);
  }
  const ColumnProfile once = column("inf", 60, "1.{}");
  CHECK(once.markers.empty());
  CheckFaults(once.not_float, 1, 5, 1);
  CHECK(once.not_a_number.count == 0);
}

TEST_CASE("table: a text that comes again among few numbers is a value, and one that comes once is a fault") {
  const auto column = [](int odd, const char* text) {
    return ProfileOf(Table("a,b", 60,
                           [&](int i) {
                             return (i % 11 == 4 && i / 11 < odd ? text : std::to_string(i % 3)) +
                                    std::string(",x");
                           }))
        .columns[0];
  };
  for (const char* text : {"O", "1*", "l"}) {
    CAPTURE(text);
    const ColumnProfile fault = column(1, text), value = column(3, text);
    CHECK(fault.type == ColumnType::kWhole);
    CHECK(fault.distinct == 3);
    CheckFaults(fault.not_a_number, 1, 6, 1);
    CHECK(value.type == ColumnType::kCategory);
    CHECK(value.distinct == 4);
    CHECK(value.not_a_number.count == 0);
  }
}

TEST_CASE("table: a text that is a value of its own among few numbers is no marker") {
  const auto type = [](const std::string& other, int numbers) {
    const ColumnProfile column = ProfileOf(Table("a,b", 60, [&](int i) {
                                   return (i % 4 == 3 ? other : std::to_string(i % numbers)) + ",x";
                                 })).columns[0];
    CHECK(column.markers.empty());
    return column.type;
  };
  CHECK(type("3+", 3) == ColumnType::kCategory);
  CHECK(type("more", 3) == ColumnType::kCategory);
  CHECK(type("60up", 59) == ColumnType::kText);
}

TEST_CASE("table: numbers in other spellings are numbers, and their format is told by an example") {
  const auto column = [](const char* value) {
    return ProfileOf(
               Table("a,b", 60,
                     [&](int i) { return "\"" + fmt::format(fmt::runtime(value), 1 + i, i % 10) + "\",x"; }))
        .columns[0];
  };
  const auto is = [&](const char* value, const char* example, double max) {
    CAPTURE(value);
    const ColumnProfile found = column(value);
    CHECK(found.IsNumber());
    CHECK(found.number_format == example);
    CHECK(found.max == doctest::Approx(max));
    CHECK_FALSE(found.identifier);
  };
  is("${0}.50", "$1,234.50", 60.5);
  is("€ {0},{1}", "€1.234,50", 60.9);
  is("{0},000", "1,234.50", 60000);
  is("{0}.000,5", "1.234,50", 60000.5);
  is("{0}%", "1,234.50%", 60);
  is("{0} km", "1,234.50 km", 60);
  is("({0})", "1,234.50", -1);
  is("−{0}", "1,234.50", -1);
  is("0x{0:02X}", "1,234.50", 60);
  is("USD {0}", "USD1,234.50", 60);
  CHECK(column("{0}.5").number_format.empty());
  CHECK(column("A{0}").type == ColumnType::kText);
  CHECK(column("A{0}").units.empty());
  const ColumnProfile mixed = ProfileOf(Table("a,b", 60, [&](int i) {
                                return fmt::format("{}{},x", i % 2 == 0 ? "$" : "€", i);
                              })).columns[0];
  CHECK(mixed.type == ColumnType::kText);
  CHECK(mixed.units == "$, €");
}

TEST_CASE("table: letters behind the digits of codes are no unit, and numbers without the unit are counted") {
  const auto column = [](const std::function<std::string(int)>& value) {
    return ProfileOf(Table("a,b", 60, [&](int i) { return value(i) + ",x"; })).columns[0];
  };
  const auto code = [&](const char* text) {
    return column([&](int i) { return fmt::format(fmt::runtime(text), 12345 + i % 4 * 7); });
  };
  CHECK(code("{}ebd").type == ColumnType::kCategory);
  CHECK(code("{}A").type == ColumnType::kCategory);
  CHECK(code("{} km").number_format == "1,234.50 km");
  CHECK(code("{}%").number_format == "1,234.50%");
  CHECK(column([](int i) { return fmt::format("{}km", 5000 + i * 977); }).IsNumber());
  const ColumnProfile mixed =
      column([](int i) { return fmt::format("{}{}", 100 + i, i % 3 == 1 ? "" : "K"); });
  CHECK(mixed.number_format == "1,234.50 K");
  CheckFaults(mixed.no_unit, 20, 3, 1);
  CHECK(mixed.no_unit.example == "101");
  CHECK(column([](int i) { return fmt::format("({})", 1990 + i); }).brackets);
  CHECK_FALSE(column([](int i) { return fmt::format("${}", 1990 + i); }).brackets);
}

TEST_CASE("table: dates have a form, or two if days and months cannot be told apart") {
  const auto column = [](const std::string& name, const char* value, int days) {
    return ProfileOf(Table(name + ",b", 60,
                           [&](int i) {
                             return "\"" +
                                    fmt::format(fmt::runtime(value), fmt::arg("d", 1 + i % days),
                                                fmt::arg("m", 1 + i % 11), fmt::arg("n", i)) +
                                    "\",x";
                           }))
        .columns[0];
  };
  const auto is = [&](const char* value, const char* form) {
    CAPTURE(value);
    const ColumnProfile found = column("when", value, 28);
    CHECK(found.type == ColumnType::kDate);
    CHECK(found.date_form == form);
    CHECK(found.IsDate());
    CHECK(found.not_a_date.count == 0);
  };
  is("{m:02}/{d:02}/2024", "MM/DD/YYYY");
  is("{m}/{d}/24 9:30 PM", "MM/DD/YYYY");
  is("{d:02}/{m:02}/2024", "DD/MM/YYYY");
  is("{d}.{m}.2024", "DD.MM.YYYY");
  is("{d:02}-{m:02}-2024", "DD-MM-YYYY");
  is("{d:02}-JAN-2024", "DD-MON-YYYY");
  is("Mar {d}, 2024", "MON DD, YYYY");
  is("2024/{m}/{d}", "YYYY/MM/DD");
  is("2024-{m}-{d}", "YYYY-MM-DD");
  is("2024-{m:02}-{d:02}", "");
  const ColumnProfile either = column("when", "{m:02}/{d:02}/2024", 12);
  CHECK(either.type == ColumnType::kDate);
  CHECK_FALSE(either.IsDate());
  CHECK(either.date_form == "MM/DD/YYYY");
  CHECK(either.other_date_form == "DD/MM/YYYY");
  CHECK(column("x", "2024{m:02}{d:02}", 28).date_form == "YYYYMMDD");
  CHECK(column("created_at", "17000{n:05}", 1).date_form == "seconds");
  CHECK(column("created_at", "17000{n:05}", 1).IsDate());
  CHECK(column("x", "17000{n:05}", 1).IsDate());
  CHECK_FALSE(column("x", "17000{n:05}", 1).identifier);
  CHECK_FALSE(column("x", "17000{n:05}.5", 1).IsDate());
  CHECK(column("created_at", "17000{n:05}123", 1).date_form == "milliseconds");
  CHECK(column("created_at", "7000{n:05}", 1).date_form == "seconds");
  CHECK(column("created_at", "70{n:05}", 1).date_form.empty());
}

TEST_CASE("table: the usual words for a missing value are gaps") {
  for (const char* word : {"", "NA", "N/A", "nan", "NaN", "null", "?", "  NA ", "Null"}) {
    CAPTURE(word);
    const TableProfile table = ProfileOf(fmt::format("a,b\n1,2\n{},3\n4,5\n", word));
    CHECK(table.columns[0].missing == 1);
    CHECK(table.columns[0].type == ColumnType::kWhole);
    CHECK(table.columns[0].not_a_number.count == 0);
  }
}

TEST_CASE("table: the delimiter is the one that all lines agree on, quotes respected") {
  CHECK(ProfileOf("a;b;c\n1,5;2,5;x\n1,0;2,0;y\n").delimiter == ';');
  CHECK(ProfileOf("a\tb\n1\tx, y\n2\tz\n").delimiter == '\t');
  CHECK(ProfileOf("a|b\n1|2\n3|4\n").delimiter == '|');
  CHECK(ProfileOf("a,b\n1,\"x;y\"\n2,z;u\n").delimiter == ',');
  const TableProfile one = ProfileOf("a\n1\n2\n");
  CHECK(one.delimiter == ',');
  CHECK(one.columns.size() == 1);
}

TEST_CASE("table: a line of texts over numbers is a header, a row of numbers is none") {
  CHECK(ProfileOf("a,b\n1,x\n2,y\n").header == HeaderKind::kNames);
  const TableProfile rows = ProfileOf("39,State-gov,<=50K\n50,Self-emp,<=50K\n38,Private,>50K\n");
  CHECK(rows.header == HeaderKind::kNone);
  CHECK(rows.rows == 3);
  CHECK(ProfileOf("red,yes\nblue,no\nred,no\n").header == HeaderKind::kNone);
  CHECK(ProfileOf("colour,bought\nblue,no\nred,no\n").header == HeaderKind::kNames);
  CHECK(ProfileOf("\"0\",\"1\"\n5,6\n7,8\n").header == HeaderKind::kNames);
  CHECK(ProfileOf("id,age,3,kind\n1,30,5,a\n2,41,6,b\n").header == HeaderKind::kNames);
  CHECK(ProfileOf("a,age,3,b\nc,30,5,a\nd,41,6,b\n").header == HeaderKind::kNone);
}

TEST_CASE(
    "table: a text above numbers makes a header, also beside numbers, and texts that come again are values") {
  const auto header = [](const std::string& content, const std::string& label = "") {
    return ProfileTable(WritePlain("table.csv", content), label).header;
  };
  CHECK(header("0,1,2,label\n25,2392,6,1\n29,1950,4,1\n-4,85,6,0\n") == HeaderKind::kNames);
  CHECK(header("5,17,fee\n25,2392,6\n29,1950,4\n-4,85,6\n") == HeaderKind::kNames);
  CHECK(header("400.5,401,402.5,y\n.25,.3,.4,1\n.29,.2,.4,0\n") == HeaderKind::kNames);
  CHECK(header("0,1,label\n5,6,no\n7,8,no\n9,1,yes\n") == HeaderKind::kNames);
  CHECK(header(",0,1,2\n0,25,7,1\n1,29,4,1\n2,-4,6,0\n") == HeaderKind::kNames);
  CHECK(header(",0\na,25\nb,29\n") == HeaderKind::kNames);
  CHECK(header("fair,4up,lots,fine\ndear,1,2,poor\nfair,3,2,fine\ncheap,4up,3,poor\ncheap,2,lots,poor\n") ==
        HeaderKind::kNone);
  CHECK(header("2.5,\\N,yes\n1.5,3,no\n2.5,4,no\n1.5,5,yes\n") == HeaderKind::kNone);
  CHECK(header("2.5,old,yes\n1.5,3,no\n-2.5,4,no\n1.5,5,yes\n") == HeaderKind::kNone);
  CHECK(header("2019,key,y\n25,b,n\n29,b,n\n29,b,m\n31,c,m\n31,c,m\n") == HeaderKind::kNames);
  CHECK(header("2019,b,n\n25,b,n\n29,b,n\n29,b,m\n31,c,m\n31,c,m\n") == HeaderKind::kNone);
  CHECK(header("\"lots\",\"0.5\"\n\"few\",\"1.5\"\n\"lots\",\"2\"\n") == HeaderKind::kNone);
  CHECK(header("\"a\",\"0.5\"\n\"few\",\"1.5\"\n\"lots\",\"2\"\n") == HeaderKind::kNone);
  CHECK(header("a,side\nb,north\nc,side\na,north\n") == HeaderKind::kNone);
  CHECK(header("a,side\nb,north\nc,side\na,north\n", "side") == HeaderKind::kNames);
  CHECK(header("a,side,n\na,north,1\nc,east,2\n") == HeaderKind::kNames);
}

TEST_CASE("table: numbers and dates in any spelling are values, and a line of such values is no header") {
  const auto header = [](const std::string& content) { return ProfileOf(content).header; };
  CHECK(header("0,label,2\nred,\"1,250.50\",A\nblue,\"2,300.75\",B\nred,\"1,750.25\",A\n") ==
        HeaderKind::kNames);
  CHECK(header("0,1,label\n2024-05-01,a,N\n2024-06-11,b,Y\n2024-06-12,a,N\n2024-06-13,b,Y\n") ==
        HeaderKind::kNames);
  CHECK(header("0,label,2\n4,a,x\n5,b,y\n7,a,x\n8,b,y\n") == HeaderKind::kNames);
  CHECK(header("fee,2019\n$5.50,7\n$6.50,8\n$7.50,9\n") == HeaderKind::kNames);
  CHECK(header("seen,2019\n10/23/2020,7\n11/24/2020,8\n") == HeaderKind::kNames);
  CHECK(header(",0x3f,2021-06-10\n,0x4a,2021-06-11\n,0x5c,2021-07-12\n") == HeaderKind::kNone);
}

TEST_CASE("table: a second line of names or units is no row, and gives no class") {
  for (const char* const header : {"a,b,kind", "\"a\",b,kind"}) {
    const TableProfile units =
        ProfileOf(std::string(header) + "\n[m],[kg],[class]\n1.5,2,x\n2.5,3,y\n3.5,4,x\n4.5,5,y\n");
    CHECK(units.rows == 4);
    CHECK(units.columns[0].IsNumber());
    CHECK(units.columns[2].distinct == 2);
    CheckFaults(units.headers, 1, 2, 1);
  }
  // A row that has gaps, and one of texts that come again.
  CHECK(ProfileOf("a,b,kind\nNone,.,x\n2.5,3,y\n3.5,4,x\n4.5,5,y\n").rows == 4);
  CHECK(ProfileOf("a,kind\nunknown,x\n2.5,y\n3.5,x\n4.5,y\n").rows == 4);
}

TEST_CASE("table: a header may be a name short, end otherwise than rows, and come again") {
  const TableProfile r = ProfileOf("\"tilt\",\"leak\"\n\"1\",-1.5,\"yes\"\n\"2\",-.5,\"no\"\n");
  CHECK(r.names_rows);
  REQUIRE(r.columns.size() == 3);
  CHECK(r.columns[0].name.empty());
  CHECK(r.columns[2].name == "leak");
  const TableProfile ends = ProfileOf("a,b\n1,2,\n3,4,\n5,6,\n");
  CHECK(ends.columns.size() == 2);
  CHECK(ends.rows == 3);
  CHECK(ends.columns[1].name == "b");
  CHECK(ProfileOf("a,b,\n1,2\n3,4\n").columns.size() == 2);
  const TableProfile both = ProfileOf("\"a\",\"b\",\n\"1\",2.5,x,\n\"2\",3.5,y,\n");
  REQUIRE(both.columns.size() == 4);
  CHECK(both.columns[1].name == "a");
  CHECK(both.columns[3].type == ColumnType::kEmpty);
  const TableProfile ends_rows = ProfileOf("tilt,leak,n\n1,-1.5,yes,4,\n2,-.5,no,5,\n");
  CHECK(ends_rows.names_rows);
  CHECK(ends_rows.columns.size() == 4);
  CHECK(ProfileOf("tilt,leak\n1,-1.5,yes\n2,-.5,no,more\n2,-.5,no\n").names_rows);
  const TableProfile commas = ProfileOf("a,b\n1.5,2,old\n2.5,4,old\n3.5,6,new\n");
  CHECK(commas.rows == 0);
  CHECK(commas.columns[1].name == "b");
  CHECK(commas.long_rows.count == 3);
  const TableProfile twice = ProfileOf("a,b\n1,x\n3,y\na,b\n5,z\n\"a\",b\n");
  CHECK(twice.rows == 3);
  CHECK(twice.columns[1].distinct == 3);
  CheckFaults(twice.headers, 2, 4, 1);
}

TEST_CASE("table: a first line that comes again as often as others is a row, and no header") {
  const auto again = [](const std::string& lines, int times) {
    std::string content;
    for (int i = 0; i < times; ++i) content += lines;
    return ProfileOf(content);
  };
  for (const char* lines : {"p,0,A\nr,1,B\nt,2,C\n", "red,yes\nblue,no\n", "p,A\nr,B\nr,A\n"}) {
    CAPTURE(lines);
    const TableProfile rows = again(lines, 20);
    CHECK(rows.header == HeaderKind::kNone);
    CHECK(rows.headers.count == 0);
    CHECK(rows.rows % 20 == 0);
  }
  const TableProfile joined = again("a,y\n1,red\n2,blue\n", 20);  // texts over numbers
  CHECK(joined.header == HeaderKind::kNames);
  CHECK(joined.headers.count == 19);
  const TableProfile texts = again("colour,y\nred,p\nblue,q\ngreen,p\nblue,r\nred,q\n", 1);
  CHECK(texts.header == HeaderKind::kNames);
  CHECK(ProfileOf("colour,y\nred,p\nblue,q\ncolour,y\ngreen,p\nblue,r\n").headers.count == 1);
  const TableProfile parts =
      again("colour,size,y\nred,big,no\nblue,big,yes\nred,small,no\nblue,big,yes\n", 20);
  CHECK(parts.header == HeaderKind::kNames);
  CHECK(parts.headers.count == 19);
  const TableProfile counted = again("0,1,2,label\n,2b,x,False\n,2b,y,True\n", 3);  // names by their places
  CHECK(counted.header == HeaderKind::kNames);
  CHECK(counted.headers.count == 2);
}

TEST_CASE("table: numpy's mark in front of a header is no part of the first name") {
  for (const char* names : {"# a,b", "# a b", "#  a b"}) {
    CAPTURE(names);
    const char between = names[3] == ',' ? ',' : ' ';
    const TableProfile table =
        ProfileOf(Table(names, 20, [&](int i) { return fmt::format("{}{}{}", i % 7, between, i % 5); }));
    REQUIRE(table.columns.size() == 2);
    CHECK(table.rows == 20);
    CHECK(table.columns[0].name == "a");
    CHECK(table.columns[1].name == "b");
  }
  CHECK(ProfileOf("#,b\n1,2\n3,5\n").columns[0].name == "#");
  CHECK(ProfileOf("#CHROM,b\n1,2\n3,5\n").columns[0].name == "#CHROM");
}

TEST_CASE("table: a row that cannot be read gives no category") {
  std::string text =
      Table("n,kind", 30, [](int i) { return fmt::format("{},{}", i % 7, i % 3 == 0 ? "a" : "b"); });
  const TableProfile table = ProfileOf(text + "metres,of what\n");
  CHECK(table.rows == 31);
  CHECK(table.unreadable == 1);
  CHECK(table.columns[1].distinct == 2);
  CheckFaults(table.columns[0].not_a_number, 1, 32, 1);
}

TEST_CASE("table: quotes of other kinds and other delimiters are those with which most rows are alike") {
  const auto rows = [](const std::string& header, const std::string& line) {
    return ProfileOf(Table(header, 20, [&](int i) { return fmt::format("{}{}", i, line); }));
  };
  CHECK(rows("a,b,c", ",\"n \\\"x\\\"\",1").quoting == Quotes::kBackslash);
  CHECK(rows("a,b,c", ",n\\, old,1").quoting == Quotes::kBackslash);
  CHECK(rows("a,b,c", ",'n, old',1").quoting == Quotes::kSingle);
  CHECK(rows("'a','b'", ",'n'").columns[1].name == "b");
  CHECK(rows("a,b", ",o'clock").quoting == Quotes::kDouble);
  CHECK(rows("a,b", ",6'2\" n").quoting == Quotes::kDouble);
  CHECK(rows("a,b", ",\"n\" or so").quoting == Quotes::kNone);
  CHECK(rows("a,b", ",\"n, old\"").quoting == Quotes::kDouble);
  const TableProfile blanks = rows("a b  c", "   2.5 \"x y\"");
  CHECK(blanks.delimiter == ' ');
  CHECK(blanks.columns.size() == 3);
  CHECK_FALSE(blanks.finds_delimiter);
  CHECK(rows("a    b\tc", "  2.5\tx").delimiter == ' ');
  CHECK(rows("a\tb", "\tNew York").delimiter == '\t');
  CHECK(rows("a\tb", "\t2.5 kg").delimiter == '\t');
  CHECK(rows("a\x01"
             "b",
             "\x01"
             "2,5")
            .delimiter == '\x01');
  CHECK(rows("a b c", " 2,5 x").delimiter == ' ');
  CHECK(rows("a \"b b\" c", ",5 \"2,5\" x").delimiter == ' ');
  CHECK(rows("day,n", " Jan 2024,7").delimiter == ',');
  CHECK(ProfileOf(Table("", 20, [](int i) { return fmt::format("'0';  {} ;0.4 kg", i); })).delimiter == ';');
  CHECK(rows("'a' 'b'", " 'said \"no\" or so'").quoting == Quotes::kSingle);
  CHECK(rows("at,n", "1 10:00:00,7,5").delimiter == ',');
  CHECK(rows("\"a \\\"b\\\"\",c", ",1,").quoting == Quotes::kBackslash);
  CHECK(rows("\"a,b\",c", ",1,").quoting == Quotes::kDouble);
  CHECK(ProfileOf(Table("", 20, [](int i) { return fmt::format("x,{}\\,500", i + 1); })).columns.size() == 2);
  CHECK(rows("a~b", "~2").delimiter == '~');
  CHECK(rows("a:b", ":2").delimiter == ':');
  CHECK(rows("a,b", ",12:30").delimiter == ',');
}

TEST_CASE("table: lines at the front begin as comments do only where no row does") {
  const auto rows = [](const std::string& first) {
    return ProfileOf("# by hand\n" +
                     Table("a,b,c", 20, [&](int i) { return first + fmt::format(",{},1", i); }));
  };
  CHECK(rows("1").comment == "#");
  CHECK(rows("#N/A").comment.empty());
  CHECK(rows("#N/A").skip_lines == 1);
  CHECK(rows("#N/A").rows == 20);
  const auto words = [](const std::string& header) {
    return ProfileOf("Report of the year\n" + header +
                     Table("", 20, [](int i) { return fmt::format("{}.5 a {} 1 {}", i, i % 3, i % 2); }));
  };
  CHECK(words("a b c d e\n").skip_lines == 1);
  CHECK(words("a b c d e\n").columns[4].name == "e");
  CHECK(ProfileOf("The report of a year\n" +
                  Table("a b c", 20, [](int i) { return fmt::format("{}.5 a {}", i, i % 3); }))
            .skip_lines == 1);
}

TEST_CASE("table: ARFF is read from behind its attributes, which name the columns for people") {
  const TableProfile table = ProfileOf(
      "% soil\n@RELATION soil\n\n@attribute 'the tilt' NUMERIC\n@ATTRIBUTE state {wet,dry}\n@DATA\n1,wet\n% "
      "x\n?,dry\n");
  CHECK(table.header == HeaderKind::kNone);
  CHECK(table.rows == 2);
  CHECK(table.skip_lines == 6);
  CHECK(table.columns[0].name == "the tilt");
  CHECK(table.columns[0].missing == 1);
  CHECK(UserErrorOf([] { ProfileOf("@relation x\n@attribute a numeric\n@data\n{0 1}\n"); }).find("sparse") !=
        std::string::npos);
}

TEST_CASE("table: several files are one table, and places name theirs") {
  const std::string first = WritePlain("many-0.csv", "a,b\n1,x\n2,y\n"),
                    none = WritePlain("many-1.csv", "\n");
  const std::string last = WritePlain("many-2.csv", "a,b\n3,x\n4,5,6\n");
  const std::string pattern = first.substr(0, first.size() - 5) + "*.csv";
  const TableProfile table = ProfileTable(pattern);
  CHECK(table.path == pattern);
  CHECK(table.rows == 3);
  CheckFaults(table.long_rows, 1, 3, 1);
  CHECK(table.long_rows.file == last);
  WritePlain("many-3.csv", "a,c\n3,x\n");
  CHECK(UserErrorOf([&] { ProfileTable(pattern); }).find("many-3.csv:1:3: the column is \"c\"") !=
        std::string::npos);
  CHECK(none != first);
}

TEST_CASE("table: a first row of counting numbers is not silently a header") {
  const TableProfile whole = ProfileOf("0,1\n1,0\n2,1\n3,0\n");
  CHECK(whole.header == HeaderKind::kCounting);
  CHECK(whole.rows == 4);
  const TableProfile real = ProfileOf(",0,1,2\n0,0.5,1.5,3.5\n1,0.25,1,2\n");
  CHECK(real.header == HeaderKind::kNames);
  CHECK(real.rows == 2);
  CHECK(real.columns[1].name == "0");
}

TEST_CASE("table: every kind of fault is counted, with its first place") {
  std::string text = Table("a,b,c", 30, [](int i) { return fmt::format("{},{},\"x\"", i, i * 2); });
  text += "abc,1,x\n1,1e39,x\n2,inf,\xff\n1,2\n1,2,3,4\nzzz,1,x\n1\n\n5,6,\"a\"b\n";
  const TableProfile table = ProfileOf(text);
  CheckFaults(table.columns[0].not_a_number, 2, 32, 1);
  CHECK(table.columns[0].not_a_number.example == "abc");
  CheckFaults(table.columns[1].not_float, 2, 33, 3);
  CheckFaults(table.columns[2].not_utf8, 1, 34, 7);
  CheckFaults(table.short_rows, 2, 35, 1);
  CheckFaults(table.long_rows, 1, 36, 1);
  CHECK(table.long_rows.example == "4");
  CheckFaults(table.empty_lines, 1, 39, 1);
  CheckFaults(table.quotes, 1, 40, 8);
  CHECK(table.rows == 34);
}

TEST_CASE("table: a quote that nothing closes does not swallow the file") {
  const TableProfile table = ProfileOf("a,b\n1,\"x\"\n2,\"x\"\n3,\"open\n4,y\n5,z\n");
  CHECK(table.rows == 4);
  CheckFaults(table.quotes, 1, 4, 3);
}

TEST_CASE("table: quoted fields keep delimiters, doubled quotes and line ends of any kind") {
  const TableProfile table = ProfileOf("a,b\r\n1,\"x,\"\"y\"\"\r\nz\"\r\n2,w\r\nbad,1\r\n3,\r4,v\r");
  CHECK(table.rows == 5);
  CHECK(table.quotes.count == 0);
  CHECK(table.columns[1].missing == 1);
  CHECK(table.columns[1].frequent.size() == 4);
  CHECK(table.columns[0].known == 5);
}

TEST_CASE("table: ids, indexes and constants are suspected") {
  const TableProfile table = ProfileOf(Table("customer_id,n,amount,same,label,name", 60, [](int i) {
    return fmt::format("{},{},{},7,{},N {}", 1000 + 977 * i % 61 * 3, i + 1, 17 * i * i % 9973, i / 20,
                       i * 7);
  }));
  CHECK(table.columns[0].identifier);
  CHECK(table.columns[1].index);
  CHECK_FALSE(table.columns[1].identifier);
  CHECK_FALSE(table.columns[2].identifier);  // amounts that happen to differ
  CHECK(table.columns[3].constant);
  CHECK(table.columns[5].identifier);
}

TEST_CASE("table: whole numbers that all differ are ids where they lie close, or are long and in order") {
  const auto is_id = [](auto value, int rows = 60) {
    return ProfileOf(Table("n,y", rows, [&](int i) { return fmt::format("{},{}", value(i), i % 2); }))
        .columns[0]
        .identifier;
  };
  CHECK(is_id([](int i) { return i * 7 % 61; }));
  CHECK_FALSE(is_id([](int i) { return i * 7 % 13; }, 12));
  CHECK(is_id([](int i) { return 100000000 + i * 7 + i % 3; }));
  CHECK_FALSE(is_id([](int i) { return 100000 + i * 7919 % 900000; }));
  CHECK_FALSE(is_id([](int i) { return 100000 + i * 9001; }));  // prices, as the table is sorted by
}

TEST_CASE("table: points before three digits are doubtful beside numbers below 1,000 without one") {
  const auto of = [](const std::vector<const char*>& values) {
    return ProfileOf(Table("n,y", 60,
                           [&](int i) {
                             return fmt::format("\"{}\",{}", values[static_cast<size_t>(i) % values.size()],
                                                i % 2);
                           }))
        .columns[0];
  };
  const ColumnProfile doubtful = of({"19.839", "131", "4.580", "0", "n.d."});
  CHECK(doubtful.other_format == "1.234,50");
  CHECK(doubtful.spelled == "19.839");
  CHECK(doubtful.number_format.empty());
  CHECK(of({"19.839", "131.500", "4.580"}).other_format.empty());
  CHECK(of({"19.839", "131", "4.5"}).other_format.empty());
  CHECK(of({"19.839", "131", "0.580"}).other_format.empty());
  CHECK(of({"19.839", "131", "4580"}).other_format.empty());
  CHECK(of({"19,839", "131", "4,580"}).number_format == "1,234.50");
  CHECK(of({"19,839", "131", "4,580"}).other_format.empty());
  const auto below = [](const char* name) {
    return ProfileOf(Table(std::string(name) + ",y", 60,
                           [](int i) { return fmt::format("{}.5{},1", i + 1, i + 10); }))
        .columns[0];
  };
  CHECK(below("flow (m3/s)").other_format.empty());
  CHECK(below("7").other_format.empty());
}

TEST_CASE("table: commas before three digits make decimals where semicolons separate fields") {
  const auto has = [](char delimiter, const char* value) {
    return ProfileOf(Table(fmt::format("n{0}y", delimiter), 40,
                           [&](int i) {
                             return fmt::format("{}{}{}", fmt::format(fmt::runtime(value), i % 9 + 1),
                                                delimiter, i % 2);
                           }))
        .decimal_comma;
  };
  CHECK(has(';', "{},538"));
  CHECK_FALSE(has('\t', "{},538"));
  CHECK(has('\t', "{},53"));
  CHECK(has('\t', "0,53{}"));
}

TEST_CASE("table: points before three digits are read as other columns say") {
  const auto of = [](const char* other, const char* value) {
    const TableProfile table = ProfileOf(Table("n;m;y", 60, [&](int i) {
      return fmt::format("{};{};{}", i % 3 == 0 ? fmt::format(fmt::runtime(value), 2 + i % 9) : "853",
                         fmt::format(fmt::runtime(other), i % 9 + 1), i % 2);
    }));
    CHECK(table.columns[0].other_format.empty());
    return table.columns[0];
  };
  const ColumnProfile thousands = of("0,4{}", "{}.142");
  CHECK(thousands.max == 8142);
  CHECK(thousands.number_format == "1.234,50");
  const ColumnProfile decimals = of("0.4{}", "{}.142");
  CHECK(decimals.max == 853);
  CHECK(decimals.number_format.empty());
  CHECK(of("0.4{}", "{},142").max == 8142);
  CHECK(of("0,4{}", "{},142").max == 853);
}

TEST_CASE("table: a name in quotes is quoted where the rows have a field more, for their names") {
  const TableProfile table =
      ProfileOf(Table("x,\"a,b\"", 40, [](int i) { return fmt::format("{},{},{}", i + 1, i % 7, i % 2); }));
  CHECK(table.quoting == Quotes::kDouble);
  CHECK(table.names_rows);
  CHECK(table.columns[2].name == "a,b");
}

TEST_CASE("table: a backslash makes a character of a quote, also where the names alone have some") {
  const TableProfile table = ProfileOf(
      Table("x,\"a \\\"b\\\"\",y", 40, [](int i) { return fmt::format("{},{},{},", i, i % 7, i % 2); }));
  CHECK(table.quoting == Quotes::kBackslash);
  CHECK(table.columns[1].name == "a \"b\"");
}

TEST_CASE("table: distinct values are counted exactly up to 10000") {
  const auto with = [](int values) {
    return ProfileOf(
        Table("x,y", values * 2, [&](int i) { return fmt::format("{}.5,{}", i % values, i % 2); }));
  };
  CHECK(with(10000).columns[0].distinct == 10000);
  CHECK_FALSE(with(10000).columns[0].more_distinct);
  CHECK(with(10001).columns[0].distinct == 10000);
  CHECK(with(10001).columns[0].more_distinct);
}

TEST_CASE("table: gzip and a file of several blocks are read to their end") {
  const std::string text = Table("x,y", 200000, [](int i) { return fmt::format("{},\"{}\"", i, i % 5); });
  const TableProfile plain = ProfileOf(text);
  CHECK(plain.rows == 200000);
  CHECK(plain.columns[0].max == 199999);
  CHECK(plain.columns[1].distinct == 5);
  CHECK(ProfileTable(WriteGzip("table.csv.gz", text)).rows == 200000);
}

TEST_CASE("table: a file that is no table of text is refused with its reason") {
  CHECK(UserErrorOf([] {
          ProfileOf(
              "\xff\xfe"
              "a,b");
        }).find("UTF-16") != std::string::npos);
  CHECK(UserErrorOf([] { ProfileTable("/not/there.csv"); }).find("cannot be opened") != std::string::npos);
  const auto refuses_json = [](const std::string& text) {
    return UserErrorOf([&] { ProfileOf(text); }).find("is JSON, and no table") != std::string::npos;
  };
  CHECK(refuses_json("{\"x\": 0.5, \"y\": 1}\n{\"x\": 1.5, \"y\": 0}\n"));
  CHECK(refuses_json("[\n  {\"x\": 0.5},\n  {\"x\": 1.5}\n]\n"));
  CHECK(refuses_json("[[0.5, 1], [1.5, 0]]\n"));
  CHECK_FALSE(refuses_json("{\"x\": 1}\t1\n{\"x\": 2}\t0\n"));
  CHECK_FALSE(refuses_json("[a],[b]\n1,2\n"));
  CHECK(ProfileOf("a,b\n").rows == 0);
  CHECK(ProfileOf("\n\n").rows == 0);
}

TEST_CASE("table: years in a row, beside texts, are columns' names") {
  const auto row = [](int i) { return fmt::format("c{},{},{},{}", i, i % 7, i % 5, 3 * i); };
  CHECK(ProfileOf(Table("country,1970,1971,1972", 40, row)).header == HeaderKind::kNames);
  CHECK(ProfileOf(Table("country,1970,1971,1977", 40, row)).header == HeaderKind::kNone);
}

TEST_CASE("table: inf is a column's name in the first line, and years are no ids") {
  const TableProfile table = ProfileOf(
      Table("year,inf,y", 40, [](int i) { return fmt::format("{},{}.5,{}", 1950 + i, i % 7, i % 2); }));
  CHECK(table.header == HeaderKind::kNames);
  CHECK(table.columns[1].name == "inf");
  CHECK_FALSE(table.columns[0].identifier);
  CHECK(table.columns[1].mean == doctest::Approx(3.375));
  CHECK(table.columns[2].deviation == doctest::Approx(0.5));
}

}  // namespace
}  // namespace dtrain
