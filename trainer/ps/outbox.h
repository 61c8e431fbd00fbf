// Outbox: what a ps says. Every message is an answer to a request or a notice that may get lost: a peer
// that is full or gone asks again, so nothing is queued here.
// Thread: the ps loop.
#pragma once

#include <utility>

#include "net/channel.h"
#include "net/codec.h"
#include "trainer/peer/short_text.h"

namespace dtrain {

class Outbox {
 public:
  explicit Outbox(net::Channel& channel) : channel_(channel) {}

  void set_run_id(uint64_t run_id) { run_id_ = run_id; }
  uint64_t run_id() const { return run_id_; }

  // `build(builder)` returns the offset of the body's table.
  template <typename Build>
  net::SendResult Send(net::NodeId to, uint64_t request, Build&& build) {
    flatbuffers::FlatBufferBuilder& builder = encoder_.Begin();
    net::Message message = encoder_.Finish({run_id_, 0, request}, build(builder));
    return channel_.Send(to, message);
  }

  void Refuse(net::NodeId to, uint64_t request, wire::Reason reason, const std::string& text) {
    Send(to, request, [&](auto& builder) {
      return wire::CreateRefuse(builder, reason, builder.CreateString(ShortText(text)));
    });
  }
  void Ack(net::NodeId to, uint64_t request) {
    Send(to, request, [](auto& builder) { return wire::CreateAck(builder); });
  }
  void Weights(net::NodeId to, uint64_t request, uint64_t version, uint64_t global_step, uint32_t steps,
               uint64_t checksum, net::LentBytes weights, uint32_t held_us) {
    net::Message message =
        encoder_.Weights({run_id_, 0, request}, version, global_step, steps, checksum, weights, held_us);
    channel_.Send(to, message);
  }

 private:
  net::Channel& channel_;
  net::Encoder encoder_;
  uint64_t run_id_ = 0;
};

}  // namespace dtrain
