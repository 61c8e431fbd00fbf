#include "trainer/config/parse.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <optional>
#include <utility>

#include "trainer/config/config.h"
#include "trainer/config/item_text.h"
#include "trainer/config/user_text.h"

namespace dtrain {
namespace {

constexpr double kMaxExact = 1e15;  // whole numbers up to here are exact in a double

Parsed Refused(std::string problem) { return {Value(), std::move(problem)}; }

// What was probably meant by a number in another notation: 1_000, 1e6, 0x10, 007, 5.0.
std::optional<double> NumberMeant(std::string text) {
  if (text.compare(0, 2, "0x") == 0) {
    char* end = nullptr;
    const auto number = std::strtoull(text.c_str(), &end, 16);
    return *end == '\0' && end != text.c_str() + 2 ? std::optional<double>(number) : std::nullopt;
  }
  text.erase(std::remove_if(text.begin(), text.end(), [](char c) { return c == '_' || c == '\''; }),
             text.end());
  return DecimalNumber(text);
}

bool IsPlainInteger(const std::string& text) {
  const size_t first = !text.empty() && (text[0] == '-' || text[0] == '+') ? 1 : 0;
  if (text.size() == first || text.find_first_not_of("0123456789", first) != std::string::npos) return false;
  return text[first] != '0' || text.size() == first + 1;  // 010 is 8 to some readers and 10 to others
}

// "must be >= 1 (examples per step). Try 64."
std::string OutOfLimits(const Field& field, bool too_small) {
  const Limits& limits = field.limits;
  const std::string unit = field.unit.empty() ? "" : fmt::format(" ({})", field.unit);
  if (!too_small) return fmt::format("must be <= {}{}.{}", limits.max, unit, RemedyText(field));
  std::string remedy = RemedyText(field);
  // Whoever writes 0 may mean that there is none.
  if (!remedy.empty() && !field.unset.empty()) {
    remedy.replace(remedy.size() - 1, 1, fmt::format(", or leave it out: {}.", field.unset));
  }
  return fmt::format("must be {} {}{}.{}", limits.above ? ">" : ">=", limits.min, unit, remedy);
}

// Empty: within the limits.
std::string LimitProblem(const Field& field, double number) {
  const Limits& limits = field.limits;
  if (number < limits.min || (limits.above && number == limits.min)) return OutOfLimits(field, true);
  return number > limits.max ? OutOfLimits(field, false) : "";
}

Parsed ParseInt(const Field& field, const std::string& text, bool quoted) {
  if (quoted || !IsPlainInteger(text)) {
    const auto meant = NumberMeant(text);
    const bool whole = meant && std::abs(*meant) <= kMaxExact && std::floor(*meant) == *meant;
    if (!whole || !LimitProblem(field, *meant).empty()) return Refused(RuleAndRemedy(field));
    return Refused(fmt::format("must be a whole number in plain digits{}. Write {}.",
                               quoted ? ", without quotes" : "", static_cast<int64_t>(*meant)));
  }
  int64_t number = 0;
  const char* begin = text.data() + (text[0] == '+' ? 1 : 0);
  const auto result = std::from_chars(begin, text.data() + text.size(), number);
  if (result.ec == std::errc::result_out_of_range) {
    if (text[0] == '-') return Refused(OutOfLimits(field, true));
    return Refused(fmt::format("must be <= {}.{}", std::numeric_limits<int64_t>::max(), RemedyText(field)));
  }
  return {number, LimitProblem(field, static_cast<double>(number))};
}

Parsed ParseDouble(const Field& field, const std::string& text, bool quoted) {
  const auto number = DecimalNumber(text);
  if (!number || quoted) {
    std::string comma = text;
    std::replace(comma.begin(), comma.end(), ',', '.');
    const auto meant = DecimalNumber(comma);
    if (!meant || !LimitProblem(field, *meant).empty()) return Refused(RuleAndRemedy(field));
    return Refused(fmt::format("must be a number{}. Write {}.", quoted ? ", without quotes" : "", comma));
  }
  return {*number, LimitProblem(field, *number)};
}

Parsed ParseBool(const std::string& text, bool quoted) {
  if (text == "true" && !quoted) return {true, ""};
  if (text == "false" && !quoted) return {false, ""};
  const std::string lower = LowerCase(text);
  const char* meant = nullptr;
  if (lower == "true" || lower == "yes" || lower == "on" || lower == "y" || lower == "1") meant = "true";
  if (lower == "false" || lower == "no" || lower == "off" || lower == "n" || lower == "0") meant = "false";
  return Refused(fmt::format("must be true or false{}.{}", quoted ? ", without quotes" : "",
                             meant ? fmt::format(" Write {}.", meant) : ""));
}

Parsed ParseChoice(const Field& field, const std::string& text) {
  if (std::count(field.choices.begin(), field.choices.end(), text) > 0) return {text, ""};
  const auto known = field.other_names.find(LowerCase(text));
  const std::string closest =
      known != field.other_names.end() ? known->second : ClosestName(text, field.choices);
  if (!closest.empty()) return Refused(fmt::format("{}. Did you mean {}?", RuleText(field), closest));
  return Refused(RuleAndRemedy(field));
}

Parsed ParsePath(const std::string& text, bool quoted) {
  if (text.empty()) return Refused("must not be empty. Write null for none.");
  if (!quoted && (text == "true" || text == "false")) return Refused("must be a path. Write null for none.");
  if (text.compare(0, 2, "~/") == 0) return Refused("'~' is not expanded here. Write the whole path.");
  return {text, ""};
}

// "weights/W1=0": a variable, or the beginning of names and a star, and the index of a ps.
std::string PinProblem(const std::string& text) {
  const size_t equals = text.rfind('=');
  const bool good = equals != std::string::npos && equals > 0 && IsPlainInteger(text.substr(equals + 1)) &&
                    text[equals + 1] != '-' && text.size() - equals < 8;
  return good ? "" : "must be VARIABLE=PS, a variable's name and the index of a ps. Write \"weights/W1=0\".";
}

}  // namespace

Parsed ParseScalar(const Field& field, const YamlNode& node) {
  if (node.kind != YamlNode::Kind::kScalar) return Refused(RuleAndRemedy(field));
  return ParseScalar(field, node.text, node.quoted);
}

Parsed ParseScalar(const Field& field, const std::string& text, bool quoted) {
  switch (field.type) {
    case FieldType::kBool:
      return ParseBool(text, quoted);
    case FieldType::kInt:
    case FieldType::kInts:
      if (!quoted && std::count(field.choices.begin(), field.choices.end(), text) > 0) return {text, ""};
      return ParseInt(field, text, quoted);
    case FieldType::kDouble:
      return ParseDouble(field, text, quoted);
    case FieldType::kChoice:
      return ParseChoice(field, text);
    case FieldType::kAddress:
    case FieldType::kAddresses:
      return {text, AddressProblem(text)};
    case FieldType::kPins:
      return {text, PinProblem(text)};
    case FieldType::kInputPath:
    case FieldType::kOutputPath:
    case FieldType::kInputPaths:
      return ParsePath(text, quoted);
    case FieldType::kHosts:
      return Refused(RuleAndRemedy(field));
    case FieldType::kText:
    case FieldType::kTexts:
      return {text, text.empty() ? RuleAndRemedy(field) : ""};
    case FieldType::kColumn:
    case FieldType::kColumns: {
      const bool name = quoted && ColumnNumber(text);
      const bool unnamed = text.empty() && field.type == FieldType::kColumns;  // the column without a name
      return {name ? fmt::format("\"{}\"", text) : text,
              text.empty() && !unnamed ? RuleAndRemedy(field) : ""};
    }
  }
  return Refused("has an unknown type");
}

std::string RuleText(const Field& field) {
  const std::string unit = field.unit.empty() ? "" : fmt::format(" ({})", field.unit);
  switch (field.type) {
    case FieldType::kBool:
      return "must be true or false";
    case FieldType::kInt:
      return fmt::format("must be a whole number, {}{}", LimitsText(field), unit);
    case FieldType::kDouble:
      return fmt::format("must be a number, {}{}", LimitsText(field), unit);
    case FieldType::kChoice:
      return fmt::format("must be {}", ListText(field.choices, "or"));
    case FieldType::kAddress:
      return "must be host:port";
    case FieldType::kAddresses:
      return "must be a list of host:port";
    case FieldType::kInts:
      return fmt::format("must be a list of whole numbers, {}{}", LimitsText(field), unit);
    case FieldType::kPins:
      return "must be a list of \"VARIABLE=PS\"";
    case FieldType::kTexts:
    case FieldType::kColumns:
      return fmt::format("must be a list{}", unit);
    case FieldType::kHosts:
      return "must be a map of machines";
    case FieldType::kText:
    case FieldType::kColumn:
      return fmt::format("must be text{}", unit);
    case FieldType::kInputPaths:
      return "must be a path or a list of paths";
    default:
      return "must be a path";
  }
}

std::string ExampleOf(const Field& field) {
  if (!field.example.empty() || field.required) return field.example;
  const Value standard = field.get(Defaults());
  return IsNull(standard) ? "" : ValueText(field, standard);
}

std::string RemedyText(const Field& field) {
  const std::string example = ExampleOf(field);
  return example.empty() ? "" : fmt::format(" Try {}.", example);
}

std::string RuleAndRemedy(const Field& field) { return RuleText(field) + "." + RemedyText(field); }

}  // namespace dtrain
