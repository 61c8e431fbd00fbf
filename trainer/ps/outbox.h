// Outbox: sends the messages of a ps. Each is an answer to a request, or a notice that may get lost; a peer
// that missed one asks again. Weights for a peer whose queue is full wait here, in order, because a round
// with a norm answers all blocks of a range at once. As many wait as a worker may have requests open; for a
// peer that asks for more and does not read, more answers are dropped. With a replica an answer waits here
// until that has all records which came before the answer (replica_link.h). Thread: the ps loop.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <limits>
#include <string>
#include <unordered_map>
#include <utility>

#include "net/channel.h"
#include "net/codec.h"
#include "trainer/checkpoint/part_pieces.h"
#include "trainer/peer/peer_limits.h"
#include "trainer/peer/run_id.h"

namespace dtrain {

class Outbox {
 public:
  // `max_late`: how many weights may wait for one peer.
  Outbox(net::Channel& channel, size_t max_late) : channel_(channel), max_late_(max_late) {}
  // One of a replica answers nobody until that stands in for its ps.
  void SetMute(bool mute) { mute_ = mute; }
  bool mute() const { return mute_; }

  // Answers from now on wait for this record; 0: for none. Those that wait for a later one wait for this too.
  void WaitForRecord(uint64_t record);
  // Answers from now on wait for a record that is made later: for the next call of WaitForRecord().
  void WaitForLater() { waits_for_ = std::numeric_limits<uint64_t>::max(); }
  // An answer waits for such a record.
  bool owes_record() const {
    return !waiting_.empty() && waiting_.back().record == std::numeric_limits<uint64_t>::max();
  }
  // The replica has all records up to this one.
  void Release(uint64_t record);

  // This peer is in this process: hands what is sent to it to `take`.
  void MoveHere(net::NodeId peer, std::function<void(net::Message)> take) {
    here_ = peer;
    take_ = std::move(take);
  }

  void set_run(RunId run) { run_ = run; }
  RunId run() const { return run_; }

  // `build(builder)` returns the offset of the body's table.
  template <typename Build>
  net::SendResult Send(net::NodeId to, uint64_t request, Build&& build) {
    flatbuffers::FlatBufferBuilder& builder = encoder_.Begin();
    net::Message message = encoder_.Finish(run_.Envelope(request), build(builder));
    return Post(to, message);
  }

  // The same of an answer that may have to wait.
  template <typename Build>
  void Answer(net::NodeId to, uint64_t request, Build&& build) {
    flatbuffers::FlatBufferBuilder& builder = encoder_.Begin();
    net::Message message = encoder_.Finish(run_.Envelope(request), build(builder));
    if (!Waits(to, &message)) Post(to, message);
  }

  void Refuse(net::NodeId to, uint64_t request, wire::Reason reason, const std::string& text) {
    Refuse(to, run_.Envelope(request), reason, text);
  }
  // Refuses a question whose sender may be a stranger: `question` is its envelope, and the answer names no
  // run but the one that the question named.
  void RefuseQuestion(net::NodeId to, const wire::Envelope& question, wire::Reason reason,
                      const std::string& text) {
    Refuse(to, RunIdOf(question).Envelope(question.request()), reason, text);
  }
  void Ack(net::NodeId to, uint64_t request) {
    Answer(to, request, [](auto& builder) { return wire::CreateAck(builder); });
  }
  void Weights(net::NodeId to, uint64_t request, const net::WeightsHead& head, net::LentBytes weights) {
    net::Message message = encoder_.Weights(run_.Envelope(request), head, weights);
    if (!Waits(to, &message)) SendOrKeep(to, std::move(message));
  }
  // Drops the piece when the queue is full.
  void Piece(net::NodeId to, uint64_t number, dtrain::Piece piece, uint64_t checksum, net::LentBytes values,
             bool replica = false) {
    net::Message message = encoder_.Piece(run_.Envelope(0), number, piece.part,
                                          static_cast<uint64_t>(piece.number), checksum, values, replica);
    Post(to, message);
  }
  // Sends the waiting weights while the queues have room. Call it while late().
  void SendLate();
  bool late() const { return !late_.empty(); }
  // Drops the weights that wait for a peer which has left or begins anew.
  void DropLate(net::NodeId to);
  // Returns the last peer whose answers were dropped since the last call because too many wait; 0: none.
  net::NodeId TakeOverfull() { return std::exchange(overfull_, 0); }

 private:
  void Refuse(net::NodeId to, const net::Envelope& envelope, wire::Reason reason, const std::string& text) {
    flatbuffers::FlatBufferBuilder& builder = encoder_.Begin();
    const auto why = builder.CreateString(ShortText(text));
    net::Message message = encoder_.Finish(envelope, wire::CreateRefuse(builder, reason, why));
    Post(to, message);
  }
  net::SendResult Post(net::NodeId to, net::Message& message) {
    if (to != here_ || to == 0) return channel_.Send(to, message);
    take_(std::move(message));
    return net::SendResult::kSent;
  }
  // Keeps an answer that has to wait for its record.
  bool Waits(net::NodeId to, net::Message* message) {
    if (waits_for_ <= released_) return false;
    waiting_.push_back({waits_for_, to, std::move(*message)});
    return true;
  }
  void SendOrKeep(net::NodeId to, net::Message message) {
    if (HasLate(to) || Post(to, message) == net::SendResult::kFull) Keep(to, std::move(message));
  }
  bool HasLate(net::NodeId to) const { return !late_.empty() && late_.count(to) != 0; }
  void Keep(net::NodeId to, net::Message message);

  net::Channel& channel_;
  const size_t max_late_;
  net::NodeId here_ = 0;  // 0: no peer is
  std::function<void(net::Message)> take_;
  bool mute_ = false;
  net::Encoder encoder_;
  std::unordered_map<net::NodeId, std::deque<net::Message>> late_;  // by peer; none is empty
  net::NodeId overfull_ = 0;                                        // the result of TakeOverfull()
  RunId run_;
  struct Waiting {
    uint64_t record = 0;
    net::NodeId to = 0;
    net::Message message;
  };
  std::deque<Waiting> waiting_;  // oldest first
  uint64_t waits_for_ = 0;
  uint64_t released_ = 0;
};

}  // namespace dtrain
