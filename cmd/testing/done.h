// A command of the real binary that has ended: for tests of what commands say, which wait for nothing else.
#pragma once

#include <string>
#include <vector>

#include "cmd/testing/process.h"

namespace dtrain::testing {

struct Done {
  int code;
  std::string output, error;
};

inline Done Run(const std::vector<std::string>& arguments, const Program& program = {}) {
  Process process(arguments, program);
  const int code = RunToEnd(process);
  return {code, process.standard_output(), process.standard_error()};
}

}  // namespace dtrain::testing
