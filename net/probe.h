// Probe: whether and why a TCP address does not answer. For the line that tells a user why a ps is missing;
// a Channel finds its way without it.
#pragma once

#include <string>

#include "base/clock.h"

namespace dtrain::net {

enum class ProbeStatus {
  kOpen,          // something accepts connections there
  kNameNotFound,  // the host's name is not known (yet)
  kRefused,       // the host answers, nothing listens at the port
  kNoAnswer,      // silence: host down, or a firewall between
  kOther,         // see text
};

struct ProbeResult {
  ProbeStatus status = ProbeStatus::kOther;
  std::string text;  // the system's words, such as "Connection refused (111)"; empty for kOpen
};

// Tries one connection to `address` and closes it. Waits up to `timeout` for the connection, and before that
// for the system's resolver, which heeds no timeout of ours: up to tens of seconds where a name server is
// silent. So call it from a thread that may wait. Throws UserError for a malformed address.
ProbeResult Probe(const std::string& address, milliseconds timeout);

}  // namespace dtrain::net
