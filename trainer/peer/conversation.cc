#include "trainer/peer/conversation.h"

#include <algorithm>
#include <utility>

#include "base/check.h"

namespace dtrain {
namespace {

constexpr milliseconds kFirstRepeat{1000};
constexpr milliseconds kMaxRepeat{8000};

}  // namespace

const std::string& AddressOf(const ClusterConfig& cluster, TaskId task) {
  return (task.role == Role::kPs ? cluster.ps : cluster.worker).at(static_cast<size_t>(task.index));
}

Conversation::Conversation(net::Channel& channel, const ClusterConfig& cluster, TaskId peer, size_t max_open)
    : channel_(channel),
      node_(net::NewNodeId()),
      name_(TaskNameAndAddress(cluster, peer)),
      address_(AddressOf(cluster, peer)),
      open_(max_open),
      first_repeat_(kFirstRepeat) {
  channel_.Connect(node_, address_);
}

net::SendResult Conversation::Hand(net::Message& message) {
  if (!take_) return channel_.Send(node_, message);
  take_(std::move(message));
  return net::SendResult::kSent;
}

bool Conversation::Post(const Open& open) {
  const net::Frame& payload = open.message.payload;
  net::Message copy{open.message.header.Share(), payload.empty() ? net::Frame() : payload.Share()};
  return Hand(copy) == net::SendResult::kSent;
}

void Conversation::PostWaiting() {
  while (posted_ < open_count_ && Post(At(posted_))) ++posted_;
}

void Conversation::Send(uint64_t request, net::Message message) {
  DT_CHECK(open_count_ < open_.size(), open_count_);
  if (open_count_ == 0) quiet_ = false;
  Open& open = At(open_count_++);
  open.request = request;
  open.message = std::move(message);
  PostWaiting();
}

bool Conversation::Answered(uint64_t request) {
  if (open_count_ == 0 || oldest_open() != request) {
    if (request > 0 && request < (open_count_ > 0 ? oldest_open() : last_request_ + 1)) OnAnsweredTwice();
    return false;
  }
  LearnWait();
  // What was lent goes back. The header stays until another one takes its place.
  net::Frame& payload = open_[head_].message.payload;
  if (!payload.empty()) payload = net::Frame();
  head_ = (head_ + 1) % open_.size();
  --open_count_;
  if (posted_ > 0) --posted_;
  PostWaiting();
  return true;
}

void Conversation::LearnWait() {
  if (!quiet_) return;
  quiet_ = false;
  const auto waited = std::chrono::duration_cast<milliseconds>(quiet_until_ - quiet_since_);
  first_repeat_ = std::clamp(2 * waited, first_repeat_, kMaxRepeat);
  answer_after_ = std::chrono::duration_cast<milliseconds>(quiet_until_ - repeated_);
}

void Conversation::OnAnsweredTwice() {
  quiet_ = false;  // the peer is alive but behind
  if (repeat_until_ == 0) return;
  repeat_until_ = 0;
  first_repeat_ = std::min(2 * first_repeat_, kMaxRepeat);
}

milliseconds Conversation::FirstWait() const {
  return oldest_open() <= repeat_until_ ? std::min(2 * answer_after_, first_repeat_) : first_repeat_;
}

// Requests and answers on their way are lost when a connection breaks.
bool Conversation::ConnectedAnew() {
  const uint64_t connections = channel_.Connections(node_);
  const bool anew = connections > 1 && connections != connections_;
  connections_ = connections;
  return anew;
}

void Conversation::MoveTo(const std::string& address) {
  channel_.Disconnect(node_);
  channel_.Connect(node_, address);
}

void Conversation::SendAgain() {
  posted_ = 0;
  repeat_until_ = 0;
  quiet_ = false;
  PostWaiting();
}

void Conversation::OnQuiet(TimePoint now) {
  ConnectedAnew() ? SendAgain() : PostWaiting();
  if (open_count_ == 0) return;
  if (!quiet_) {
    quiet_ = true;
    quiet_since_ = quiet_until_ = now;
    repeat_after_ = FirstWait();
    next_repeat_ = now + repeat_after_;
    return;
  }
  quiet_until_ = now;
  if (now < next_repeat_ || posted_ == 0) return;
  repeat_after_ = std::min(2 * std::max(repeat_after_, kFirstRepeat), kMaxRepeat);
  next_repeat_ = now + repeat_after_;
  if (oldest_open() > repeat_until_) repeat_until_ = At(posted_ - 1).request;
  repeated_ = now;
  Post(At(0));
}

bool Conversation::Overdue(TimePoint now, int64_t timeout_ms) const {
  return open_count_ > 0 && quiet_ && now - quiet_since_ > milliseconds(timeout_ms);
}

void Conversation::Clear() {
  for (Open& open : open_) open.message = net::Message();
  open_count_ = posted_ = 0;
  repeat_until_ = 0;
  quiet_ = false;
}

}  // namespace dtrain
