#include "trainer/peer/peer_link.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace dtrain {
namespace {

constexpr milliseconds kFirstRepeat{1000};
constexpr milliseconds kLongestRepeat{8000};

}  // namespace

PeerLink::PeerLink(net::Channel& channel, net::NodeId node, std::string name, size_t most_open)
    : channel_(channel), node_(node), name_(std::move(name)), open_(most_open) {}

void PeerLink::Post(const Open& open) {
  net::Message copy{open.message.header.Share(), open.message.payload.Share()};
  channel_.Send(node_, copy);  // full or gone: Repeat() tries again
}

void PeerLink::Send(uint64_t request, net::Message message) {
  DT_CHECK(open_count_ < open_.size(), open_count_);
  if (open_count_ == 0) quiet_ = false;
  Open& open = At(open_count_++);
  open.request = request;
  open.message = std::move(message);
  Post(open);
}

bool PeerLink::Answered(uint64_t request) {
  if (open_count_ == 0 || open_[head_].request != request) return false;
  open_[head_].message = net::Message();
  head_ = (head_ + 1) % open_.size();
  --open_count_;
  quiet_ = false;
  return true;
}

void PeerLink::OnQuiet(TimePoint now) {
  if (open_count_ == 0) return;
  if (!quiet_) {
    quiet_ = true;
    quiet_since_ = now;
    repeat_after_ = kFirstRepeat;
    next_repeat_ = now + repeat_after_;
    return;
  }
  if (now < next_repeat_) return;
  repeat_after_ = std::min(2 * repeat_after_, kLongestRepeat);
  next_repeat_ = now + repeat_after_;
  Repeat();
}

double PeerLink::WaitedSeconds(TimePoint now) const {
  return open_count_ > 0 && quiet_ ? SecondsBetween(quiet_since_, now) : 0;
}

void PeerLink::Clear() {
  while (open_count_ > 0) Answered(oldest_open());
}

void PeerLink::Repeat() {
  for (size_t i = 0; i < open_count_; ++i) Post(At(i));
}

}  // namespace dtrain
