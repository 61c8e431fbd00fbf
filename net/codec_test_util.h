// One sample of every message kind, and a reader that reads every field of a decoded message.
#pragma once

#include <algorithm>
#include <cstring>
#include <limits>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "net/codec.h"
#include "net/compress.h"

namespace dtrain::net {

constexpr Envelope kSampleEnvelope = {0x1122334455667788, 3, 42};

inline LentBytes Lent(const std::vector<float>& values) {
  return {values.data(), values.size() * sizeof(float), nullptr, nullptr};
}

inline std::vector<float> Ramp(size_t size) {
  std::vector<float> values(size);
  std::iota(values.begin(), values.end(), 1.0f);
  return values;
}

inline Message SampleHello(Encoder& encoder) {
  auto& b = encoder.Begin();
  const std::vector<flatbuffers::Offset<wire::Setting>> settings = {
      wire::CreateSettingDirect(b, "model.kind", "softmax"),
      wire::CreateSettingDirect(b, "train.batch_size", "100")};
  return encoder.Finish(kSampleEnvelope,
                        wire::CreateHelloDirect(b, kProtocol, wire::Role::Worker, 1, 2, "10.0.0.4:9002",
                                                "host-b, pid 123", "0.1.0", &settings));
}

// A report with all that one may hold.
inline Message SampleReport(Encoder& encoder) {
  auto& b = encoder.Begin();
  const std::vector<uint64_t> checksums = {5, 6}, sizes = {400, 0}, firsts = {1, 80};
  const auto filled = wire::CreateFilledDirect(b, 2, "no such file", true);
  const auto state = wire::CreateSnapshotStateDirect(b, 3, true, "disk full", &checksums, &sizes, &firsts);
  const std::vector<float> values = {1, 2, 3};
  const std::vector<flatbuffers::Offset<wire::Part>> parts = {
      wire::CreatePartDirect(b, "softmax/bias", 0, 40, 0x9a41c07e, &values),
      wire::CreatePartDirect(b, "softmax/weight", 5, 15680, 0x1f22b870)};
  const auto table = wire::CreateTableFigures(b, 7, 3, 2, 4096);
  const auto list = wire::CreateChecksumListDirect(b, &parts, 1000, 2000, nullptr, table);
  const auto taken = wire::CreateTakenState(b, 5, 72, 1000, 3, true);
  const auto replica = wire::CreateReplicaStateDirect(b, 4, wire::ReplicaPhase::Filled, 31, "part 0, unit 2");
  return encoder.Finish(kSampleEnvelope, wire::CreateReport(b, filled, state, list, taken, replica));
}

inline Message SampleRound(Encoder& encoder) {
  const std::vector<wire::Exchange> contributors = {{71, 0}, {72, 2}}, answered = {{73, 1}};
  return encoder.Finish(kSampleEnvelope,
                        wire::CreateRoundDirect(encoder.Begin(), 12, &contributors, &answered, 0.5));
}

inline Message SampleReplicaWorker(Encoder& encoder) {
  flatbuffers::FlatBufferBuilder& b = encoder.Begin();
  const auto of_process = wire::CreateTakenState(b, 1, 72, 1000, 3, true);
  const std::vector<flatbuffers::Offset<wire::TakenState>> gone = {wire::CreateTakenState(b, 1, 71, 5, 1)};
  const std::vector<wire::ReplicaClock> clocks = {{7, true}, {8, false}};
  const std::vector<uint64_t> next_rounds = {12, 13, 14};
  return encoder.Finish(kSampleEnvelope, wire::CreateReplicaWorkerDirect(
                                             b, 1, 90, 3, 72, "host-b, pid 123", "host-b", 2, 4, 61, 1, 1005,
                                             of_process, &gone, true, &clocks, true, &next_rounds));
}

inline RoundHead SampleRoundHead() {
  RoundHead head = {2, 12, wire::RoundRecord::Sum, 0.5F, 3, 5, {}};
  head.exchanges = {{61, 1005, 72, 1000, 3, 1, 2, true}, {62, 4, 73, 3, 0, 0, 0, false}};
  return head;
}

// The last ones of the Body union.
inline void AddReplicas(Encoder& encoder, std::vector<Message>* all) {
  const Envelope& e = kSampleEnvelope;
  const auto add = [all](Message message) { all->push_back(std::move(message)); };
  add(encoder.Finish(e, wire::CreateReplicaOpenDirect(encoder.Begin(), 1, 4, "dtrain 1 on x86-64",
                                                      "host-a, pid 9", true, 99, 90, 72)));
  add(encoder.Finish(e, wire::CreateReplicaAck(encoder.Begin(), 17, 99, 90)));
  add(encoder.Finish(e, wire::CreateReplicaRead(encoder.Begin(), 16)));
  add(SampleReplicaWorker(encoder));
  add(encoder.Round(e, SampleRoundHead(), Lent(Ramp(11))));
  add(encoder.Finish(e, wire::CreateReplicaCheck(encoder.Begin(), 5, 82)));
  const std::vector<uint8_t> changes = {1, 2, 3};
  add(encoder.Finish(e, wire::CreateReplicaLeaderDirect(encoder.Begin(), &changes, true)));
  add(encoder.Finish(e, wire::CreateReplicaAskDirect(encoder.Begin(), "host-a, pid 9", 73)));
  add(encoder.Finish(e, wire::CreateReplicaHeld(encoder.Begin(), 4, 250)));
}

inline void AddOrders(Encoder& encoder, std::vector<Message>* all) {
  const Envelope& e = kSampleEnvelope;
  const auto add = [all](Message message) { all->push_back(std::move(message)); };
  flatbuffers::FlatBufferBuilder& builder = encoder.Begin();
  const auto fill = wire::CreateFillDirect(builder, 2, "step-000001000", 1000, 99, true, true, 7, 90);
  const auto snapshot = wire::CreateSnapshotOrder(builder, 3, 12, true, 1000, true, 2);
  const auto gone = wire::CreateIncarnation(builder, 5, 72);
  add(encoder.Finish(e, wire::CreateOrder(builder, fill, snapshot, true, gone, 4)));
  add(SampleReport(encoder));
  add(encoder.Finish(e, wire::CreateReadPiece(encoder.Begin(), 3, 1, 8)));
  add(encoder.Piece(e, 3, 1, 8, 81, Lent(Ramp(9))));
  add(encoder.Finish(e, wire::CreateAskStatusDirect(encoder.Begin(), "0123456789abcdef")));
  add(encoder.Finish(e, wire::CreateStatusDirect(encoder.Begin(), "{}")));
}

inline flatbuffers::Offset<wire::InputForm> SampleForm(flatbuffers::FlatBufferBuilder& builder) {
  const std::vector<std::string> features = {"width", "height"}, classes = {"elm", "oak"};
  const std::vector<double> shift = {1.5, 0}, factor = {0.25, 1};
  return wire::CreateInputForm(builder, builder.CreateVectorOfStrings(features),
                               builder.CreateVectorOfStrings(classes), builder.CreateVector(shift),
                               builder.CreateVector(factor), 1);
}

inline Message SampleReady(Encoder& encoder) {
  flatbuffers::FlatBufferBuilder& builder = encoder.Begin();
  const auto facts = wire::CreateDataFacts(builder, SampleForm(builder), 77, 60, true, 7, true, false);
  return encoder.Finish(kSampleEnvelope, wire::CreateReadyDirect(builder, true, 12, 30, facts,
                                                                 "host-a:/run/ckpt/step-7", 7, true, 2));
}

using SampleLeases = flatbuffers::Offset<flatbuffers::Vector<flatbuffers::Offset<wire::Lease>>>;
inline SampleLeases MakeSampleLeases(flatbuffers::FlatBufferBuilder& builder) {
  const std::vector<uint32_t> taken = {0, 16, 2};
  const std::vector<flatbuffers::Offset<wire::Lease>> leases = {
      wire::CreateLeaseDirect(builder, 40, 2, 1000, 1, &taken), wire::CreateLease(builder, 41, 3, 7, 50)};
  return builder.CreateVector(leases);
}

inline Message SampleStart(Encoder& encoder) {
  flatbuffers::FlatBufferBuilder& builder = encoder.Begin();
  const auto form = SampleForm(builder);
  const auto leases = MakeSampleLeases(builder);
  const auto workers = builder.CreateVector(std::vector<uint32_t>{0, 1, 5});
  const auto dealt = builder.CreateString("{}"), checkpoint = builder.CreateString("host-a:/run/ckpt/step-7");
  return encoder.Finish(kSampleEnvelope, wire::CreateStart(builder, 12, true, 3, workers, 0, false, 0, false,
                                                           dealt, form, 60, 7, checkpoint, 7, 0, 0, leases));
}

inline Message SampleGrant(Encoder& encoder) {
  flatbuffers::FlatBufferBuilder& builder = encoder.Begin();
  const auto leases = MakeSampleLeases(builder);
  return encoder.Finish(kSampleEnvelope,
                        wire::CreateGrant(builder, 4, true, 1000, true, 0, leases, true, 30));
}

// Returns the samples in the order of the Body union.
inline std::vector<Message> SampleMessages() {
  Encoder encoder;
  const Envelope& e = kSampleEnvelope;
  std::vector<Message> all;
  const auto add = [&all](Message message) { all.push_back(std::move(message)); };
  add(SampleHello(encoder));
  add(encoder.Finish(e, wire::CreateWelcome(encoder.Begin(), 2500)));
  add(encoder.Finish(e, wire::CreateRefuseDirect(encoder.Begin(), wire::Reason::Index, "index 7 of 3")));
  add(SampleReady(encoder));
  add(SampleStart(encoder));
  add(encoder.Finish(e, wire::CreateAck(encoder.Begin())));
  add(encoder.Pull(e, {2, true, {0, 1, 5}, 0, false, 0, 3, true, 0, true, 1, 61}, Lent(Ramp(6))));
  add(encoder.Push(e, 3, 100, 77, Lent(Ramp(11)), 9, {0.5F, 2.0}, {41, 2}, Compression::kTopk, true,
                   {1, 61}));
  add(encoder.Weights(e, {9, 17, 2, 78, 0, 0, Compression::kInt8, {40, 2, 1000, 50}}, Lent(Ramp(13))));
  add(encoder.Finish(e, wire::CreateNeedStep(encoder.Begin(), true)));
  add(SampleGrant(encoder));
  add(encoder.Finish(e, wire::CreateDoneDirect(encoder.Begin(), 2, 0.25, 5, 6, 7, 8, 0.9, "{}")));
  add(encoder.Finish(e, wire::CreateEvaluatedDirect(encoder.Begin(), 500, 1500, nullptr, "{}", 70, 80)));
  const std::vector<uint64_t> squares = {1, 2, 3};
  add(encoder.Finish(e, wire::CreateWaitEndDirect(encoder.Begin(), 7, &squares, true)));
  add(SampleRound(encoder));
  add(encoder.Finish(e, wire::CreateEndDirect(encoder.Begin(), "{}")));
  add(encoder.Finish(e, wire::CreateBye(encoder.Begin())));
  const std::vector<uint64_t> parts_us = {1, 2, 3, 4, 5};
  add(encoder.Finish(e, wire::CreateHeartbeatDirect(encoder.Begin(), "step", 31, "waiting for ps 1", 0, 0, 0,
                                                    0, nullptr, 0, &parts_us, 1 << 20, 7, 5, 8, 9, 10)));
  add(encoder.Finish(e, wire::CreateAbortDirect(encoder.Begin(), 4, wire::Role::Ps, 1, "ps 1: no reply")));
  add(encoder.Finish(e, wire::CreateNeedBatch(encoder.Begin(), 2, 31, true)));
  add(encoder.DataBatch(e, {31, false, 3, true, 1, 2, 29, 5, 79}, Lent(Ramp(6))));
  add(encoder.Finish(e, wire::CreateHookRequestDirect(encoder.Begin(), true, "no better loss")));
  AddOrders(encoder, &all);
  add(encoder.Finish(e, wire::CreateNeedSnapshot(encoder.Begin(), 500)));
  AddReplicas(encoder, &all);
  return all;
}

inline uint64_t Walk(const flatbuffers::String& text) {
  return std::accumulate(text.begin(), text.end(), uint64_t{0});
}

inline uint64_t Walk(const TensorView& tensor) {
  uint64_t sum = 0;
  for (size_t i = 0; i + sizeof(float) <= tensor.size; i += sizeof(float)) {
    uint32_t bits;
    std::memcpy(&bits, tensor.data + i, sizeof(bits));
    sum += bits;
  }
  return sum;
}

// The number of values whose form has so many bytes; other sizes are of none.
inline int64_t ValuesIn(Compression form, size_t size) {
  const auto bytes = static_cast<int64_t>(size),
             group = static_cast<int64_t>(CompressedBytes(form, kGroupValues));
  if (!HasGroups(form)) return bytes * kGroupValues / group;
  const int64_t of_last = bytes % group;
  return bytes / group * kGroupValues +
         (form == Compression::kTopk ? of_last / 3 : std::max<int64_t>(of_last - 4, 0));
}

inline uint64_t Walk(const TensorView& tensor, uint8_t form) {
  const auto as = static_cast<Compression>(form);
  std::vector<float> values(static_cast<size_t>(ValuesIn(as, tensor.size)));
  if (as == Compression::kNone) return Walk(tensor);
  const auto count = static_cast<int64_t>(values.size());
  return Decompress(as, tensor.data, tensor.size, count, values.data()) ? values.size() : 0;
}

// Checks that numbers are aligned for processors that require it.
template <typename Number>
void RequireAligned(const flatbuffers::Vector<Number>* values) {
  if (values == nullptr || values->size() == 0) return;
  if (reinterpret_cast<uintptr_t>(values->Data()) % alignof(Number) != 0) FAIL("a list is not aligned");
}

// Reads all that a decoded message refers to, as its users do.
template <typename Number>
uint64_t Walk(const flatbuffers::Vector<Number>* values) {
  RequireAligned(values);
  return values == nullptr ? 0 : std::accumulate(values->begin(), values->end(), uint64_t{0});
}

inline uint64_t Walk(const flatbuffers::Vector<const wire::Exchange*>* exchanges) {
  uint64_t sum = 0;
  if (exchanges == nullptr) return sum;
  for (const wire::Exchange* exchange : *exchanges) sum += exchange->incarnation() + exchange->worker();
  return sum;
}

template <typename Struct>
const Struct* Last(const flatbuffers::Vector<const Struct*>* structs) {
  return structs == nullptr || structs->size() == 0 ? nullptr : structs->Get(structs->size() - 1);
}

inline uint64_t Walk(const flatbuffers::String* text) { return text == nullptr ? 0 : Walk(*text); }

inline uint64_t Walk(const flatbuffers::Vector<flatbuffers::Offset<flatbuffers::String>>* texts) {
  uint64_t sum = 0;
  if (texts == nullptr) return sum;
  for (const flatbuffers::String* text : *texts) sum += Walk(text);
  return sum;
}

inline uint64_t Walk(const wire::InputForm* form) {
  if (form == nullptr) return 0;
  double sum = 0;
  for (const auto* values : {form->shift(), form->factor()}) {
    RequireAligned(values);
    if (values != nullptr) sum += std::accumulate(values->begin(), values->end(), 0.0);
  }
  return Walk(form->features()) + Walk(form->classes()) + (sum > 0 ? 1 : 0) +
         static_cast<uint64_t>(form->label_column());
}

inline uint64_t Walk(const flatbuffers::Vector<flatbuffers::Offset<wire::Lease>>* leases) {
  uint64_t sum = 0;
  if (leases == nullptr) return sum;
  for (const wire::Lease* lease : *leases) sum += lease->step() + lease->batches() + Walk(lease->taken());
  return sum;
}

inline uint64_t Walk(const wire::Order& order) {
  uint64_t sum = order.checksums();
  if (const wire::Fill* fill = order.fill())
    sum += Walk(fill->checkpoint()) + fill->manifest() + fill->earlier_updates() + fill->decay_steps();
  if (const wire::SnapshotOrder* snapshot = order.snapshot())
    sum += snapshot->number() + snapshot->step() + snapshot->base();
  if (const wire::Incarnation* gone = order.gone()) sum += gone->worker() + gone->incarnation();
  return sum;
}

inline uint64_t Walk(const wire::Report& report) {
  uint64_t sum = 0;
  if (const wire::Filled* filled = report.filled()) sum += Walk(filled->error()) + filled->number();
  if (const wire::SnapshotState* state = report.snapshot()) {
    sum += Walk(state->error()) + Walk(state->checksums()) + Walk(state->sizes()) + Walk(state->firsts());
  }
  if (const wire::TakenState* taken = report.taken()) sum += taken->gradients() + taken->blocks();
  if (const wire::ReplicaState* replica = report.replica()) {
    sum += replica->epoch() + replica->behind() + Walk(replica->differs());
  }
  if (report.checksums() == nullptr) return sum;
  for (const wire::Part* part : *report.checksums()->parts()) {
    const bool any = part->values() != nullptr && part->values()->size() > 0;
    sum += Walk(*part->name()) + part->crc() + (any && part->values()->Get(0) >= 0 ? 1 : 0);
  }
  if (const wire::TableFigures* table = report.checksums()->table()) sum += table->rows() + table->bytes();
  return sum + Walk(report.checksums()->non_finite());
}

inline uint64_t Walk(const wire::ReplicaWorker& worker) {
  uint64_t sum = worker.node() + Walk(*worker.process()) + Walk(*worker.host()) + Walk(worker.next_rounds());
  if (const wire::TakenState* taken = worker.of_process()) sum += taken->gradients();
  for (size_t i = 0; worker.gone() != nullptr && i < worker.gone()->size(); ++i) {
    sum += worker.gone()->Get(static_cast<flatbuffers::uoffset_t>(i))->incarnation();
  }
  if (const wire::ReplicaClock* clock = Last(worker.clocks())) {
    if (reinterpret_cast<uintptr_t>(clock) % alignof(uint64_t) != 0) FAIL("a list is not aligned");
    sum += clock->gradients() + clock->counts();
  }
  return sum;
}

inline uint64_t Walk(const Message& message, const wire::ReplicaRound& round) {
  uint64_t sum = Walk(Tensor(message, round)) + round.number() + round.keys() + round.key_bytes();
  if (const wire::ReplicaExchange* exchange = Last(round.exchanges())) {
    if (reinterpret_cast<uintptr_t>(exchange) % alignof(uint64_t) != 0) FAIL("a list is not aligned");
    sum += exchange->request() + exchange->worker() + exchange->dropped();
  }
  if (round.what() > wire::RoundRecord::MAX) FAIL("a round of an unknown kind");
  return sum;
}

// The messages between a ps and the one that holds its replica.
inline uint64_t WalkReplica(const Message& message, const wire::Envelope& e) {
  switch (e.body_type()) {
    case wire::Body::ReplicaOpen:
      return Walk(*e.body_as_ReplicaOpen()->kernels()) + Walk(*e.body_as_ReplicaOpen()->process());
    case wire::Body::ReplicaAck:
      return e.body_as_ReplicaAck()->items() + e.body_as_ReplicaAck()->decay_steps();
    case wire::Body::ReplicaRead:
      return e.body_as_ReplicaRead()->item();
    case wire::Body::ReplicaWorker:
      return Walk(*e.body_as_ReplicaWorker());
    case wire::Body::ReplicaRound:
      return Walk(message, *e.body_as_ReplicaRound());
    case wire::Body::ReplicaCheck:
      return e.body_as_ReplicaCheck()->unit() + e.body_as_ReplicaCheck()->checksum();
    case wire::Body::ReplicaLeader:
      return e.body_as_ReplicaLeader()->changes()->size() + e.body_as_ReplicaLeader()->more();
    case wire::Body::ReplicaAsk:
      return Walk(*e.body_as_ReplicaAsk()->process());
    case wire::Body::ReplicaHeld:
      return e.body_as_ReplicaHeld()->epoch() + e.body_as_ReplicaHeld()->quiet_ms();
    default:
      return 0;
  }
}

// The messages between ps 0 and another ps.
inline uint64_t WalkOrder(const Message& message, const wire::Envelope& e) {
  switch (e.body_type()) {
    case wire::Body::Order:
      return Walk(*e.body_as_Order());
    case wire::Body::Report:
      return Walk(*e.body_as_Report());
    case wire::Body::Piece:
      return Walk(Tensor(message, *e.body_as_Piece())) + e.body_as_Piece()->checksum();
    default:
      return WalkReplica(message, e);
  }
}

inline uint64_t Walk(const Message& message, const wire::Envelope& e) {
  uint64_t sum = e.run_id() + e.run_epoch() + e.request();
  switch (e.body_type()) {
    case wire::Body::Hello: {
      const wire::Hello& hello = *e.body_as_Hello();
      for (size_t i = 0; hello.settings() != nullptr && i < hello.settings()->size(); ++i) {
        const wire::Setting& setting = *hello.settings()->Get(static_cast<flatbuffers::uoffset_t>(i));
        sum += Walk(*setting.key()) + Walk(*setting.value());
      }
      return sum + Walk(*hello.address()) + Walk(*hello.process()) + Walk(*hello.version()) + hello.index() +
             Walk(hello.checkpoint_dir());
    }
    case wire::Body::Welcome:
      return sum + e.body_as_Welcome()->heartbeat_ms();
    case wire::Body::Refuse:
      return sum + Walk(*e.body_as_Refuse()->text());
    case wire::Body::Ready: {
      const wire::Ready& ready = *e.body_as_Ready();
      const wire::InputForm* form = ready.data() == nullptr ? nullptr : ready.data()->inputs();
      return sum + Walk(ready.checkpoint()) + ready.checkpoint_step() + Walk(form);
    }
    case wire::Body::Start:
      return sum + e.body_as_Start()->steps() + e.body_as_Start()->initial() +
             Walk(e.body_as_Start()->workers()) + Walk(e.body_as_Start()->inputs()) +
             Walk(e.body_as_Start()->checkpoint()) + Walk(e.body_as_Start()->leases());
    case wire::Body::Pull:
      return sum + e.body_as_Pull()->block() + Walk(e.body_as_Pull()->workers()) +
             Walk(Tensor(message, *e.body_as_Pull())) + e.body_as_Pull()->keys() + e.body_as_Pull()->record();
    case wire::Body::Push:
      return sum + Walk(Tensor(message, *e.body_as_Push()), e.body_as_Push()->form()) +
             e.body_as_Push()->checksum() + e.body_as_Push()->of() + e.body_as_Push()->keys() +
             e.body_as_Push()->weight().has_value() + e.body_as_Push()->record();
    case wire::Body::Weights:
      return sum + Walk(Tensor(message, *e.body_as_Weights()), e.body_as_Weights()->form()) +
             e.body_as_Weights()->version();
    case wire::Body::Grant:
      return sum + e.body_as_Grant()->steps() + e.body_as_Grant()->global_step() +
             Walk(e.body_as_Grant()->leases());
    case wire::Body::Done:
      return sum + e.body_as_Done()->bytes_received() + e.body_as_Done()->local_steps() +
             (e.body_as_Done()->figures() == nullptr ? 0 : Walk(*e.body_as_Done()->figures()));
    case wire::Body::Evaluated:
      return sum + e.body_as_Evaluated()->global_step();
    case wire::Body::WaitEnd:
      return sum + e.body_as_WaitEnd()->round() + Walk(e.body_as_WaitEnd()->squares());
    case wire::Body::End:
      return sum + Walk(*e.body_as_End()->json());
    case wire::Body::Heartbeat:
      return sum + Walk(*e.body_as_Heartbeat()->activity()) + Walk(*e.body_as_Heartbeat()->status()) +
             Walk(e.body_as_Heartbeat()->checkpoint()) + Walk(e.body_as_Heartbeat()->parts_us());
    case wire::Body::Abort:
      return sum + Walk(*e.body_as_Abort()->text()) + e.body_as_Abort()->index();
    case wire::Body::Round:
      return sum + Walk(e.body_as_Round()->contributors()) + Walk(e.body_as_Round()->answered()) +
             e.body_as_Round()->scale().has_value();
    case wire::Body::NeedBatch:
      return sum + e.body_as_NeedBatch()->worker() + e.body_as_NeedBatch()->local_step();
    case wire::Body::DataBatch:
      return sum + Walk(Tensor(message, *e.body_as_DataBatch())) + e.body_as_DataBatch()->rows();
    case wire::Body::HookRequest:
      return sum + Walk(e.body_as_HookRequest()->end_run());
    case wire::Body::AskStatus:
      return sum + Walk(e.body_as_AskStatus()->token());
    case wire::Body::Status:
      return sum + Walk(*e.body_as_Status()->json());
    default:
      return sum + WalkOrder(message, e);
  }
}

}  // namespace dtrain::net
