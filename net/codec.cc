#include "net/codec.h"

#define XXH_INLINE_ALL
#include <xxhash.h>
#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "base/error.h"

namespace dtrain::net {
namespace {

// The deepest message: an envelope, its body, a report in it, a table in a list of that; and some room.
constexpr flatbuffers::uoffset_t kMaxDepth = 8;
constexpr flatbuffers::uoffset_t kMaxTables = 65536;

bool IsRole(wire::Role role) { return role <= wire::Role::MAX; }
bool IsForm(uint8_t form) { return form <= static_cast<uint8_t>(Compression::kTopk); }

// FlatBuffers verifies only the alignment of a list's length. Numbers of 8 bytes need more.
template <typename Number>
bool IsAligned(const flatbuffers::Vector<Number>* numbers) {
  return numbers == nullptr || numbers->size() == 0 ||
         reinterpret_cast<uintptr_t>(numbers->Data()) % alignof(uint64_t) == 0;
}

bool IsAligned(const wire::InputForm* form) {
  return form == nullptr || (IsAligned(form->shift()) && IsAligned(form->factor()));
}

bool IsAligned(const wire::Report& report) {
  if (const wire::SnapshotState* state = report.snapshot()) {
    if (!IsAligned(state->checksums()) || !IsAligned(state->sizes()) || !IsAligned(state->firsts()))
      return false;
  }
  if (report.checksums() == nullptr) return true;
  const auto& parts = *report.checksums()->parts();
  return std::all_of(parts.begin(), parts.end(), [](const wire::Part* part) {
    return part->values() == nullptr || part->values()->size() == 0 ||
           reinterpret_cast<uintptr_t>(part->values()->Data()) % alignof(float) == 0;
  });
}

// Whether the body is of a known kind, a role and a form are known ones and the lists can be read.
// FlatBuffers verifies all bounds and the presence of required fields, and nothing else.
bool IsReadable(const wire::Envelope& envelope) {
  const wire::Body type = envelope.body_type();
  if (envelope.body() == nullptr || type == wire::Body::NONE || type > wire::Body::MAX) return false;
  if (const wire::Push* push = envelope.body_as_Push()) return IsForm(push->form());
  if (const wire::Weights* weights = envelope.body_as_Weights()) return IsForm(weights->form());
  if (const wire::Hello* hello = envelope.body_as_Hello()) return IsRole(hello->role());
  if (const wire::Abort* abort = envelope.body_as_Abort()) return IsRole(abort->role());
  if (const wire::WaitEnd* wait = envelope.body_as_WaitEnd()) return IsAligned(wait->squares());
  if (const wire::Report* report = envelope.body_as_Report()) return IsAligned(*report);
  if (const wire::Round* round = envelope.body_as_Round()) {
    return IsAligned(round->contributors()) && IsAligned(round->answered());
  }
  if (const wire::Heartbeat* beat = envelope.body_as_Heartbeat()) return IsAligned(beat->parts_us());
  if (const wire::ReplicaWorker* worker = envelope.body_as_ReplicaWorker()) {
    return IsAligned(worker->clocks()) && IsAligned(worker->next_rounds());
  }
  if (const wire::ReplicaRound* round = envelope.body_as_ReplicaRound()) {
    return IsAligned(round->exchanges()) && round->what() <= wire::RoundRecord::MAX;
  }
  if (const wire::Start* start = envelope.body_as_Start()) return IsAligned(start->inputs());
  if (const wire::Ready* ready = envelope.body_as_Ready()) {
    return ready->data() == nullptr || IsAligned(ready->data()->inputs());
  }
  return true;
}

// A payload frame belongs to a tensor message that has no tensor inside.
bool PayloadFits(const wire::Envelope& envelope, const Frame& payload) {
  if (payload.empty()) return true;
  if (const wire::Push* push = envelope.body_as_Push()) return push->values() == nullptr;
  if (const wire::Pull* pull = envelope.body_as_Pull()) {
    return pull->values() == nullptr && pull->keys() > 0;
  }
  if (const wire::Weights* weights = envelope.body_as_Weights()) return weights->values() == nullptr;
  if (const wire::DataBatch* batch = envelope.body_as_DataBatch()) return batch->values() == nullptr;
  if (const wire::Piece* piece = envelope.body_as_Piece()) return piece->values() == nullptr;
  if (const wire::ReplicaRound* round = envelope.body_as_ReplicaRound()) return round->values() == nullptr;
  return false;
}

template <typename Table>
TensorView TensorOf(const Message& message, const Table& table) {
  if (table.values() == nullptr || !message.payload.empty()) {
    return {message.payload.data(), message.payload.size()};
  }
  return {reinterpret_cast<const std::byte*>(table.values()->data()), table.values()->size()};
}

// Returns the tensor for the header, or an offset of 0 if it travels in a frame of its own.
flatbuffers::Offset<flatbuffers::Vector<uint8_t>> Inline(flatbuffers::FlatBufferBuilder& builder,
                                                         const LentBytes& tensor) {
  if (tensor.size == 0 || tensor.size > kInlineBytes) return 0;
  builder.ForceVectorAlignment(tensor.size, sizeof(uint8_t), 8);
  return builder.CreateVector(static_cast<const uint8_t*>(tensor.data), tensor.size);
}

Frame Payload(const LentBytes& tensor) {
  if (tensor.size > kInlineBytes)
    return Frame::Lend(tensor.data, tensor.size, tensor.release, tensor.context);
  if (tensor.release != nullptr) tensor.release(const_cast<void*>(tensor.data), tensor.context);
  return Frame();
}

// `create(builder, values)` returns the offset of a table whose tensor is `values`, which may be 0.
template <typename Create>
Message WithTensor(Encoder& encoder, const Envelope& envelope, const LentBytes& tensor, Create&& create) {
  flatbuffers::FlatBufferBuilder& builder = encoder.Begin();
  const auto values = Inline(builder, tensor);
  Message message = encoder.Finish(envelope, create(builder, values));
  message.payload = Payload(tensor);
  return message;
}

// NewTable: puts the fields of a table into a builder. They come largest first, as flatc puts them; a field
// that is 0 is left out.
class NewTable {
 public:
  NewTable(flatbuffers::FlatBufferBuilder& builder, const LentBytes& tensor)
      : builder_(builder), values_(Inline(builder, tensor)), begin_(builder.StartTable()) {}

  template <typename Number>
  bool Put(flatbuffers::voffset_t field, Number value) {
    builder_.AddElement<Number>(field, value, 0);
    return true;
  }
  template <typename Number>
  bool Put(flatbuffers::voffset_t field, std::optional<Number> value) {
    if (value) builder_.AddElement<Number>(field, *value);
    return true;
  }
  bool PutTensor(flatbuffers::voffset_t field) {
    builder_.AddOffset(field, values_);
    return true;
  }
  flatbuffers::uoffset_t End() { return builder_.EndTable(begin_); }

 private:
  flatbuffers::FlatBufferBuilder& builder_;
  const flatbuffers::Offset<flatbuffers::Vector<uint8_t>> values_;
  const flatbuffers::uoffset_t begin_;
};

// OldTable: writes the fields of a table over those of another. Put() returns false if one of the two has the
// field and the other has not; a tensor must have the same size.
class OldTable {
 public:
  OldTable(flatbuffers::Table* table, const LentBytes& tensor) : table_(table), tensor_(tensor) {}

  template <typename Number>
  bool Put(flatbuffers::voffset_t field, Number value) {
    return Put(field, value == 0 ? std::nullopt : std::make_optional(value));
  }
  template <typename Number>
  bool Put(flatbuffers::voffset_t field, std::optional<Number> value) {
    uint8_t* const place = table_->GetAddressOf(field);
    if (value && place != nullptr) flatbuffers::WriteScalar(place, *value);
    return value.has_value() == (place != nullptr);
  }
  bool PutTensor(flatbuffers::voffset_t field) {
    auto* const values = table_->GetPointer<flatbuffers::Vector<uint8_t>*>(field);
    const size_t size = tensor_.size > kInlineBytes ? 0 : tensor_.size;
    if (values == nullptr || values->size() != size) return values == nullptr && size == 0;
    std::memcpy(values->Data(), tensor_.data, size);
    return true;
  }

 private:
  flatbuffers::Table* const table_;
  const LentBytes tensor_;
};

// Puts a message over the last one of its kind. False: they have not the same fields, and `last` is spoilt.
template <typename PutFields>
bool Overwrite(uint8_t* last, const Envelope& envelope, const LentBytes& tensor,
               const PutFields& put_fields) {
  auto* const root = flatbuffers::GetMutableRoot<flatbuffers::Table>(last);
  OldTable head(root, {}), body(root->GetPointer<flatbuffers::Table*>(wire::Envelope::VT_BODY), tensor);
  return head.Put(wire::Envelope::VT_RUN_ID, envelope.run_id) &&
         head.Put(wire::Envelope::VT_RUN_EPOCH, envelope.run_epoch) &&
         head.Put(wire::Envelope::VT_REQUEST, envelope.request) && put_fields(body);
}

}  // namespace

// Nearly all messages of a run are pushes and weights, and have the fields and the size of the one before. To
// write the new values into that one takes a third of the time that building another takes.
template <typename Table, typename PutFields>
Message Encoder::AsLast(Bytes* last, const Envelope& envelope, const LentBytes& tensor,
                        const PutFields& put_fields) {
  Message message;
  if (!last->empty() && Overwrite(last->data(), envelope, tensor, put_fields)) {
    message.header = Frame::Copy(last->data(), last->size());
  } else {
    NewTable table(Begin(), tensor);
    put_fields(table);
    message = Finish(envelope, flatbuffers::Offset<Table>(table.End()));
    last->assign(builder_.GetBufferPointer(), builder_.GetBufferPointer() + builder_.GetSize());
  }
  message.payload = Payload(tensor);
  return message;
}

flatbuffers::FlatBufferBuilder& Encoder::Begin() {
  builder_.Clear();
  return builder_;
}

Message Encoder::Push(const Envelope& envelope, uint32_t block, uint32_t examples, uint64_t checksum,
                      LentBytes gradient, uint64_t version, const PushedLoss& loss, const PushedRows& rows,
                      Compression form, bool empty, const RecordOf& record) {
  return AsLast<wire::Push>(&last_push_, envelope, gradient, [&](auto& table) {
    using Field = wire::Push;
    return table.Put(Field::VT_RECORD, record.number) && table.Put(Field::VT_WEIGHT, loss.weight) &&
           table.Put(Field::VT_OF, rows.of) && table.Put(Field::VT_VERSION, version) &&
           table.Put(Field::VT_CHECKSUM, checksum) && table.Put(Field::VT_WORKER, record.worker) &&
           table.Put(Field::VT_KEY_BYTES, rows.key_bytes) && table.Put(Field::VT_KEYS, rows.keys) &&
           table.Put(Field::VT_LOSS, loss.mean) && table.Put(Field::VT_BLOCK, block) &&
           table.PutTensor(Field::VT_VALUES) && table.Put(Field::VT_EXAMPLES, examples) &&
           table.Put(Field::VT_EMPTY, static_cast<uint8_t>(empty)) &&
           table.Put(Field::VT_FORM, static_cast<uint8_t>(form));
  });
}

Message Encoder::Pull(const Envelope& envelope, const PullHead& head, LentBytes keys) {
  return WithTensor(*this, envelope, keys, [&](auto& builder, auto values) {
    const auto workers = head.workers.empty() ? 0 : builder.CreateVector(head.workers);
    return wire::CreatePull(builder, head.block, head.enter, workers, head.clock, head.resume, head.version,
                            values, head.keys, head.read, head.snapshot, head.leaves, head.worker,
                            head.record);
  });
}

Message Encoder::Weights(const Envelope& envelope, const WeightsHead& head, LentBytes weights) {
  // A copy of `head`: with a reference GCC does not inline this.
  return AsLast<wire::Weights>(&last_weights_, envelope, weights, [head](auto& table) {
    using Field = wire::Weights;
    return table.Put(Field::VT_LEASE_BATCHES, head.lease.batches) &&
           table.Put(Field::VT_LEASE_FIRST, head.lease.first) &&
           table.Put(Field::VT_LEASE_EPOCH, head.lease.epoch) &&
           table.Put(Field::VT_LEASE_STEP, head.lease.step) && table.Put(Field::VT_EVALUATE, head.evaluate) &&
           table.Put(Field::VT_CHECKSUM, head.checksum) &&
           table.Put(Field::VT_GLOBAL_STEP, head.global_step) && table.Put(Field::VT_VERSION, head.version) &&
           table.Put(Field::VT_HELD_US, head.held_us) && table.PutTensor(Field::VT_VALUES) &&
           table.Put(Field::VT_STEPS, head.steps) &&
           table.Put(Field::VT_FORM, static_cast<uint8_t>(head.form));
  });
}

Message Encoder::DataBatch(const Envelope& envelope, const BatchHead& head, LentBytes data) {
  return WithTensor(*this, envelope, data, [&](auto& builder, auto values) {
    return wire::CreateDataBatch(builder, head.local_step, head.end, head.rows, head.as_bytes, head.epoch,
                                 head.batch_in_epoch, head.batches_per_epoch, head.max_rows, head.checksum,
                                 values, head.devices, head.weighted, head.id_bytes, head.features,
                                 head.has_values, head.has_offsets, head.weight);
  });
}

Message Encoder::Round(const Envelope& envelope, const RoundHead& head, LentBytes sum) {
  return WithTensor(*this, envelope, sum, [&](auto& builder, auto values) {
    const auto exchanges = builder.CreateVectorOfStructs(head.exchanges);
    return wire::CreateReplicaRound(builder, head.block, head.number, head.what, head.factor, values,
                                    head.keys, head.key_bytes, exchanges);
  });
}

Message Encoder::Piece(const Envelope& envelope, uint64_t number, size_t part, uint64_t piece,
                       uint64_t checksum, LentBytes data, bool replica) {
  return WithTensor(*this, envelope, data, [&](auto& builder, auto values) {
    return wire::CreatePiece(builder, number, static_cast<uint8_t>(part), piece, checksum, values, replica);
  });
}

Message Encoder::FinishUnion(const Envelope& envelope, wire::Body type, flatbuffers::Offset<void> body) {
  const auto root =
      wire::CreateEnvelope(builder_, envelope.run_id, envelope.run_epoch, envelope.request, type, body);
  wire::FinishEnvelopeBuffer(builder_, root);
  Message message = {Frame::Copy(builder_.GetBufferPointer(), builder_.GetSize()), Frame()};
  // The receiver would drop an invalid message silently, so it is found here. The parts of one may come from
  // other tasks, so it ends this task and never aborts. Tensor messages are valid by construction, and
  // frequent.
  const bool is_tensor = type == wire::Body::Push || type == wire::Body::Pull ||
                         type == wire::Body::Weights || type == wire::Body::DataBatch ||
                         type == wire::Body::Piece || type == wire::Body::ReplicaRound;
  if (is_tensor || Decode(message) != nullptr) return message;
  throw Failure(
      ExitCode::kInternal,
      fmt::format("a message {} cannot be sent: it has {} bytes, of at most {}, and its lists at most "
                  "{} entries",
                  wire::EnumNameBody(type), message.header.size(), kMaxHeaderBytes, kMaxTables));
}

const wire::Envelope* Decode(const Message& message) {
  const std::byte* const data = message.header.data();
  const size_t size = message.header.size();
  if (size > kMaxHeaderBytes) return nullptr;
  DT_CHECK(reinterpret_cast<uintptr_t>(data) % kHeaderAlignment == 0);
  flatbuffers::Verifier verifier(reinterpret_cast<const uint8_t*>(data), size, kMaxDepth, kMaxTables);
  if (!wire::VerifyEnvelopeBuffer(verifier)) return nullptr;
  const wire::Envelope* const envelope = wire::GetEnvelope(data);
  return IsReadable(*envelope) && PayloadFits(*envelope, message.payload) ? envelope : nullptr;
}

TensorView Tensor(const Message& message, const wire::Push& push) { return TensorOf(message, push); }

TensorView Tensor(const Message& message, const wire::Pull& pull) { return TensorOf(message, pull); }

TensorView Tensor(const Message& message, const wire::Weights& weights) { return TensorOf(message, weights); }

TensorView Tensor(const Message& message, const wire::DataBatch& batch) { return TensorOf(message, batch); }

TensorView Tensor(const Message& message, const wire::Piece& piece) { return TensorOf(message, piece); }

TensorView Tensor(const Message& message, const wire::ReplicaRound& round) {
  return TensorOf(message, round);
}

uint64_t PayloadChecksum(const void* data, size_t size) {
  const uint64_t hash = XXH3_64bits(data, size);
  return hash != 0 ? hash : 1;
}

}  // namespace dtrain::net
