// Conversation: sends numbered requests to one peer, keeps each until it is answered, and repeats those that
// may be lost. The peer takes them in order and without gaps, so a repeated request is never applied twice.
//
// When nothing is answered for a while, only the oldest open request is sent again: on a slow connection
// nothing was lost, and more messages would only make it slower. The others that were open at that time may
// be lost too; they follow one by one, each after twice the time that the answer before it took. An answer
// that comes twice shows that the repeats were needless: they stop, and later ones wait longer. When the
// connection was broken and is back, all open requests are sent again at once, in order.
//
// Owner and thread: the task's main loop.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "net/channel.h"
#include "net/codec.h"
#include "trainer/config/cluster_config.h"
#include "trainer/config/train_config.h"
#include "trainer/peer/run_id.h"

namespace dtrain {

// The tensor blocks that a worker has open with one ps: enough to keep both directions busy, and few enough
// to bound the queues.
constexpr int64_t kOpenBlocks = 16;
// The max number of blocks that a worker has open with a ps whose range has `blocks`. With clip_norm at least
// all of them, since none is answered before the last has come. In ssp at least those of all its gradients:
// the answers may wait for a worker that waits for a step, and the run's last steps may be this worker's.
inline int64_t MaxOpenBlocks(const TrainConfig& train, int64_t blocks) {
  const int64_t open = std::max(train.in_flight, kOpenBlocks);
  if (train.mode == TrainMode::kSsp) return std::max(open, train.in_flight * blocks);
  return NormOfRounds(train) ? std::max(open, blocks) : open;
}
// The max number of requests that a task has open with one ps: tensors, one question, and one more.
inline size_t MaxOpenRequests(int64_t open_blocks) { return static_cast<size_t>(open_blocks) + 2; }

// "HOST:PORT" from the config.
const std::string& AddressOf(const ClusterConfig& cluster, TaskId task);

class Conversation {
 public:
  // Starts to connect to `peer`. `max_open`: the max number of open requests.
  Conversation(net::Channel& channel, const ClusterConfig& cluster, TaskId peer, size_t max_open);

  net::NodeId node() const { return node_; }
  const std::string& name() const { return name_; }  // "ps 1 (10.0.0.2:9001)"
  const std::string& address() const { return address_; }

  // Returns what a handshake with the peer told, if it has failed; empty: it has not.
  std::string WhyNotConnected() const { return channel_.WhyNotConnected(node_); }

  // Whether it has gone over a connection, which can break; within one process there is none.
  bool WasConnected() const { return channel_.Connections(node_) > 0; }

  // Sends a request, which stays open until Answered(). `build(builder)` returns the body's offset.
  template <typename Build>
  void Ask(RunId run, Build&& build) {
    const net::Envelope envelope = run.Envelope(NextRequest());
    Send(envelope.request, encoder_.Finish(envelope, build(encoder_.Begin())));
  }
  // Sends a notice: it is not answered, and its loss is not noticed.
  template <typename Build>
  void Tell(RunId run, Build&& build, uint64_t request = 0) {
    net::Message notice = encoder_.Finish(run.Envelope(request), build(encoder_.Begin()));
    Hand(notice);
  }
  uint64_t NextRequest() { return ++last_request_; }
  // The number that NextRequest() will give.
  uint64_t next_request() const { return last_request_ + 1; }
  // Hands the message to the channel and keeps it until Answered(). If the channel is full, the message goes
  // out, in order, with the next answer or OnQuiet().
  void Send(uint64_t request, net::Message message);
  // Closes `request` if it is the oldest open one. False: it is not; the answer was repeated.
  bool Answered(uint64_t request);
  size_t open() const { return open_count_; }
  uint64_t oldest_open() const { return open_[head_].request; }

  // Nothing came for a while: sends the oldest open request again after a second, then less and less often.
  void OnQuiet(TimePoint now);
  // Whether the oldest open request has waited longer than this, as far as OnQuiet() has seen.
  bool Overdue(TimePoint now, int64_t timeout_ms) const;
  // The peer is away: the time that Overdue() counts begins now.
  void CountFrom(TimePoint now) { quiet_since_ = now; }
  // Another process of the peer goes on with this conversation: sends all open requests again at once, in
  // order.
  void SendAgain();
  // Goes on with the conversation at another address, where another task stands in for the peer, or at the
  // peer's own. Call SendAgain() or Clear() then.
  void MoveTo(const std::string& address);
  // From now on the peer is in this process: hands what is sent to `take`.
  void MoveHere(std::function<void(net::Message)> take) { take_ = std::move(take); }
  // Drops the open requests: the peer was restarted and does not know them, or its answers no longer count.
  void Clear();

 private:
  struct Open {
    uint64_t request = 0;
    net::Message message;
  };
  Open& At(size_t i) { return open_[(head_ + i) % open_.size()]; }
  net::SendResult Hand(net::Message& message);
  bool Post(const Open& open);
  void PostWaiting();
  void OnAnsweredTwice();
  void LearnWait();
  milliseconds FirstWait() const;
  bool ConnectedAnew();

  std::function<void(net::Message)> take_;  // empty: the peer is elsewhere
  net::Channel& channel_;
  const net::NodeId node_;
  const std::string name_;
  const std::string address_;
  net::Encoder encoder_;
  uint64_t last_request_ = 0;
  uint64_t connections_ = 0;  // the channel's count of connections
  std::vector<Open> open_;    // a ring
  size_t head_ = 0;
  size_t open_count_ = 0;
  size_t posted_ = 0;             // how many open requests, from the oldest on, the channel has taken
  milliseconds first_repeat_;     // how long the oldest may go unanswered; grows with observed waits
  uint64_t repeat_until_ = 0;     // the last request that may be lost
  TimePoint repeated_;            // when the latest repeat went out
  milliseconds answer_after_{0};  // the time from that repeat to its answer
  bool quiet_ = false;            // the fields below are about the oldest open request
  TimePoint quiet_since_;
  TimePoint quiet_until_;
  TimePoint next_repeat_;
  milliseconds repeat_after_{0};
};

}  // namespace dtrain
