#include <doctest/doctest.h>
#include <cmath>

#include "trainer/batch/input_form.h"

namespace dtrain {
namespace {

std::vector<float> Scaled(FeatureScale kind, std::vector<float> fitted, std::vector<float> rows,
                          int64_t cols) {
  const int64_t count = static_cast<int64_t>(fitted.size()) / cols;
  const FittedScale scale = FitScale(kind, gpu::MatrixView<const float>(fitted.data(), count, cols));
  ApplyScale(scale, {rows.data(), static_cast<int64_t>(rows.size()) / cols, cols});
  return rows;
}

TEST_CASE("scale: unit takes each feature's least to 0 and its greatest to 1") {
  const std::vector<float> rows = {1, -10, 3, 30, 2, 10};
  CHECK(Scaled(FeatureScale::kUnit, rows, rows, 2) == std::vector<float>{0, 0, 1, 1, 0.5f, 0.5f});
}

TEST_CASE("scale: standard gives each feature mean 0 and standard deviation 1") {
  const std::vector<float> rows = {2, 4, 4, 4, 5, 5, 7, 9};  // mean 5, deviation 2
  CHECK(Scaled(FeatureScale::kStandard, rows, rows, 1) ==
        std::vector<float>{-1.5f, -0.5f, -0.5f, -0.5f, 0, 0, 1, 2});
}

TEST_CASE("scale: values outside the fitted range go on, not cut off") {
  CHECK(Scaled(FeatureScale::kUnit, {0, 10}, {-10, 25}, 1) == std::vector<float>{-1, 2.5f});
}

TEST_CASE("scale: a constant feature becomes 0, also where other rows differ") {
  for (const FeatureScale kind : {FeatureScale::kUnit, FeatureScale::kStandard}) {
    CHECK(Scaled(kind, {0.1f, 0.1f, 0.1f}, {0.1f, 7}, 1) == std::vector<float>{0, 0});
    CHECK(Scaled(kind, {3}, {3, 4}, 1) == std::vector<float>{0, 0});
  }
}

TEST_CASE("scale: a small spread beside a large mean keeps its digits") {
  const std::vector<float> rows = {1e6f, 1e6f + 1, 1e6f + 2, 1e6f + 3};
  const std::vector<float> scaled = Scaled(FeatureScale::kStandard, rows, rows, 1);
  CHECK(scaled[3] == doctest::Approx(1.5 / std::sqrt(1.25)).epsilon(1e-6));
  CHECK(scaled[0] == -scaled[3]);
}

std::string NamesText(const std::vector<std::string>& names, int64_t label_column = -1) {
  InputForm form;
  form.features = names;
  form.label_column = label_column;
  return FeatureNamesText(form);
}

TEST_CASE("form text: features by name, of many the first ones") {
  CHECK(NamesText({"width"}) == "1 feature: width");
  CHECK(NamesText({"height", "a\nb"}) == "2 features: height and a\\x0ab");
  std::vector<std::string> many;
  for (int i = 0; i < 784; ++i) many.push_back("p" + std::to_string(i));
  const std::string text = NamesText(many);
  CHECK(text.find("784 features: p0, p1, ") == 0);
  CHECK(text.find("p19 and 764 more") != std::string::npos);
  CHECK(text.find("p20") == std::string::npos);
}

TEST_CASE("form text: a column without a name is called by its place in the file's rows") {
  CHECK(NamesText({"", "a"}, 2) == "2 features: column 1 and a");
  CHECK(NamesText({"", "a", ""}, 0) == "3 features: column 2, a and column 4");
  CHECK(FeatureTitle(InputForm(), 3) == "column 4");
}

TEST_CASE("form text: classes by number and name") {
  CHECK(ClassNamesText({"elm", "oak", "yew"}) == "3 classes: 0 = elm, 1 = oak and 2 = yew");
  CHECK(ClassNamesText({"elm"}) == "1 class: 0 = elm");
}

TEST_CASE(
    "form: columns without features are those of a table with hashed ones, and have names, and scales of "
    "numbers") {
  InputForm form;
  form.table_columns = 3;
  form.columns.resize(2);
  form.columns[1].column = 2;
  CHECK_FALSE(FormProblem(form));
  form.columns[1].column = 3;
  CHECK(FormProblem(form));
  form.columns[1] = {1, "plan", true, {"free"}, false, {}, false};
  CHECK(FormProblem(form));
  form.columns[1] = {1, "age", false, {}, false, {}, false};
  CHECK_FALSE(FormProblem(form));
  form.scale = {{1}, {1}};  // of its numbers
  CHECK_FALSE(FormProblem(form));
  form.scale = {{1, 2, 3}, {1, 2, 3}};
  CHECK(FormProblem(form));
  form.scale = {};
  form.table_columns = int64_t{1} << 40;
  CHECK(FormProblem(form));
}

}  // namespace
}  // namespace dtrain
