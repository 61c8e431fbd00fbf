// Prints docs/config.md: bazel run //trainer/config:write_reference > docs/config.md
#include <cstdio>

#include "trainer/config/dump.h"

int main() {
  std::fputs(dtrain::ConfigReference().c_str(), stdout);
  return 0;
}
