#include "trainer/ps/outbox.h"

#include <iterator>

namespace dtrain {

void Outbox::Keep(net::NodeId to, net::Message message) {
  std::deque<net::Message>& waiting = late_[to];
  if (waiting.size() < max_late_) return waiting.push_back(std::move(message));
  overfull_ = to;
}

void Outbox::SendLate() {
  for (auto peer = late_.begin(); peer != late_.end();) {
    std::deque<net::Message>& waiting = peer->second;
    while (!waiting.empty() && channel_.Send(peer->first, waiting.front()) != net::SendResult::kFull) {
      waiting.pop_front();
    }
    peer = waiting.empty() ? late_.erase(peer) : std::next(peer);
  }
}

}  // namespace dtrain
