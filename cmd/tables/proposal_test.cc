#include "cmd/tables/proposal.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include <functional>

#include "base/error.h"
#include "base/random.h"
#include "cmd/tables/profile_text.h"
#include "trainer/config/config.h"
#include "trainer/config/load.h"
#include "trainer/input/data_test_util.h"
#include "trainer/order/held_out.h"
#include "trainer/order/order.h"
#include "trainer/sets/load_data.h"
#include "trainer/survey/data_shape.h"

namespace dtrain {
namespace {

TableProfile ProfileOf(const std::string& content) { return ProfileTable(WritePlain("table.csv", content)); }

bool Has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

// 40 rows of an id, a date, a number with a gap, a category and a label, which `label` makes.
template <typename Label>
TableProfile Customers(const std::string& name, Label label) {
  std::string text = "customer_id,day,age,plan," + name + "\n";
  for (int i = 0; i < 40; ++i) {
    text +=
        fmt::format("C{:03},2024-01-{:02},{},{},{}\n", i, 1 + i % 28,
                    i % 10 == 3 ? "" : fmt::format("{}", 20 + i % 25), i % 3 == 0 ? "pro" : "free", label(i));
  }
  return ProfileOf(text);
}

std::string Joined(const std::vector<std::string>& notes) {
  return fmt::format("{}", fmt::join(notes, "\n"));
}

std::string NotesOf(const TableProfile& table, const std::string& label) {
  return Joined(ProposeConfig(table, ChooseLabel(table, label), "table.csv").notes);
}

std::string YamlOf(const TableProfile& table, const std::string& label = "") {
  return ProposeConfig(table, ChooseLabel(table, label), "table.csv").yaml;
}

TEST_CASE(
    "proposal: ids are ignored, texts become categories, dates days, gaps and a fifth of the rows have "
    "keys") {
  const std::string yaml = YamlOf(Customers("churned", [](int i) { return i * 7 % 5 == 0 ? "yes" : "no"; }));
  CAPTURE(yaml);
  CHECK(Has(yaml, "model: {kind: logistic}"));
  CHECK(Has(yaml, "  train: {format: csv, path: table.csv, label: churned}\n"));
  CHECK(Has(yaml, "  ignore:\n    - customer_id    # an id: all values differ\n  categories: [plan]\n"));
  CHECK(Has(yaml, "  dates: [day]\n"));
  CHECK(Has(yaml, "  missing: indicator\n"));
  CHECK(Has(yaml, "  validation: 0.2 "));
  CHECK(Has(yaml, "  validation_by: stratified\n"));
  CHECK(Has(yaml, "  scale: standard\n"));
  CHECK(Has(yaml, "eval: {on: validation, every_steps: 40} "));
  CHECK_FALSE(Has(yaml, "bad_rows"));
  CHECK_FALSE(Has(yaml, "delimiter"));
}

// A table of 1000 rows with a feature and such a label.
std::string LossOf(const std::function<double(CounterRandom&, uint64_t)>& label) {
  CounterRandom random(7);
  std::string text = "x,y\n";
  for (uint64_t i = 0; i < 1000; ++i) text += fmt::format("{},{:.6g}\n", i % 37, label(random, i));
  const std::string yaml = YamlOf(ProfileOf(text));
  const size_t begin = yaml.find("model: ");
  return yaml.substr(begin, yaml.find('\n', begin) - begin);
}

TEST_CASE("proposal: a label whose values say clearly what they are gets a loss, and others get none") {
  const auto exponential = [](CounterRandom& random, uint64_t i) { return -std::log(1 - random.Uniform(i)); };
  // Geometric counts, of a mean of 5.
  const std::string counts = LossOf([&](auto& r, uint64_t i) { return std::floor(exponential(r, i) * 5.5); });
  CHECK(Has(counts, "{kind: linear, loss: poisson, init: {output_bias: 1.6"));
  CHECK(Has(counts, " times the mean, as counts have: poisson"));
  const std::string money =
      LossOf([&](auto& r, uint64_t i) { return i % 3 > 0 ? 0 : std::exp(2 * r.Normal(i)) * 1000; });
  CHECK(Has(money, "loss: tweedie, loss_power: 1.5"));
  CHECK(Has(money, "# y: a quantity"));
  CHECK(Has(money, "67 % are 0 and the others have a long tail, so tweedie"));
  const std::string tails =
      LossOf([](auto& r, uint64_t i) { return r.Normal(i) / (0.02 + r.Uniform(i + 5000)); });
  CHECK(Has(tails, "loss: huber, loss_delta: "));
  // A normal one, prices in whole numbers, marks of 0 to 20, ages.
  for (const double mean : {0.0, 100.0}) {
    CHECK_FALSE(Has(LossOf([&](auto& r, uint64_t i) { return mean + r.Normal(i); }), "loss"));
  }
  CHECK_FALSE(
      Has(LossOf([&](auto& r, uint64_t i) { return std::floor(1e4 * (1 + exponential(r, i))); }), "loss"));
  CHECK_FALSE(Has(LossOf([](auto& r, uint64_t i) { return std::floor(r.Uniform(i) * 21); }), "loss"));
  CHECK_FALSE(Has(LossOf([](auto& r, uint64_t i) { return std::floor(r.Uniform(i) * 90); }), "loss"));
}

TEST_CASE("proposal: the label decides the model") {
  const auto model = [](const TableProfile& table) {
    const std::string yaml = YamlOf(table);
    const size_t begin = yaml.find("model: ");
    return yaml.substr(begin, yaml.find('}', begin) + 1 - begin);
  };
  const auto with = [](auto label) { return Customers("y", label); };
  CHECK(model(with([](int i) { return i * 7 % 5 % 2; })) == "model: {kind: logistic}");
  CHECK(model(with([](int i) { return i * 7 % 5 % 3; })) == "model: {kind: softmax, outputs: 3}");
  CHECK(model(with([](int i) { return 1 + i * 7 % 5 % 3; })) == "model: {kind: softmax, outputs: 3}");
  CHECK(model(with([](int i) { return 1992 + i * 7 % 5 % 2; })) == "model: {kind: logistic}");
  CHECK(model(with([](int i) { return fmt::format("kind {}", i * 7 % 5); })) ==
        "model: {kind: softmax, outputs: 5}");
  CHECK(model(with([](int i) { return i % 10 * 1000; })) ==
        "model: {kind: linear, init: {output_bias: 4500}");
  CHECK(model(with([](int i) { return 0.5 * (i % 8); })) ==
        "model: {kind: linear, init: {output_bias: 1.75}");
  CHECK(model(with([](int i) { return i % 20; })) == "model: {kind: linear, init: {output_bias: 9.5}");
}

TEST_CASE("proposal: numbers that are names of classes have the key for it, others have not") {
  const auto names = [](auto label) { return Has(YamlOf(Customers("y", label)), "  label_type: names "); };
  CHECK(names([](int i) { return 1 + i % 3; }));
  CHECK(names([](int i) { return 1992 + i % 2; }));
  CHECK(names([](int i) { return i % 2 == 0 ? "170" : i % 3 == 0 ? "171a" : "171b"; }));
  CHECK(names([](int i) { return i > 37 ? "x" : i % 2 == 0 ? "0" : "1"; }));
  CHECK_FALSE(names([](int i) { return i == 39 ? "x" : i % 2 == 0 ? "0" : "1"; }));
  CHECK_FALSE(names([](int i) { return i % 3; }));
  CHECK_FALSE(names([](int i) { return 2 * (i % 2) - 1; }));
  CHECK_FALSE(names([](int i) { return i % 2 == 0 ? "a" : "b"; }));
}

TEST_CASE("proposal: the learning rate of a linear model is that of its label's deviation, and falls") {
  const auto yaml = [](double size) {
    return YamlOf(Customers("y", [=](int i) { return fmt::format("{}", size * (i % 8) + 1e6); }));
  };
  CHECK(Has(yaml(0.5), "    learning_rate: 0.034\n"));
  CHECK(Has(yaml(5e5), "    learning_rate: 34000\n"));
  CHECK(Has(yaml(0.5), "    schedule: {kind: cosine, decay_steps: auto, end_learning_rate: 0.00034}"));
  CHECK(Has(yaml(0.5), "    l2: 0.031 "));
}

TEST_CASE("proposal: of few rows there are batches for several workers") {
  CHECK(Has(YamlOf(Customers("y", [](int i) { return i % 2; })), "  batch_size: 8\n"));
  CHECK(Has(YamlOf(ProfileOf("a,y\n1,0\n2,1\n3,0\n")), "  batch_size: 1\n"));
}

TEST_CASE("proposal: a test table has its source, the keys of both, and takes the place of held-out rows") {
  std::string text, other = "|1x3 Cross validator\n";
  for (int i = 0; i < 60; ++i) {
    const bool more = i % 3 == 0;
    text += fmt::format("{}, {}, {}\n", 20 + i % 9, i % 4 == 0 ? "a" : "b", more ? ">50K" : "<=50K");
    other += fmt::format("{}, {}, {}.\n", 20 + i % 7, i % 5 == 0 ? "?" : "b", more ? ">50K" : "<=50K");
  }
  const TableProfile table = ProfileOf(text);
  const TestTable test{ProfileTable(WritePlain("adult.test", other)), "adult.test"};
  const Proposal proposal = ProposeConfig(table, ChooseLabel(table, ""), "adult.data", &test);
  const std::string& yaml = proposal.yaml;
  CAPTURE(yaml);
  CHECK(Has(yaml, "  train: {format: csv, path: adult.data, label: 2, header: false}\n"));
  CHECK(Has(yaml, "  test: {format: csv, path: adult.test, label: 2, header: false}\n"));
  CHECK(Has(yaml, "  comment: \"|\" "));
  CHECK(Has(yaml,
            "  rename_labels: [\"<=50K. -> <=50K\", \">50K. -> >50K\"]\n  classes: [\"<=50K\", \">50K\"]\n"));
  CHECK(Has(yaml, "  missing: mean\n"));
  CHECK(Has(yaml, "eval: {on: test, every_steps: "));
  CHECK_FALSE(Has(yaml, "validation"));
}

TEST_CASE("proposal: the label of a test table without a header is given by its number") {
  const TableProfile table = Customers("y", [](int i) { return i % 2; });
  std::string rows;
  for (int i = 0; i < 40; ++i) rows += fmt::format("C{},2024-01-01,{},pro,{}\n", i, i, i % 2);
  const TestTable test{ProfileTable(WritePlain("bare.csv", rows)), "bare.csv"};
  const std::string yaml = ProposeConfig(table, ChooseLabel(table, "y"), "t.csv", &test).yaml;
  CAPTURE(yaml);
  CHECK(Has(yaml, "  train: {format: csv, path: t.csv, label: \"y\"}\n"));
  CHECK(Has(yaml, "  test: {format: csv, path: bare.csv, label: 4, header: false}\n"));
}

TEST_CASE("proposal: classes of a test table are those of the table, but for few rows") {
  const auto table = [](const char* no, const char* yes, const char* once) {
    std::string text = "x,y\n";
    for (int i = 0; i < 60; ++i)
      text += fmt::format("{}.5,{}\n", i * 7 % 60, i == 5 ? once : i % 5 < 3 ? no : yes);
    return ProfileTable(WritePlain("t.csv", text), "y");
  };
  const TableProfile train = table("0", "1", "1");
  const auto propose = [&](const TableProfile& profile) {
    const TestTable test{profile, "t2.csv"};
    return Joined(ProposeConfig(train, ChooseLabel(train, "y"), "t.csv", &test).notes);
  };
  const auto error = [&](const TableProfile& test) { return UserErrorOf([&] { propose(test); }); };
  CHECK(Has(error(table("1", "2", "1")), "its label is 2, and in "));
  CHECK(Has(error(table("no", "yes", "no")), "its label is no or yes, and in "));
  CHECK(Has(error(table("", "", "")), "no row has a label"));
  CHECK_FALSE(Has(propose(table("-1", "1", "1")), "a class that"));
  CHECK(Has(propose(table("0", "1", "2")), "1 row of "));
}

TEST_CASE("proposal: a test table that needs other keys is refused with the difference") {
  const auto label = [](int i) { return i % 2; };
  const TableProfile table = Customers("y", label);
  const auto error = [&](const std::string& content) {
    const TestTable test{ProfileTable(WritePlain("other.csv", content)), "other.csv"};
    return UserErrorOf([&] { ProposeConfig(table, ChooseLabel(table, "y"), "t", &test); });
  };
  std::string tabs = "customer_id\tday\tage\tplan\ty\n", less = "age,plan\n",
              title = "A title\nage,plan,day,y\n";
  for (int i = 0; i < 40; ++i) {
    tabs += fmt::format("C{}\t2024-01-01\t{}\tpro\t1\n", i, i);
    less += fmt::format("{},{}\n", i, i % 2 == 0 ? "pro" : "free");
    title += fmt::format("{},pro,2024-01-01,{}\n", i, i % 2);
  }
  CHECK(Has(error(tabs), "its delimiter, quotes or decimals are other ones than those of"));
  CHECK(Has(error(less), "no column \"y\", which is the label of"));
  CHECK(Has(error(title), "1 line is at its front no rows, and 0 of"));
}

TEST_CASE("proposal: the label is the one that is asked for, named so, or the last that can be one") {
  const auto label = [](int i) { return i * 7 % 5 == 0 ? "yes" : "no"; };
  CHECK(ChooseLabel(Customers("churned", label), "").reason == "its name says so");
  CHECK(ChooseLabel(Customers("left", label), "").reason == "it is the last column");
  CHECK(ChooseLabel(Customers("left", label), "plan").column == 3);
  CHECK(ChooseLabel(Customers("left", label), "2").column == 2);
  const LabelChoice other = ChooseLabel(Customers("day2", [](int) { return "2024-01-01"; }), "");
  CHECK(other.column == 3);
  CHECK(other.reason == "it is the last that can be one");
  CHECK(Has(UserErrorOf([&] { ChooseLabel(Customers("left", label), "plam"); }), "Did you mean plan?"));
  CHECK(Has(UserErrorOf([&] { YamlOf(Customers("left", label), "day"); }),
            "day cannot be the label: it has dates; a label has classes or numbers. Choose another: --label "
            "NAME."));
}

TEST_CASE("proposal: why the last column is no label is told") {
  std::string text = "a,b,z\n";
  for (int i = 0; i < 60; ++i)
    text += fmt::format("{}.5,{}.25,{}\n", i * 7 % 60, i % 7, i % 8 == 0 ? "" : i % 3 == 0 ? "1" : "0");
  CHECK(ChooseLabel(ProfileOf(text), "").reason ==
        "it is the last that can be one, and z cannot be the label: it has many gaps");
}

TEST_CASE("proposal: a table without names, with another delimiter and with bad rows has the keys for it") {
  std::string text;
  for (int i = 0; i < 40; ++i) text += fmt::format("{}.5;{};{}\n", i % 9, i % 4 == 0 ? "a" : "b", i % 3 % 2);
  const std::string yaml = YamlOf(ProfileOf(text + "1;2\n"));
  CAPTURE(yaml);
  CHECK(Has(yaml, "label: 2, header: false}"));
  CHECK(Has(yaml, "  delimiter: semicolon\n"));
  CHECK(Has(yaml, "  categories: [1]\n"));
  CHECK(Has(yaml, "  bad_rows: skip"));
}

TEST_CASE("proposal: a table in another encoding is refused with the command that converts it") {
  std::string names =
                  "Gr\xf6\xdf"
                  "e,y\n",
              values = "town,y\n";
  for (int i = 0; i < 40; ++i) {
    names += fmt::format("{},{}\n", i % 7, i % 2);
    values += fmt::format("{},{}\n", i % 3 == 0 ? "K\xf6ln" : "Rom", i % 2);
  }
  CHECK(Has(UserErrorOf([&] { YamlOf(ProfileOf(names)); }), "its texts are not UTF-8. Convert it: iconv"));
  CHECK(Has(UserErrorOf([&] { YamlOf(ProfileOf(values)); }), "its texts are not UTF-8. Convert it: iconv"));
}

TEST_CASE(
    "proposal: one text that is not UTF-8 is refused at its place where a run would take it for a name") {
  const auto table = [](const char* category, const char* label, const char* number) {
    std::string text = "town,x,y\n";
    for (int i = 0; i < 60; ++i) {
      text += fmt::format("{},{},{}\n",
                          i == 21      ? category
                          : i % 3 == 0 ? "Bonn"
                                       : "Rom",
                          i == 22 ? number : fmt::format("{}.5", i * 7 % 40),
                          i == 23      ? label
                          : i % 2 == 0 ? "ja"
                                       : "nein");
    }
    return ProfileOf(text);
  };
  const auto error = [](const TableProfile& profile) { return UserErrorOf([&] { YamlOf(profile, "y"); }); };
  CHECK(Has(error(table("K\xf6ln", "ja", "1")), "table.csv:23:1: its texts are not UTF-8"));
  CHECK(Has(error(table("Rom", "n\xebin", "1")), "table.csv:25:"));
  CHECK(Has(YamlOf(table("Rom", "ja", "\xeb"), "y"), "bad_rows: skip"));
  const auto numbers = [&](const char* number) {
    std::string text = "t,y\n";
    for (int i = 0; i < 60; ++i)
      text += (i % 7 == 0 ? "\x96" : fmt::format(fmt::runtime(number), i)) + fmt::format(",{}\n", i % 2);
    return error(ProfileOf(text));
  };
  CHECK(Has(numbers("{}.5"), "table.csv: its texts are not UTF-8"));
  CHECK(Has(numbers("{}.5 \xb0"), "table.csv: its texts are not UTF-8"));
  std::string ignored = "note,x,y\n";
  for (int i = 0; i < 40; ++i) ignored += fmt::format("K\xf6ln {},{}.5,{}\n", i, i * 7 % 40, i % 2);
  CHECK(Has(YamlOf(ProfileOf(ignored), "y"), "    - note    # an id: all values differ\n"));
  CHECK(FaultsText(ProfileOf(ignored)).empty());
  const TestTable test{table("K\xf6ln", "ja", "1"), "t2.csv"};
  const TableProfile good = table("Rom", "ja", "1");
  CHECK(Has(UserErrorOf([&] { ProposeConfig(good, ChooseLabel(good, "y"), "t.csv", &test); }), ":23:1: "));
}

TEST_CASE(
    "proposal: without a header the first row tells the number of columns, and is refused with a fault") {
  const auto error = [](const std::string& first, const char* row = "{}.5,{}.25,{}\n") {
    std::string text = first;
    for (int i = 0; i < 40; ++i) text += fmt::format(fmt::runtime(row), i, i * 7 % 11, i % 2);
    const TableProfile table = ProfileOf(text);
    return UserErrorOf([&] { ChooseLabel(table, ""); });
  };
  CHECK(Has(error("0.5,0\n"),
            "table.csv:1:1: the first row tells the number of columns: it has 2 fields, and most rows have 3 "
            "fields."));
  CHECK(Has(error("0.5,1,1,0\n"), "it has 4 fields"));
  CHECK(Has(error("0.5,1,1,\n"), "it has 4 fields"));
  CHECK(Has(error("0.5,\"1\"2,0\n", "{}.5,\"{}\",{}\n"), "it has a fault of quotes"));
  CHECK(error("0.5,1,1\n0.5,0\n").empty());
  CHECK(error("a,b,y\n0.5,0\n").empty());
}

TEST_CASE("proposal: a quantity out of the range that a run learns is refused with a factor") {
  const auto error = [](double mean, double deviation, const char* kind = "{}.5,{:g}\n") {
    std::string text = "x,y\n";
    for (int i = 0; i < 40; ++i)
      text += fmt::format(fmt::runtime(kind), i * 7 % 40, mean + deviation * (i * 7 % 40 - 20) / 10);
    const TableProfile table = ProfileOf(text);
    return UserErrorOf([&] { YamlOf(table, "y"); });
  };
  CHECK(
      Has(error(47e-12, 1e-12), "too small to learn from in float32. Multiply the column by 1e+12, or so."));
  CHECK(Has(error(3e30, 1e30), "too large to learn from in float32. Multiply the column by 1e-30, or so."));
  CHECK(Has(error(0, 1e20), "too large"));
  CHECK(error(0, 1e-5).empty());
  CHECK(error(3e14, 1e14).empty());
}

TEST_CASE("proposal: a table without features says why each column is none") {
  std::string text = "note,one,y\n";
  for (int i = 0; i < 40; ++i) text += fmt::format("text {},1,{}\n", i, i % 2);
  CHECK(Has(UserErrorOf([&] { YamlOf(ProfileOf(text)); }),
            "no column beside y can be a feature; left out: note (an id: all values differ), one (the same "
            "in every row)."));
}

TEST_CASE("proposal: rows without a label are told") {
  const TableProfile sorted = Customers("y", [](int i) { return i == 39 ? "" : i < 20 ? "a" : "b"; });
  const Proposal proposal = ProposeConfig(sorted, ChooseLabel(sorted, ""), "t");
  CHECK(Has(Joined(proposal.notes), "Nothing can be learnt from 1 row without y"));
  CHECK(Has(proposal.yaml, "bad_rows: skip"));
}

TEST_CASE("proposal: lines that are no rows, and labels in two spellings, have the keys for it") {
  std::string text = "|1x3 Cross validator\n";
  for (int i = 0; i < 40; ++i)
    text += fmt::format("{}, {}, {}\n", 20 + i % 9, i % 4 == 0 ? "a" : "?",
                        i % 3 == 0   ? ">50K"
                        : i % 7 == 0 ? "<=50K."
                                     : "<=50K");
  const std::string yaml = YamlOf(ProfileOf(text));
  CAPTURE(yaml);
  CHECK(Has(yaml, "model: {kind: logistic}"));
  CHECK(Has(yaml, "label: 2, header: false}"));
  CHECK(Has(yaml, "  comment: \"|\" "));
  CHECK(Has(yaml, "  rename_labels: [\"<=50K. -> <=50K\"]\n"));
  CHECK_FALSE(Has(yaml, "bad_rows"));
}

TEST_CASE("proposal: shares of classes count all spellings of a class") {
  const auto notes = [](const std::vector<const char*>& labels) {
    const TableProfile table =
        Customers("y", [&](int i) { return labels[static_cast<size_t>(i) % labels.size()]; });
    return NotesOf(table, "y");
  };
  CHECK(Has(notes({"Yes", "yes", "no", "Yes", "yes", "no", "Yes", "yes", "no", "no"}),
            "y has two classes; the rarest, no, is 40.0 % of the rows; always \"Yes\" is right in 60.0 %"));
  CHECK(Has(notes({"b", "a", "B", "b", "a", "B.", "c", "a", "c", "c"}),
            "y has 3 classes; the rarest, c, is 30.0 % of the rows; always \"b\" is right in 40.0 %"));
  CHECK(Has(notes({"a", "a", "a", "b", "b", "b", "c", "c", "C", "C"}),
            "y has 3 classes; the rarest, b, is 30.0 % of the rows; always \"C\" is right in 40.0 %"));
}

TEST_CASE("proposal: what is read in a way of its own has its keys, and is told first") {
  std::string text = "day,either,price,dose,size,flow,when,count,y\n";
  for (int i = 0; i < 60; ++i) {
    text += fmt::format(
        "{:02}/{:02}/2024,{:02}/{:02}/2024,\"${},{:03}.50\",{},{} cm,{},{},{},{}\n", 1 + i % 12, 1 + i % 28,
        1 + i % 12, 1 + i % 11, 1 + i % 9, i, i % 7 == 2 ? "." : std::to_string(i), 50 + i % 20,
        i % 3 == 0 ? fmt::format("t{}", i) : std::to_string(100 + i), 1600000000 + i * 7919 % 1000000,
        i % 4 == 0 ? "417" : fmt::format("{}.{}", 1 + i, 417), i % 2);
  }
  const TableProfile table = ProfileOf(text);
  const std::string yaml = YamlOf(table, "y");
  CAPTURE(yaml);
  CHECK(Has(yaml, "  dates: [\"day=MM/DD/YYYY\", \"when=seconds\"]\n"));
  CHECK(Has(yaml, "  number_format: [\"price=$1,234.50\", \"size=1,234.50 cm\"]\n"));
  CHECK(Has(yaml, "  missing_values: [\"dose=.\"]\n"));
  CHECK(Has(yaml, "  missing: indicator\n"));
  CHECK(Has(yaml, "    - either    # dates whose days and months cannot be told apart\n"));
  const std::string told = ReadingsText(table);
  CAPTURE(told);
  CHECK(Has(told, "  day: 01/01/2024 and the like are dates, written as MM/DD/YYYY (data.dates)\n"));
  CHECK(Has(told, "as NAME=MM/DD/YYYY or NAME=DD/MM/YYYY."));
  CHECK(
      Has(told, "  price: $1,000.50 and the like are numbers, written as $1,234.50 (data.number_format)\n"));
  CHECK(Has(told, "  dose: . in 9 rows is taken for a missing value (data.missing_values)\n"));
  CHECK(Has(told,
            "  when: 1600000000 and the like are dates, written as seconds (data.dates). If they are other "
            "numbers, take the column out there.\n"));
  CHECK(Has(told,
            "  count: 2.417 and the like are read as they stand, and may be written as 1.234,50. If so, name "
            "the column in data.number_format, as NAME=1.234,50.\n"));
  CHECK(Has(told, "  flow: 66 % of its values are numbers and others are texts, and it is left out."));
  CHECK(ReadingsText(Customers("y", [](int i) { return i % 2; })).empty());
}

TEST_CASE("proposal: a text that comes once among labels of numbers is a fault and no class") {
  for (const int at : {0, 31}) {
    CAPTURE(at);
    std::string text = "a,y\n";
    for (int i = 0; i < 60; ++i)
      text += fmt::format("{},{}\n", i * 7 % 10, i == at ? "O" : i % 3 == 0 ? "1" : "0");
    const TableProfile table = ProfileOf(text);
    const std::string yaml = YamlOf(table);
    CAPTURE(yaml);
    CHECK(Has(yaml, "model: {kind: logistic}"));
    CHECK(Has(yaml, "  classes: [\"0\", \"1\"]\n"));
    CHECK(Has(yaml, "  bad_rows: skip"));
    CHECK(Has(FaultsText(table), fmt::format(":{}:3: y = O; must be a number (1 value)", at + 2)));
  }
}

TEST_CASE("proposal: numbers without the unit of the others are told") {
  std::string text = "share,n,y\n";
  for (int i = 0; i < 60; ++i) text += fmt::format("{}%,{}{},{}\n", i, 100 + i, i % 3 == 1 ? "" : "K", i % 2);
  CHECK(Has(
      ReadingsText(ProfileOf(text)),
      "  share: 0% and the like are numbers, written as 1,234.50% (data.number_format)\n"
      "  n: 100K and the like are numbers, written as 1,234.50 K (data.number_format); without the unit: 20 "
      "values, such as 101 in line 3, read as if it were there. Correct what means something else.\n"));
}

TEST_CASE("proposal: numbers that could be dates are numbers where they are the label, and 0 is one") {
  std::string text = "x,y\n";
  for (int i = 0; i < 200; ++i)
    text += fmt::format("{}.5,{}\n", i % 17, i % 3 == 0 ? 0 : 900000000 + 7654321 * (i % 90));
  const TableProfile table = ProfileOf(text);
  CHECK(table.columns[1].date_form == "seconds");
  CHECK_FALSE(Has(YamlOf(table, "y"), "missing_values"));
  CHECK_FALSE(Has(YamlOf(table, "y"), "bad_rows"));
  CHECK(Has(ReadingsText(table), "y: 0 in "));
  CHECK(ReadingsText(table, 1).empty());
}

TEST_CASE("proposal: a title in front and decimal commas have the keys for it, and quotes with blanks") {
  std::string text = "Sales of the year\nin Euro\nsize;price;kind\n";
  for (int i = 0; i < 40; ++i)
    text += fmt::format("{};{},5;\" {}\"\n", i % 9, i * 7 % 11, i % 4 == 0 ? "a" : "b");
  const TableProfile table = ProfileOf(text);
  CHECK(table.columns[1].name == "price");
  CHECK(table.columns[1].IsNumber());
  const std::string yaml = YamlOf(table, "price");
  CAPTURE(yaml);
  CHECK(Has(yaml, "model: {kind: linear, init: {output_bias: 5.55}}"));
  CHECK(Has(yaml, "  skip_lines: 2 "));
  CHECK(Has(yaml, "  trim: true "));
  CHECK(Has(yaml, "  decimal: comma\n"));
  CHECK(Has(yaml, "  validation_by: seed\n"));
}

TEST_CASE("proposal: names that YAML could take for something else are quoted") {
  std::string text = "\"12\",yes,\"a: b\",x\n";
  for (int i = 0; i < 40; ++i)
    text += fmt::format("t{},{},{},{}\n", i % 4, i % 3 % 2 == 0 ? "p" : "q", i % 2 == 0 ? "r" : "s", i % 5);
  const TableProfile table = ProfileOf(text);
  const std::string yaml = YamlOf(table);
  CHECK(Has(yaml, "categories: [\"12\", \"yes\", \"a: b\"]"));
}

TEST_CASE("proposal: a column without a name of its own is called by its number") {
  std::string text = ",a,a,b\n";
  for (int i = 0; i < 40; ++i) text += fmt::format("{},x{},{},{}\n", i, i % 2, i % 7, i % 3 % 2);
  const std::string yaml = YamlOf(ProfileOf(text));
  CHECK(Has(yaml, "    - 0    # an index: it counts the rows\n"));
  CHECK(Has(yaml, "categories: [1]"));
  std::string number = "1,a,a,y\n";
  for (int i = 0; i < 40; ++i) number += fmt::format("{}.5,7,{}.25,{}\n", i * 7 % 40, i % 7, i % 3 % 2);
  CHECK(Has(UserErrorOf([&] { YamlOf(ProfileOf(number)); }),
            "more than one column is named \"a\", and 1, the number of one, is the name of another."));
}

TEST_CASE(
    "proposal: the notes say what is left out, dates, spellings, the rarest class and a skewed target") {
  std::string text = "id,day,plan,one,price,y\n";
  for (int i = 0; i < 100; ++i) {
    text += fmt::format("{},2024-02-{:02},{},1,{},{}\n", i + 1, 1 + i % 28,
                        i % 3 == 0   ? "Pro"
                        : i % 3 == 1 ? "pro"
                                     : "free",
                        i % 25 == 0 ? 90000 + i : 5 + i % 7, i % 25 < 2 ? "yes" : "no");
  }
  const TableProfile table = ProfileOf(text);
  const std::string of_class = NotesOf(table, "y");
  CAPTURE(of_class);
  CHECK(
      Has(of_class,
          "model: logistic; y has two classes; the rarest, yes, is 8.0 % of the rows; always \"no\" is right "
          "in 92.0 %"));
  CHECK(Has(of_class, "left out: id (an index: it counts the rows), one (the same in every row)"));
  CHECK(Has(of_class, "dates, which become days since 1970: day"));
  CHECK(Has(of_class, "plan has Pro/pro"));
  CHECK(Has(NotesOf(table, "price"), "and skewed (skewness 4."));
  CHECK_FALSE(Has(NotesOf(Customers("y", [](int i) { return i % 20; }), "y"), "skewed"));
}

TEST_CASE("proposal: spellings that differ by case or blanks are all told, and blanks at ends do not count") {
  std::string text = "\" town \",x,y\n";
  const char* const towns[] = {"PARIS", "Paris", "\"rome \"", "rome", "New York", "NewYork"};
  for (int i = 0; i < 60; ++i) text += fmt::format("{},{},{}\n", towns[i % 6], i * 7 % 11, i * 3 % 8);
  const TableProfile table = ProfileOf(text);
  CHECK(table.columns[0].distinct == 5);
  const std::string notes = NotesOf(table, "y");
  CAPTURE(notes);
  CHECK(Has(notes, "categories of their own: town has New York/NewYork, PARIS/Paris\n"));
  CHECK(Has(notes, "blanks at the ends of texts do not count: town"));
  CHECK(Has(YamlOf(table, "y"), "  trim: true "));
  CHECK(Has(YamlOf(table, "y"), "  categories: [town]\n"));
  CHECK(Has(YamlOf(table, "0"), "  rename_labels: [\"NewYork -> New York\", \"Paris -> PARIS\"]\n"));
}

TEST_CASE("proposal: blanks behind texts without quotes are told too, and need no key") {
  std::string text = "town,x,y\n";
  for (int i = 0; i < 60; ++i)
    text += fmt::format("{},{},{}\n", i % 3 == 0 ? "rome " : "rome", i * 7 % 11, i % 2);
  const TableProfile table = ProfileOf(text + "bari,1,0\n");
  CHECK(Has(NotesOf(table, "y"), "blanks at the ends of texts do not count: town"));
  CHECK_FALSE(Has(YamlOf(table, "y"), "trim"));
  CHECK_FALSE(Has(NotesOf(ProfileOf("town, x, y\na, 1, 0\nb, 2, 1\na, 3, 1\n"), "y"), "blanks"));
}

TEST_CASE("proposal: a table without rows is refused as such, with and without --label, and as --test") {
  const TableProfile header = ProfileOf("a,b,y\n"), table = Customers("y", [](int i) { return i % 2; });
  for (const char* label : {"", "y"}) {
    CHECK(Has(UserErrorOf([&] { ChooseLabel(header, label); }), "table.csv: it has no rows, only a header."));
  }
  const TestTable test{ProfileTable(WritePlain("other.csv", "customer_id,day,age,plan,y\n")), "other.csv"};
  CHECK(Has(UserErrorOf([&] { ProposeConfig(table, ChooseLabel(table, "y"), "t", &test); }),
            "other.csv: it has no rows, only a header."));
}

TEST_CASE("proposal: a table of which most rows cannot be read is refused with the faults") {
  std::string text = "a,b,y\n";
  for (int i = 0; i < 40; ++i) text += fmt::format("{},{},{}\n", i % 7, i * 7 % 5, i % 2);
  const auto with = [&](int rows, const char* row) {
    std::string all = text;
    for (int i = 0; i < rows; ++i) all += row;
    return ProfileOf(all);
  };
  CHECK(Has(YamlOf(with(39, "1,2\n"), "y"), "bad_rows: skip"));
  const std::string error = UserErrorOf([&] { ChooseLabel(with(41, "1,2,3,4,5\n"), "y"); });
  CHECK(Has(error, "41 of 81 rows cannot be read:"));
  CHECK(Has(error, "table.csv:"));
}

TEST_CASE("proposal: a table says how it is written, where a run would not find it") {
  const auto yaml = [](const std::string& header, const std::string& line) {
    std::string text = header + "\n";
    for (int i = 0; i < 40; ++i) text += fmt::format("{}{}{}\n", i * 7 % 5, line, i % 2);
    return YamlOf(ProfileOf(text), "y");
  };
  CHECK(Has(yaml("a t y", "  u "), "  delimiter: blanks\n"));
  CHECK(Has(yaml("a\x01t\x01y", "\x01u\x01"), "  delimiter: control_a\n"));
  CHECK(Has(yaml("a,t,y", ",u\\, v,"), "  quotes: backslash\n"));
  CHECK(Has(yaml("a,t,y", ",'u, v',"), "  quotes: single\n"));
  const std::string plain = yaml("a,t,y", ",u,");
  CHECK_FALSE(Has(plain, "quotes:"));
  CHECK_FALSE(Has(plain, "delimiter:"));
}

TEST_CASE("proposal: a date that is none, as 30 February, is a fault and no day") {
  std::string text = "day,x,y\n";
  for (int i = 0; i < 40; ++i)
    text += fmt::format("2024-02-{:02},{},{}\n", i == 7 ? 30 : 1 + i % 28, i % 9, i % 2);
  const TableProfile table = ProfileOf(text);
  CHECK(table.columns[0].not_a_date.count == 1);
  CHECK(Has(YamlOf(table), "  bad_rows: skip "));
}

TEST_CASE("proposal: sparse rows have their format, labels, and indexes from 0 where there are such") {
  std::string libsvm, vw;
  for (int i = 0; i < 40; ++i) {
    libsvm += fmt::format("{} {}:1 {}:0.5\n", i % 3 == 0 ? "+1" : "-1", i % 5, 7 + i % 3);
    vw += fmt::format("{} |f a{} b:{}\n", 1 + i % 3, i % 5, i % 7);
  }
  const SparseProfile rows = ProfileSparseRows(WritePlain("rows.svm", libsvm));
  const Proposal of_libsvm = ProposeSparseConfig(rows, "rows.svm");
  CAPTURE(of_libsvm.yaml);
  CHECK(Has(of_libsvm.yaml, "model: {kind: logistic, inputs: 10}"));
  CHECK(Has(of_libsvm.yaml, "  train: {format: libsvm, path: rows.svm}\n  index_base: 0 "));
  CHECK(Has(of_libsvm.yaml, "eval: {on: validation, every_steps: "));
  CHECK(
      Has(Joined(of_libsvm.notes), "the rarest, 1, is 35.0 % of the rows; always \"-1\" is right in 65.0 %"));
  const Proposal of_vw = ProposeSparseConfig(ProfileSparseRows(WritePlain("rows.vw", vw)), "rows.vw");
  CAPTURE(of_vw.yaml);
  CHECK(Has(of_vw.yaml, "model: {kind: softmax, outputs: 3}"));
  CHECK(Has(of_vw.yaml, "  label_type: names "));
  CHECK(ProfileSparseRows(WritePlain("t.csv", "a,y\n1,2\n3,4\n")).format == DataFormat::kNone);
  CHECK(Has(UserErrorOf([&] { ProfileTable(WritePlain("rows.svm", libsvm)); }), "dtrain init"));
}

TEST_CASE(
    "proposal: sparse rows are read as their comments and weights say, and other jobs are refused by name") {
  const auto propose = [](const std::string& name, const std::string& text) {
    const std::string path = WritePlain(name, text);
    return ProposeSparseConfig(ProfileSparseRows(path), path);
  };
  const auto repeat = [](const std::string& rows) { return rows + rows + rows; };
  const Proposal weighted = propose("w.svm", repeat("1:0.5 1:2 3:1\n0:2 2:1\n1 1:1\n0:1 3:2\n"));
  CHECK(Has(weighted.yaml, "  weight: label "));
  CHECK(Has(weighted.yaml, "kind: logistic, inputs: 3"));
  CHECK_FALSE(Has(weighted.yaml, "bad_rows"));
  const std::string zero = "# Column indices are zero-based\n";
  const Proposal commented = propose("z.svm", zero + repeat("1 1:2 3:1\n0 2:1\n1 5:1\n"));
  CHECK(Has(commented.yaml, "inputs: 6}"));
  CHECK(Has(commented.yaml, "  index_base: 0    # as a comment of the file says\n"));
  CHECK(Has(UserErrorOf([&] { propose("b.svm", "# one-based indexes\n1 0:1\n0 1:1\n1 0:2\n"); }),
            "its comment says"));
  const Proposal some = propose("u.vw", repeat("1 |f a b\n-1 |f c d\n|f a\n1 |f c e\n"));
  CHECK(Has(Joined(some.notes), "left out: 3 rows without a label"));
  CHECK_FALSE(Has(some.yaml, "bad_rows"));
  CHECK(Has(UserErrorOf([&] { propose("c.vw", repeat("1:0.5:0.2 |f a b\n2:1:0.5 |f c d\n")); }),
            "contextual bandits"));
  CHECK(Has(UserErrorOf([&] { propose("m.svm", repeat("0,2 1:1.5\n1 2:3\n0,1 1:1\n")); }), "several labels"));
  CHECK(Has(UserErrorOf([&] { propose("f.svm", repeat("1 0:3:1.5\n0 0:4:1\n")); }), "libffm"));
}

TEST_CASE(
    "proposal: Criteo's logs are known with numbers as floats, upper case and lost tabs, and without labels "
    "refused") {
  const std::string numbers(12, '\t'), hashes(25, '\t');
  const auto row = [&](const std::string& label, const std::string& number, const std::string& hash) {
    return label + number + numbers + "\t" + hash + hashes + "\n";
  };
  std::string good, lost;
  for (int i = 0; i < 20; ++i) {
    good += row(i % 2 ? "1\t" : "0\t", fmt::format("{}.0", i), fmt::format("0BADCAF{:X}", i % 7));
    std::string line = row(i % 2 ? "1\t" : "0\t", "3", "0badcafe");
    if (i % 5 == 0) line.erase(line.size() - 2, 1);
    lost += line;
  }
  const std::string path = WritePlain("good.tsv", good), trimmed = WritePlain("lost.tsv", lost);
  CHECK(Has(ProposeSparseConfig(ProfileSparseRows(path), path).yaml, "format: criteo"));
  const Proposal some = ProposeSparseConfig(ProfileSparseRows(trimmed), trimmed);
  CHECK(Has(some.yaml, "bad_rows: skip"));
  CHECK(Has(Joined(some.notes), "a row has 39 fields; it must have 40"));
  const std::string bare = WritePlain("bare.tsv", row("", "3", "0badcafe") + row("", "", "0badcaff"));
  CHECK(Has(UserErrorOf([&] { ProposeSparseConfig(ProfileSparseRows(bare), bare); }),
            "39 fields; it must have 40"));
  CHECK(Has(UserErrorOf([&] { ProposeSparseConfig(ProfileSparseRows(bare), bare); }),
            "It is a row without a label, as of Criteo's own test file"));
}

// A config for sparse rows, and its notes.
struct SparseInit {
  Proposal Of(const std::string& train, const std::string& test) const {
    const std::string path = WritePlain("train.txt", train), other = WritePlain("test.txt", test);
    return ProposeSparseConfig(ProfileSparseRows(path), path, ProfileSparseRows(other), other);
  }
  std::string Refusal(const std::string& train, const std::string& test) const {
    return UserErrorOf([&] { Of(train, test); });
  }
};

TEST_CASE(
    "proposal: sparse rows to test on have the indexes, weights and labels of the others, or are refused") {
  const SparseInit init;
  const std::string rows = "0 1:0.5 2:1\n1 1:2 2:3\n0 1:1\n1 2:2\n";
  CHECK(Has(init.Refusal(rows, "1:0.5 2:1\n1:2 2:3\n2:2\n"), "rows without a label"));
  CHECK(Has(init.Refusal(rows, "# Column indices are zero-based\n1 0:1 1:2\n0 1:1\n"), "indexes begin at 0"));
  CHECK(Has(init.Refusal(rows, "1 0:1 1:2\n0 1:1\n"), "indexes begin at 0, and those of"));
  const std::string zero = "# zero-based indexes\n";
  CHECK(Has(init.Refusal(zero + rows, "# one-based indexes\n" + rows), "indexes begin at 1"));
  const Proposal both = init.Of(zero + rows, "0 0:1 4:2\n1 1:1\n");
  CHECK(Has(both.yaml, "inputs: 5}"));
  CHECK(Has(both.yaml, "  index_base: 0 "));
  CHECK(Has(Joined(init.Of(zero + rows, rows).notes), "all are one off"));
  CHECK(Has(init.Refusal(rows, "yes 1:1 2:2\nno 1:3 2:1\n"), "its label is no or yes, and in"));
  CHECK(Has(init.Refusal("1 |f x:1\n-1 |f x:2\n1 |f x:2\n", "1 |f x:1\n0 |f x:2\n0 |f x:3\n"),
            "its label is 0"));
  CHECK(Has(init.Refusal("1 |f x:1\n-1 |f x:2\n", "|f x:1\n|f x:2\n"), "no row has a label"));
  const Proposal some = init.Of(rows, rows + "2 1:1\n");
  CHECK(Has(some.yaml, "bad_rows: skip"));
  CHECK(Has(Joined(some.notes), "1 row of"));
  CHECK_FALSE(Has(init.Of(rows, "-1 1:1\n1 2:1\n").yaml, "bad_rows"));
  CHECK(Has(init.Refusal("1.5 1:1\n2.5 2:1\n4 3:1\n7 1:2\n", "a 1:1 2:1\nb 1:1 2:2\n"),
            "a quantity, 1.5 to 7"));
  CHECK(Has(UserErrorOf([&] { init.Of("1:0.5 2:1\n1:2 2:2\n1:1 2:7\n", rows); }), "rows without a label"));
  CHECK(Has(UserErrorOf([&] { init.Of("1:0.5 3:1\n2:1 3:2\n4:1 7:2\n1:1 2:1\n", rows); }),
            "rows without a label"));
}

TEST_CASE("proposal: a quantity of sparse rows begins at its mean, and few features are seen more often") {
  std::string few, many, small;
  for (int i = 0; i < 60; ++i) {
    small += fmt::format("{}e-4 1:{}\n", i % 17 - 8, i % 5);
    few += fmt::format("{} 1:{} 3:{}\n", 50 + i % 17 - 8, i % 5, i % 7);
    many += fmt::format("{} {}:1 {}:2\n", 50 + i % 17 - 8, 1 + i, 100 + i);
  }
  const std::string path = WritePlain("few.svm", few), other = WritePlain("many.svm", many),
                    third = WritePlain("small.svm", small);
  const Proposal of_few = ProposeSparseConfig(ProfileSparseRows(path), path);
  CHECK(Has(of_few.yaml, "{kind: linear, inputs: 3, init: {output_bias: 49.4}}"));
  CHECK(Has(of_few.yaml, "  epochs: 400\n"));
  CHECK(Has(ProposeSparseConfig(ProfileSparseRows(other), other).yaml, "  epochs: 5\n"));
  CHECK(Has(of_few.yaml, "initial_accumulator: 1}"));
  CHECK(Has(ProposeSparseConfig(ProfileSparseRows(third), third).yaml, "e-07}\n"));
}

// TableDrawer: tables with all that columns and labels may be.
class TableDrawer {
 public:
  explicit TableDrawer(uint64_t seed) : random_(seed) {}

  std::string Table() {
    const int64_t rows = 1 + Below(60), columns = 1 + Below(5);
    std::vector<int64_t> kinds;
    for (int64_t i = 0; i < columns; ++i) kinds.push_back(Below(9));
    const int64_t label = Below(8), gaps = Below(3);
    std::string text;
    for (int64_t i = 0; i < columns; ++i) text += fmt::format("c{},", i);
    text += "target\n";
    for (int64_t row = 0; row < rows; ++row) {
      for (const int64_t kind : kinds) text += (gaps == 0 && Below(9) == 0 ? "" : Field(kind, row)) + ",";
      text += Below(30) == 0 && gaps < 2 ? "\n" : Label(label, row) + "\n";
      if (Below(40) == 0) text += "1,2\n";
    }
    return text;
  }

 private:
  int64_t Below(int64_t end) {
    return static_cast<int64_t>(random_.Below(count_++, static_cast<uint64_t>(end)));
  }

  std::string Field(int64_t kind, int64_t row) {
    const int64_t value = Below(1000);
    switch (kind) {
      case 0:
        return fmt::format("{}", row);
      case 1:
        return fmt::format("{}", static_cast<double>(value) / 7);
      case 2:
        return value % 20 == 0 ? "1e39" : fmt::format("{}", value);
      case 3:
        return value % 3 == 0 ? "Red" : value % 3 == 1 ? "red" : "\"a, b\"";
      case 4:
        return fmt::format("text {}", value);
      case 5:
        return fmt::format("20{:02}-{:02}-{:02}", value % 60, 1 + value % 12,
                           1 + value % (value % 9 == 0 ? 31 : 28));
      case 6:
        return "7";
      case 7:
        return value % 15 == 0 ? "abc" : fmt::format("{}", value % 4);
      default:
        return value % 2 == 0 ? "" : "2024-01-01T10:30";
    }
  }

  std::string Label(int64_t kind, int64_t row) {
    const int64_t value = Below(1000);
    switch (kind) {
      case 0:
        return fmt::format("{}", value % 2);
      case 1:
        return value % 2 == 0 ? "-1" : "1";
      case 2:
        return value % 2 == 0 ? "yes" : value % 5 == 0 ? "Yes" : "no";
      case 3:
        return fmt::format("{}", 1 + value % 3);
      case 4:
        return fmt::format("{}", static_cast<double>(value) * 0.37 - 90);
      case 5:
        return value % 3 == 0 ? "red" : value % 3 == 1 ? "green" : "blue";
      case 6:
        return fmt::format("{}", value * value);
      default:
        return value % 10 == 0 ? "x" : fmt::format("{}", row % 3);
    }
  }

  const CounterRandom random_;
  uint64_t count_ = 0;
};

// Returns why a run of two workers would not begin with this config; empty: it would.
std::string RefusedByLocal(const std::string& yaml) {
  return UserErrorOf([&] {
    LoadOptions options;
    options.cluster_optional = true;
    options.default_workers = 2;
    Config config = LoadConfig(WritePlain("drawn.yaml", yaml), {}, options);
    config.cluster = {{"a:1"}, {"a:2", "a:3"}, {}};
    ResolveModelShape(PeekShape(config), &config);
    const LoadedData data = LoadData(config);
    StepRows(config, data.train->rows(), 1, 2);
  });
}

TEST_CASE("proposal: what is written for a table that was drawn can be trained on by two workers") {
  int written = 0;
  for (uint64_t seed = 1; seed <= 400; ++seed) {
    const std::string path = WritePlain("drawn.csv", TableDrawer(seed).Table());
    CAPTURE(seed);
    CAPTURE(ReadBack(path));
    Proposal proposal;
    const std::string refused = UserErrorOf([&] {
      const TableProfile table = ProfileTable(path);
      proposal = ProposeConfig(table, ChooseLabel(table, "target"), path);
    });
    if (!refused.empty()) continue;
    ++written;
    CAPTURE(proposal.yaml);
    CHECK(proposal.notes.size() <= 9);  // init adds the label, a fault, the header's doubts and what it wrote
    CHECK(RefusedByLocal(proposal.yaml) == "");
  }
  CHECK(written > 150);
}

TEST_CASE("proposal: classes that are numbers are the same in any notation, for init and for the reader") {
  const auto yaml = [](const std::vector<std::string>& labels) {
    std::string text = "x,y\n";
    for (size_t i = 0; i < 40; ++i) text += fmt::format("{},{}\n", i * 7 % 11, labels[i % labels.size()]);
    const std::string path = WritePlain("forms.csv", text);
    const TableProfile table = ProfileTable(path);
    const std::string written = ProposeConfig(table, ChooseLabel(table, "y"), path).yaml;
    CAPTURE(written);
    CHECK(RefusedByLocal(written) == "");
    return written;
  };
  for (const std::vector<std::string>& labels : {std::vector<std::string>{"1.000000e+00", "0.000000e+00"},
                                                 {"1e0", "0e0"},
                                                 {"-1.0", "1.0"},
                                                 {"-1.000e+00", "1.000e+00"},
                                                 {"-1", "1", "+1"},
                                                 {"0", "1", "1.0", "+1"}}) {
    const std::string written = yaml(labels);
    CHECK(Has(written, "model: {kind: logistic}"));
    CHECK_FALSE(Has(written, "label_type"));
    CHECK_FALSE(Has(written, "rename_labels"));
    CHECK_FALSE(Has(written, "classes:"));
  }
  CHECK(Has(yaml({"0.0e+00", "1.0e+00", "2.0e+00", "2", "1"}), "model: {kind: softmax, outputs: 3}"));
  CHECK(Has(yaml({"1", "10", "2", "9"}), "  classes: [\"1\", \"2\", \"9\", \"10\"]\n") ==
        false);  // a quantity
  CHECK(Has(yaml({"-1", "0", "1"}),
            "  label_type: names    # numbers, too\n  classes: [\"-1\", \"0\", \"1\"]\n"));
  CHECK(Has(yaml({"10", "9.0"}), "  classes: [\"9.0\", \"10\"]\n"));
  CHECK(Has(yaml({"2", "2", "2", "5", "+2"}), "  rename_labels: [\"+2 -> 2\"]\n  classes: [\"2\", \"5\"]\n"));
}

// What init says of a table with another one to test on, and whether a run takes it.
std::string WithTest(const std::string& train, const std::string& test, std::string* notes = nullptr) {
  const std::string path = WritePlain("train.csv", train), other = WritePlain("test.csv", test);
  const TestTable table{ProfileTable(other), other};
  Proposal proposal;
  const std::string refused = UserErrorOf([&] {
    const TableProfile profile = ProfileTable(path);
    proposal = ProposeConfig(profile, ChooseLabel(profile, ""), path, &table);
  });
  if (!refused.empty()) return refused;
  if (notes != nullptr) *notes = Joined(proposal.notes);
  return RefusedByLocal(proposal.yaml);
}

// Rows of a number, a text and a label, which `row` makes of their number.
template <typename Row>
std::string Table(const std::string& header, Row row) {
  std::string text = header + "\n";
  for (int i = 0; i < 40; ++i) text += row(i) + "\n";
  return text;
}

TEST_CASE("proposal: a test table without a feature, or with other values in it, is refused") {
  const std::string train = Table("flow,plan,y", [](int i) {
    return fmt::format("{},{},{}", i % 7, i % 3 ? "a" : "b", i % 2 ? "no" : "yes");
  });
  const auto of = [&](const std::string& header, const std::string& rest) {
    return WithTest(train,
                    Table(header, [&](int i) { return fmt::format("{},{}", i % 2 ? "no" : "yes", rest); }));
  };
  CHECK(Has(of("y,plan", "a"), "test.csv: no column flow, which "));
  CHECK(Has(of("y,when", "a"), "test.csv: no column flow, plan, which "));
  CHECK(Has(of("y,plan,flow", "a,wide"), "flow has values such as \"wide\", and in "));
  CHECK(Has(of("y,plan,flow", "a,2024-01-01"), "flow has values such as \"2024-01-01\", and in "));
  CHECK(of("y,plan,flow", "7,5") == "");
  CHECK(of("y,plan,other,flow", "c,x,") == "");
}

TEST_CASE(
    "proposal: classes of a test table are those of the table in any spelling, and rows of others are left "
    "out") {
  const auto table = [](const std::vector<std::string>& labels) {
    return Table("flow,y", [&](int i) {
      return fmt::format("{},{}", i * 3 % 11, labels[static_cast<size_t>(i) % labels.size()]);
    });
  };
  std::string notes;
  CHECK(WithTest(table({"1.0", "2.0"}), table({"2", "1"}), &notes) == "");
  CHECK_FALSE(Has(notes, "left out"));
  CHECK(WithTest(table({"1", "2", "10"}), table({"+2", "1e1"})) == "");
  CHECK(WithTest(table({"no", "yes"}), table({"yes", "no", "no", "maybe"}), &notes) == "");
  CHECK(Has(notes, "10 rows of "));
  CHECK(Has(notes, "with a class that "));
  CHECK(Has(notes, "has not, maybe: data.bad_rows: skip leaves them out."));
  CHECK(Has(WithTest(table({"1.5", "2.25", "3.75", "7.5"}), table({"low", "high"})),
            "y has values such as \"low\""));
  CHECK(Has(WithTest(table({"0", "1"}), table({"no", "yes"})), "test.csv: its label is no or yes, and in "));
  CHECK(Has(WithTest(table({"0", "1"}), table({"", "NA"})), "test.csv: no row has a label"));
  CHECK(WithTest(table({"0", "1"}), table({"-1", "1"}), &notes) == "");
  CHECK_FALSE(Has(notes, "with a class that "));
}

TEST_CASE("proposal: a copy of the label is no feature, and a column that stands for it is named") {
  const auto of = [](auto copy) {
    const std::string text = Table("flow,other,y", [&](int i) {
      return fmt::format("{},{},{}", i % 7, copy(i * 7 % 5 < 2), i * 7 % 5 < 2 ? "1.0" : "0.0");
    });
    const TableProfile table = ProfileOf(text);
    const Proposal proposal = ProposeConfig(table, ChooseLabel(table, "y"), "t.csv");
    return Joined(proposal.notes) + proposal.yaml;
  };
  CHECK(Has(of([](bool one) { return one ? "1.0" : "0.0"; }), "    - other    # a copy of the label\n"));
  CHECK(Has(of([](bool one) { return one ? "1" : "-0"; }), "    - other    # a copy of the label\n"));
  const std::string recoded = of([](bool one) { return one ? "yes" : "no"; });
  CHECK(Has(recoded, "gives the label away: other: each of its values stands for one of y."));
  CHECK(Has(recoded, "categories: [other]"));
  int rows = 0;
  CHECK_FALSE(Has(of([&](bool one) { return one == (rows++ != 5) ? "yes" : "no"; }), "gives the label away"));
}

TEST_CASE(
    "proposal: a column that is named as a label is it, though it looks like an id, or the reason is told") {
  const auto chosen = [](const std::string& name, auto value) {
    const TableProfile table = ProfileOf(Table(
        "flow," + name + ",kind", [&](int i) { return fmt::format("{},{},{}", i % 7, value(i), i % 2); }));
    const LabelChoice label = ChooseLabel(table, "");
    return fmt::format("{}: {}", table.columns[label.column].name, label.reason);
  };
  const auto whole = [](int i) { return fmt::format("{}", i * 7 % 41); };
  CHECK(chosen("y", whole) == "y: its name says so");
  CHECK(chosen("Target", [](int i) { return fmt::format("{}", i + 1); }) == "Target: its name says so");
  CHECK(chosen("is_click", [](int i) { return fmt::format("{}", i % 3 == 0 ? 1 : 0); }) ==
        "is_click: its name says so");
  CHECK(chosen("label", [](int i) { return fmt::format("text {}", i); }) ==
        "kind: it is the last column, and label cannot be the label: it has texts that nearly all differ; a "
        "label "
        "has classes or numbers");
  CHECK(chosen("size", whole) == "kind: it is the last column");
}

TEST_CASE("profile text: a line for each column, and for each kind of fault its place, count and rule") {
  std::string text = "age,plan,left\n";
  for (int i = 0; i < 40; ++i)
    text += fmt::format("{},{},{}\n", 20 + i % 9, i % 4 == 0 ? "pro" : "free", i % 3 % 2);
  const TableProfile table = ProfileOf(text + "abc,pro,1\n1,2\n1,2\n,free,0\n");
  const std::string columns = ColumnsText(table);
  CAPTURE(columns);
  CHECK(Has(columns, "42 rows of 3 columns, separated by commas; the first line names the columns\n"));
  CHECK(Has(columns, "  column  type          missing  distinct  values\n"));
  CHECK(Has(columns, "  age     whole number        1         9  20 to 28\n"));
  CHECK(Has(columns, "  plan    category            0         2  free 76 %, pro 24 %\n"));
  const std::string faults = FaultsText(table);
  CAPTURE(faults);
  CHECK(Has(faults, ":42:1: age = abc; must be a number (1 value)\n"));
  CHECK(Has(faults, ":43:1: 2 fields; must be 3 (2 rows)\n"));
}

TEST_CASE("table name: the file's name without its endings") {
  CHECK(TableName("data/Titanic train.csv.gz") == "Titanic_train");
  CHECK(TableName("-") == "table");
  CHECK(TableName("/a/b.c/.csv") == "_csv");
}

}  // namespace
}  // namespace dtrain
