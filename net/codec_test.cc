#include "net/codec.h"

#include <doctest/doctest.h>

#include <cmath>
#include <random>
#include <set>

#include "base/error.h"
#include "net/codec_test_util.h"

namespace dtrain::net {
namespace {

std::vector<float> Floats(const TensorView& view) {
  std::vector<float> values(view.size / sizeof(float));
  if (!values.empty()) std::memcpy(values.data(), view.data, view.size);
  return values;
}

void Count(void* /*data*/, void* context) { ++*static_cast<int*>(context); }

Message Copied(const Message& message) {
  return {Frame::Copy(message.header.data(), message.header.size()), message.payload.Share()};
}

// Bytes of a header, as the schema's own code makes them.
std::string PushAlone(const Envelope& envelope, uint32_t block, const std::vector<uint8_t>& tensor,
                      uint64_t version, const PushedLoss& loss, const PushedRows& rows, Compression form,
                      bool empty, const RecordOf& record) {
  Encoder encoder;
  auto& builder = encoder.Begin();
  const auto mean = loss.mean ? flatbuffers::Optional<float>(*loss.mean) : flatbuffers::nullopt;
  const auto weight = loss.weight ? flatbuffers::Optional<double>(*loss.weight) : flatbuffers::nullopt;
  builder.ForceVectorAlignment(tensor.size(), sizeof(uint8_t), 8);
  const auto values = tensor.empty() ? 0 : builder.CreateVector(tensor);
  return std::string(
      encoder
          .Finish(envelope, wire::CreatePush(builder, 100, 7, values, block, version, mean, rows.of,
                                             rows.keys, weight, static_cast<uint8_t>(form), rows.key_bytes,
                                             empty, record.worker, record.number))
          .header.text());
}

std::string WeightsAlone(const Envelope& envelope, const std::vector<uint8_t>& tensor, uint32_t steps,
                         uint32_t held_us, uint64_t evaluate, Compression form,
                         const WeightsHead::Lease& lease) {
  Encoder encoder;
  auto& builder = encoder.Begin();
  builder.ForceVectorAlignment(tensor.size(), sizeof(uint8_t), 8);
  const auto values = tensor.empty() ? 0 : builder.CreateVector(tensor);
  return std::string(
      encoder
          .Finish(envelope, wire::CreateWeights(builder, 11, 12, steps, 13, values, held_us, evaluate,
                                                static_cast<uint8_t>(form), false, lease.step, lease.epoch,
                                                lease.first, lease.batches))
          .header.text());
}

}  // namespace

TEST_CASE("codec: the bytes of a push or of weights do not depend on what the encoder has made before") {
  Encoder encoder;
  std::mt19937 random(1);
  // The same draw often comes twice in a row, and each field is there or not.
  const auto some = [&random](uint32_t value) { return random() % 3 == 0 ? 0 : value; };
  for (int i = 0; i < 2000; ++i) {
    CAPTURE(i);
    const Envelope envelope{random(), some(random() % 3), some(random())};
    const std::vector<uint8_t> tensor(some(8 * (random() % 3)), static_cast<uint8_t>(random()));
    const LentBytes lent{tensor.data(), tensor.size()};
    const uint32_t block = some(random());
    const uint64_t version = some(random());
    PushedLoss loss;
    if (some(1)) loss.mean = random() % 2 ? 0.0f : 0.5f;
    if (some(1)) loss.weight = random() % 2 ? 0.0 : 3.0;
    const PushedRows rows{some(random()), some(random()), some(random())};
    const auto form = static_cast<Compression>(some(random() % 3));
    const bool empty = some(1) != 0;
    const RecordOf record{some(random()), some(random())};
    CHECK(
        encoder.Push(envelope, block, 100, 7, lent, version, loss, rows, form, empty, record).header.text() ==
        PushAlone(envelope, block, tensor, version, loss, rows, form, empty, record));
    const uint32_t steps = some(random()), held_us = some(random()), evaluate = some(random());
    const WeightsHead::Lease lease{some(random()), some(random()), some(random()), some(random())};
    CHECK(
        encoder.Weights(envelope, {11, 12, steps, 13, held_us, evaluate, form, lease}, lent).header.text() ==
        WeightsAlone(envelope, tensor, steps, held_us, evaluate, form, lease));
  }
}

TEST_CASE("codec: every kind of message is decoded with its envelope") {
  const std::vector<Message> all = SampleMessages();
  REQUIRE(all.size() == static_cast<size_t>(wire::Body::MAX));
  for (size_t i = 0; i < all.size(); ++i) {
    CAPTURE(i);
    const Message received = Copied(all[i]);
    const wire::Envelope* const envelope = Decode(received);
    REQUIRE(envelope != nullptr);
    CHECK(envelope->body_type() == static_cast<wire::Body>(i + 1));
    CHECK(envelope->run_id() == 0x1122334455667788);
    CHECK(envelope->run_epoch() == 3);
    CHECK(envelope->request() == 42);
  }
}

TEST_CASE("codec: texts, lists and numbers come back as they were") {
  Encoder encoder;
  const Message hello_message = SampleHello(encoder);
  const wire::Hello& hello = *Decode(hello_message)->body_as_Hello();
  CHECK(hello.protocol() == kProtocol);
  CHECK(hello.role() == wire::Role::Worker);
  CHECK(hello.index() == 1);
  CHECK(hello.ps_index() == 2);
  CHECK(hello.address()->str() == "10.0.0.4:9002");
  CHECK(hello.process()->str() == "host-b, pid 123");
  CHECK(hello.settings()->size() == 2);
  CHECK(hello.settings()->Get(1)->key()->str() == "train.batch_size");
  CHECK(hello.settings()->Get(1)->value()->str() == "100");

  const Message report_message = SampleReport(encoder);
  const wire::ChecksumList& list = *Decode(report_message)->body_as_Report()->checksums();
  CHECK(list.parts()->Get(1)->name()->str() == "softmax/weight");
  CHECK(list.parts()->Get(1)->crc() == 0x1f22b870);
  CHECK(list.bytes_received() == 2000);

  const double nan = std::numeric_limits<double>::quiet_NaN();
  const Message done_message =
      encoder.Finish({}, wire::CreateDone(encoder.Begin(), 2, 0.25f, -5, 6, 7, 8, nan));
  const wire::Done& done = *Decode(done_message)->body_as_Done();
  CHECK(done.first_step_nanos() == -5);
  CHECK(done.loss().value() == 0.25f);
  CHECK(std::isnan(done.accuracy()));

  const Message pull_message = encoder.Pull({}, {2, false, {}, 0, false, 0, 0, true, 0, true}, {});
  const wire::Pull& pull = *Decode(pull_message)->body_as_Pull();
  CHECK(pull.read());
  CHECK(pull.leaves());
}

TEST_CASE("codec: a tensor travels inside the header up to kInlineBytes and in its own frame above") {
  Encoder encoder;
  for (const size_t count : {size_t{1}, kInlineBytes / 4, kInlineBytes / 4 + 1, size_t{7850}}) {
    CAPTURE(count);
    const std::vector<float> values = Ramp(count);
    const bool is_inline = count * sizeof(float) <= kInlineBytes;
    const Message push = encoder.Push(kSampleEnvelope, 3, 100, 7, Lent(values));
    const Message weights = encoder.Weights(kSampleEnvelope, {1, 2, 3, 8}, Lent(values));
    REQUIRE(Decode(push) != nullptr);
    REQUIRE(Decode(weights) != nullptr);
    CHECK(push.payload.empty() == is_inline);
    CHECK(Floats(Tensor(push, *Decode(push)->body_as_Push())) == values);
    CHECK(Floats(Tensor(weights, *Decode(weights)->body_as_Weights())) == values);
    CHECK(Decode(push)->body_as_Push()->examples() == 100);
    CHECK(Decode(push)->body_as_Push()->block() == 3);
    CHECK(Decode(push)->body_as_Push()->checksum() == 7);
    CHECK(Decode(weights)->body_as_Weights()->global_step() == 2);
  }
}

TEST_CASE("codec: a tensor names its form, and one of an unknown form is no message") {
  Encoder encoder;
  const std::vector<float> values = Ramp(3);
  const auto named = static_cast<Compression>(4);
  for (const Compression form :
       {Compression::kNone, Compression::kBf16, Compression::kInt8, Compression::kTopk}) {
    const Message push = encoder.Push({}, 0, 1, 0, Lent(values), 0, {}, {}, form);
    const Message weights = encoder.Weights({}, {1, 0, 0, 0, 0, 0, form}, Lent(values));
    CHECK(Decode(push)->body_as_Push()->form() == static_cast<uint8_t>(form));
    CHECK(Decode(weights)->body_as_Weights()->form() == static_cast<uint8_t>(form));
  }
  CHECK(Decode(encoder.Push({}, 0, 1, 0, Lent(values), 0, {}, {}, named)) == nullptr);
  CHECK(Decode(encoder.Weights({}, {1, 0, 0, 0, 0, 0, named}, Lent(values))) == nullptr);
}

TEST_CASE("codec: a batch comes back as it was, in the header or in a frame of its own") {
  Encoder encoder;
  for (const size_t count : {size_t{6}, size_t{7850}}) {
    const std::vector<float> values = Ramp(count);
    const BatchHead head = {31, false, 3, true, 1, 2, 29, 5, 79, 1, true, 2.5, 3, 11, true};
    const Message message = encoder.DataBatch(kSampleEnvelope, head, Lent(values));
    REQUIRE(Decode(message) != nullptr);
    const wire::DataBatch& batch = *Decode(message)->body_as_DataBatch();
    CHECK(message.payload.empty() == (count == 6));
    CHECK(Floats(Tensor(message, batch)) == values);
    CHECK(batch.local_step() == 31);
    CHECK_FALSE(batch.end());
    CHECK(batch.rows() == 3);
    CHECK(batch.as_bytes());
    CHECK(batch.epoch() == 1);
    CHECK(batch.batch_in_epoch() == 2);
    CHECK(batch.batches_per_epoch() == 29);
    CHECK(batch.max_rows() == 5);
    CHECK(batch.checksum() == 79);
    CHECK(batch.devices() == 1);
    CHECK(batch.weighted());
    CHECK(batch.weight() == 2.5);
    CHECK(batch.id_bytes() == 3);
    CHECK(batch.features() == 11);
    CHECK(batch.has_values());
  }
}

TEST_CASE("codec: a record says whose gradient or keys it has, and a round what it made of a block") {
  Encoder encoder;
  for (const size_t count : {size_t{6}, size_t{7850}}) {
    const std::vector<float> values = Ramp(count);
    const RecordOf of{1, uint64_t{1} << 40};
    const Message push_message = encoder.Push({}, 3, 100, 0, Lent(values), 0, {}, {}, {}, false, of);
    REQUIRE(Decode(push_message) != nullptr);
    const wire::Push& push = *Decode(push_message)->body_as_Push();
    CHECK(push.worker() == 1);
    CHECK(push.record() == of.number);
    PullHead head;
    head.keys = 5;
    head.worker = 1;
    head.record = of.number;
    const Message pull_message = encoder.Pull({}, head, Lent(values));
    REQUIRE(Decode(pull_message) != nullptr);
    const wire::Pull& pull = *Decode(pull_message)->body_as_Pull();
    CHECK(pull.worker() == 1);
    CHECK(pull.record() == of.number);
    CHECK(Floats(Tensor(pull_message, pull)) == values);

    const RoundHead sent = SampleRoundHead();
    const Message round_message = encoder.Round(kSampleEnvelope, sent, Lent(values));
    REQUIRE(Decode(round_message) != nullptr);
    const wire::ReplicaRound& round = *Decode(round_message)->body_as_ReplicaRound();
    CHECK(round_message.payload.empty() == (count == 6));
    CHECK(Floats(Tensor(round_message, round)) == values);
    CHECK(round.block() == sent.block);
    CHECK(round.number() == sent.number);
    CHECK(round.what() == wire::RoundRecord::Sum);
    CHECK(round.factor() == sent.factor);
    CHECK(round.keys() == sent.keys);
    CHECK(round.key_bytes() == sent.key_bytes);
    REQUIRE(round.exchanges()->size() == 2);
    const wire::ReplicaExchange& exchange = *round.exchanges()->Get(0);
    CHECK(exchange.request() == 61);
    CHECK(exchange.taken() == 1005);
    CHECK(exchange.incarnation() == 72);
    CHECK(exchange.gradients() == 1000);
    CHECK(exchange.blocks() == 3);
    CHECK(exchange.worker() == 1);
    CHECK(exchange.blocks_come() == 2);
    CHECK(exchange.dropped());
    CHECK_FALSE(round.exchanges()->Get(1)->dropped());
  }
}

TEST_CASE("codec: a round of an unknown kind, or a list of a record that is not aligned, is refused") {
  flatbuffers::FlatBufferBuilder b;
  const auto decodes = [&b](wire::Body type, flatbuffers::Offset<void> body) {
    wire::FinishEnvelopeBuffer(b, wire::CreateEnvelope(b, 1, 1, 1, type, body));
    return Decode({Frame::Copy(b.GetBufferPointer(), b.GetSize()), Frame()}) != nullptr;
  };
  for (const int what : {0, 2, 3, 255}) {
    b.Clear();
    const auto round = wire::CreateReplicaRound(b, 0, 1, static_cast<wire::RoundRecord>(what));
    CHECK(decodes(wire::Body::ReplicaRound, round.Union()) == (what <= 2));
  }
  // One element of `words` words, at a multiple of 8 or not.
  const auto list = [&b](size_t words, bool aligned) {
    const std::vector<uint8_t> zeros(4 * words);
    b.Clear();
    if ((b.GetSize() + zeros.size()) % 8 == (aligned ? 4 : 0)) b.PushElement(uint32_t{0});
    b.StartVector(words, 4);
    b.PushBytes(zeros.data(), zeros.size());
    return b.EndVector(1);
  };
  for (const bool aligned : {true, false}) {
    CAPTURE(aligned);
    using Exchanges = flatbuffers::Vector<const wire::ReplicaExchange*>;
    const flatbuffers::Offset<Exchanges> exchanges(list(sizeof(wire::ReplicaExchange) / 4, aligned));
    const auto round =
        wire::CreateReplicaRound(b, 0, 1, wire::RoundRecord::Answers, 1, 0, 0, 0, exchanges).Union();
    CHECK(decodes(wire::Body::ReplicaRound, round) == aligned);
    using Clocks = flatbuffers::Vector<const wire::ReplicaClock*>;
    const flatbuffers::Offset<Clocks> clocks(list(sizeof(wire::ReplicaClock) / 4, aligned));
    auto text = b.CreateString("a");
    auto worker = wire::CreateReplicaWorker(b, 0, 0, 0, 0, text, text, 0, 0, 0, 0, 0, 0, 0, false, clocks);
    CHECK(decodes(wire::Body::ReplicaWorker, worker.Union()) == aligned);
    const flatbuffers::Offset<flatbuffers::Vector<uint64_t>> rounds(list(2, aligned));
    text = b.CreateString("a");
    worker =
        wire::CreateReplicaWorker(b, 0, 0, 0, 0, text, text, 0, 0, 0, 0, 0, 0, 0, false, 0, false, rounds);
    CHECK(decodes(wire::Body::ReplicaWorker, worker.Union()) == aligned);
  }
}

TEST_CASE("codec: an empty gradient is a push without bytes") {
  Encoder encoder;
  int released = 0;
  const Message push = encoder.Push(kSampleEnvelope, 0, 0, 0, {nullptr, 0, Count, &released});
  CHECK(released == 1);
  REQUIRE(Decode(push) != nullptr);
  CHECK(Tensor(push, *Decode(push)->body_as_Push()).size == 0);
}

TEST_CASE("codec: small lent bytes are given back before Push returns, large ones with the payload frame") {
  Encoder encoder;
  int released = 0;
  const std::vector<float> values = Ramp(kInlineBytes);
  { const Message small = encoder.Push({}, 0, 0, 0, {values.data(), kInlineBytes, Count, &released}); }
  CHECK(released == 1);
  {
    const Message large = encoder.Push({}, 0, 0, 0, {values.data(), kInlineBytes + 4, Count, &released});
    CHECK(large.payload.data() == reinterpret_cast<const std::byte*>(values.data()));
    CHECK(released == 1);
  }
  CHECK(released == 2);
}

TEST_CASE("codec: an inline tensor is aligned for numbers of 8 bytes") {
  Encoder encoder;
  for (size_t count = 1; count < 40; ++count) {
    const Message push = encoder.Push(kSampleEnvelope, 0, 0, 0, Lent(Ramp(count)));
    CHECK(reinterpret_cast<uintptr_t>(Tensor(push, *Decode(push)->body_as_Push()).data) % 8 == 0);
  }
}

TEST_CASE("codec: a view stays valid when its message is moved") {
  Encoder encoder;
  Message message = encoder.Finish({}, wire::CreateBye(encoder.Begin()));
  CHECK(message.header.size() == 44);  // the smallest there is
  const wire::Envelope* const envelope = Decode(message);
  const Message moved = std::move(message);
  CHECK(Decode(moved) == envelope);
}

TEST_CASE("codec: a tensor in two places, or a payload that nothing announces, is refused") {
  Encoder encoder;
  for (const Message& sample : SampleMessages()) {
    Message message = Copied(sample);
    message.payload = Frame::Copy("payload!", 8);
    CHECK(Decode(message) == nullptr);
  }
}

TEST_CASE("codec: an unknown kind, role or file identifier is refused") {
  Encoder encoder;
  auto& b = encoder.Begin();
  const auto bye = wire::CreateBye(b);
  wire::FinishEnvelopeBuffer(b, wire::CreateEnvelope(b, 1, 1, 1, static_cast<wire::Body>(200), bye.Union()));
  CHECK(Decode({Frame::Copy(b.GetBufferPointer(), b.GetSize()), Frame()}) == nullptr);
  encoder.Begin();
  wire::FinishEnvelopeBuffer(b, wire::CreateEnvelope(b, 1, 1, 1, wire::Body::Bye, 0));
  CHECK(Decode({Frame::Copy(b.GetBufferPointer(), b.GetSize()), Frame()}) == nullptr);
  encoder.Begin();
  const auto abort = wire::CreateAbortDirect(b, 1, static_cast<wire::Role>(9), 0, "text");
  wire::FinishEnvelopeBuffer(b, wire::CreateEnvelope(b, 1, 1, 1, wire::Body::Abort, abort.Union()));
  CHECK(Decode({Frame::Copy(b.GetBufferPointer(), b.GetSize()), Frame()}) == nullptr);
  encoder.Begin();
  b.Finish(wire::CreateEnvelope(b, 1, 1, 1, wire::Body::Bye, wire::CreateBye(b).Union()), "DTRX");
  CHECK(Decode({Frame::Copy(b.GetBufferPointer(), b.GetSize()), Frame()}) == nullptr);
}

TEST_CASE("codec: a message without its required texts and lists is refused") {
  using wire::Body;
  for (const Body type : {Body::Hello, Body::Refuse, Body::End, Body::Heartbeat, Body::Abort,
                          Body::ReplicaOpen, Body::ReplicaWorker}) {
    CAPTURE(wire::EnumNameBody(type));
    flatbuffers::FlatBufferBuilder b;
    const flatbuffers::Offset<void> empty_table(b.EndTable(b.StartTable()));
    wire::FinishEnvelopeBuffer(b, wire::CreateEnvelope(b, 1, 1, 1, type, empty_table));
    CHECK(Decode({Frame::Copy(b.GetBufferPointer(), b.GetSize()), Frame()}) == nullptr);
  }
  flatbuffers::FlatBufferBuilder b;
  const flatbuffers::Offset<wire::ChecksumList> no_parts(b.EndTable(b.StartTable()));
  const auto report = wire::CreateReport(b, 0, 0, no_parts);
  wire::FinishEnvelopeBuffer(b, wire::CreateEnvelope(b, 1, 1, 1, Body::Report, report.Union()));
  CHECK(Decode({Frame::Copy(b.GetBufferPointer(), b.GetSize()), Frame()}) == nullptr);
}

TEST_CASE("codec: a header above kMaxHeaderBytes is refused, whatever is in it") {
  flatbuffers::FlatBufferBuilder b;
  const auto report = wire::CreateEndDirect(b, std::string(kMaxHeaderBytes, 'x').c_str());
  wire::FinishEnvelopeBuffer(b, wire::CreateEnvelope(b, 1, 1, 1, wire::Body::End, report.Union()));
  CHECK(Decode({Frame::Copy(b.GetBufferPointer(), b.GetSize()), Frame()}) == nullptr);
}

TEST_CASE("codec: a message that no receiver would take throws where it is made, and the next one is made") {
  Encoder encoder;
  const auto end = [&](size_t bytes) {
    flatbuffers::FlatBufferBuilder& b = encoder.Begin();
    return encoder.Finish({1, 1, 1}, wire::CreateEnd(b, b.CreateString(std::string(bytes, 'x'))));
  };
  CHECK_THROWS_WITH_AS(end(kMaxHeaderBytes), doctest::Contains("a message End cannot be sent: it has 1048"),
                       Failure);
  flatbuffers::FlatBufferBuilder& b = encoder.Begin();
  const std::vector<flatbuffers::Offset<wire::Setting>> settings(
      70000, wire::CreateSetting(b, b.CreateString("k"), b.CreateString("v")));
  const auto none = b.CreateString("");
  const auto hello =
      wire::CreateHello(b, 1, wire::Role::Ps, 0, 0, none, none, none, b.CreateVector(settings));
  CHECK_THROWS_AS(encoder.Finish({}, hello), Failure);
  CHECK(Decode(end(1000)) != nullptr);
}

TEST_CASE("PayloadChecksum: one changed byte changes it, and it is never 0") {
  std::string bytes(31'400, 'w');
  std::set<uint64_t> checksums = {PayloadChecksum(bytes.data(), bytes.size())};
  for (size_t i = 0; i < 100; ++i) {
    bytes[i * 300] = 'v';
    checksums.insert(PayloadChecksum(bytes.data(), bytes.size()));
  }
  CHECK(checksums.size() == 101);
  CHECK(checksums.count(0) == 0);
  CHECK(PayloadChecksum("", 0) == 0x2d06800538d394c2);  // XXH3-64 of nothing, from its specification
}

}  // namespace dtrain::net
