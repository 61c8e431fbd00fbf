// The names of signals, for people.
#pragma once

#include <string>

namespace dtrain {

// "SIGKILL"; "signal 35" where there is no name.
std::string SignalName(int signal);

}  // namespace dtrain
