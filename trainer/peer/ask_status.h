// AskStatus: asks the ps 0 of a run over the network what the run does (docs/wire.md: AskStatus). Thread:
// one.
#pragma once

#include <string>

#include "base/clock.h"

namespace dtrain {

struct StatusAnswer {
  std::string json;      // of trainer/leader/status_report.h; empty: there was no answer
  std::string why;       // then why not
  bool refused = false;  // `why` is what a ps has answered
  bool nobody = false;   // nothing listens at the address
};

// Waits for at most `timeout`. `keys`: the directory with cluster.keys and status.key; empty: the run has no
// keys, and knows `token`. Throws UserError for an address or keys that are none.
StatusAnswer AskStatus(const std::string& address, const std::string& token, const std::string& keys,
                       milliseconds timeout);

}  // namespace dtrain
