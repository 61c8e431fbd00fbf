#include "trainer/rows/csv_fit.h"

#include <doctest/doctest.h>

#include "trainer/config/config.h"
#include "trainer/input/data_test_util.h"
#include "trainer/input/sources.h"

namespace dtrain {
namespace {

FittedColumns Fit(const DataConfig& data) {
  SourceInputs inputs(data.train.path, "data.train.path");
  return FitColumns(data, &inputs);
}

std::vector<std::string> CategoriesOf(const Config& config) {
  return Fit(config.data).form.columns[0].categories;
}

// The texts a, b, ... of the rows, of which each has another.
Config Letters(int64_t rows) {
  std::string content = "t,y\n";
  for (int64_t i = 0; i < rows; ++i) content += std::string(1, static_cast<char>('a' + i)) + ",0\n";
  Config config = CsvConfig(ModelKind::kLogistic, content, "y");
  config.data.categories = {"t"};
  return config;
}

TEST_CASE("fit: the header alone is read where columns are numbers, or ignored") {
  const Config plain = CsvConfig(ModelKind::kLinear, "a,b,y\nnot a number\n", "y");
  CHECK_FALSE(HasColumnForms(plain.data));
  CHECK(Fit(plain.data).inputs == 2);
  Config ignoring = plain;
  ignoring.data.ignore = {"a"};
  const FittedColumns fitted = Fit(ignoring.data);
  CHECK(fitted.inputs == 1);
  CHECK(fitted.form.features == std::vector<std::string>{"b"});
  CHECK(fitted.form.label_column == 2);
  CHECK(fitted.form.table_columns == 3);
}

TEST_CASE("fit: a row that is left out gives no class and no category") {
  Config config = CsvConfig(ModelKind::kSoftmax, "t,n,y\nkind,kg,unit\na,1,p\nb,2,q\nc,x,r\n", "y");
  config.data.categories = {"t"};
  config.data.bad_rows = BadRows::kSkip;
  SourceInputs inputs(config.data.train.path, "data.train.path");
  const FittedColumns fitted = FitColumns(config.data, &inputs, true);
  CHECK(fitted.classes == 2);
  CHECK(fitted.form.columns[0].categories == std::vector<std::string>{"a", "b"});
  Config plain = CsvConfig(ModelKind::kSoftmax, "n,y\nkg,unit\n1,p\n2,q\n", "y");
  plain.data.bad_rows = BadRows::kSkip;
  SourceInputs numbers(plain.data.train.path, "data.train.path");
  CHECK(FitColumns(plain.data, &numbers, true).classes == 2);
}

TEST_CASE(
    "fit: what was fitted before is taken for columns of these names and kinds, whatever the rows are") {
  Config config = CsvConfig(ModelKind::kLogistic, "t,n,y\na,1,0\nb,,1\n", "y");
  config.data.categories = {"t"};
  config.data.missing = MissingValues::kIndicator;
  config.data.scale = FeatureScale::kStandard;
  InputForm saved = Fit(config.data).form;
  CHECK(saved.features == std::vector<std::string>{"t=a", "t=b", "n", "n=missing"});
  saved.scale = {{0, 0, 3, 0}, {1, 1, 2, 1}};
  const auto fit = [&](const std::string& content) {
    config.data.train = CsvConfig(ModelKind::kLogistic, content, "y").data.train;
    SourceInputs inputs(config.data.train.path, "data.train.path");
    return FitColumns(config.data, &inputs, false, &saved).form;
  };
  for (const char* const content : {"t,n,y\nc,9,0\n", "y,t,n\n0,a,5\n", "t,n,y\n"}) {
    const InputForm form = fit(content);
    CHECK(form.columns == saved.columns);
    CHECK(form.features == saved.features);
    CHECK(form.scale == saved.scale);
  }
  for (const char* const content : {"u,n,y\nc,9,0\n", "t,n,m,y\nc,9,1,0\n", "t,y\nc,0\n", "n,t,y\n1,a,0\n"}) {
    CAPTURE(content);
    if (std::string(content)[0] == 'u') config.data.categories = {"u"};
    CHECK(fit(content).columns != saved.columns);
    CHECK(fit(content).scale.empty());
    config.data.categories = {"t"};
  }
  config.data.missing = MissingValues::kMean;  // a feature fewer
  CHECK(fit("t,n,y\na,1,0\nb,,1\n").columns != saved.columns);
  config.data.missing = MissingValues::kIndicator;
  config.data.categories.clear();
  CHECK(fit("t,n,y\n1,1,0\n2,,1\n").columns != saved.columns);
}

TEST_CASE("fit: only the first data.fit_rows rows behind those held out are looked at") {
  Config config = Letters(6);
  config.data.validation = 2;
  config.data.fit_rows = 3;
  CHECK(CategoriesOf(config) == std::vector<std::string>{"c", "d", "e"});
}

TEST_CASE("fit: a share that is held out is not looked at") {
  Config config = Letters(6);
  config.data.validation_share = 0.5;
  CHECK(CategoriesOf(config) == std::vector<std::string>{"d", "e", "f"});
  config.data.validation_by = HeldOutBy::kSeed;
  CHECK(CategoriesOf(config).size() == 3);
  config.data.seed = 2;
  const auto drawn = CategoriesOf(config);
  config.data.seed = 4;
  CHECK(CategoriesOf(config) != drawn);
}

TEST_CASE("fit: rows that are left out of the table are no held-out rows") {
  const std::string content = "t,n,y\na,1,0\nb,x,0\nc,1\nd,1,\ne,NA,0\nf,2,1\ng,3,1\n";
  Config config = CsvConfig(ModelKind::kLogistic, content, "y");
  config.data.categories = {"t"};
  config.data.bad_rows = BadRows::kSkip;
  config.data.missing = MissingValues::kDrop;
  config.data.validation = 2;  // a and f
  CHECK(CategoriesOf(config) == std::vector<std::string>{"g"});
  config.data.missing = MissingValues::kMean;  // a and e
  CHECK(CategoriesOf(config) == std::vector<std::string>{"f", "g"});
  CHECK(Fit(config.data).form.columns[1].fill == 2.5);
}

TEST_CASE("fit: classes are told by their value and by the names that they are renamed to") {
  std::string content = "t,y\n";
  for (int i = 0; i < 8; ++i) content += "a," + std::string(i % 2 == 0 ? "no" : "no.") + "\n";
  for (int i = 0; i < 4; ++i) content += "b,yes\n";
  Config config = CsvConfig(ModelKind::kLogistic, content, "y");
  config.data.categories = {"t"};
  config.data.rename_labels = {"no. -> no"};
  config.data.validation_share = 0.75;
  config.data.validation_by = HeldOutBy::kStratified;
  CHECK(CategoriesOf(config) == std::vector<std::string>{"a", "b"});  // two of a and one of b are left
}

TEST_CASE("fit: spellings of a class that is a number hold out the rows that one spelling does") {
  const auto fill = [](const std::vector<const char*>& zeros, bool names) {
    std::string content = "a,y\n";
    for (size_t i = 0; i < 60; ++i)
      content += fmt::format("{},{}\n", i % 9 == 4 ? "" : std::to_string(i * i),
                             i % 3 == 0 ? "1" : zeros[i % zeros.size()]);
    Config config = CsvConfig(ModelKind::kLogistic, content, "y");
    if (names) config.data.label_type = LabelType::kNames;
    config.data.missing = MissingValues::kMean;
    config.data.validation_share = 0.4;
    config.data.validation_by = HeldOutBy::kStratified;
    return Fit(config.data).form.columns[0].fill;
  };
  for (const bool names : {false, true})
    CHECK(fill({"0", "-0", "0.0", "0", "-0.0"}, names) == fill({"0"}, names));
}

TEST_CASE("fit: the classes are counted, by name or up to the largest number") {
  const auto count_in = [](const DataConfig& data) {
    SourceInputs inputs(data.train.path, "data.train.path");
    return FitColumns(data, &inputs, /*counts_classes=*/true).classes;
  };
  const auto count = [&](const std::string& content) {
    return count_in(CsvConfig(ModelKind::kSoftmax, content, "y").data);
  };
  CHECK(count("a,y\n1,oak\n2,elm\n3,oak\n4,yew\n") == 3);
  CHECK(count("a,y\n1,0\n2,1\n3,2.0\n") == 3);
  CHECK(count("a,y\n1,0\n2,4\n3,1.0\n") == 3);  // names, as they do not count from 0 on
  CHECK(count("a,y\n1,one\n2,\n") == 2);
  Config config = CsvConfig(ModelKind::kSoftmax, "a,y\n1,oak\n2,oak.\n3,elm\n4,yew\n", "y");
  config.data.rename_labels = {"oak. -> oak"};
  CHECK(count_in(config.data) == 3);
  CHECK(UserErrorOf([&] { count("a,y\n1,2e7\n"); }).find(":2:3: more than 1000000 classes") !=
        std::string::npos);
}

TEST_CASE("fit: a share is held out in one reading, or in two where a text may not be kept") {
  // \xff is no name, which matters only in a row that is fitted.
  for (const std::string first : {"a", "\xff"}) {
    Config config =
        CsvConfig(ModelKind::kLogistic, "t,n,y\n" + first + ",1,0\nb,2,1\nc,4,0\nd,,1\nc,7,0\nd,8,1\n", "y");
    config.data.categories = {"t"};
    config.data.missing = MissingValues::kIndicator;
    config.data.validation_share = 0.34;
    const InputForm form = Fit(config.data).form;
    CHECK(form.columns[0].categories == std::vector<std::string>{"c", "d"});
    CHECK(form.columns[1].fill == static_cast<float>(19.0 / 3));
    CHECK(form.columns[1].has_indicator);
    config.data.fit_rows = 2;
    CHECK(Fit(config.data).form.columns[1].fill == 4);
  }
}

TEST_CASE("fit: dates are numbers, whose gaps have a mean") {
  Config config = CsvConfig(ModelKind::kLogistic, "d,y\n1970-01-02,0\n,1\n1970-01-04,1\n", "y");
  config.data.dates = {"d"};
  config.data.missing = MissingValues::kMean;
  const InputForm form = Fit(config.data).form;
  CHECK(form.columns[0].is_date);
  CHECK(form.columns[0].fill == 2);
  config.data.categories = {"d"};
  CHECK(UserErrorOf([&] { Fit(config.data); }).find("d is in data.categories and data.dates") !=
        std::string::npos);
}

TEST_CASE("fit: a category or a date that is ignored too, or is the label, is refused with both keys") {
  Config config = CsvConfig(ModelKind::kLogistic, "d,x,y\n1970-01-02,1,0\n1970-01-04,2,1\n", "y");
  const auto error = [&] { return UserErrorOf([&] { Fit(config.data); }); };
  config.data.ignore = {"d"};
  config.data.categories = {"d"};
  CHECK(error().find("d is in data.categories and data.ignore; it is one of them. Take it out.") !=
        std::string::npos);
  config.data.categories = {"y"};
  CHECK(error().find("y is in data.categories and the label;") != std::string::npos);
  config.data.categories = {};
  config.data.dates = {"0"};
  CHECK(error().find("d is in data.dates and data.ignore;") != std::string::npos);
}

}  // namespace
}  // namespace dtrain
