// Session: what TensorBoard shows of a run beside curves: its config as text (Text), and the keys that runs
// are compared by, with when and how it ended (HParams). Thread: any; free functions.
#pragma once

#include <string>

#include "trainer/config/config.h"

namespace dtrain {

// Each returns a serialised Summary for EventWriter::WriteSummary(); times are seconds since 1970. What may
// be a secret is not in it (FlatConfig in trainer/config/dump.h).
std::string SessionStart(const Config& config, double start_s);
std::string SessionEnd(bool is_done, double end_s);

}  // namespace dtrain
