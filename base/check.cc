#include "base/check.h"

#include <cstdio>
#include <cstdlib>

namespace dtrain {

void CheckFailed(const char* file, int line, const char* condition, const std::string& values) {
  std::fprintf(stderr, "%s:%d: internal error: %s is false;%s\n", file, line, condition, values.c_str());
  std::abort();
}

}  // namespace dtrain
