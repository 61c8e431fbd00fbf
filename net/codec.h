// Codec: encodes messages, and decodes bytes to verified views. The schema is messages.fbs; docs/wire.md
// explains it. A decoded view points into its message and is valid as long as the message. Thread: one per
// Encoder.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "net/channel.h"
#include "net/compress.h"
#include "net/messages_generated.h"

namespace dtrain::net {

// The version of the protocol. It is raised by each change of the schema, or of the order of messages, that
// an older program would misread.
constexpr uint32_t kProtocol = 27;

// The largest tensor that travels inside the header frame. One frame costs less than two.
constexpr size_t kInlineBytes = 2048;

// The largest header frame. Only tensors may be larger, and they travel as payload.
constexpr size_t kMaxHeaderBytes = 1 << 20;

// The fields that every message carries.
struct Envelope {
  uint64_t run_id = 0;
  uint32_t run_epoch = 0;
  uint64_t request = 0;
};

// BatchHead: the description of the values in a DataBatch.
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
  bool weighted = false;
  double weight = 0;
  uint8_t id_bytes = 0;  // 0: rows are not sparse
  uint64_t features = 0;
  bool has_values = false;
  bool has_offsets = false;
};

// PushedLoss: what a Push tells of its rows: how much they weigh together, and with the last block of a
// gradient their mean loss.
struct PushedLoss {
  PushedLoss(std::optional<float> the_mean = std::nullopt, std::optional<double> the_weight = std::nullopt)
      : mean(the_mean), weight(the_weight) {}
  std::optional<float> mean;
  std::optional<double> weight;  // unset: each row weighs 1
};

// PushedRows: what the payload of a Push of a table is.
struct PushedRows {
  uint64_t of = 0;    // the request that asked for the rows whose gradient it is
  uint32_t keys = 0;  // how many rows are asked for
  uint32_t key_bytes = 0;
};

// PullHead: what a Pull asks for.
struct PullHead {
  uint32_t block = 0;
  bool enter = false;
  std::vector<uint32_t> workers;
  uint64_t clock = 0;
  bool resume = false;
  uint64_t version = 0;
  uint32_t keys = 0;
  bool read = false;
  uint64_t snapshot = 0;
  bool leaves = false;
  uint32_t worker = 0;  // in a record, as in RecordOf
  uint64_t record = 0;
};

// RecordOf: whose message a record for a replica is.
struct RecordOf {
  uint32_t worker = 0;
  uint64_t number = 0;  // in that worker's conversation; 0: it is no record
};

// RoundHead: what a ReplicaRound says of its tensor.
struct RoundHead {
  uint32_t block = 0;
  uint64_t number = 0;
  wire::RoundRecord what = wire::RoundRecord::Answers;
  float factor = 1;
  uint32_t keys = 0;
  uint32_t key_bytes = 0;
  std::vector<wire::ReplicaExchange> exchanges;
};

// WeightsHead: what a Weights says of its tensor, and of the run.
struct WeightsHead {
  uint64_t version = 0;
  uint64_t global_step = 0;
  uint32_t steps = 0;  // granted
  uint64_t checksum = 0;
  uint32_t held_us = 0;   // how long the answer was held back
  uint64_t evaluate = 0;  // the local step after which to evaluate; 0: none
  Compression form = Compression::kNone;
  // The worker's newest lease (data.split: dynamic); without batches: none.
  struct Lease {
    uint64_t step = 0;
    uint64_t epoch = 0;
    uint64_t first = 0;
    uint64_t batches = 0;
  };
  Lease lease = {};
};

class Encoder {
 public:
  // Usage: auto& b = encoder.Begin(); Message m = encoder.Finish(envelope, wire::CreatePull(b));
  // Every string and list that the schema requires must be set, if only to an empty one. Finish() throws
  // Failure for a message that the receiver would drop: a header of more than kMaxHeaderBytes.
  flatbuffers::FlatBufferBuilder& Begin();
  template <typename Table>
  Message Finish(const Envelope& envelope, flatbuffers::Offset<Table> body) {
    return FinishUnion(envelope, wire::BodyTraits<Table>::enum_value, body.Union());
  }

  // These make the messages with a tensor. A tensor of up to kInlineBytes is copied into the header and
  // released before the call returns. `version`: in sync, the version of the weights that the gradient was
  // computed from. `loss`: of the latest step that told none yet. `rows`: of a table. `form`: of the values.
  // `empty`: the weights have this block of the batch already.
  Message Push(const Envelope& envelope, uint32_t block, uint32_t examples, uint64_t checksum,
               LentBytes gradient, uint64_t version = 0, const PushedLoss& loss = {},
               const PushedRows& rows = {}, Compression form = Compression::kNone, bool empty = false,
               const RecordOf& record = {});
  Message Pull(const Envelope& envelope, const PullHead& head, LentBytes keys);
  Message Weights(const Envelope& envelope, const WeightsHead& head, LentBytes weights);
  Message DataBatch(const Envelope& envelope, const BatchHead& head, LentBytes values);
  Message Round(const Envelope& envelope, const RoundHead& head, LentBytes sum);
  Message Piece(const Envelope& envelope, uint64_t number, size_t part, uint64_t piece, uint64_t checksum,
                LentBytes values, bool replica = false);

 private:
  using Bytes = std::vector<uint8_t>;

  Message FinishUnion(const Envelope& envelope, wire::Body type, flatbuffers::Offset<void> body);
  template <typename Table, typename PutFields>
  Message AsLast(Bytes* last, const Envelope& envelope, const LentBytes& tensor, const PutFields& put_fields);

  flatbuffers::FlatBufferBuilder builder_{1024};
  Bytes last_push_, last_weights_;  // the headers of the last ones
};

// Returns the verified envelope. Returns null for a message that is truncated, damaged, of another identifier
// or without a body; that has both an inline tensor and a payload frame; or whose payload no tensor message
// announces. Never throws and never reads out of bounds. In a decoded message every string and list that the
// schema requires is present, a Role is one of the schema's and a form is a Compression. All other values are
// as the peer sent them.
const wire::Envelope* Decode(const Message& message);

// Returns the tensor of a decoded message, from the payload or the header. It has no alignment.
TensorView Tensor(const Message& message, const wire::Push& push);
TensorView Tensor(const Message& message, const wire::Pull& pull);
TensorView Tensor(const Message& message, const wire::Weights& weights);
TensorView Tensor(const Message& message, const wire::DataBatch& batch);
TensorView Tensor(const Message& message, const wire::Piece& piece);
TensorView Tensor(const Message& message, const wire::ReplicaRound& round);

// Returns the xxh3-64 of the bytes, which net.checksum puts into tensor messages. Never 0.
uint64_t PayloadChecksum(const void* data, size_t size);

}  // namespace dtrain::net
