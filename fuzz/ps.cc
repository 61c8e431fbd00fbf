// A ps as a state machine: valid and damaged messages of its tasks and of strangers, in any order. Whatever
// comes, it does not abort, it throws nothing but what ends or restarts a run, what it keeps is bounded, and
// weights change only by gradients of steps that were granted.
#include <filesystem>
#include <map>

#include "base/error.h"
#include "fuzz/script.h"
#include "fuzz/target.h"
#include "trainer/task/ps_run.h"
#include "trainer/task/run_task.h"
#include "trainer/testing/small_config.h"

namespace dtrain::fuzz {
namespace {

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
  int prefix = 0;  // 0: from nothing; 1: the tasks have said Hello; 2: they are ready
};

Setup SetupOf(Input& input) {
  const uint8_t mode = input.Byte(), bits = input.Byte();
  Setup setup;
  setup.prefix = mode / 64 % 3;
  const int ps = 1 + (bits & 1);
  setup.self = ps == 2 && (bits & 2) != 0 ? 1 : 0;
  Config& config = setup.config = LinearCluster(ps, 2, 20);
  config.model.inputs = 6;
  config.train.mode = static_cast<TrainMode>(mode % 3);
  if ((bits & 4) != 0) config.train.optimizer.clip_norm = 1;
  if ((bits & 8) != 0) config.failure.worker_lost = WorkerLost::kWait;
  if ((bits & 16) != 0) config.cluster.min_workers = 1;
  config.net.checksum = (bits & 32) != 0;
  if ((bits & 64) != 0) config.train.optimizer.kind = OptimizerKind::kAdam;
  config.hooks.stop_on_nan = (bits & 128) == 0;
  config.failure.startup_timeout_s = 120;
  return setup;
}

// What the ps has promised and what was done for it.
class Judge {
 public:
  Judge(const Setup& setup, const ScriptChannel& channel)
      : channel_(channel),
        counts_pushes_(setup.self == 0 || !IsSync(setup.config)),
        counts_grants_(setup.self == 0 && !IsSync(setup.config)) {}

  void OnDelivered(const ScriptChannel::Peer& from, const net::Message& message) {
    const wire::Envelope* const envelope = net::Decode(message);
    if (envelope == nullptr || envelope->body_as_Push() == nullptr) return;
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
    const net::TensorView tensor = net::Tensor(message, weights);
    const uint64_t sum = net::PayloadChecksum(tensor.data, tensor.size);
    const auto [seen, fresh] = sums_.emplace(std::pair{envelope.run_epoch(), weights.version()}, sum);
    Require(fresh || seen->second == sum, "weights of one version are the same for everybody");
    if (envelope.run_epoch() == 0) {
      Require(!counts_pushes_ || weights.version() <= pushes_, "weights change only by gradients");
      // Grants in answers that wait for a slow reader are not seen here.
      const bool counts = counts_grants_ && !channel_.somebody_was_full;
      Require(!counts || weights.version() <= granted_, "weights change only by granted steps");
    }
    granted_ += weights.steps();
  }

  const ScriptChannel& channel_;
  const bool counts_pushes_;  // the leader of another ps may decide rounds without gradients
  const bool counts_grants_;
  std::map<net::NodeId, bool> welcomed_;
  std::map<std::pair<uint32_t, uint64_t>, uint64_t> sums_;
  uint64_t pushes_ = 0;
  uint64_t granted_ = 0;
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

// The first messages of an honest run.
void Begin(const Setup& setup, ScriptChannel& channel) {
  if (setup.prefix == 0) return;
  const bool leads = setup.self == 0;
  if (!leads) {
    channel.run = {7, 0};
    channel.DeliverKind(kOther, Body::Welcome);
  }
  for (const size_t peer : {kWorker0, kWorker1}) channel.DeliverKind(peer, Body::Hello);
  if (leads && setup.config.cluster.ps.size() == 2) channel.DeliverKind(kOther, Body::Hello);
  if (setup.prefix == 1) return;
  if (!leads) {
    channel.DeliverKind(kOther, Body::Order);  // Fill number 1 with initial values
    channel.DeliverKind(kOther, Body::Order, {0, 0, 0, 0, 0, 0, 0, 0, 1});  // and keep them
    return;
  }
}

// ps 0 learns that its range of ps 1 is filled, and the tasks are ready, once they are let in.
void AnswerHonestly(const Setup& setup, ScriptChannel& channel, ScriptChannel::Peer& to,
                    const wire::Envelope& envelope) {
  if (setup.self != 0 || setup.prefix != 2) return;
  const auto index = static_cast<size_t>(&to - channel.peers.data());
  if (index > kOther) return;
  if (envelope.body_type() == Body::Welcome) channel.DeliverKind(index, Body::Ready);
  const wire::Order* const order = envelope.body_as_Order();
  if (order == nullptr || order->fill() == nullptr) return;
  net::Encoder encoder;
  flatbuffers::FlatBufferBuilder& b = encoder.Begin();
  const auto filled = wire::CreateFilled(b, order->fill()->number(), 0, order->fill()->keep());
  channel.Deliver(index, encoder.Finish(channel.run.Envelope(0), wire::CreateReport(b, filled)));
}

// What is kept of a run, with a model of seven weights, after some thousand messages.
constexpr int64_t kMaxKept = 1 << 20;

void RunScript(Input& input, const Setup& setup) {
  const Layout layout = MakeLayout(setup.config, static_cast<int>(setup.config.cluster.ps.size()));
  const size_t range = static_cast<size_t>(layout.ps[static_cast<size_t>(setup.self)].size()) * sizeof(float);
  ScriptChannel channel(input, setup.config, range);
  channel.ps = setup.self;
  AddPeers(setup, channel);
  Judge judge(setup, channel);
  channel.on_delivered = [&](ScriptChannel::Peer& from, const net::Message& message) {
    judge.OnDelivered(from, message);
  };
  channel.on_tried = [&](ScriptChannel::Peer& to, const wire::Envelope& envelope,
                         const net::Message& message) { judge.OnSent(to, envelope, message); };
  channel.on_sent = [&](ScriptChannel::Peer& to, const wire::Envelope& envelope) {
    AnswerHonestly(setup, channel, to, envelope);
  };
  ScriptTransport transport;
  ExitHooks hooks;
  LogOptions quiet;
  quiet.standard_error = false;
  quiet.level = LogLevel::kError;
  Logger log(TaskName({Role::kPs, setup.self}), quiet);
  PsRun run({setup.config, {Role::kPs, setup.self}, layout, channel, transport, hooks, log, {}, {}, {}});
  Begin(setup, channel);
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
  Require(HeapBytes() - before < kMaxKept, "what a ps keeps of its peers is bounded");
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
