// Makers of table rows: they turn a member of Config into the two functions that read and write it as a
// Value. Only the two files with the rows include this.
#pragma once

#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "trainer/config/fields.h"

// Where a member of Config lies, as a plain function: the makers are compiled once for each type of member,
// not once for each key.
// clang-format off
#define DT_AT(member) +[](Config& config) -> decltype((config.member)) { return config.member; }
// clang-format on
// The key and the member of the same name.
#define DT_KEY(member) #member, DT_AT(member)

namespace dtrain {

template <typename T>
struct Unwrapped {
  using Type = T;
};
template <typename T>
struct Unwrapped<std::optional<T>> {
  using Type = T;
};
// The member's type without optional.
template <typename Member>
using MemberOf = typename Unwrapped<Member>::Type;

// Where a key's member lies.
template <typename Member>
using MemberAt = Member& (*)(Config&);

template <typename Member>
const Member& MemberIn(MemberAt<Member> at, const Config& config) {
  return at(const_cast<Config&>(config));
}

// Null for what is unset: an empty optional, an empty text or list.
template <typename T>
Value ToValue(const T& member) {
  if constexpr (std::is_same_v<T, bool> || std::is_same_v<T, double>) {
    return member;
  } else if constexpr (std::is_integral_v<T>) {
    return static_cast<int64_t>(member);
  } else {
    return member.empty() ? Value() : Value(member);
  }
}
template <typename T>
Value ToValue(const std::optional<T>& member) {
  return member.has_value() ? ToValue(*member) : Value();
}

template <typename T>
void FromValue(const Value& value, T* member) {
  if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>) {
    *member = static_cast<T>(std::get<int64_t>(value));
  } else {
    *member = std::get<T>(value);
  }
}
template <typename T>
void FromValue(const Value& value, std::optional<T>* member) {
  FromValue(value, &member->emplace());
}

template <typename Member>
Field Row(std::string key, MemberAt<Member> at, FieldType type, Scope scope, std::string help) {
  Field field;
  field.key = std::move(key);
  field.type = type;
  field.scope = scope;
  field.help = std::move(help);
  field.get = [at](const Config& config) { return ToValue(MemberIn(at, config)); };
  field.set = [at](const Value& value, Config* config) { FromValue(value, &at(*config)); };
  return field;
}

template <typename Member>
Field Flag(std::string key, MemberAt<Member> at, Scope scope, std::string help) {
  return Row(std::move(key), at, FieldType::kBool, scope, std::move(help));
}

template <typename Member>
Field Number(std::string key, MemberAt<Member> at, Scope scope, Limits limits, std::string help) {
  constexpr bool kWhole = std::is_integral_v<MemberOf<Member>>;
  Field field =
      Row(std::move(key), at, kWhole ? FieldType::kInt : FieldType::kDouble, scope, std::move(help));
  field.limits = limits;
  return field;
}

template <typename Member>
Field Numbers(std::string key, MemberAt<Member> at, Scope scope, Limits limits, std::string help) {
  Field field = Row(std::move(key), at, FieldType::kInts, scope, std::move(help));
  field.limits = limits;
  return field;
}

// `codes`: each name with the member's value (an enum, or a number). A member with another value is unset.
template <typename Member>
Field Choice(std::string key, MemberAt<Member> at, Scope scope,
             std::vector<std::pair<std::string, MemberOf<Member>>> codes, std::string help) {
  using Code = MemberOf<Member>;
  Field field;
  field.key = std::move(key);
  field.type = FieldType::kChoice;
  field.scope = scope;
  field.help = std::move(help);
  for (const auto& [name, code] : codes) field.choices.push_back(name);
  field.get = [at, codes](const Config& config) {
    const std::optional<Code> member = MemberIn(at, config);
    for (const auto& [name, code] : codes) {
      if (member == code) return Value(name);
    }
    return Value();
  };
  field.set = [at, codes](const Value& value, Config* config) {
    for (const auto& [name, code] : codes) {
      if (value == Value(name)) at(*config) = code;
    }
  };
  return field;
}

inline std::vector<Field> Joined(const std::vector<std::vector<Field>>& parts) {
  std::vector<Field> all;
  for (const std::vector<Field>& part : parts) all.insert(all.end(), part.begin(), part.end());
  return all;
}

}  // namespace dtrain
