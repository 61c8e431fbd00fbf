// Limits on what a peer may send: on numbers, so that sums do not overflow, and on texts, so that they fit
// into a log line or an answer.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>

#include "base/printable.h"

namespace dtrain {

constexpr uint64_t kMaxSteps = (uint64_t{1} << 62) - 1;
// The largest count, exact in every reader of JSON.
constexpr int64_t kMaxCount = int64_t{1} << 53;
// How many messages a loop takes without a pause before it looks at the clock: a peer that sends without end
// must not keep it from its deadlines.
constexpr int kMessagesInARow = 256;
constexpr size_t kMaxPeerText = 1024;

inline int64_t CountIn(uint64_t said) { return static_cast<int64_t>(std::min<uint64_t>(said, kMaxCount)); }
// The sum of two counts of 0 to kMaxCount, which is one again.
inline int64_t AddCounts(int64_t a, int64_t b) { return std::min(a + b, kMaxCount); }

// A text of a peer for a log line, an error, a file or an answer. Every such text comes in through here.
inline std::string ShortText(const std::string& text) { return Printable(text, kMaxPeerText); }

}  // namespace dtrain
