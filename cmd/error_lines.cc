#include "cmd/error_lines.h"

#include <fmt/core.h>

#include <sstream>

#include "base/console.h"
#include "base/log.h"

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
      StandardError().Write(fmt::format("dtrain: {}\n", line));
    }
  }
}

}  // namespace dtrain
