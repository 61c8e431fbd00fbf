#include "base/peer_log.h"

#include <fmt/format.h>

namespace dtrain {

void PeerLog::Warn(uint64_t peer, const char* reason, const std::string& text) {
  if (told_.size() == kMaxLines || !told_.emplace(peer, reason).second) {
    ++untold_;
    return;
  }
  warn_(text);
}

void PeerLog::Tick(TimePoint now) {
  if (now < next_count_) return;
  next_count_ = now + kCountEvery;
  TellCount();
}

void PeerLog::TellCount() {
  if (untold_ > 0) {
    warn_(fmt::format("{} more {} since the last such line", std::exchange(untold_, 0), what_));
  }
}

}  // namespace dtrain
