#include "fuzz/messages.h"

#include <algorithm>
#include <cstring>
#include <limits>
#include <memory>
#include <optional>
#include <utility>

#include "net/codec.h"
#include "trainer/config/config.h"
#include "trainer/config/dump.h"
#include "trainer/result/run_summary.h"
#include "trainer/table/key_list.h"

namespace dtrain::fuzz {
namespace {

using flatbuffers::Offset;
using wire::Body;

// Fields: numbers and flags of a message. They are taken off the input before a table is made of them, since
// compilers differ in the order in which they evaluate arguments, and an input means the same to each.
struct Fields {
  explicit Fields(Input& input) {
    for (uint64_t& number : numbers) number = input.Number();
    for (uint8_t& byte : bytes) byte = input.Byte();
  }
  uint64_t operator[](size_t i) const { return numbers[i]; }
  uint32_t Small(size_t i) const { return static_cast<uint32_t>(numbers[i]); }
  int64_t Signed(size_t i) const { return static_cast<int64_t>(numbers[i]); }
  bool Flag(size_t i) const { return (bytes[i] & 1) != 0; }
  bool Rare(size_t i) const { return bytes[i] > 220; }

  uint64_t numbers[6];
  uint8_t bytes[4];
};

// The part of a ps that a number stands for, and the piece of it: small numbers are pieces of four parts.
uint8_t PartOf(uint64_t number) { return static_cast<uint8_t>(number < 20 ? number / 4 : number % 2); }
uint64_t PieceOf(uint64_t number) { return number < 20 ? number % 4 : number; }

// Builds the bodies of one message.
class Maker {
 public:
  Maker(Input& input, const net::Envelope& envelope) : in_(input), envelope_(envelope) {}

  net::Message Make(Body kind, size_t tensor_bytes, const Config& config, TaskId from, int ps);

 private:
  uint32_t Small() { return static_cast<uint32_t>(in_.Number()); }
  auto Text() { return b_.CreateString(in_.Text(40)); }
  // Takes no byte of the input; 0: none.
  static std::optional<float> LossOf(uint64_t bits) {
    const auto low = static_cast<uint32_t>(bits);
    float loss = 0;
    std::memcpy(&loss, &low, sizeof(loss));
    return low == 0 ? std::nullopt : std::optional(loss);
  }
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
    for (uint64_t i = in_.Below(4); i > 0; --i) {
      const uint64_t incarnation = in_.Below(2), worker = in_.Below(4);
      exchanges.emplace_back(incarnation, worker);
    }
    return b_.CreateVectorOfStructs(exchanges);
  }
  Offset<wire::InputForm> Form();
  net::LentBytes Tensor(size_t bytes, const std::string& keys = {});
  net::Message Push(size_t tensor_bytes, const Config& config, int ps);
  net::Message Pull(const Config& config, int ps);
  net::Message SparseBatch(net::BatchHead head, const Config& config);
  Offset<wire::Hello> Hello(const Config& config, TaskId from, int ps);
  Offset<wire::Ready> Ready();
  Offset<wire::Start> Start();
  Offset<wire::Order> Order();
  Offset<wire::Report> Report(const Config& config);
  template <typename Table>
  net::Message Finish(Offset<Table> table) {
    return encoder_.Finish(envelope_, table);
  }

  Input& in_;
  const net::Envelope envelope_;
  net::Encoder encoder_;
  flatbuffers::FlatBufferBuilder& b_ = encoder_.Begin();
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

net::LentBytes Lent(std::unique_ptr<std::byte[]> memory, size_t bytes) {
  const auto release = [](void*, void* of) {
    std::default_delete<std::byte[]>()(static_cast<std::byte*>(of));
  };
  std::byte* const data = memory.release();
  return {data, bytes, release, data};
}

// The float32 of a tensor in this form, and behind them keys.
net::LentBytes Compressed(net::Compression form, const net::LentBytes& tensor, const std::string& keys = {}) {
  if (form == net::Compression::kNone) return tensor;
  const size_t count = tensor.size / sizeof(float),
               bytes = net::CompressedBytes(form, static_cast<int64_t>(count));
  auto memory = std::make_unique<std::byte[]>(bytes + keys.size());
  net::Compress(form, static_cast<const float*>(tensor.data), nullptr, static_cast<int64_t>(count),
                memory.get());
  tensor.release(const_cast<void*>(tensor.data), tensor.context);
  if (!keys.empty()) std::memcpy(memory.get() + bytes, keys.data(), keys.size());
  return Lent(std::move(memory), bytes + keys.size());
}

// The rows that request `number` of a worker asks for, among the first four of a block: a message that names
// an earlier one so knows how many they are. Of a hash table others each time, and the bias.
std::vector<uint64_t> KeysOf(uint64_t number, const Config& config, int ps) {
  const bool hashed = TableOf(config) == TableKind::kHash;
  std::vector<uint64_t> keys;
  for (uint64_t key = 0; key < 4; ++key) {
    if (((number * 7 + 5) >> key & 1) != 0) keys.push_back(hashed ? number % 32 * 4 + key : key);
  }
  const bool whole = config.cluster.ps.size() == 1;
  if (hashed && (whole || ps == 1)) keys.push_back(whole ? ~uint64_t{1} : INT64_MAX - 1);
  return keys;
}

// The same in the bytes of a message.
std::string KeyBytes(const std::vector<uint64_t>& keys) {
  std::string bytes(MaxKeyBytes(keys.size(), TableLayout(TableLayout::kHashed, 1, 1)), '\0');
  bytes.resize(EncodeKeys({keys.data(), static_cast<int64_t>(keys.size())}, {0, UINT64_MAX},
                          reinterpret_cast<std::byte*>(bytes.data())));
  return bytes;
}

// A message in two is of the tensors that travel whole, where the model has some beside its table.
bool IsOfRange(uint64_t number, const Config& config) {
  return config.model.kind == ModelKind::kWideDeep && number % 2 == 0;
}

// Values, and behind them keys. Mostly of the expected size and finite. The bytes live for as long as the
// message, in memory of exactly their size.
net::LentBytes Maker::Tensor(size_t bytes, const std::string& keys) {
  const uint8_t how = in_.Byte();
  bytes += keys.size();
  if (how >= 240) bytes = in_.Number() % 5000;
  std::vector<float> values(bytes / sizeof(float) + 1, static_cast<float>(how % 16) / 64);
  if (how == 239) values.front() = std::numeric_limits<float>::quiet_NaN();
  if (how == 238) values.back() = values.front() = std::numeric_limits<float>::max();
  auto memory = std::make_unique<std::byte[]>(bytes);
  std::memcpy(memory.get(), values.data(), bytes);
  const size_t key_bytes = std::min(bytes, keys.size());
  if (key_bytes > 0) std::memcpy(memory.get() + bytes - key_bytes, keys.data(), key_bytes);
  // A width that is none, or a row that is not there.
  if (how >= 232 && how < 238 && bytes > 0)
    memory[bytes - 1 - how % std::min<size_t>(bytes, 8)] = std::byte{how};
  return Lent(std::move(memory), bytes);
}

// A DataBatch of sparse rows, whose lists mostly fit each other.
net::Message Maker::SparseBatch(net::BatchHead head, const Config& config) {
  const uint8_t odd = in_.Byte();
  head.as_bytes = false;
  head.weighted = (odd & 1) == 0;
  head.has_values = (odd & 2) == 0;
  head.has_offsets = config.data.offset.empty() == (odd >= 236 && odd < 240);
  head.id_bytes = odd >= 240 ? in_.Byte() : 1 + (odd >> 2 & 3);
  std::string labels, weights, ends, values, ids;
  const auto add = [](auto value, std::string* list) {
    list->append(reinterpret_cast<const char*>(&value), sizeof value);
  };
  for (uint32_t row = 0; row < head.rows % 64; ++row) {
    const uint8_t of_row = in_.Byte();
    for (int i = 0; i < of_row % 4; ++i, ++head.features) {
      if (head.has_values) add(static_cast<float>(i) / 2, &values);
      const uint64_t id =
          of_row > 245 ? in_.Number() : (of_row + i) % static_cast<uint64_t>(*config.model.inputs);
      for (int byte = 0; byte < head.id_bytes; ++byte) {
        ids.push_back(static_cast<char>(byte < 8 ? id >> (8 * byte) : 0));
      }
    }
    add(of_row > 250 ? static_cast<int32_t>(in_.Number()) : of_row >> 2 & 1, &labels);
    add(of_row == 250 ? -1.0f : static_cast<float>(of_row >> 3) / 8, &weights);
    add(of_row > 252 ? Small() : static_cast<uint32_t>(head.features), &ends);
  }
  if (odd >= 250) head.features = in_.Number();
  const std::string all =
      labels + (head.weighted ? weights : "") + (head.has_offsets ? weights : "") + ends + values + ids;
  auto memory = std::make_unique<std::byte[]>(all.size());
  std::memcpy(memory.get(), all.data(), all.size());
  return encoder_.DataBatch(envelope_, head, Lent(std::move(memory), all.size()));
}

Offset<wire::Hello> Maker::Hello(const Config& config, TaskId from, int ps) {
  const uint8_t odd = in_.Byte();
  const Settings own = RunSettings(config);
  std::vector<Offset<wire::Setting>> settings;
  for (const auto& [key, value] : own) {
    if (odd == 255 && in_.Flag()) continue;
    settings.push_back(wire::CreateSetting(b_, b_.CreateString(key), b_.CreateString(value)));
  }
  const auto list = odd > 240 ? b_.CreateVector(settings) : 0;
  const uint64_t hash = odd > 244 ? 1 : SettingsHash(own);
  const auto address = odd > 250 ? Text() : b_.CreateString("a"), process = b_.CreateString("host, pid 7");
  const auto host = b_.CreateString("h"), version = b_.CreateString("1");
  const auto dir = config.checkpoint.dir.empty() ? 0 : b_.CreateString(config.checkpoint.dir);
  const uint32_t protocol = odd == 249 ? Small() : net::kProtocol;
  const uint32_t at_once = odd == 247 ? Small() : 1;
  const uint64_t index = odd == 248 ? in_.Number() : static_cast<uint64_t>(from.index);
  return wire::CreateHello(b_, protocol, from.role == Role::kPs ? wire::Role::Ps : wire::Role::Worker,
                           static_cast<uint32_t>(index), static_cast<uint32_t>(ps), address, process, version,
                           list, odd % 4, host, at_once, dir, hash);
}

Offset<wire::Ready> Maker::Ready() {
  Offset<wire::DataFacts> facts = 0;
  if (in_.Flag()) {
    const auto form = in_.Flag() ? Form() : 0;
    const Fields f(in_);
    facts = wire::CreateDataFacts(b_, form, f[0], f.Signed(1), f.Flag(0), f.Small(2), f.Flag(1), f.Flag(2));
  }
  const auto checkpoint = MaybeText();
  const Fields f(in_);
  return wire::CreateReady(b_, f.Rare(0), f[0], f[1], facts, checkpoint, f[2], f.Rare(1));
}

Offset<wire::Start> Maker::Start() {
  const auto workers = Workers();
  const auto dealt = in_.Flag() ? Text() : 0;
  const auto form = in_.Byte() > 200 ? Form() : 0;
  const auto checkpoint = MaybeText();
  const Fields f(in_);
  return wire::CreateStart(b_, 1 + f.Small(0), f.Flag(0), f[1], workers, f[2], f.Rare(1), f[3], f.Rare(2),
                           dealt, form, f[4], f.Small(5), checkpoint, f[1], f[5]);
}

Offset<wire::Order> Maker::Order() {
  switch (in_.Below(4)) {
    case 0: {
      const auto name = in_.Byte() > 200 ? Text() : 0;
      const Fields f(in_);
      return wire::CreateOrder(
          b_, wire::CreateFill(b_, 1 + f[0], name, f[1], f[2], f.Flag(0), f.Rare(1), f[3], f[4]));
    }
    case 1: {
      const Fields f(in_);
      return wire::CreateOrder(b_, 0,
                               wire::CreateSnapshotOrder(b_, 1 + f[0], f[1], f.Rare(0), f[2], f.Flag(1),
                                                         f.Rare(2) ? f[3] : 0, f.Rare(3)));
    }
    case 2:
      return wire::CreateOrder(b_, 0, 0, true);
    default:
      return wire::CreateOrder(b_);
  }
}

Offset<wire::Report> Maker::Report(const Config& config) {
  switch (in_.Below(4)) {
    case 0: {
      const auto error = in_.Byte() > 200 ? Text() : 0;
      const Fields f(in_);
      return wire::CreateReport(b_, wire::CreateFilled(b_, 1 + f[0], error, f.Flag(0)));
    }
    case 1: {
      const auto error = in_.Byte() > 200 ? Text() : 0;
      const auto checksums = in_.Flag() ? Numbers(6) : 0;
      const Fields f(in_);
      const auto sizes = UsesTable(config) ? Numbers(6) : 0;
      const auto firsts = TableOf(config) == TableKind::kHash ? Numbers(6) : 0;
      return wire::CreateReport(
          b_, 0, wire::CreateSnapshotState(b_, 1 + f[0], f.Flag(0), error, checksums, sizes, firsts));
    }
    case 2: {
      std::vector<Offset<wire::Part>> parts;
      for (uint64_t i = in_.Below(4); i > 0; --i) {
        const auto name = Text();
        const std::vector<float> values(in_.Below(9), 0.5F);
        const auto list_of = b_.CreateVector(values);
        const Fields f(in_);
        parts.push_back(wire::CreatePart(b_, name, f[0], f[1], f.Small(2), list_of));
      }
      const auto list = b_.CreateVector(parts);
      const auto non_finite = MaybeText();
      const Fields f(in_);
      const auto table =
          TableOf(config) == TableKind::kHash ? wire::CreateTableFigures(b_, f[2], f[3], f[4], f[5]) : 0;
      return wire::CreateReport(b_, 0, 0, wire::CreateChecksumList(b_, list, f[0], f[1], non_finite, table));
    }
    default:
      return wire::CreateReport(b_);
  }
}

net::Message Maker::Pull(const Config& config, int ps) {
  const auto workers = Workers();
  const Fields f(in_);
  const uint64_t number = envelope_.request;
  if (UsesTable(config) && !IsOfRange(number, config)) {
    const std::vector<uint64_t> keys = KeysOf(number, config, ps);
    net::PullHead head;
    head.block = f.Rare(0) ? f.Small(0) : config.model.kind == ModelKind::kWideDeep;
    head.enter = f.Flag(1);
    head.clock = f[1];
    head.resume = f.Rare(2);
    head.version = f[2];
    head.keys = f.Rare(3) ? f.Small(3) : static_cast<uint32_t>(keys.size());
    head.read = f.Flag(3);
    head.snapshot = f[5] % 8 == 1 ? 1 + f[4] % 8 : 0;
    return encoder_.Pull(envelope_, head, Tensor(0, KeyBytes(keys)));
  }
  const uint64_t snapshot = f[5] % 8 == 1 ? 1 + f[4] % 8 : 0;
  return Finish(wire::CreatePull(b_, f.Rare(0) ? f.Small(0) : 0, f.Flag(1), workers, f[1], f.Rare(2), f[2], 0,
                                 0, false, snapshot));
}

net::Message Maker::Push(size_t tensor_bytes, const Config& config, int ps) {
  const bool of_rows = UsesTable(config) && !IsOfRange(envelope_.request, config);
  const bool joint = config.model.kind == ModelKind::kWideDeep;
  const uint32_t block = in_.Byte() > 240 ? Small() : of_rows && joint, examples = 1 + Small();
  const uint64_t version = in_.Number();
  net::PushedRows rows;
  std::string keys;
  if (of_rows) {
    rows.of = envelope_.request - (joint ? 2 : 1);
    const std::vector<uint64_t> asked = KeysOf(envelope_.request, config, ps);
    rows.keys = static_cast<uint32_t>(asked.size());
    keys = KeyBytes(asked);
    rows.key_bytes = static_cast<uint32_t>(keys.size());
    const size_t width = joint ? 1 + static_cast<size_t>(config.model.embedding) : 1;  // its weight first
    tensor_bytes = KeysOf(rows.of, config, ps).size() * width * sizeof(float);
  }
  const net::Compression push = config.net.compress.push, form = of_rows ? net::FormOfRows(push) : push;
  const net::LentBytes gradient = form == net::Compression::kNone
                                      ? Tensor(tensor_bytes, keys)
                                      : Compressed(form, Tensor(tensor_bytes), keys);
  const bool right = in_.Byte() < 240;
  const uint64_t checksum =
      config.net.checksum && right ? net::PayloadChecksum(gradient.data, gradient.size) : 0;
  return encoder_.Push(envelope_, block, examples, checksum, gradient, version, LossOf(version), rows, form);
}

net::Message Maker::Make(Body kind, size_t tensor_bytes, const Config& config, TaskId from, int ps) {
  switch (kind) {
    case Body::Hello:
      return Finish(Hello(config, from, ps));
    case Body::Welcome: {
      const Fields f(in_);
      return Finish(wire::CreateWelcome(b_, 1000 + f.Small(0), f.Flag(0), f[1]));
    }
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
    case Body::Pull:
      return Pull(config, ps);
    case Body::Push:
      return Push(tensor_bytes, config, ps);
    case Body::Weights: {
      const uint64_t version = in_.Number(), step = in_.Number();
      const uint32_t steps = Small(), held = Small();
      const uint64_t evaluate = in_.Byte() > 200 ? in_.Number() : 0;
      const net::Compression form = config.net.compress.pull;
      const net::LentBytes weights = Compressed(form, Tensor(tensor_bytes));
      const bool right = in_.Byte() < 240;
      const uint64_t checksum =
          config.net.checksum && right ? net::PayloadChecksum(weights.data, weights.size) : 0;
      return encoder_.Weights(envelope_, {version, step, steps, checksum, held, evaluate, form}, weights);
    }
    case Body::NeedStep:
      return Finish(wire::CreateNeedStep(b_));
    case Body::NeedSnapshot:
      return Finish(wire::CreateNeedSnapshot(b_, in_.Number()));
    case Body::Grant: {
      const Fields f(in_);
      return Finish(wire::CreateGrant(b_, f.Small(0), f.Rare(0), f[1], f.Rare(1)));
    }
    case Body::Done: {
      const auto figures = MaybeText(), device = MaybeText();
      const double loss = in_.Real(), accuracy = in_.Real(), first_loss = in_.Real();
      const Fields f(in_);
      return Finish(wire::CreateDone(b_, f[0], static_cast<float>(loss), f.Signed(1), f.Signed(2), f[3], f[4],
                                     accuracy, figures, device, first_loss));
    }
    case Body::Evaluated: {
      EvaluationFigures figures;
      figures.loss = in_.Real();
      figures.accuracy = in_.Real();
      figures.auc = in_.Real();
      const Fields f(in_);
      figures.rows = f.Signed(2);
      const auto text = b_.CreateString(EvaluationToJson(figures));
      return Finish(wire::CreateEvaluated(b_, f[0], f[1], text, text, f[3], f[4]));
    }
    case Body::WaitEnd: {
      const auto squares = in_.Flag() ? Numbers(16) : 0;
      const Fields f(in_);
      return Finish(wire::CreateWaitEnd(b_, f[0], squares, f.Rare(0)));
    }
    case Body::Round: {
      const auto contributors = Exchanges(), answered = Exchanges();
      const uint64_t number = 1 + in_.Number();
      if (in_.Byte() > 200) return Finish(wire::CreateRound(b_, number, contributors, answered, in_.Real()));
      return Finish(wire::CreateRound(b_, number, contributors, answered));
    }
    case Body::End:
      return Finish(wire::CreateEnd(b_, in_.Flag() ? b_.CreateString(ToWireJson(RunSummary())) : Text()));
    case Body::Bye:
      return Finish(wire::CreateBye(b_));
    case Body::Heartbeat: {
      const auto activity = Text(), status = Text(), checkpoint = MaybeText();
      const Fields f(in_);
      const auto stop = static_cast<int32_t>(f.Rare(0) ? f[0] : 0);
      return Finish(
          wire::CreateHeartbeat(b_, activity, f[1], status, f.Small(2), f[3], f[4], stop, checkpoint, f[5]));
    }
    case Body::Abort: {
      const auto text = Text(), summary = MaybeText();
      const Fields f(in_);
      const wire::Role role = f.Flag(0) ? wire::Role::Ps : wire::Role::Worker;
      return Finish(wire::CreateAbort(b_, static_cast<int32_t>(f[0]), role, f.Small(1), text, summary));
    }
    case Body::NeedBatch: {
      const Fields f(in_);
      return Finish(wire::CreateNeedBatch(b_, f.Small(0), f[1], f.Flag(0), f[2]));
    }
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
      if (HasSparseRows(config.data)) return SparseBatch(head, config);
      const bool fits = in_.Byte() < 200;
      // A row: a label or target, then a float or a byte for each input.
      const size_t inputs = tensor_bytes / sizeof(float) - 1;
      const size_t row = head.as_bytes ? sizeof(float) + inputs : tensor_bytes;
      return encoder_.DataBatch(envelope_, head, Tensor(fits ? head.rows % 64 * row : tensor_bytes));
    }
    case Body::HookRequest: {
      const auto end_run = in_.Byte() > 200 ? Text() : 0;
      return Finish(wire::CreateHookRequest(b_, in_.Flag(), end_run));
    }
    case Body::AskStatus:
      return Finish(wire::CreateAskStatus(b_, in_.Flag() ? Text() : 0));
    case Body::Status:
      return Finish(wire::CreateStatus(b_, Text()));
    case Body::Order:
      return Finish(Order());
    case Body::Report:
      return Finish(Report(config));
    case Body::ReadPiece: {
      const Fields f(in_);
      return Finish(wire::CreateReadPiece(b_, f[0], PartOf(f[1]), PieceOf(f[1])));
    }
    default: {
      const uint64_t number = 1 + in_.Number(), piece = in_.Number();
      const net::LentBytes values = Tensor(tensor_bytes);
      return encoder_.Piece(envelope_, number, PartOf(piece), PieceOf(piece),
                            net::PayloadChecksum(values.data, values.size), values);
    }
  }
}

}  // namespace

net::Message MakeMessage(Input& input, Body kind, const net::Envelope& envelope, size_t tensor_bytes,
                         const Config& config, TaskId from, int ps) {
  return Maker(input, envelope).Make(kind, tensor_bytes, config, from, ps);
}

net::Message Damaged(Input& input, const net::Message& message) {
  std::string bytes(message.header.text());
  for (uint64_t i = 1 + input.Below(4); i > 0; --i) {
    const size_t at = input.Short() % bytes.size();
    bytes[at] = static_cast<char>(input.Byte());
  }
  net::Message damaged;
  damaged.header = net::Frame::Copy(bytes.data(), bytes.size());
  damaged.payload = message.payload.Share();
  return damaged;
}

}  // namespace dtrain::fuzz
