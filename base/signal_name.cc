#include "base/signal_name.h"

#include <string.h>

namespace dtrain {

std::string SignalName(int signal) {
  const char* name = sigabbrev_np(signal);
  return name != nullptr ? std::string("SIG") + name : "signal " + std::to_string(signal);
}

}  // namespace dtrain
