// Makers of table rows: they turn a member of Config into the two functions that read and write it as a
// Value. Only the two files with the rows include this.
#pragma once

#include <map>
#include <optional>
#include <string>
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

// A row of the table, with what a key has beside its name, type, scope and help.
struct FieldRow : Field {
  FieldRow Unit(std::string text) const { return With(&Field::unit, std::move(text)); }
  FieldRow Try(std::string text) const { return With(&Field::example, std::move(text)); }
  FieldRow Unset(std::string meaning) const { return With(&Field::unset, std::move(meaning)); }
  FieldRow AliasOf(std::string other_key) const { return With(&Field::alias_of, std::move(other_key)); }
  FieldRow Required() const { return With(&Field::required, true); }
  // A value of a path that is no path, or of a number that is none.
  FieldRow OrWord(std::string word) const {
    return With(&Field::choices, std::vector<std::string>{std::move(word)});
  }
  FieldRow Within(Limits allowed) const { return With(&Field::limits, allowed); }
  FieldRow OtherNames(std::map<std::string, std::string> names) const {
    return With(&Field::other_names, std::move(names));
  }
  FieldRow OnlyWith(std::string other_key, std::vector<std::string> values) const {
    return With(&Field::only_key, std::move(other_key)).With(&Field::only_values, std::move(values));
  }

 private:
  template <typename T>
  FieldRow With(T Field::*member, T value) const {
    FieldRow row = *this;
    row.*member = std::move(value);
    return row;
  }
};

inline FieldRow RowOf(std::string key, FieldType type, Scope scope, std::string help) {
  FieldRow row;
  row.key = std::move(key);
  row.type = type;
  row.scope = scope;
  row.help = std::move(help);
  return row;
}

template <typename Member>
FieldRow Row(std::string key, MemberAt<Member> at, FieldType type, Scope scope, std::string help) {
  FieldRow row = RowOf(std::move(key), type, scope, std::move(help));
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
FieldRow Flag(std::string key, MemberAt<Member> at, Scope scope, std::string help) {
  return Row(std::move(key), at, FieldType::kBool, scope, std::move(help));
}

// A row whose value is a number or a list of numbers.
template <typename Member>
FieldRow Number(std::string key, MemberAt<Member> at, Scope scope, Limits limits, std::string help) {
  using Type = MemberOf<Member>;
  constexpr FieldType kType = std::is_same_v<Type, double> ? FieldType::kDouble
                              : std::is_integral_v<Type>   ? FieldType::kInt
                                                           : FieldType::kInts;
  return Row(std::move(key), at, kType, scope, std::move(help)).Within(limits);
}

// A number, or the word in its place, which the member has as `code`.
template <typename Member>
FieldRow NumberOr(std::string word, int64_t code, std::string key, MemberAt<Member> at, Scope scope,
                  Limits limits, std::string help) {
  FieldRow row = Number(std::move(key), at, scope, limits, std::move(help)).OrWord(word);
  row.get = [word, code, number = row.get](const Config& config) {
    const Value value = number(config);
    return value == Value(code) ? Value(word) : value;
  };
  row.set = [word, code, number = row.set](const Value& value, Config* config) {
    number(value == Value(word) ? Value(code) : value, config);
  };
  return row;
}

// `codes`: each name with the member's value (an enum, or a number). A member with another value is unset.
template <typename Member>
FieldRow Choice(std::string key, MemberAt<Member> at, Scope scope,
                std::vector<std::pair<std::string, MemberOf<Member>>> codes, std::string help) {
  FieldRow row = RowOf(std::move(key), FieldType::kChoice, scope, std::move(help));
  for (const auto& [name, code] : codes) row.choices.push_back(name);
  row.get = [at, codes](const Config& config) {
    const std::optional<MemberOf<Member>> member = MemberIn(at, config);
    for (const auto& [name, code] : codes) {
      if (member == code) return Value(name);
    }
    return Value();
  };
  row.set = [at, codes](const Value& value, Config* config) {
    if (IsNull(value)) at(*config) = MemberIn(at, Defaults());
    for (const auto& [name, code] : codes) {
      if (value == Value(name)) at(*config) = code;
    }
  };
  return row;
}

inline std::vector<Field> Joined(const std::vector<std::vector<Field>>& parts) {
  std::vector<Field> all;
  for (const std::vector<Field>& part : parts) all.insert(all.end(), part.begin(), part.end());
  return all;
}

}  // namespace dtrain
