#include "trainer/peer/heartbeat.h"

#include <sys/resource.h>
#include <time.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/machine_memory.h"
#include "base/printable.h"
#include "net/codec.h"
#include "trainer/peer/abort.h"
#include "trainer/peer/peer_limits.h"

namespace dtrain {
namespace {

// Longer than a channel waits between two attempts to connect.
constexpr milliseconds kFirstBeatPatience{3000};
// This share of detect_s in processor time counts as progress. Sending heartbeats takes less.
constexpr double kComputingShare = 0.01;
// Bounds the number of workers that a ps tells.
constexpr uint32_t kMaxWorkers = 1 << 30;
// How often to look for a signal, which the next beat then carries at once.
constexpr milliseconds kLook{50};
// Longer than other texts of peers: it names all missing tasks.
constexpr size_t kMaxStatusBytes = 64 * 1024;

// The blocks and pages that this process has read and written: waiting for a slow disk is progress too.
uint64_t BlocksMoved() {
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  return static_cast<uint64_t>(used.ru_inblock + used.ru_oublock + used.ru_majflt);
}

double SecondsOf(clockid_t clock) {
  timespec used{};
  clock_gettime(clock, &used);
  return static_cast<double>(used.tv_sec) + static_cast<double>(used.tv_nsec) * 1e-9;
}

// Processor time of this process besides the calling thread.
double SecondsOfOthers() { return SecondsOf(CLOCK_PROCESS_CPUTIME_ID) - SecondsOf(CLOCK_THREAD_CPUTIME_ID); }

}  // namespace

milliseconds Heartbeat::Interval(double detect_s) {
  return milliseconds(std::clamp<int64_t>(static_cast<int64_t>(detect_s * 1000 / 6), 20, 1000));
}

Heartbeat::Heartbeat(net::Transport& transport, const std::vector<Target>& targets, double detect_s,
                     const Activity& activity)
    : detect_s_(detect_s),
      interval_(Interval(detect_s)),
      activity_(activity),
      channel_(transport.NewChannel()),
      silent_beats_(targets.size()),
      counted_beats_(targets.size()),
      refuses_(targets.size()),
      runs_(targets.size()),
      refused_(targets.size()) {
  for (const Target& target : targets) {
    nodes_.push_back(target.node | 1);
    channel_->Connect(nodes_.back(), target.address);
  }
  thread_ = std::thread([this] { Run(); });
}

Heartbeat::~Heartbeat() {
  {
    std::lock_guard<std::mutex> hold(mutex_);
    stop_ = true;
  }
  stop_changed_.notify_all();
  thread_.join();
}

void Heartbeat::InRun(size_t target, RunId run) {
  std::lock_guard<std::mutex> hold(mutex_);
  refused_[target] = RunId();
  refuses_[target].store(false);
  runs_[target] = run;
}

void Heartbeat::Watch(size_t target, RunId run) {
  InRun(target, run);
  silent_beats_[target].store(0);
  counted_beats_[target].store(-static_cast<int>(kFirstBeatPatience / interval_));
}

void Heartbeat::Move(size_t target, const std::string& address) {
  RunId run;
  {
    std::lock_guard<std::mutex> hold(mutex_);
    moves_.push_back({nodes_[target], address});
    run = runs_[target];
  }
  Watch(target, run);
}

void Heartbeat::CarryOutMoves() {
  std::vector<std::pair<net::NodeId, std::string>> moves;
  {
    std::lock_guard<std::mutex> hold(mutex_);
    moves.swap(moves_);
  }
  for (const auto& [node, address] : moves) {
    channel_->Disconnect(node);
    channel_->Connect(node, address);
  }
}

size_t Heartbeat::SilentLongest() const {
  size_t longest = 0;
  for (size_t i = 1; i < silent_beats_.size(); ++i) {
    if (silent_beats_[i].load() > silent_beats_[longest].load()) longest = i;
  }
  return longest;
}

bool Heartbeat::Left(size_t target, RunId run) const {
  std::lock_guard<std::mutex> hold(mutex_);
  return refused_[target].known() && refused_[target] == run;
}

std::string Heartbeat::status() const {
  std::lock_guard<std::mutex> hold(mutex_);
  return status_;
}

void Heartbeat::Run() {
  std::unique_lock<std::mutex> hold(mutex_);
  int told_signal = 0;
  uint64_t told_connections = 0;
  TimePoint next_beat;
  while (!stop_) {
    hold.unlock();
    CarryOutMoves();
    Drain();
    const int signal = activity_.stop_signal();
    const TimePoint now = Clock::now();
    // A new connection is a stranger's until a beat has come over it.
    const uint64_t connections = Connections();
    const bool due = now >= next_beat;
    if (due) next_beat = now + interval_;
    if (due || signal != told_signal || connections != told_connections) {
      SendBeats(signal, due);
      told_connections = connections;
      told_signal = signal;
    }
    hold.lock();
    stop_changed_.wait_for(hold, std::min(interval_, kLook), [this] { return stop_; });
  }
}

uint64_t Heartbeat::Connections() const {
  return std::accumulate(nodes_.begin(), nodes_.end(), uint64_t{0}, [this](uint64_t sum, net::NodeId node) {
    return sum + channel_->Connections(node);
  });
}

// Progress counts processor time, for a main thread that computes for long, in a layer or a sort.
uint64_t Heartbeat::Progress() const {
  const auto computed = static_cast<uint64_t>(SecondsOfOthers() / (detect_s_ * kComputingShare));
  return activity_.turns.load() + activity_.local_step.load() + computed + BlocksMoved();
}

// `due`: the silence of the targets is counted in such beats.
void Heartbeat::SendBeats(int signal, bool due) {
  net::Encoder encoder;
  const uint64_t progress = Progress();
  const auto memory = static_cast<uint64_t>(ReadOwnMemory());
  const Traffic traffic = activity_.traffic();
  std::vector<RunId> runs;
  {
    std::lock_guard<std::mutex> hold(mutex_);
    runs = runs_;
  }
  for (size_t i = 0; i < nodes_.size(); ++i) {
    if (due) silent_beats_[i].fetch_add(1);
    if (due) counted_beats_[i].fetch_add(1);
    flatbuffers::FlatBufferBuilder& builder = encoder.Begin();
    const auto what = builder.CreateString(activity_.what.load());
    const uint64_t steps = activity_.steps.load();
    std::vector<uint64_t> parts_us;
    for (const auto& nanos : activity_.part_nanos) parts_us.push_back(nanos.load() / 1000);
    const uint64_t own_us = parts_us[0] + parts_us[1] + parts_us[2];
    const auto parts = steps == 0 ? 0 : builder.CreateVector(parts_us);
    net::Message beat =
        encoder.Finish(runs[i].Envelope(0),
                       wire::CreateHeartbeat(builder, what, progress, builder.CreateString(""), 0, steps,
                                             own_us, signal, 0, 0, parts, memory,
                                             activity_.staleness_sum.load(), activity_.staleness_count.load(),
                                             traffic.sent, traffic.received, traffic.saved));
    channel_->Send(nodes_[i], beat);
  }
}

void Heartbeat::Drain() {
  net::NodeId from;
  net::Message message;
  for (int i = 0; i < kMessagesInARow; ++i) {
    if (channel_->Receive(TimePoint(), &from, &message) != net::ReceiveResult::kMessage) return;
    const wire::Envelope* envelope = net::Decode(message);
    if (envelope == nullptr) continue;
    const auto found = std::find(nodes_.begin(), nodes_.end(), from);
    if (found == nodes_.end()) continue;
    Take(static_cast<size_t>(found - nodes_.begin()), *envelope, message);
  }
}

void Heartbeat::KeepAbort(const wire::Abort& abort, net::Message& message) {
  const ExitCode exit_code = ExitCodeOf(abort);
  const std::string why =
      abort.summary() == nullptr ? AbortText(ClusterConfig(), abort) : ShortText(abort.text()->str());
  std::function<void(ExitCode, const std::string&)> on_abort;
  {
    std::lock_guard<std::mutex> hold(mutex_);
    if (!abort_.header.empty()) return;
    abort_ = std::move(message);
    on_abort = std::exchange(on_abort_, nullptr);
  }
  if (on_abort) on_abort(exit_code, why);
}

KnownCheckpoint Heartbeat::checkpoint() const {
  std::lock_guard<std::mutex> hold(mutex_);
  return checkpoint_;
}

net::Message Heartbeat::TakeAbort() {
  std::lock_guard<std::mutex> hold(mutex_);
  return std::move(abort_);
}

void Heartbeat::Take(size_t target, const wire::Envelope& envelope, net::Message& message) {
  silent_beats_[target].store(0);
  counted_beats_[target].store(0);
  if (const wire::Abort* abort = envelope.body_as_Abort(); abort != nullptr && target == 0) {
    return KeepAbort(*abort, message);
  }
  refuses_[target].store(envelope.body_as_Refuse() != nullptr);
  if (const wire::Refuse* refuse = envelope.body_as_Refuse()) {
    if (refuse->reason() != wire::Reason::Run) return;
    std::lock_guard<std::mutex> hold(mutex_);
    refused_[target] = RunIdOf(envelope);
    return;
  }
  const wire::Heartbeat* beat = envelope.body_as_Heartbeat();
  if (target != 0 || beat == nullptr) return;
  workers_.store(static_cast<int>(std::min<uint32_t>(beat->workers(), kMaxWorkers)),
                 std::memory_order_relaxed);
  std::lock_guard<std::mutex> hold(mutex_);
  status_ = Printable(beat->status()->str(), kMaxStatusBytes);
  if (!runs_[0].known() || RunIdOf(envelope) != runs_[0]) return;
  checkpoint_.Learn(beat->checkpoint(), beat->checkpoint_step());
}

}  // namespace dtrain
