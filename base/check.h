// DT_CHECK: an invariant of ours. Prints file, line, condition and values, then aborts.
// Never on input from a file, a flag or a peer: those get an error of their own.
#pragma once

#include <fmt/core.h>

#include <string>

namespace dtrain {

[[noreturn]] void CheckFailed(const char* file, int line, const char* condition, const std::string& values);

namespace internal {
inline std::string CheckValues() { return std::string(); }
template <typename First, typename... Rest>
std::string CheckValues(const First& first, const Rest&... rest) {
  return fmt::format(" {}", first) + CheckValues(rest...);
}
}  // namespace internal

}  // namespace dtrain

#define DT_CHECK(condition, ...)                                                                           \
  do {                                                                                                     \
    if (__builtin_expect(!(condition), 0)) {                                                               \
      ::dtrain::CheckFailed(__FILE__, __LINE__, #condition, ::dtrain::internal::CheckValues(__VA_ARGS__)); \
    }                                                                                                      \
  } while (false)
