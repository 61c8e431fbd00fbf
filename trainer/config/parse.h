// One scalar of YAML to the value of one key, strictly: no guessing of types, every refusal with its remedy.
#pragma once

#include <string>

#include "trainer/config/fields.h"
#include "trainer/config/yaml.h"

namespace dtrain {

struct Parsed {
  Value value;
  std::string problem;  // "must be >= 1 (examples per step). Try 64."; empty: the value is good
};

// The value of a key that is no list, or one item of a list. `quoted`: the text stood in quotes. Paths stay
// as written.
Parsed ParseScalar(const Field& field, const std::string& text, bool quoted);
// The same of a node; a list or map is refused.
Parsed ParseScalar(const Field& field, const YamlNode& node);

// "must be a whole number >= 1 (examples per step)", without a remedy.
std::string RuleText(const Field& field);

// " Try 64.", with the leading space; empty where no value can be proposed.
std::string RemedyText(const Field& field);
// A value to propose: the field's example, otherwise its default; empty: there is none.
std::string ExampleOf(const Field& field);

// "must be a whole number >= 1 (examples per step). Try 64."
std::string RuleAndRemedy(const Field& field);

}  // namespace dtrain
