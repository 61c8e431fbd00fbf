// Json: a JSON value. It is read and written by nlohmann's library, whose header is slow to compile: in the
// program json.cc alone includes it, and trainer/rows/json_rows.cc, which drops members of a line while the
// line is parsed. Members of an object keep their order. A number keeps the kind it was written as: signed,
// unsigned or real. Reading a value as another type, or an element that is not there, throws
// std::logic_error. Thread: as for a std::vector.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iosfwd>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

namespace dtrain {

class Json {
 public:
  using Array = std::vector<Json>;
  using Member = std::pair<std::string, Json>;
  using Object = std::vector<Member>;

  Json() = default;
  Json(std::nullptr_t) {}
  Json(bool value) : value_(value) {}
  Json(const char* text) : value_(std::string(text)) {}
  Json(std::string text) : value_(std::move(text)) {}
  template <typename T, std::enable_if_t<std::is_arithmetic_v<T> && !std::is_same_v<T, bool>, int> = 0>
  Json(T number) : value_(Number(number)) {}
  template <typename T>
  Json(const std::vector<T>& values) : value_(Array(values.begin(), values.end())) {}
  // An object if each element is a list of a text and a value; otherwise an array. For an array of one
  // element, use a std::vector: one element in parentheses is that element itself.
  Json(std::initializer_list<Json> elements);

  static Json array() { return FromValue(Array()); }
  static Json object() { return FromValue(Object()); }
  // Why a text was refused.
  struct Problem {
    enum Kind { kNone, kSyntax, kRepeated, kDepth };
    Kind kind = kNone;
    std::string
        text;  // kSyntax: "parse error at line 1, column 2: ..."; kRepeated: the name; else a sentence
  };
  // The default limit of nesting for Parse(). Values are copied and freed by recursive functions, so deeper
  // ones are not read.
  static constexpr size_t kMaxDepth = 1000;
  // Returns the value of `text`; null if `text` is not JSON or has anything behind the value. Of two members
  // with the same name the later one counts.
  static Json Parse(std::string_view text);
  // As Parse(), but also returns null if an object has a name twice or if values are nested more than
  // `max_depth` deep. Sets `problem`.
  static Json ParseStrictly(std::string_view text, size_t max_depth, Problem* problem);

  bool is_null() const { return Is<std::monostate>(); }
  bool is_boolean() const { return Is<bool>(); }
  bool is_string() const { return Is<std::string>(); }
  bool is_array() const { return Is<Array>(); }
  bool is_object() const { return Is<Object>(); }
  bool is_number_unsigned() const { return Is<uint64_t>(); }
  bool is_number_integer() const { return Is<int64_t>() || Is<uint64_t>(); }
  bool is_number_float() const { return Is<double>(); }
  bool is_number() const { return is_number_integer() || is_number_float(); }

  // Returns the number of elements of an array or members of an object; 0 for null.
  size_t size() const;
  bool empty() const { return size() == 0; }

  // The elements of an array. Null has none.
  const Json* begin() const;
  const Json* end() const;
  const Json& operator[](size_t index) const { return at(index); }
  const Json& at(size_t index) const;
  const Json& operator[](int index) const { return at(index); }
  const Json& operator[](int index) { return at(index); }
  const Json& at(int index) const { return at(static_cast<size_t>(index)); }
  const Json& back() const { return at(size() - 1); }
  // Appends to an array. Null becomes an array first.
  void push_back(Json element);

  // The members of an object. Null has none.
  const Object& items() const;
  // Returns the member; null if there is none or this is not an object.
  const Json* Find(std::string_view name) const;
  bool contains(std::string_view name) const { return Find(name) != nullptr; }
  const Json& at(std::string_view name) const;  // it must be there
  const Json& at(const char* name) const { return at(std::string_view(name)); }
  const Json& operator[](const char* name) const { return at(std::string_view(name)); }
  const Json& operator[](const std::string& name) const { return at(std::string_view(name)); }
  // Returns the member, which is added if it is missing. Null becomes an object first.
  Json& operator[](const char* name) { return Make(name); }
  Json& operator[](const std::string& name) { return Make(name); }

  // Returns a number as T, a text or a boolean as it is, an array as a vector of T's elements.
  template <typename T>
  T get() const {
    if constexpr (std::is_same_v<T, std::string> || std::is_same_v<T, bool>) {
      return As<T>();
    } else if constexpr (!std::is_arithmetic_v<T>) {
      T values;
      for (const Json& element : As<Array>()) values.push_back(element.get<typename T::value_type>());
      return values;
    } else {
      if (const auto* whole = std::get_if<int64_t>(&value_)) return static_cast<T>(*whole);
      if (const auto* whole = std::get_if<uint64_t>(&value_)) return static_cast<T>(*whole);
      return static_cast<T>(As<double>());
    }
  }
  template <typename T, std::enable_if_t<(std::is_arithmetic_v<T> && !std::is_same_v<T, char>) ||
                                             std::is_same_v<T, std::string>,
                                         int> = 0>
  operator T() const {
    return get<T>();
  }

  // Returns the JSON text: on one line, or indented by `indent`. Bytes that are not UTF-8 become U+FFFD.
  std::string dump(int indent = -1) const;

  // Compares numbers by value, and objects without regard to the order of their members.
  friend bool operator==(const Json& a, const Json& b);
  template <typename T, std::enable_if_t<std::is_arithmetic_v<T>, int> = 0>
  friend bool operator==(const Json& a, T b) {
    return a == Json(b);
  }
  friend bool operator!=(const Json& a, const Json& b) { return !(a == b); }
  friend std::ostream& operator<<(std::ostream& out, const Json& value);

 private:
  friend struct JsonText;  // json.cc
  using Value = std::variant<std::monostate, bool, int64_t, uint64_t, double, std::string, Array, Object>;

  template <typename T>
  static Value Number(T number) {
    if constexpr (std::is_floating_point_v<T>) {
      return Value(static_cast<double>(number));
    } else if constexpr (std::is_unsigned_v<T>) {
      return Value(static_cast<uint64_t>(number));
    } else {
      return number < 0 ? Value(static_cast<int64_t>(number)) : Value(static_cast<uint64_t>(number));
    }
  }
  static Json FromValue(Value value) {
    Json json;
    json.value_ = std::move(value);
    return json;
  }
  template <typename T>
  bool Is() const {
    return std::holds_alternative<T>(value_);
  }
  template <typename T>
  const T& As() const {
    const T* const value = std::get_if<T>(&value_);
    if (value == nullptr) FailAs();
    return *value;
  }
  [[noreturn]] void FailAs() const;
  Json& Make(std::string_view name);

  Value value_;
};

// Members of a value that may be anything: no text, or unset, if there is none of this type. A number is
// finite.
std::string TextIn(const Json& object, std::string_view name);
std::optional<double> NumberIn(const Json& object, std::string_view name);

}  // namespace dtrain
