// A ps as a state machine: valid and damaged messages of its tasks and of strangers, in any order. Whatever
// comes, it does not abort, it throws nothing but what ends or restarts a run, what it keeps is bounded, and
// weights change only by gradients of steps that were granted.
#include <filesystem>
#include <map>
#include <optional>
#include <tuple>

#include "base/error.h"
#include "fuzz/script.h"
#include "fuzz/target.h"
#include "trainer/checkpoint/build_manifest.h"
#include "trainer/checkpoint/checkpoint_directory.h"
#include "trainer/checkpoint/checkpoint_reader.h"
#include "trainer/checkpoint/parts_writer.h"
#include "trainer/config/dump.h"
#include "trainer/optim/optimizer.h"
#include "trainer/order/positions.h"
#include "trainer/shard/shared_directory.h"
#include "trainer/table/hash_pieces.h"
#include "trainer/table/row_pieces.h"
#include "trainer/task/ps_run.h"
#include "trainer/task/run_task.h"
#include "trainer/testing/small_config.h"

namespace dtrain::fuzz {
namespace {

namespace fs = std::filesystem;
using wire::Body;

const std::vector<Body> kOfWorkers = {
    Body::Push,    Body::Pull,      Body::Push, Body::Pull,      Body::NeedStep,    Body::Ready, Body::Hello,
    Body::WaitEnd, Body::Heartbeat, Body::Done, Body::Evaluated, Body::HookRequest, Body::Bye,   Body::Abort};
const std::vector<Body> kOfPs = {Body::WaitEnd,   Body::Report, Body::Hello,     Body::Ready, Body::Piece,
                                 Body::ReadPiece, Body::Bye,    Body::Heartbeat, Body::Abort, Body::Pull};
const std::vector<Body> kOfLeader = {Body::Welcome, Body::Order, Body::Round,     Body::Start,
                                     Body::End,     Body::Piece, Body::ReadPiece, Body::Heartbeat,
                                     Body::Refuse,  Body::Abort, Body::Ack,       Body::Grant};
const std::vector<Body> kOfBeats = {Body::Heartbeat, Body::Hello, Body::Push};

std::vector<Body> AnyKind() {
  std::vector<Body> kinds;
  for (auto kind = Body::Hello; kind <= Body::MAX; kind = static_cast<Body>(static_cast<int>(kind) + 1)) {
    kinds.push_back(kind);
  }
  return kinds;
}

struct Setup {
  Config config;
  int self = 0;
  int prefix = 0;         // 0: from nothing; 1: the tasks have said Hello; 2: they are ready
  bool restores = false;  // checkpoint.dir has a checkpoint of kSavedStep
};

// The run of the leader that a following ps meets, and the checkpoint that is there with Setup::restores.
constexpr RunId kRun{7, 0};
constexpr int64_t kSavedStep = 9;

// Sparse rows: the weights are rows of a table of a range, of a hash table, or of one beside layers.
void UseTable(uint8_t bits, Config* config) {
  ModelConfig& model = config->model;
  model.kind = ModelKind::kLogistic;
  config->data.train.format = DataFormat::kLibsvm;
  config->data.train.path = {"rows.svm"};
  if ((bits & 3) == 1) {
    model.table = TableKind::kHash;
    model.inputs = kKeyInputs;
    config->data.whole_keys = true;
    config->net.max_message_mb = 1;
    if ((bits & 8) != 0) model.admit_after = 2;
    if ((bits & 16) != 0) model.evict_after = 3;
    if ((bits & 32) != 0) model.max_rows = 2 * TableLayout::kHashRanges;
    if ((bits & 64) != 0) config->checkpoint.delta = 2;
    return;
  }
  if ((bits & 3) == 2) {
    model.kind = ModelKind::kWideDeep;
    model.head = ModelHead::kLogistic;
    model.hidden = {2};
    model.embedding = 2;
    model.init.kind = InitKind::kNormal;
  }
  model.inputs = 8;  // each of 2 ps has the rows that workers ask for
  if ((bits & 4) != 0) config->checkpoint.delta = 2;
}

Setup SetupOf(Input& input) {
  const uint8_t mode = input.Byte(), bits = input.Byte();
  Setup setup;
  setup.prefix = mode / 64 % 3;
  const int ps = 1 + (bits & 1);
  setup.self = ps == 2 && (bits & 2) != 0 ? 1 : 0;
  Config& config = setup.config = LinearCluster(ps, 2, 20);
  config.model.inputs = 6;
  if ((mode & 8) != 0) UseTable(input.Byte(), &config);
  if ((mode & 4) != 0) {
    const uint8_t forms = input.Byte();
    config.net.compress = {static_cast<net::Compression>(forms & 3),
                           static_cast<net::Compression>(forms / 4 % 3)};
  }
  config.train.mode = static_cast<TrainMode>(mode % 3);
  if ((bits & 4) != 0) config.train.optimizer.clip_norm = 1;
  if ((bits & 8) != 0) config.failure.worker_lost = WorkerLost::kWait;
  if ((bits & 16) != 0) config.cluster.min_workers = 1;
  config.net.checksum = (bits & 32) != 0;
  if ((bits & 64) != 0) config.train.optimizer.kind = OptimizerKind::kAdam;
  if ((bits & 128) != 0) config.hooks.stop_on_nan = NonFinite::kApply;
  config.failure.startup_timeout_s = 120;
  if ((mode & 16) != 0) {
    config.checkpoint.dir = ScratchDirectory() + "/ps";
    config.checkpoint.every_secs = 30;
    config.checkpoint.timeout_s = 60;
    config.checkpoint.keep = 2;
    setup.restores = (mode & 32) != 0;
  }
  return setup;
}

// A piece of the range of a ps.
std::string ZeroPiece(const Layout& layout, int ps, SlotCounts slots, int64_t piece) {
  const Range elements = RangePieceAt(layout.ps[static_cast<size_t>(ps)], slots.other, piece).elements;
  return std::string(static_cast<size_t>(elements.size()) * sizeof(float), '\0');
}

// The one piece of the rows of a ps: it has the second of them, of a hash table also the first as a
// candidate, and the bias. `delta`: it is one of a delta, and covers their group.
std::string RowPieceOf(const Layout& layout, int ps, SlotCounts slots, bool delta) {
  const TableLayout& table = *layout.table;
  const RowRange part = table.PartOf(ps);
  const int64_t values = slots.RowValues(table.width());
  const std::vector<float> zeros(static_cast<size_t>(values));
  std::string bytes(kMaxRowPieceBytes, '\0');
  auto* const at = reinterpret_cast<std::byte*>(bytes.data());
  if (table.hashed()) {
    std::vector<HashRow> rows = {{part.begin, 1, 1, nullptr}, {part.begin + 1, 1, 0, zeros.data()}};
    if (part.end == table.rows()) rows.push_back({table.bias_row(), 1, 0, zeros.data()});
    const HashCover cover{part};
    bytes.resize(WriteHashPiece(rows, table.width(), values, at, delta ? &cover : nullptr));
    return bytes;
  }
  RowPieceWriter writer(table.width(), values, delta ? 2 : 0);
  if (delta) writer.Cover(part.begin);
  writer.Add(part.begin + 1, zeros.data());
  bytes.resize(writer.Finish(part, at));
  return bytes;
}

// How many pieces a part has here: rows of a hash table are in one.
int64_t PiecesOfPart(int64_t count) { return count == PartPieces::kOpenEnd ? 1 : count; }

// The range is the first part, if there is one.
std::string PieceOf(const Layout& layout, int ps, SlotCounts slots, Piece piece, bool delta) {
  const bool of_range = piece.part == 0 && RangeBlocksOf(layout, static_cast<size_t>(ps)) > 0;
  return of_range ? ZeroPiece(layout, ps, slots, piece.number) : RowPieceOf(layout, ps, slots, delta);
}

// checkpoint.dir as ps 0 leaves it: with a checkpoint, if the run is to restore one, and for a ps that
// follows with what shows that it is the leader's.
class Directory {
 public:
  Directory(const Setup& setup, const Layout& layout) : config_(setup.config) {
    if (config_.checkpoint.dir.empty()) return;
    if (setup.restores) Save(layout);
    if (setup.self == 0) return;
    const CheckpointDirectory directory(config_.checkpoint.dir);
    for (const uint64_t number : {0, 1})
      fs::create_directories(directory.TemporaryPath(0, SaveToken(kRun, number)));
  }
  ~Directory() {
    std::error_code none;
    if (!config_.checkpoint.dir.empty()) fs::remove_all(config_.checkpoint.dir, none);
  }
  Directory(const Directory&) = delete;
  Directory& operator=(const Directory&) = delete;

  // Of the checkpoint; 0: no checkpoint was written.
  uint64_t manifest() const { return manifest_; }
  const std::string& name() const { return name_; }

 private:
  // With checkpoint.delta it is one, with its base.
  void Save(const Layout& layout) {
    CheckpointDirectory directory(config_.checkpoint.dir);
    directory.Prepare();
    std::optional<StoredBase> base;
    if (config_.checkpoint.delta > 0) SaveOne(layout, kSavedStep - 1, &directory, &base);
    name_ = SaveOne(layout, kSavedStep, &directory, &base);
    manifest_ = ReadManifest(config_.checkpoint.dir + "/" + name_).checksum;
  }
  // Saves what has changed since `base`, or all, and that is the base then. Returns the name.
  std::string SaveOne(const Layout& layout, int64_t step, CheckpointDirectory* directory,
                      std::optional<StoredBase>* base) const {
    const ModelSlots slots = SlotsOf(config_);
    const std::string temporary = directory->BeginSave(step);
    std::vector<WrittenPart> parts;
    for (int ps = 0; ps < static_cast<int>(layout.ps.size()); ++ps) {
      PartsWriter writer(layout, ps, slots.counts(), temporary);
      for (size_t part = 0; part < writer.parts().size(); ++part) {
        for (int64_t piece = 0; piece < PiecesOfPart(writer.parts()[part]->count()); ++piece) {
          const std::string bytes = PieceOf(layout, ps, slots.counts(), {part, piece}, base->has_value());
          writer.Add(part, {reinterpret_cast<const std::byte*>(bytes.data()), bytes.size()});
        }
      }
      parts.push_back(writer.Finish());
    }
    SavedMoment moment{kRun.id, kRun.epoch, step, ToJson(StartOfData(config_, std::nullopt))};
    moment.base = *base;
    *base =
        directory->Seal(temporary, RunManifest(config_, layout, slots, parts, moment), DumpConfig(config_));
    const std::string path = directory->Publish(temporary);
    return path.substr(path.rfind('/') + 1);
  }

  const Config& config_;
  std::string name_;
  uint64_t manifest_ = 0;
};

// The threads that write checkpoints.
class Writers {
 public:
  // Lets them go on, for a while that is long for them and that the script's clock does not count. Returns
  // whether they are done; a part that waits for pieces waits for the script.
  bool Wait() {
    for (int i = 0; i < kLooks && left_ > 0 && Threads() > before_; ++i, --left_) usleep(kLookMicros);
    return Threads() <= before_;
  }

 private:
  static constexpr int kLooks = 20, kLookMicros = 50;
  static int64_t Threads() {
    const fs::directory_iterator tasks("/proc/self/task");
    return std::distance(begin(tasks), end(tasks));
  }

  // Those that are there without a run, the fewest that were seen: one that has ended is listed for a while.
  static int64_t Others() {
    static int64_t fewest = Threads();
    fewest = std::min(fewest, Threads());
    return fewest;
  }

  const int64_t before_ = Others();
  int left_ = 1000;  // looks of one run
};

// What the ps has promised and what was done for it.
class Judge {
 public:
  Judge(const Setup& setup, const ScriptChannel& channel)
      : channel_(channel),
        restored_(setup.restores ? kSavedStep : 0),
        same_for_all_(!UsesTable(setup.config)),
        counts_pushes_(setup.self == 0 || !IsSync(setup.config)),
        counts_grants_(setup.self == 0 && !IsSync(setup.config)) {}

  void OnDelivered(const ScriptChannel::Peer& from, const net::Message& message) {
    const wire::Envelope* const envelope = net::Decode(message);
    if (envelope == nullptr) return;
    if (const auto* pull = envelope->body_as_Pull()) {
      snapshots_[{from.node, envelope->request()}] = pull->snapshot();
    }
    if (envelope->body_as_Push() == nullptr) return;
    if (from.as.role == Role::kWorker && welcomed_[from.node & ~net::NodeId{1}]) ++pushes_;
  }
  void OnSent(const ScriptChannel::Peer& to, const wire::Envelope& envelope, const net::Message& message) {
    if (envelope.body_type() == Body::Welcome) welcomed_[to.node] = true;
    if (const auto* start = envelope.body_as_Start()) granted_ += start->steps();
    if (const auto* grant = envelope.body_as_Grant()) granted_ += grant->steps();
    if (const auto* weights = envelope.body_as_Weights()) OnWeights(to, envelope, message, *weights);
  }

 private:
  static bool IsSync(const Config& config) { return config.train.mode == TrainMode::kSync; }

  void OnWeights(const ScriptChannel::Peer& to, const wire::Envelope& envelope, const net::Message& message,
                 const wire::Weights& weights) {
    Require(welcomed_[to.node], "weights go to tasks that were let in");
    if (weights.gone()) return;
    const auto pulled = snapshots_.find({to.node, envelope.request()});
    const uint64_t snapshot = pulled == snapshots_.end() ? 0 : pulled->second;
    const net::TensorView tensor = net::Tensor(message, weights);
    const uint64_t sum = net::PayloadChecksum(tensor.data, tensor.size);
    const auto [seen, fresh] =
        sums_.emplace(std::tuple{envelope.run_epoch(), snapshot, weights.version(), weights.form()}, sum);
    Require(fresh || seen->second == sum || !same_for_all_,
            "weights of one version are the same for everybody");
    const uint64_t updates = weights.version() - std::min(weights.version(), restored_);
    if (updates <= pushes_) {
      StepsReached() += updates - std::min(updates, newest_);
      newest_ = std::max(newest_, updates);
    }
    if (envelope.run_epoch() == 0) {
      Require(!counts_pushes_ || updates <= pushes_, "weights change only by gradients");
      // Grants in answers that wait for a slow reader are not seen here.
      const bool counts = counts_grants_ && !channel_.somebody_was_full;
      Require(!counts || updates <= granted_, "weights change only by granted steps");
    }
    granted_ += weights.steps();
  }

  const ScriptChannel& channel_;
  const uint64_t restored_;   // the version that the weights may begin with
  const bool same_for_all_;   // not of a table: each worker asks for other rows
  const bool counts_pushes_;  // the leader of another ps may decide rounds without gradients
  const bool counts_grants_;
  std::map<net::NodeId, bool> welcomed_;
  std::map<std::pair<net::NodeId, uint64_t>, uint64_t> snapshots_;  // that a pull names, by its request
  // By run epoch, snapshot, version and form.
  std::map<std::tuple<uint32_t, uint64_t, uint64_t, uint8_t>, uint64_t> sums_;
  uint64_t pushes_ = 0;
  uint64_t granted_ = 0;
  uint64_t newest_ = 0;  // the most updates in weights that were sent
};

constexpr size_t kWorker0 = 0, kWorker1 = 1, kOther = 2;

void AddPeers(const Setup& setup, ScriptChannel& channel) {
  const auto add = [&](net::NodeId node, TaskId as, const std::vector<Body>& kinds) {
    ScriptChannel::Peer peer;
    peer.node = node;
    peer.as = as;
    peer.kinds = kinds;
    channel.peers.push_back(std::move(peer));
  };
  const TaskId worker0{Role::kWorker, 0}, worker1{Role::kWorker, 1};
  add(0x100, worker0, kOfWorkers);
  add(0x200, worker1, kOfWorkers);
  if (setup.self == 1) {
    add(0, {Role::kPs, 0}, kOfLeader);
    channel.peers[kOther].answers = true;
  } else {
    add(0x300, {Role::kPs, 1}, kOfPs);
  }
  add(0x101, worker0, kOfBeats);
  add(0x301, {Role::kPs, 1}, kOfBeats);
  add(0x400, worker0, kOfWorkers);  // another process for an index in use
  add(0x500, worker1, AnyKind());   // a stranger
}

void OrderFill(ScriptChannel& channel, const Directory& directory, bool keep) {
  net::Encoder encoder;
  flatbuffers::FlatBufferBuilder& b = encoder.Begin();
  const auto name = directory.name().empty() ? 0 : b.CreateString(directory.name());
  const auto fill = wire::CreateFill(b, 1, name, name.IsNull() ? 0 : kSavedStep, directory.manifest(), keep);
  channel.Deliver(kOther, encoder.Finish(channel.run.Envelope(0), wire::CreateOrder(b, fill)));
}

// The first messages of an honest run.
void Begin(const Setup& setup, const Directory& directory, ScriptChannel& channel) {
  if (setup.prefix == 0) return;
  const bool leads = setup.self == 0;
  if (!leads) {
    channel.run = kRun;
    const bool saves = !setup.config.checkpoint.dir.empty();
    channel.DeliverKind(kOther, Body::Welcome, {0, 0, 0, 0, 0, 0, saves});
  }
  for (const size_t peer : {kWorker0, kWorker1}) channel.DeliverKind(peer, Body::Hello);
  if (leads && setup.config.cluster.ps.size() == 2) channel.DeliverKind(kOther, Body::Hello);
  if (leads || setup.prefix == 1) return;
  for (const bool keep : {false, true}) OrderFill(channel, directory, keep);
}

// ps 1 does what ps 0 orders: it fills its range, takes a snapshot, and sends the pieces. The tasks are
// ready, once they are let in.
void AnswerHonestly(const Setup& setup, const Layout& layout, ScriptChannel& channel, ScriptChannel::Peer& to,
                    const wire::Envelope& envelope) {
  if (setup.self != 0 || setup.prefix != 2) return;
  const auto index = static_cast<size_t>(&to - channel.peers.data());
  if (index > kOther) return;
  if (envelope.body_type() == Body::Welcome) return channel.DeliverKind(index, Body::Ready);
  net::Encoder encoder;
  flatbuffers::FlatBufferBuilder& b = encoder.Begin();
  const net::Envelope answer = channel.run.Envelope(0);
  const wire::Order* const order = envelope.body_as_Order();
  if (order != nullptr && order->fill() != nullptr) {
    const auto filled = wire::CreateFilled(b, order->fill()->number(), 0, order->fill()->keep());
    return channel.Deliver(index, encoder.Finish(answer, wire::CreateReport(b, filled)));
  }
  if (order != nullptr && order->snapshot() != nullptr && !order->snapshot()->drop()) {
    const auto taken = wire::CreateSnapshotState(b, order->snapshot()->number());
    return channel.Deliver(index, encoder.Finish(answer, wire::CreateReport(b, 0, taken)));
  }
  if (const auto* read = envelope.body_as_ReadPiece()) {
    const Piece piece{read->part(), static_cast<int64_t>(read->piece())};
    const SlotCounts slots = SlotsOf(setup.config).counts();
    const PartsOfPs parts = PartsOf(layout, 1, slots);
    std::string bytes;  // so few that they travel in the header
    if (piece.part < parts.size() && piece.number < PiecesOfPart(parts[piece.part]->count())) {
      bytes = PieceOf(layout, 1, slots, piece, false);
    }
    channel.Deliver(index, encoder.Piece(answer, read->number(), piece.part, read->piece(), 0,
                                         {bytes.data(), bytes.size(), nullptr, nullptr}));
  }
}

// What is kept of a run, with a model of seven weights, after some thousand messages: three times what was
// seen.
constexpr int64_t kMaxKept = 1 << 16;

void RunScript(Input& input, const Setup& setup) {
  const Layout layout = MakeLayout(setup.config, static_cast<int>(setup.config.cluster.ps.size()));
  const size_t range = static_cast<size_t>(layout.ps[static_cast<size_t>(setup.self)].size()) * sizeof(float);
  ScriptChannel channel(input, setup.config, range);
  channel.ps = setup.self;
  AddPeers(setup, channel);
  if (setup.self == 0 && layout.ps.size() == 2) {
    channel.peers[kOther].tensor_bytes = static_cast<size_t>(layout.ps[1].size()) * sizeof(float);
  }
  const Directory directory(setup, layout);
  std::optional<Judge> judge(std::in_place, setup, channel);
  channel.on_delivered = [&](ScriptChannel::Peer& from, const net::Message& message) {
    judge->OnDelivered(from, message);
  };
  channel.on_tried = [&](ScriptChannel::Peer& to, const wire::Envelope& envelope,
                         const net::Message& message) { judge->OnSent(to, envelope, message); };
  channel.on_sent = [&](ScriptChannel::Peer& to, const wire::Envelope& envelope) {
    AnswerHonestly(setup, layout, channel, to, envelope);
  };
  ScriptTransport transport;
  ExitHooks hooks;
  LogOptions quiet;
  quiet.standard_error = false;
  quiet.level = LogLevel::kError;
  Logger log(TaskName({Role::kPs, setup.self}), quiet);
  PsRun run({setup.config, {Role::kPs, setup.self}, layout, channel, transport, hooks, log, {}, {}, {}});
  Writers writers;
  const bool saves = !setup.config.checkpoint.dir.empty();
  if (saves) channel.on_quiet = [&] { writers.Wait(); };
  Begin(setup, directory, channel);
  const int64_t before = HeapBytes();
  try {
    try {
      run.Run();
    } catch (const RunStopped& stopped) {
      run.Abort(static_cast<int>(stopped.code()), stopped.what(), &stopped.summary());
    } catch (const Failure& failure) {
      run.Abort(static_cast<int>(failure.code()), failure.what());
    }
  } catch (const ScriptEnd&) {
  }
  channel.on_quiet = nullptr;
  channel.on_tried = nullptr;
  channel.on_delivered = nullptr;
  judge.reset();  // its own memory does not count
  // A thread that writes has a large buffer.
  if (saves && !writers.Wait()) return;
  // Few bytes may name many rows that are next to each other: of a hash table as many as are asked for.
  const int64_t lists = layout.has_hash_table() ? 2 * (setup.config.train.in_flight + 3) : 0;
  const int64_t of_keys = lists * (setup.config.net.max_message_mb << 20);
  Require(HeapBytes() - before < kMaxKept + of_keys, "what a ps keeps of its peers is bounded");
}

int FuzzOne(const uint8_t* data, size_t size) {
  Input input(data, size);
  Setup setup = SetupOf(input);
  RunScript(input, setup);
  return 0;
}

const AddTarget added("ps", FuzzOne);

}  // namespace
}  // namespace dtrain::fuzz
