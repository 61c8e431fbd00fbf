// ShortText: a text from a peer, cut to what a log line or an answer may hold.
#pragma once

#include <cstddef>
#include <string>

namespace dtrain {

constexpr size_t kLongestPeerText = 1024;

inline std::string ShortText(const std::string& text) {
  return text.size() <= kLongestPeerText ? text : text.substr(0, kLongestPeerText) + "...";
}

}  // namespace dtrain
