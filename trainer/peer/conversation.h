// Conversation: numbered requests to one peer, kept until they are answered and repeated when they may be
// lost. The peer takes them in order and without gaps, so a repeated request is never applied twice.
// If nothing is answered for a while, only the oldest open request is sent again: on a slow connection
// nothing was lost, and more messages would only make it slower. The others that were open then may be lost
// too and follow one by one, each after twice the time that the one before it took. An answer given twice
// says that the repeats were needless: they stop, and later ones wait for longer. If the connection has
// broken and come about again, all open requests are sent again at once, in order.
//
// Owner and thread: the task's main loop.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "net/channel.h"
#include "net/codec.h"
#include "trainer/config/config.h"
#include "trainer/peer/run_id.h"

namespace dtrain {

// Blocks of tensors that a worker has open with one ps: enough to keep both directions busy, few enough to
// bound what lies in queues.
constexpr int64_t kOpenBlocks = 16;
// How many blocks a worker may have open with a ps whose range has `blocks`. Where the norm of rounds is
// wanted none is answered before the last is here.
inline int64_t MaxOpenBlocks(const TrainConfig& train, int64_t blocks) {
  const int64_t open = std::max(train.in_flight, kOpenBlocks);
  return NormOfRounds(train) ? std::max(open, blocks) : open;
}
// Requests that a task may have open with one ps: tensors, a question beside them, and one more.
inline size_t MaxOpenRequests(int64_t open_blocks) { return static_cast<size_t>(open_blocks) + 2; }

// "HOST:PORT", as the config has it.
const std::string& AddressOf(const ClusterConfig& cluster, TaskId task);

class Conversation {
 public:
  // Begins to connect to `peer`. `max_open`: how many requests may be open at once.
  Conversation(net::Channel& channel, const ClusterConfig& cluster, TaskId peer, size_t max_open);

  net::NodeId node() const { return node_; }
  const std::string& name() const { return name_; }  // "ps 1 (10.0.0.2:9001)"
  const std::string& address() const { return address_; }

  // Sends a request, which is open until Answered(). `build(builder)` returns the body's offset.
  template <typename Build>
  void Ask(RunId run, Build&& build) {
    const net::Envelope envelope = run.Envelope(NextRequest());
    Send(envelope.request, encoder_.Finish(envelope, build(encoder_.Begin())));
  }
  // Sends a notice: nobody answers it, and nobody notices if it is lost.
  template <typename Build>
  void Tell(RunId run, Build&& build, uint64_t request = 0) {
    net::Message notice = encoder_.Finish(run.Envelope(request), build(encoder_.Begin()));
    channel_.Send(node_, notice);
  }
  uint64_t NextRequest() { return ++last_request_; }
  // Hands the message to the channel and keeps it until Answered(). One that the channel cannot take now
  // goes out, in order, when an answer or OnQuiet() comes.
  void Send(uint64_t request, net::Message message);
  // Whether `request` is the oldest open one; it is closed then. Others are answers given twice.
  bool Answered(uint64_t request);
  size_t open() const { return open_count_; }
  uint64_t oldest_open() const { return open_[head_].request; }

  // Nothing came for a while: after a second the oldest open request is sent again, then less and less often.
  void OnQuiet(TimePoint now);
  // Whether the oldest open request has gone without an answer for longer, as far as OnQuiet() has seen.
  bool Overdue(TimePoint now, int64_t timeout_ms) const;
  // Drops the open requests: the peer was restarted and knows nothing of them, or its answers count no more.
  void Clear();

 private:
  struct Open {
    uint64_t request = 0;
    net::Message message;
  };
  Open& At(size_t i) { return open_[(head_ + i) % open_.size()]; }
  bool Post(const Open& open);
  void PostWaiting();
  void OnAnsweredTwice();
  void LearnWait();
  milliseconds FirstWait() const;
  bool ConnectedAnew();

  net::Channel& channel_;
  const net::NodeId node_;
  const std::string name_;
  const std::string address_;
  net::Encoder encoder_;
  uint64_t last_request_ = 0;
  uint64_t connections_ = 0;  // that the channel told of
  std::vector<Open> open_;    // a ring
  size_t head_ = 0;
  size_t open_count_ = 0;
  size_t posted_ = 0;             // of the open ones, from the oldest on: handed to the channel
  milliseconds first_repeat_;     // how long the oldest may go unanswered; grows with what was seen
  uint64_t repeat_until_ = 0;     // the last of those that may be lost
  TimePoint repeated_;            // when the latest repeat went out
  milliseconds answer_after_{0};  // how long after that its answer came
  bool quiet_ = false;            // the fields below are about the oldest open request
  TimePoint quiet_since_;
  TimePoint quiet_until_;
  TimePoint next_repeat_;
  milliseconds repeat_after_{0};
};

}  // namespace dtrain
