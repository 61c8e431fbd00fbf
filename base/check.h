// DT_CHECK: a check of an invariant of our own code. When it fails, it prints file, line, condition and
// values, and aborts. Input from a file, a flag or a peer is never checked this way: it gets an error of its
// own.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>

namespace dtrain {

// CheckValue: one value of a DT_CHECK, as it is printed. It refers to the caller's value and is valid until
// the check is done.
struct CheckValue {
  CheckValue(bool value) : kind(kBool), whole(value) {}
  CheckValue(int value) : kind(kSigned), whole(value) {}
  CheckValue(long value) : kind(kSigned), whole(value) {}
  CheckValue(long long value) : kind(kSigned), whole(value) {}
  CheckValue(unsigned value) : kind(kUnsigned), positive(value) {}
  CheckValue(unsigned long value) : kind(kUnsigned), positive(value) {}
  CheckValue(unsigned long long value) : kind(kUnsigned), positive(value) {}
  CheckValue(double value) : kind(kReal), real(value) {}
  CheckValue(const char* value) : kind(kText), text(value) {}
  CheckValue(std::string_view value) : kind(kText), text(value) {}
  CheckValue(const std::string& value) : kind(kText), text(value) {}

  enum { kBool, kSigned, kUnsigned, kReal, kText } kind;
  union {
    long long whole;
    unsigned long long positive;
    double real;
    std::string_view text;
  };
};

// Marked cold, so that a check that holds costs its function nothing for the values.
[[noreturn, gnu::cold]] void CheckFailed(const char* file, int line, const char* condition,
                                         std::initializer_list<CheckValue> values);

}  // namespace dtrain

#define DT_CHECK(condition, ...)                                            \
  do {                                                                      \
    if (__builtin_expect(!(condition), 0)) {                                \
      ::dtrain::CheckFailed(__FILE__, __LINE__, #condition, {__VA_ARGS__}); \
    }                                                                       \
  } while (false)
