// Limits on what a peer may send: on numbers, so that sums do not overflow, and on texts, so that they fit
// into a log line or an answer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace dtrain {

constexpr uint64_t kMaxSteps = (uint64_t{1} << 62) - 1;
constexpr size_t kMaxPeerText = 1024;

inline std::string ShortText(const std::string& text) {
  return text.size() <= kMaxPeerText ? text : text.substr(0, kMaxPeerText) + "...";
}

}  // namespace dtrain
