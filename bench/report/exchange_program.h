// The programs that exchange tensors and print what they did as one JSON object: the limit, and dtrain's own
// client and ps without a model.
#pragma once

#include <string>
#include <vector>

#include "bench/report/cases.h"

namespace dtrain::bench {

inline constexpr char kLimitProgram[] = "bench/limit/limit_exchange";
inline constexpr char kStreamProgram[] = "bench/parameter_stream";

struct Exchanged {
  double per_s = 0;
  double bytes = 0;  // of one exchange, headers and payloads, both ways
};

// Throws std::runtime_error where it fails.
Exchanged RunExchange(const Settings& settings, const std::string& program,
                      const std::vector<std::string>& flags);

}  // namespace dtrain::bench
