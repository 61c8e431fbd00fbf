// Codec: bytes to verified views and back. The schema is messages.fbs; docs/wire.md explains it.
// A decoded view points into its message and lives as long as that. Thread: an Encoder belongs to one.
#pragma once

#include <cstddef>
#include <cstdint>

#include "net/channel.h"
#include "net/messages_generated.h"

namespace dtrain::net {

// Raised by every change of the schema or of the order of messages that an older program would misread.
constexpr uint32_t kProtocol = 10;

// Tensors up to this many bytes travel inside the header frame: one frame costs less than two.
constexpr size_t kInlineBytes = 2048;

// A header frame is never larger than this; what may be large is a tensor and travels as payload.
constexpr size_t kMaxHeaderBytes = 1 << 20;

// The fields that every message carries.
struct Envelope {
  uint64_t run_id = 0;
  uint32_t run_epoch = 0;
  uint64_t request = 0;
};

// What a DataBatch says of its values.
struct BatchHead {
  uint64_t local_step = 0;
  bool end = false;
  uint32_t rows = 0;
  bool as_bytes = false;
  uint64_t epoch = 0;
  uint64_t batch_in_epoch = 0;
  uint64_t batches_per_epoch = 0;
  uint32_t max_rows = 0;
  uint64_t checksum = 0;
  uint32_t devices = 1;
};

class Encoder {
 public:
  // Usage: auto& b = encoder.Begin(); Message m = encoder.Finish(envelope, wire::CreatePull(b));
  // Every string and list that the schema requires must be set; an empty one will do.
  flatbuffers::FlatBufferBuilder& Begin();
  template <typename Table>
  Message Finish(const Envelope& envelope, flatbuffers::Offset<Table> body) {
    return FinishUnion(envelope, wire::BodyTraits<Table>::enum_value, body.Union());
  }

  // Tensor messages. Up to kInlineBytes are copied into the header and released before the return.
  // `version`: in sync, that of the weights the gradient was computed from.
  Message Push(const Envelope& envelope, uint32_t block, uint32_t examples, uint64_t checksum,
               LentBytes gradient, uint64_t version = 0);
  // `held_us`: how long the answer was kept back. `evaluate`: the local step to evaluate behind; 0: none.
  Message Weights(const Envelope& envelope, uint64_t version, uint64_t global_step, uint32_t steps,
                  uint64_t checksum, LentBytes weights, uint32_t held_us = 0, uint64_t evaluate = 0);
  Message DataBatch(const Envelope& envelope, const BatchHead& head, LentBytes values);
  Message Piece(const Envelope& envelope, uint64_t number, uint64_t piece, uint64_t checksum,
                LentBytes values);

 private:
  Message FinishUnion(const Envelope& envelope, wire::Body type, flatbuffers::Offset<void> body);

  flatbuffers::FlatBufferBuilder builder_{1024};
};

// The verified envelope, or null for anything that is not one: truncated, flipped, of another identifier,
// without a body, with both an inline tensor and a payload frame, or with a payload that no tensor message
// announces. Never throws, never reads out of bounds. In a decoded message every string and list that the
// schema requires is there and a Role is one of the schema's; all other values are as the peer sent them.
const wire::Envelope* Decode(const Message& message);

// The tensor bytes of a decoded message, wherever they travelled: at any address.
TensorView Tensor(const Message& message, const wire::Push& push);
TensorView Tensor(const Message& message, const wire::Weights& weights);
TensorView Tensor(const Message& message, const wire::DataBatch& batch);
TensorView Tensor(const Message& message, const wire::Piece& piece);

// xxh3-64 of the bytes; what net.checksum puts into tensor messages. Never 0.
uint64_t PayloadChecksum(const void* data, size_t size);

}  // namespace dtrain::net
