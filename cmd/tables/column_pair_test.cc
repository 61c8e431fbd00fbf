#include "cmd/tables/column_pair.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <functional>

#include "cmd/tables/proposal.h"
#include "trainer/input/data_test_util.h"

namespace dtrain {
namespace {

bool Has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

std::string Joined(const std::vector<std::string>& notes) {
  return fmt::format("{}", fmt::join(notes, "\n"));
}

TEST_CASE("proposal: a test table that is written otherwise is refused, and its markers have keys too") {
  const auto table = [](const char* value, const char* gap) {
    std::string text = "price,y\n";
    for (int i = 0; i < 40; ++i)
      text += (i == 7 ? gap : fmt::format(fmt::runtime(value), i)) + fmt::format(",{}\n", i % 2);
    return ProfileTable(WritePlain("t.csv", text));
  };
  const auto propose = [&](const char* value) {
    const TestTable test{table(value, "unknown"), "t2.csv"};
    const TableProfile train = table("${}.5", "-");
    return ProposeConfig(train, ChooseLabel(train, "y"), "t.csv", &test).yaml;
  };
  CHECK(Has(propose("${}"), "  missing_values: [\"price=-\", \"price=unknown\"]\n"));
  const TestTable test{table("{}", "unknown"), "t2.csv"};
  const TableProfile train = table("{}", "3");
  const std::string notes = Joined(ProposeConfig(train, ChooseLabel(train, "y"), "t.csv", &test).notes);
  CHECK(Has(notes, "price: unknown in 1 row of "));
  const TestTable other{table("${}", "3"), "t2.csv"};
  CHECK(Has(Joined(ProposeConfig(train, ChooseLabel(train, "y"), "t.csv", &other).notes),
            "price: $0 and the like in "));
  CHECK_FALSE(Has(Joined(ProposeConfig(test.profile, ChooseLabel(test.profile, "y"), "t.csv", &test).notes),
                  "unknown in 1 row"));
  CHECK(Has(UserErrorOf([&] { propose("€{}"); }), "price is written as €1,234.50, and in "));
}

TEST_CASE("proposal: a test table in another unit is refused, or told where that may be") {
  const auto table = [](const std::string& name, const std::function<std::string(int)>& value,
                        char delimiter = ',') {
    std::string text = fmt::format("x{0}y\n", delimiter);
    for (int i = 0; i < 40; ++i) text += fmt::format("{}{}{}\n", value(i * 11 % 40), delimiter, i % 2);
    return ProfileTable(WritePlain(name, text));
  };
  const auto propose = [](const TableProfile& train, const TableProfile& other) {
    const TestTable test{other, "t2.csv"};
    std::string notes;
    const std::string error = UserErrorOf(
        [&] { notes = Joined(ProposeConfig(train, ChooseLabel(train, "y"), "t.csv", &test).notes); });
    return error.empty() ? notes : error;
  };
  const auto percent = table("p", [](int i) { return fmt::format("{}%", 50 + i); });
  const auto shares = table("s", [](int i) { return fmt::format("{}", 0.5 + 0.01 * i); });
  const auto both = table("b", [](int i) { return i % 4 == 0 ? "0.5" : fmt::format("{}%", 50 + i); });
  CHECK(Has(propose(percent, shares), "x is written as 0.5, and in "));
  CHECK(Has(propose(shares, percent), "x is written as 1,234.50%, and in "));
  CHECK(Has(propose(percent, both), "x: 10 values of "));
  CHECK(Has(propose(percent, both), " without the unit of 1,234.50%, such as 0.5 in line 2"));
  const auto thousands = table("t", [](int i) { return fmt::format("\"8,{:03}\"", 7 * i); });
  const auto points = table("q", [](int i) { return fmt::format("8.{:03}", 7 * i); });
  CHECK(Has(propose(thousands, points), "x is written as 8.000, and in "));
  CHECK(Has(propose(points, thousands), "x is written as 1,234.50, and in "));
  const auto few = table("f", [](int i) { return i % 2 == 0 ? "8.007" : "5"; });
  CHECK(Has(propose(thousands, few), "x is written as 8.007, and in "));
  const auto kilos = table("k", [](int i) { return fmt::format("{}K", 400 + 3 * i); });
  const auto ones = table("o", [](int i) { return fmt::format("{}", 400000 + 3100 * (i % 9)); });
  CHECK(Has(propose(kilos, ones), "x is written as 400000, and in "));
  CHECK(Has(propose(ones, kilos), "x is written as 1,234.50 K, and in "));
  CHECK(Has(propose(ones, table("g", [](int i) { return fmt::format("{}", 400 + 3 * i); })),
            "x: from 400 to 517 in "));
  const auto commas = table(
      "c", [](int i) { return fmt::format("8,{}", i); }, ';');
  const auto decimals = table(
      "d", [](int i) { return fmt::format("8.{}", i); }, ';');
  CHECK(Has(propose(commas, decimals), "x is written as 8.0, and in "));
  CHECK(Has(propose(decimals, commas), "decimals are other ones"));
  CHECK_FALSE(Has(propose(commas, table(
                                      "w", [](int i) { return fmt::format("{}", i); }, ';')),
                  "written as"));
}

TEST_CASE("proposal: gaps, dates and units of the table are those of a small test table") {
  const auto table = [](const std::string& name, int rows, const std::function<std::string(int)>& value) {
    std::string text = "x,y\n";
    for (int i = 0; i < rows; ++i) text += fmt::format("{},{}\n", value(i), i % 2);
    return WritePlain(name, text);
  };
  const auto propose = [](const std::string& train, const std::string& other) {
    const TableProfile profile = ProfileTable(train);
    const TestTable test{ProfileTable(other, "y", &profile), "t2.csv"};
    return ProposeConfig(profile, ChooseLabel(profile, "y"), "t.csv", &test);
  };
  const auto iso = [](int i) { return fmt::format("2024-{:02}-{:02}", 1 + i % 12, 1 + i * 5 % 28); };
  const auto packed = [](int i) { return fmt::format("2024{:02}{:02}", 1 + i % 12, 1 + i * 5 % 28); };
  const auto seconds = [](int i) { return fmt::format("{}", 1500000000 + 86413 * i); };
  const auto with = [](const auto& value, const char* gap, int every) {
    return [=](int i) { return i % every == 0 ? gap : value(i); };
  };
  const std::string never = table("n", 300, with(iso, "never", 4));
  CHECK(Has(propose(never, table("n2", 8, with(iso, "never", 2))).yaml, "dates: [x]"));
  CHECK(Has(propose(never, table("n3", 8, [](int) { return "never"; })).yaml, "dates: [x]"));
  const auto of_packed = propose(table("p", 300, packed), table("p2", 8, with(packed, "0", 4)));
  CHECK(Has(of_packed.yaml, "  missing_values: [\"x=0\"]\n"));
  CHECK(Has(Joined(of_packed.notes), "x: 0 in 2 rows of "));
  CHECK(Has(propose(table("s", 300, seconds), table("s2", 8, with(seconds, "-1", 2))).yaml,
            "  missing_values: [\"x=-1\"]\n"));
  CHECK(Has(UserErrorOf([&] { propose(table("p", 300, packed), table("s3", 300, seconds)); }),
            "x is written as seconds, and in "));
  // What only the test table has, and a few values of another unit.
  CHECK(Has(propose(table("i", 300, iso), table("i2", 10, with(iso, "never", 5))).yaml,
            "  missing_values: [\"x=never\"]\n"));
  const auto later = propose(table("s", 300, seconds), table("s4", 10, with(seconds, "1588041023000", 10)));
  CHECK(Has(later.yaml, "bad_rows: skip"));
  CHECK(Has(Joined(later.notes), "x: no days of 1990 to 2040 as seconds: 1 value of "));
  CHECK(Has(UserErrorOf([&] {
              propose(table("s", 300, seconds),
                      table("s5", 10, [](int i) { return fmt::format("{}", 5 + i); }));
            }),
            "x is written as numbers from 5 to 14, and in "));
  const auto three = [](int i) { return fmt::format("{}.{:03}", 1 + i % 90, i * 7 % 1000); };
  CHECK(Has(
      propose(table("r", 300, three), table("r2", 12, [](int i) { return fmt::format("{}", 20 + i); })).yaml,
      "path: t2.csv"));
  const auto plain = [](int i) { return fmt::format("{}.{}", i % 60, i % 10); };
  CHECK(Has(propose(table("j", 300, plain), table("j2", 10, with(plain, "never", 5))).yaml,
            "  missing_values: [\"x=never\"]\n"));
  CHECK(
      Has(propose(table("j", 300, plain), table("j3", 8, [&](int i) { return i == 3 ? "never" : plain(i); }))
              .yaml,
          "bad_rows: skip"));
  const auto share = [](int i) { return fmt::format("{}.5%", i % 60); };
  const std::string shares = table("h", 300, with(share, "0", 2));
  CHECK(Has(propose(shares, table("h2", 12, with(share, "0", 1))).yaml, "number_format: [\"x=1,234.50%\"]"));
  CHECK(Has(propose(shares, table("h3", 20, [&](int i) { return i % 5 == 0 ? share(i) : "0"; })).yaml,
            "number_format: [\"x=1,234.50%\"]"));
  const auto kilos = [](int i) { return fmt::format("{} kg", 50 + i % 60); };
  CHECK(Has(
      Joined(propose(table("k", 300, kilos), table("k2", 12, [](int i) { return fmt::format("{}", 90 + i); }))
                 .notes),
      "x: no value of "));
}

TEST_CASE("proposal: a test table whose dates have another form is refused, also beside YYYY-MM-DD") {
  const auto table = [](const char* form) {
    std::string text = "day,y\n";
    for (int i = 0; i < 40; ++i)
      text += fmt::format(fmt::runtime(form), 2023, 1 + i % 12, 1 + i % 28) + fmt::format(",{}\n", i % 2);
    return ProfileTable(WritePlain("t.csv", text));
  };
  const TestTable test{table("{1:02}/{2:02}/{0}"), "t2.csv"};
  const TableProfile train = table("{0}-{1:02}-{2:02}");
  CHECK(Has(UserErrorOf([&] { ProposeConfig(train, ChooseLabel(train, "y"), "t.csv", &test); }),
            "day is written as MM/DD/YYYY, and in "));
}

}  // namespace
}  // namespace dtrain
