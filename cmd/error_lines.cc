#include "cmd/error_lines.h"

#include <fmt/core.h>
#include <unistd.h>

#include <sstream>

#include "base/log.h"
#include "base/write_all.h"

namespace dtrain {

void ErrorLines::Print(const std::string& text) const {
  LogOptions options;
  options.json = true;
  Logger log("dtrain", options);
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (json) {
      log.Error("{}", line);
    } else {
      WriteAll(STDERR_FILENO, fmt::format("dtrain: {}\n", line));  // a reader that is gone is no failure
    }
  }
}

}  // namespace dtrain
