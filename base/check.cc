#include "base/check.h"

#include <fmt/core.h>

#include <cstdio>
#include <cstdlib>

namespace dtrain {
namespace {

std::string TextOf(const CheckValue& value) {
  switch (value.kind) {
    case CheckValue::kBool:
      return value.whole != 0 ? "true" : "false";
    case CheckValue::kSigned:
      return std::to_string(value.whole);
    case CheckValue::kUnsigned:
      return std::to_string(value.positive);
    case CheckValue::kReal:
      return fmt::format("{}", value.real);
    case CheckValue::kText:
      return std::string(value.text);
  }
  return "";
}

}  // namespace

void CheckFailed(const char* file, int line, const char* condition,
                 std::initializer_list<CheckValue> values) {
  std::string text;
  for (const CheckValue& value : values) text += " " + TextOf(value);
  std::fprintf(stderr, "%s:%d: internal error: %s is false;%s\n", file, line, condition, text.c_str());
  std::abort();
}

}  // namespace dtrain
