// Outbox: sends the messages of a ps. Each is an answer to a request, or a notice that may get lost; a peer
// that missed one asks again. Weights for a peer whose queue is full wait here, in order, because a round
// with a norm answers all blocks of a range at once; their number is bounded by a worker's open requests.
// Thread: the ps loop.
#pragma once

#include <algorithm>
#include <deque>
#include <utility>

#include "net/channel.h"
#include "net/codec.h"
#include "trainer/peer/peer_limits.h"
#include "trainer/peer/run_id.h"

namespace dtrain {

class Outbox {
 public:
  explicit Outbox(net::Channel& channel) : channel_(channel) {}

  void set_run(RunId run) { run_ = run; }
  RunId run() const { return run_; }

  // `build(builder)` returns the offset of the body's table.
  template <typename Build>
  net::SendResult Send(net::NodeId to, uint64_t request, Build&& build) {
    flatbuffers::FlatBufferBuilder& builder = encoder_.Begin();
    net::Message message = encoder_.Finish(run_.Envelope(request), build(builder));
    return channel_.Send(to, message);
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
    Send(to, request, [](auto& builder) { return wire::CreateAck(builder); });
  }
  void Weights(net::NodeId to, uint64_t request, uint64_t version, uint64_t global_step, uint32_t steps,
               uint64_t checksum, net::LentBytes weights, uint32_t held_us, uint64_t evaluate = 0) {
    net::Message message = encoder_.Weights(run_.Envelope(request), version, global_step, steps, checksum,
                                            weights, held_us, evaluate);
    if (HasLate(to) || channel_.Send(to, message) == net::SendResult::kFull) {
      late_.push_back({to, std::move(message)});
    }
  }
  // Drops the piece when the queue is full.
  void Piece(net::NodeId to, uint64_t number, uint64_t piece, uint64_t checksum, net::LentBytes values) {
    net::Message message = encoder_.Piece(run_.Envelope(0), number, piece, checksum, values);
    channel_.Send(to, message);
  }
  // Sends the waiting weights while the queues have room. Call it while late().
  void SendLate();
  bool late() const { return !late_.empty(); }
  // Drops the weights that wait for a peer which has left.
  void DropLate(net::NodeId to);

 private:
  struct Late {
    net::NodeId to = 0;
    net::Message message;
  };
  void Refuse(net::NodeId to, const net::Envelope& envelope, wire::Reason reason, const std::string& text) {
    flatbuffers::FlatBufferBuilder& builder = encoder_.Begin();
    const auto why = builder.CreateString(ShortText(text));
    net::Message message = encoder_.Finish(envelope, wire::CreateRefuse(builder, reason, why));
    channel_.Send(to, message);
  }
  bool HasLate(net::NodeId to) const {
    return std::any_of(late_.begin(), late_.end(), [to](const Late& late) { return late.to == to; });
  }

  net::Channel& channel_;
  net::Encoder encoder_;
  std::deque<Late> late_;
  RunId run_;
};

}  // namespace dtrain
