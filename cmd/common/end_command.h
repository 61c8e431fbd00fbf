// EndCommand: what a user has run when a run has ended (run.on_end). Thread: any; a free function.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"

namespace dtrain {

// Runs `command` by /bin/sh with `variables` added to its environment; its standard output goes to standard
// error. It is killed, with the processes of its group, after `timeout`. Returns what went wrong, or an empty
// text.
std::string RunEndCommand(const std::string& command,
                          const std::vector<std::pair<std::string, std::string>>& variables,
                          milliseconds timeout);

}  // namespace dtrain
