// Limits on what a peer may send: on numbers, so that sums do not overflow, and on texts, so that they fit
// into a log line or an answer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/printable.h"

namespace dtrain {

constexpr uint64_t kMaxSteps = (uint64_t{1} << 62) - 1;
constexpr size_t kMaxPeerText = 1024;

// A text of a peer for a log line, an error, a file or an answer. Every such text comes in through here.
inline std::string ShortText(const std::string& text) { return Printable(text, kMaxPeerText); }

}  // namespace dtrain
