// Makers of table rows: they turn a member of Config into the two functions that read and write it as a
// Value. Only the two files with the rows include this.
#pragma once

#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "trainer/config/config.h"
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

// A row of the table, with what a key has beside its name, type, scope and help. Texts are literals that are
// copied here, since each std::string in the table would be code of its own.
struct FieldRow : Field {
  FieldRow&& Unit(std::string_view text) &&;
  FieldRow&& Try(std::string_view text) &&;
  FieldRow&& Unset(std::string_view meaning) &&;
  FieldRow&& AliasOf(std::string_view other_key) &&;
  FieldRow&& Required() &&;
  // A value of a path that is no path, or of a number that is none.
  FieldRow&& OrWord(std::string_view word) &&;
  FieldRow&& Within(Limits allowed) &&;
  FieldRow&& OtherNames(std::initializer_list<std::pair<const char*, const char*>> names) &&;
  FieldRow&& OnlyWith(std::string_view other_key, std::initializer_list<const char*> values) &&;
};

FieldRow RowOf(std::string_view key, FieldType type, Scope scope, std::string_view help);

template <typename Member>
FieldRow Row(std::string_view key, MemberAt<Member> at, FieldType type, Scope scope, std::string_view help) {
  FieldRow row = RowOf(key, type, scope, help);
  row.get = [at](const Config& config) { return ToValue(MemberIn(at, config)); };
  row.set = [at](const Value& value, Config* config) {
    if (IsNull(value)) {
      at(*config) = MemberIn(at, Defaults());
    } else {
      FromValue(value, &at(*config));
    }
  };
  return row;
}

template <typename Member>
FieldRow Flag(std::string_view key, MemberAt<Member> at, Scope scope, std::string_view help) {
  return Row(key, at, FieldType::kBool, scope, help);
}

// A row whose value is a number or a list of numbers.
template <typename Member>
FieldRow Number(std::string_view key, MemberAt<Member> at, Scope scope, Limits limits,
                std::string_view help) {
  using Type = MemberOf<Member>;
  constexpr FieldType kType = std::is_same_v<Type, double> ? FieldType::kDouble
                              : std::is_integral_v<Type>   ? FieldType::kInt
                                                           : FieldType::kInts;
  return Row(key, at, kType, scope, help).Within(limits);
}

// A number, or the word in its place, which the member has as `code`.
template <typename Member>
FieldRow NumberOr(const std::string& word, int64_t code, std::string_view key, MemberAt<Member> at,
                  Scope scope, Limits limits, std::string_view help) {
  FieldRow row = Number(key, at, scope, limits, help).OrWord(word);
  row.get = [word, code, number = row.get](const Config& config) {
    const Value value = number(config);
    return value == Value(code) ? Value(word) : value;
  };
  row.set = [word, code, number = row.set](const Value& value, Config* config) {
    number(value == Value(word) ? Value(code) : value, config);
  };
  return row;
}

// A name with the member's value (an enum, or a number). A member with another value is unset.
template <typename Member>
using Code = std::pair<const char*, MemberOf<Member>>;
template <typename Member>
FieldRow Choice(std::string_view key, MemberAt<Member> at, Scope scope,
                const std::vector<Code<Member>>& codes, std::string_view help) {
  FieldRow row = RowOf(key, FieldType::kChoice, scope, help);
  for (const auto& [name, code] : codes) row.choices.emplace_back(name);
  row.get = [at, codes](const Config& config) {
    const std::optional<MemberOf<Member>> member = MemberIn(at, config);
    for (const auto& [name, code] : codes) {
      if (member == code) return Value(std::string(name));
    }
    return Value();
  };
  row.set = [at, codes](const Value& value, Config* config) {
    if (IsNull(value)) at(*config) = MemberIn(at, Defaults());
    for (const auto& [name, code] : codes) {
      if (value == Value(std::string(name))) at(*config) = code;
    }
  };
  return row;
}

template <typename Member>
FieldRow Choice(std::string_view key, MemberAt<Member> at, Scope scope,
                std::initializer_list<Code<Member>> codes, std::string_view help) {
  return Choice(key, at, scope, std::vector<Code<Member>>(codes), help);
}

std::vector<Field> Joined(const std::vector<std::vector<Field>>& parts);

}  // namespace dtrain
