#include "fuzz/messages.h"

#include <limits>
#include <utility>

#include "net/codec.h"
#include "trainer/config/dump.h"

namespace dtrain::fuzz {
namespace {

using flatbuffers::Offset;
using wire::Body;

// Builds the bodies of one message.
class Maker {
 public:
  Maker(Input& input, const net::Envelope& envelope) : in_(input), envelope_(envelope) {}

  net::Message Make(Body kind, size_t tensor_bytes, const Config& config, TaskId from);

 private:
  uint32_t Small() { return static_cast<uint32_t>(in_.Number()); }
  auto Text() { return b_.CreateString(in_.Text(40)); }
  Offset<flatbuffers::String> MaybeText() { return in_.Flag() ? Text() : 0; }
  Offset<flatbuffers::Vector<uint32_t>> Workers() {
    std::vector<uint32_t> workers;
    for (uint64_t i = in_.Below(4); i > 0; --i) workers.push_back(static_cast<uint32_t>(in_.Below(4)));
    return b_.CreateVector(workers);
  }
  Offset<flatbuffers::Vector<uint64_t>> Numbers(uint64_t most) {
    std::vector<uint64_t> numbers;
    for (uint64_t i = in_.Below(most); i > 0; --i) numbers.push_back(in_.Number());
    return b_.CreateVector(numbers);
  }
  Offset<flatbuffers::Vector<const wire::Exchange*>> Exchanges() {
    std::vector<wire::Exchange> exchanges;
    for (uint64_t i = in_.Below(4); i > 0; --i) exchanges.emplace_back(in_.Below(2), in_.Below(4));
    return b_.CreateVectorOfStructs(exchanges);
  }
  Offset<wire::InputForm> Form();
  net::LentBytes Tensor(size_t bytes);
  Offset<wire::Hello> Hello(const Config& config, TaskId from);
  Offset<wire::Ready> Ready();
  Offset<wire::Start> Start();
  Offset<wire::Order> Order();
  Offset<wire::Report> Report();
  template <typename Table>
  net::Message Finish(Offset<Table> table) {
    return encoder_.Finish(envelope_, table);
  }

  Input& in_;
  const net::Envelope envelope_;
  net::Encoder encoder_;
  flatbuffers::FlatBufferBuilder& b_ = encoder_.Begin();
  std::vector<float> values_;
};

Offset<wire::InputForm> Maker::Form() {
  std::vector<std::string> features, classes;
  std::vector<double> shift, factor;
  for (uint64_t i = in_.Below(4); i > 0; --i) features.push_back(in_.Text(5));
  for (uint64_t i = in_.Below(3); i > 0; --i) classes.push_back(in_.Text(5));
  for (uint64_t i = in_.Below(4); i > 0; --i) shift.push_back(in_.Real());
  for (uint64_t i = in_.Below(4); i > 0; --i) factor.push_back(in_.Real());
  return wire::CreateInputForm(b_, b_.CreateVectorOfStrings(features), b_.CreateVectorOfStrings(classes),
                               b_.CreateVector(shift), b_.CreateVector(factor));
}

// Mostly of the expected size and finite.
net::LentBytes Maker::Tensor(size_t bytes) {
  const uint8_t how = in_.Byte();
  if (how >= 240) bytes = in_.Number() % 5000;
  values_.assign(bytes / sizeof(float) + 1, static_cast<float>(how % 16) / 64);
  if (how == 239) values_.front() = std::numeric_limits<float>::quiet_NaN();
  if (how == 238) values_.back() = values_.front() = std::numeric_limits<float>::max();
  return {values_.data(), bytes, nullptr, nullptr};
}

Offset<wire::Hello> Maker::Hello(const Config& config, TaskId from) {
  const uint8_t odd = in_.Byte();
  std::vector<Offset<wire::Setting>> settings;
  for (const auto& [key, value] : RunSettings(config)) {
    if (odd == 255 && in_.Flag()) continue;
    settings.push_back(wire::CreateSetting(b_, b_.CreateString(key), b_.CreateString(value)));
  }
  const auto list = b_.CreateVector(settings);
  const auto address = odd > 250 ? Text() : b_.CreateString("a"), process = b_.CreateString("host, pid 7");
  const auto host = b_.CreateString("h"), version = b_.CreateString("1");
  const auto dir = config.checkpoint.dir.empty() ? 0 : b_.CreateString(config.checkpoint.dir);
  const uint32_t protocol = odd == 249 ? Small() : net::kProtocol;
  const uint64_t index = odd == 248 ? in_.Number() : static_cast<uint64_t>(from.index);
  return wire::CreateHello(b_, protocol, from.role == Role::kPs ? wire::Role::Ps : wire::Role::Worker,
                           static_cast<uint32_t>(index), 0, address, process, version, list, odd % 4, host,
                           odd == 247 ? Small() : 1, dir);
}

Offset<wire::Ready> Maker::Ready() {
  Offset<wire::DataFacts> facts = 0;
  if (in_.Flag()) {
    const auto form = in_.Flag() ? Form() : 0;
    facts = wire::CreateDataFacts(b_, form, in_.Number(), static_cast<int64_t>(in_.Number()), in_.Flag(),
                                  Small(), in_.Flag(), in_.Flag());
  }
  const auto checkpoint = MaybeText();
  return wire::CreateReady(b_, in_.Byte() > 200, in_.Number(), in_.Number(), facts, checkpoint, in_.Number(),
                           in_.Byte() > 250);
}

Offset<wire::Start> Maker::Start() {
  const auto workers = Workers();
  const auto dealt = in_.Flag() ? Text() : 0;
  const auto form = in_.Byte() > 200 ? Form() : 0;
  const auto checkpoint = MaybeText();
  return wire::CreateStart(b_, 1 + Small(), in_.Flag(), in_.Number(), workers, in_.Number(), in_.Byte() > 200,
                           in_.Number(), in_.Byte() > 240, dealt, form, in_.Number(), Small(), checkpoint,
                           in_.Number());
}

Offset<wire::Order> Maker::Order() {
  switch (in_.Below(4)) {
    case 0: {
      const auto name = in_.Byte() > 200 ? Text() : 0;
      return wire::CreateOrder(
          b_, wire::CreateFill(b_, 1 + in_.Number(), name, in_.Number(), in_.Number(), in_.Flag()));
    }
    case 1:
      return wire::CreateOrder(b_, 0,
                               wire::CreateSnapshotOrder(b_, 1 + in_.Number(), in_.Number(), in_.Byte() > 200,
                                                         in_.Number(), in_.Flag()));
    case 2:
      return wire::CreateOrder(b_, 0, 0, true);
    default:
      return wire::CreateOrder(b_);
  }
}

Offset<wire::Report> Maker::Report() {
  switch (in_.Below(4)) {
    case 0: {
      const auto error = in_.Byte() > 200 ? Text() : 0;
      return wire::CreateReport(b_, wire::CreateFilled(b_, 1 + in_.Number(), error, in_.Flag()));
    }
    case 1: {
      const auto error = in_.Byte() > 200 ? Text() : 0;
      const auto checksums = in_.Flag() ? Numbers(6) : 0;
      return wire::CreateReport(
          b_, 0, wire::CreateSnapshotState(b_, 1 + in_.Number(), in_.Flag(), error, checksums));
    }
    case 2: {
      std::vector<Offset<wire::Part>> parts;
      for (uint64_t i = in_.Below(4); i > 0; --i) {
        const auto name = Text();
        const std::vector<float> values(in_.Below(9), 0.5F);
        parts.push_back(
            wire::CreatePart(b_, name, in_.Number(), in_.Number(), Small(), b_.CreateVector(values)));
      }
      const auto list = b_.CreateVector(parts);
      const auto non_finite = MaybeText();
      return wire::CreateReport(b_, 0, 0,
                                wire::CreateChecksumList(b_, list, in_.Number(), in_.Number(), non_finite));
    }
    default:
      return wire::CreateReport(b_);
  }
}

net::Message Maker::Make(Body kind, size_t tensor_bytes, const Config& config, TaskId from) {
  switch (kind) {
    case Body::Hello:
      return Finish(Hello(config, from));
    case Body::Welcome:
      return Finish(wire::CreateWelcome(b_, 1000 + Small(), in_.Flag(), in_.Number()));
    case Body::Refuse: {
      const auto text = Text();
      return Finish(wire::CreateRefuse(b_, static_cast<wire::Reason>(in_.Below(13)), text));
    }
    case Body::Ready:
      return Finish(Ready());
    case Body::Start:
      return Finish(Start());
    case Body::Ack:
      return Finish(wire::CreateAck(b_));
    case Body::Pull: {
      const auto workers = Workers();
      return Finish(wire::CreatePull(b_, in_.Byte() > 240 ? Small() : 0, in_.Flag(), workers, in_.Number(),
                                     in_.Byte() > 200, in_.Number()));
    }
    case Body::Push: {
      const uint32_t block = in_.Byte() > 240 ? Small() : 0, examples = 1 + Small();
      const uint64_t version = in_.Number();
      const net::LentBytes gradient = Tensor(tensor_bytes);
      const bool right = in_.Byte() < 240;
      const uint64_t checksum =
          config.net.checksum && right ? net::PayloadChecksum(gradient.data, gradient.size) : 0;
      return encoder_.Push(envelope_, block, examples, checksum, gradient, version);
    }
    case Body::Weights: {
      const uint64_t version = in_.Number(), step = in_.Number();
      const uint32_t steps = Small(), held = Small();
      const uint64_t evaluate = in_.Byte() > 200 ? in_.Number() : 0;
      const net::LentBytes weights = Tensor(tensor_bytes);
      const bool right = in_.Byte() < 240;
      const uint64_t checksum =
          config.net.checksum && right ? net::PayloadChecksum(weights.data, weights.size) : 0;
      return encoder_.Weights(envelope_, version, step, steps, checksum, weights, held, evaluate);
    }
    case Body::NeedStep:
      return Finish(wire::CreateNeedStep(b_));
    case Body::Grant:
      return Finish(wire::CreateGrant(b_, Small(), in_.Byte() > 200, in_.Number(), in_.Byte() > 200));
    case Body::Done: {
      const auto figures = MaybeText(), device = MaybeText();
      return Finish(wire::CreateDone(b_, in_.Number(), in_.Real(), static_cast<int64_t>(in_.Number()),
                                     static_cast<int64_t>(in_.Number()), in_.Number(), in_.Number(),
                                     in_.Real(), figures, device, in_.Real()));
    }
    case Body::Evaluated:
      return Finish(wire::CreateEvaluated(b_, in_.Number(), in_.Number(), in_.Number(), in_.Real(),
                                          in_.Real(), in_.Real(), in_.Number(), in_.Number()));
    case Body::WaitEnd: {
      const auto squares = in_.Flag() ? Numbers(16) : 0;
      return Finish(wire::CreateWaitEnd(b_, in_.Number(), squares, in_.Byte() > 240));
    }
    case Body::Round: {
      const auto contributors = Exchanges(), answered = Exchanges();
      const uint64_t number = 1 + in_.Number();
      if (in_.Byte() > 200) return Finish(wire::CreateRound(b_, number, contributors, answered, in_.Real()));
      return Finish(wire::CreateRound(b_, number, contributors, answered));
    }
    case Body::End:
      return Finish(wire::CreateEnd(b_, Text()));
    case Body::Bye:
      return Finish(wire::CreateBye(b_));
    case Body::Heartbeat: {
      const auto activity = Text(), status = Text(), checkpoint = MaybeText();
      const auto stop = static_cast<int32_t>(in_.Byte() > 240 ? in_.Number() : 0);
      return Finish(wire::CreateHeartbeat(b_, activity, in_.Number(), status, Small(), in_.Number(),
                                          in_.Number(), stop, checkpoint, in_.Number()));
    }
    case Body::Abort: {
      const auto text = Text(), summary = MaybeText();
      return Finish(wire::CreateAbort(b_, static_cast<int32_t>(in_.Number()),
                                      in_.Flag() ? wire::Role::Ps : wire::Role::Worker, Small(), text,
                                      summary));
    }
    case Body::NeedBatch:
      return Finish(wire::CreateNeedBatch(b_, Small(), in_.Number(), in_.Flag(), in_.Number()));
    case Body::DataBatch: {
      net::BatchHead head;
      head.local_step = in_.Number();
      head.end = in_.Byte() > 240;
      head.rows = Small();
      head.as_bytes = in_.Flag();
      head.epoch = in_.Number();
      head.batch_in_epoch = in_.Number();
      head.batches_per_epoch = in_.Number();
      head.max_rows = Small();
      head.devices = 1 + static_cast<uint32_t>(in_.Below(3));
      const bool fits = in_.Byte() < 200;
      return encoder_.DataBatch(
          envelope_, head, Tensor(fits ? static_cast<size_t>(head.rows) % 64 * tensor_bytes : tensor_bytes));
    }
    case Body::HookRequest: {
      const auto end_run = in_.Byte() > 200 ? Text() : 0;
      return Finish(wire::CreateHookRequest(b_, in_.Flag(), end_run));
    }
    case Body::Order:
      return Finish(Order());
    case Body::Report:
      return Finish(Report());
    case Body::ReadPiece:
      return Finish(wire::CreateReadPiece(b_, in_.Number(), in_.Number()));
    default: {
      const uint64_t number = 1 + in_.Number(), piece = in_.Number();
      const net::LentBytes values = Tensor(tensor_bytes);
      return encoder_.Piece(envelope_, number, piece, net::PayloadChecksum(values.data, values.size), values);
    }
  }
}

}  // namespace

net::Message MakeMessage(Input& input, Body kind, const net::Envelope& envelope, size_t tensor_bytes,
                         const Config& config, TaskId from) {
  return Maker(input, envelope).Make(kind, tensor_bytes, config, from);
}

net::Message Damaged(Input& input, const net::Message& message) {
  std::string bytes(message.header.text());
  for (uint64_t i = 1 + input.Below(4); i > 0; --i) {
    const size_t at = (static_cast<size_t>(input.Byte()) << 8 | input.Byte()) % bytes.size();
    bytes[at] = static_cast<char>(input.Byte());
  }
  net::Message damaged;
  damaged.header = net::Frame::Copy(bytes.data(), bytes.size());
  damaged.payload = message.payload.Share();
  return damaged;
}

}  // namespace dtrain::fuzz
