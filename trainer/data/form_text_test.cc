#include "trainer/data/form_text.h"

#include <doctest/doctest.h>

namespace dtrain {
namespace {

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

}  // namespace
}  // namespace dtrain
