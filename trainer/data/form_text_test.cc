#include "trainer/data/form_text.h"

#include <doctest/doctest.h>

namespace dtrain {
namespace {

TEST_CASE("form text: features by name, of many the first ones") {
  CHECK(FeatureNamesText({"width"}) == "1 feature: width");
  CHECK(FeatureNamesText({"height", "a\nb"}) == "2 features: height and a\\x0ab");
  std::vector<std::string> many;
  for (int i = 0; i < 784; ++i) many.push_back("p" + std::to_string(i));
  const std::string text = FeatureNamesText(many);
  CHECK(text.find("784 features: p0, p1, ") == 0);
  CHECK(text.find("p19 and 764 more") != std::string::npos);
  CHECK(text.find("p20") == std::string::npos);
}

TEST_CASE("form text: classes by number and name") {
  CHECK(ClassNamesText({"elm", "oak", "yew"}) == "3 classes: 0 = elm, 1 = oak and 2 = yew");
  CHECK(ClassNamesText({"elm"}) == "1 class: 0 = elm");
}

}  // namespace
}  // namespace dtrain
