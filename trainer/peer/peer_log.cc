#include "trainer/peer/peer_log.h"

namespace dtrain {

void PeerLog::Warn(net::NodeId peer, const char* reason, const std::string& text) {
  if (told_.size() == kMaxLines || !told_.emplace(peer, reason).second) {
    ++untold_;
    return;
  }
  log_.Warning("{}", text);
}

void PeerLog::Tick(TimePoint now) {
  if (now < next_count_) return;
  next_count_ = now + kCountEvery;
  TellCount();
}

void PeerLog::TellCount() {
  if (untold_ > 0) log_.Warning("{} more {} since the last such line", std::exchange(untold_, 0), what_);
}

}  // namespace dtrain
