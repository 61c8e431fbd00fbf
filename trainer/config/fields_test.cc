#include "trainer/config/fields.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <set>

#include "trainer/config/config.h"

namespace dtrain {
namespace {

// A value that the field does not have by default.
Value OtherValue(const Field& field) {
  switch (field.type) {
    case FieldType::kBool:
      return !std::get<bool>(ValueOrCommon(field, Config{}));
    case FieldType::kInt:
      return int64_t{7};
    case FieldType::kDouble:
      return field.key == "data.validation" ? 7.0 : 7.5;
    case FieldType::kChoice:
      return field.choices.back();
    case FieldType::kInts:
      return std::vector<int64_t>{300, 100};
    case FieldType::kAddresses:
    case FieldType::kPins:
    case FieldType::kTexts:
    case FieldType::kColumns:
    case FieldType::kInputPaths:
      return std::vector<std::string>{"a:1", "b:2"};
    case FieldType::kHosts:
      return LaunchHosts{{"a", LaunchHost{}}};
    default:
      return std::string("text");
  }
}

TEST_CASE("fields: every key reads back what was set, touches no other key, and null is its default again") {
  for (const Field& field : Fields()) {
    CAPTURE(field.key);
    Config config;
    field.set(OtherValue(field), &config);
    CHECK(field.get(config) == OtherValue(field));
    for (const Field& other : Fields()) {
      CAPTURE(other.key);
      const bool same_member =
          other.key == field.key || field.alias_of == other.key || other.alias_of == field.key;
      if (!same_member) CHECK(other.get(config) == other.get(Config{}));
    }
    field.set(Value(), &config);
    CHECK(field.get(config) == field.get(Config{}));
  }
}

TEST_CASE("fields: every choice reads back") {
  for (const Field& field : Fields()) {
    for (const std::string& choice : field.choices) {
      CAPTURE(field.key);
      Config config;
      field.set(choice, &config);
      CHECK(field.get(config) == Value(choice));
    }
  }
}

TEST_CASE("fields: keys are unique, explained, and refer to keys that exist") {
  std::set<std::string> keys;
  for (const Field& field : Fields()) {
    CAPTURE(field.key);
    CHECK(keys.insert(field.key).second);
    CHECK(field.help.size() > 10);
    CHECK(field.help.back() == '.');
    const bool takes_words = field.type == FieldType::kChoice || field.key == "security.keys" ||
                             field.key == "run.dir" || field.key == "data.threads" ||
                             field.key == "train.optimizer.schedule.decay_steps" ||
                             field.common_key == "train.optimizer.schedule.decay_steps";
    CHECK(takes_words == !field.choices.empty());
    if (IsNull(field.get(Config{})) && !field.required) CHECK(field.unset != "");
    if (!field.only_key.empty()) {
      REQUIRE(FindField(field.only_key) != nullptr);
      const auto& choices = FindField(field.only_key)->choices;
      CHECK_FALSE(field.only_values.empty());
      for (const std::string& value : field.only_values) {
        CHECK(std::count(choices.begin(), choices.end(), value) == 1);
      }
    }
    if (!field.alias_of.empty()) CHECK(FindField(field.alias_of) != nullptr);
  }
}

TEST_CASE("fields: defaults lie within the limits") {
  for (const Field& field : Fields()) {
    CAPTURE(field.key);
    const Value value = ValueOrCommon(field, Config{});
    double number = field.limits.min + 1;
    if (const auto* whole = std::get_if<int64_t>(&value)) number = static_cast<double>(*whole);
    if (const auto* real = std::get_if<double>(&value)) number = *real;
    CHECK(number >= field.limits.min);
    CHECK(number <= field.limits.max);
    CHECK((!field.limits.above || number > field.limits.min));
  }
}

TEST_CASE("fields: the keys of a section are neighbours, so that each section comes once") {
  for (const char* section : {"", "data", "data.train", "train", "train.optimizer", "model"}) {
    const std::vector<std::string> names = NamesIn(section);
    CHECK(std::set<std::string>(names.begin(), names.end()).size() == names.size());
  }
  CHECK(NamesIn("placement") == std::vector<std::string>{"policy", "pin", "log"});
  CHECK(FindField("train") == nullptr);
}

TEST_CASE("fields: a key that belongs to another kind does not apply") {
  Config config;
  config.data.train.format = DataFormat::kSynthetic;
  CHECK(Applies(*FindField("data.train.name"), config));
  CHECK_FALSE(Applies(*FindField("data.train.images"), config));
  CHECK_FALSE(Applies(*FindField("data.test.name"), config));
  CHECK(Applies(*FindField("train.steps"), config));
}

TEST_CASE("value text: is YAML") {
  CHECK(ValueText(*FindField("train.steps"), Value()) == "null");
  CHECK(ValueText(*FindField("train.steps"), int64_t{5}) == "5");
  CHECK(ValueText(*FindField("data.shuffle"), true) == "true");
  CHECK(ValueText(*FindField("train.optimizer.learning_rate"), 3e-5) == "3e-05");
  CHECK(ValueText(*FindField("train.optimizer.learning_rate"), 0.1) == "0.1");
  CHECK(ValueText(*FindField("model.kind"), std::string("linear")) == "linear");
  CHECK(ValueText(*FindField("log.dir"), std::string("a \"b\"")) == "\"a \\\"b\\\"\"");
  CHECK(ValueText(*FindField("cluster.ps"), std::vector<std::string>{"a:1", "[::1]:2"}) ==
        "[\"a:1\", \"[::1]:2\"]");
}

}  // namespace
}  // namespace dtrain
