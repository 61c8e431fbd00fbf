#include "trainer/ps/outbox.h"

#include <algorithm>
#include <iterator>

namespace dtrain {

void Outbox::Keep(net::NodeId to, net::Message message) {
  std::deque<net::Message>& waiting = late_[to];
  if (waiting.size() < max_late_) return waiting.push_back(std::move(message));
  overfull_ = to;
}

void Outbox::WaitForRecord(uint64_t record) {
  waits_for_ = record;
  for (auto later = waiting_.rbegin(); later != waiting_.rend() && later->record > record; ++later) {
    later->record = record;
  }
  Release(released_);
}

void Outbox::Release(uint64_t record) {
  released_ = record;
  for (; !waiting_.empty() && waiting_.front().record <= record; waiting_.pop_front()) {
    SendOrKeep(waiting_.front().to, std::move(waiting_.front().message));
  }
}

void Outbox::DropLate(net::NodeId to) {
  late_.erase(to);
  const auto is_its = [to](const Waiting& waiting) { return waiting.to == to; };
  waiting_.erase(std::remove_if(waiting_.begin(), waiting_.end(), is_its), waiting_.end());
}

void Outbox::SendLate() {
  for (auto peer = late_.begin(); peer != late_.end();) {
    std::deque<net::Message>& waiting = peer->second;
    while (!waiting.empty() && Post(peer->first, waiting.front()) != net::SendResult::kFull) {
      waiting.pop_front();
    }
    peer = waiting.empty() ? late_.erase(peer) : std::next(peer);
  }
}

}  // namespace dtrain
