#include "trainer/ps/outbox.h"

namespace dtrain {

void Outbox::SendLate() {
  std::deque<Late> waiting = std::exchange(late_, {});
  for (Late& late : waiting) {
    // HasLate() keeps the order of one peer's messages.
    if (HasLate(late.to) || channel_.Send(late.to, late.message) == net::SendResult::kFull) {
      late_.push_back(std::move(late));
    }
  }
}

void Outbox::DropLate(net::NodeId to) {
  late_.erase(std::remove_if(late_.begin(), late_.end(), [to](const Late& late) { return late.to == to; }),
              late_.end());
}

}  // namespace dtrain
