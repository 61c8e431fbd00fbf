#include "trainer/feed/feed_server.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "base/error.h"
#include "trainer/config/config.h"
#include "trainer/peer/peer_limits.h"
#include "trainer/peer/run_id.h"

namespace dtrain {
namespace {

// The max number of messages between two answers, so that no peer keeps the others waiting.
constexpr int kMessagesAtOnce = 64;
// The longest that the end of a run waits for the feeder's thread.
constexpr milliseconds kTick{20};

// Twice the requests of a worker, since one that comes back asks while its old connection may still hold
// answers; plus the batch that it works on, and one that a transport has not released yet.
int64_t MaxOnTheirWay(int64_t batch_bytes) { return 2 * BatchesAhead(batch_bytes) + 2; }

}  // namespace

FeedServer::FeedServer(const Config& config, std::shared_ptr<const DataSet> train, net::Channel& channel,
                       Logger& log)
    : config_(config),
      rows_(config, std::move(train)),
      channel_(channel),
      log_(log),
      dropped_(log, "dropped messages") {
  const auto workers = static_cast<int>(config.cluster.worker.size());
  // Row numbers of an endless set must not overflow.
  max_steps_ = std::numeric_limits<int64_t>::max() / 4 / (RowsPerStep(config) * workers);
  // A permutation of very many rows takes long; heartbeats are answered in between.
  const auto permutations = std::make_shared<Permutations>([this] { TakeArrived(TimePoint()); });
  const DataSet& set = rows_.set();
  for (int worker = 1; worker < workers; ++worker) {
    StepRows::WillNeed will_need;
    if (set.blocks() != nullptr) {
      will_need = [this, client = clients_.size()](const auto& runs) { Announce(client, runs); };
    }
    clients_.push_back(
        {StepRows(config, set.rows(), worker, workers, permutations, set.blocks(), std::move(will_need)),
         {},
         {}});
  }
}

// The windows of all workers are read on one thread, and are kept as those of one reader.
void FeedServer::Announce(size_t client, const std::vector<RowRun>& runs) {
  clients_[client].needed = runs;
  std::vector<RowRun> all;
  for (const Client& each : clients_) all.insert(all.end(), each.needed.begin(), each.needed.end());
  rows_.set().WillNeed(all);
}

void FeedServer::Serve(TimePoint deadline) {
  dropped_.Tick(Clock::now());
  TakeArrived(NextRequest() == requests_.end() ? deadline : TimePoint());
  const auto next = NextRequest();
  if (next == requests_.end()) return;
  ChangeAsAsked();
  const Request request = *next;
  requests_.erase(next);
  Answer(request);
}

std::deque<FeedServer::Request>::iterator FeedServer::NextRequest() {
  if (started_) return requests_.begin();
  return std::find_if(requests_.begin(), requests_.end(),
                      [](const Request& request) { return !request.started; });
}

void FeedServer::Follow(const DataPlan& plan) {
  if (clients_.empty() || plan == plan_) return;
  std::shared_ptr<const RemainingData> rest = clients_[0].rows.RemainingOf(plan);
  plan_ = plan;
  const std::lock_guard<std::mutex> lock(mutex_);
  asked_rest_ = std::move(rest);
}

void FeedServer::UseRows(std::shared_ptr<const DataSet> train) {
  const std::lock_guard<std::mutex> lock(mutex_);
  asked_train_ = std::move(train);
}

void FeedServer::ChangeAsAsked() {
  std::shared_ptr<const RemainingData> rest;
  std::shared_ptr<const DataSet> train;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    rest = std::move(asked_rest_);
    train = std::move(asked_train_);
  }
  if (rest == nullptr && train == nullptr) return;
  if (train != nullptr) rows_.UseSet(std::move(train));
  for (Client& client : clients_) {
    if (rest != nullptr) client.rows.Follow(rest);
    for (Outgoing& slot : client.outgoing)
      slot.request.local_step = -1;  // the buffer no longer has the batch of that request
  }
}

void FeedServer::TakeArrived(TimePoint deadline) {
  net::NodeId from = 0;
  net::Message message;
  for (int i = 0; i < kMessagesAtOnce; ++i) {
    const TimePoint until = i == 0 ? deadline : TimePoint();
    if (channel_.Receive(until, &from, &message) != net::ReceiveResult::kMessage) return;
    if (IsClient(from)) {
      Handle(from, message);
      continue;
    }
    const TimePoint begun = Clock::now();
    if (!strangers_.Allows(begun)) continue;
    Handle(from, message);
    strangers_.Used(Clock::now() - begun);
  }
}

bool FeedServer::IsClient(net::NodeId from) const {
  return std::any_of(clients_.begin(), clients_.end(), [from](const Client& client) {
    return client.node != 0 && client.node == (from & ~net::NodeId{1});
  });
}

void FeedServer::Handle(net::NodeId from, const net::Message& message) {
  const wire::Envelope* envelope = net::Decode(message);
  if (envelope == nullptr) return Drop(from, "it is not a message of dtrain");
  if (const auto* need = envelope->body_as_NeedBatch())
    return OnNeedBatch(from, message.key, *envelope, *need);
  if (envelope->body_type() != wire::Body::Heartbeat) return Drop(from, "its kind is not for worker 0");
  auto& builder = encoder_.Begin();
  const auto what = builder.CreateString("serve");
  const auto status = builder.CreateString("");
  net::Message beat =
      encoder_.Finish(RunIdOf(*envelope).Envelope(0), wire::CreateHeartbeat(builder, what, 0, status));
  channel_.Send(from, beat);
}

void FeedServer::OnNeedBatch(net::NodeId from, uint32_t key, const wire::Envelope& envelope,
                             const wire::NeedBatch& need) {
  Request request;
  request.from = from;
  request.envelope = RunIdOf(envelope).Envelope(envelope.request());
  const uint64_t token = token_;
  if (token == 0 || need.token() != token || envelope.run_id() != run_id_) {
    return Refuse(request, wire::Reason::Run, "it is of another run", "worker 0 is in another run");
  }
  if (need.worker() == 0 || need.worker() > clients_.size()) {
    return Refuse(request, wire::Reason::Index, "it is of no worker that is fed",
                  fmt::format("worker {}: worker 0 feeds workers 1 to {}", need.worker(), clients_.size()));
  }
  if (!channel_.MayActAs(key, TaskName({Role::kWorker, static_cast<int>(need.worker())}))) {
    return Refuse(request, wire::Reason::WrongTask, "its key is of another task",
                  fmt::format("the key is not the one of worker {}", need.worker()));
  }
  Know(clients_[need.worker() - 1], from);
  if (need.local_step() > static_cast<uint64_t>(max_steps_)) {
    return Refuse(request, wire::Reason::BadRequest, "its step is beyond all data",
                  fmt::format("local step {} is beyond all data", need.local_step()));
  }
  request.worker = static_cast<int>(need.worker());
  request.local_step = static_cast<int64_t>(need.local_step());
  request.started = need.started();
  Keep(request);
}

void FeedServer::Know(Client& client, net::NodeId from) {
  const net::NodeId node = from & ~net::NodeId{1};
  if (client.node == node) return;
  if (client.node != 0) channel_.SetKnown(client.node, false);
  client.node = node;
  channel_.SetKnown(node, true);
}

// Keeps a request once. Drops it when too many wait; the worker asks again.
void FeedServer::Keep(const Request& request) {
  const auto same = std::find_if(requests_.begin(), requests_.end(),
                                 [&](const Request& kept) { return IsSame(kept, request); });
  if (same != requests_.end()) {
    same->envelope = request.envelope;
  } else if (requests_.size() < clients_.size() * static_cast<size_t>(2 * kMaxBatchesAhead)) {
    requests_.push_back(request);
  }
}

bool FeedServer::IsSame(const Request& a, const Request& b) {
  return a.from == b.from && a.local_step == b.local_step && a.started == b.started;
}

void FeedServer::Refuse(const Request& request, wire::Reason reason, const char* why,
                        const std::string& text) {
  auto& builder = encoder_.Begin();
  const auto said = builder.CreateString(ShortText(text));
  net::Message message = encoder_.Finish(request.envelope, wire::CreateRefuse(builder, reason, said));
  channel_.Send(request.from, message);
  Drop(request.from, why);
}

void FeedServer::Drop(net::NodeId from, const char* why) {
  dropped_.Warn(from, why, fmt::format("feed: dropped a message from peer {:016x}: {}", from, why));
}

void FeedServer::Answer(const Request& request) {
  Client& client = clients_[static_cast<size_t>(request.worker) - 1];
  if (OnItsWay(client, request)) return;
  Outgoing* const slot = FreeSlot(client);
  if (slot == nullptr || !MayJump(client, request.local_step)) return;  // the worker asks again
  client.last_step = request.local_step;
  slot->request = request;
  net::LentBytes values;
  const net::BatchHead head = Fill(client, request, *slot, &values);
  net::Message message = encoder_.DataBatch(request.envelope, head, values);
  channel_.Send(request.from, message);  // if it is full or gone, the worker asks again
}

// The next steps, into the next epoch as well, are no jump; neither is a step of the same epoch.
bool FeedServer::MayJump(Client& client, int64_t local_step) {
  const int64_t from = client.rows.PlaceOf(client.last_step).epoch;
  const int64_t to = client.rows.PlaceOf(local_step).epoch;
  const int64_t ahead = local_step - client.last_step;
  if (to == from || (ahead > 0 && ahead <= 2 * kMaxBatchesAhead)) return true;
  const TimePoint now = Clock::now();
  const double more = kJumpsPerSecond * SecondsBetween(client.jumps_counted, now);
  client.jumps = std::min(kMaxJumps, client.jumps + more);
  client.jumps_counted = now;
  if (client.jumps < 1) return false;
  client.jumps -= 1;
  return true;
}

// On a slow connection a request may be repeated before its answer has left.
bool FeedServer::OnItsWay(const Client& client, const Request& request) {
  return std::any_of(client.outgoing.begin(), client.outgoing.end(), [&](const Outgoing& slot) {
    return IsSame(slot.request, request) && slot.values.lent();
  });
}

// Null: the max number of answers is on its way.
FeedServer::Outgoing* FeedServer::FreeSlot(Client& client) const {
  for (Outgoing& slot : client.outgoing) {
    if (!slot.values.lent()) return &slot;
  }
  if (static_cast<int64_t>(client.outgoing.size()) >= MaxOnTheirWay(rows_.max_bytes())) return nullptr;
  client.outgoing.push_back({net::LentBuffer(static_cast<size_t>(rows_.max_bytes())), Request()});
  return &client.outgoing.back();
}

net::BatchHead FeedServer::Fill(Client& client, const Request& request, Outgoing& slot,
                                net::LentBytes* values) {
  net::BatchHead head;
  head.local_step = static_cast<uint64_t>(request.local_step);
  const StepPlace place = client.rows.PlaceOf(request.local_step);
  head.epoch = static_cast<uint64_t>(place.epoch);
  head.batch_in_epoch = static_cast<uint64_t>(place.batch);
  head.batches_per_epoch = static_cast<uint64_t>(place.batches);
  head.max_rows = static_cast<uint32_t>(rows_.max_rows());
  head.devices = static_cast<uint32_t>(config_.device.towers());
  gpu::Span<const int64_t> rows;
  head.end = !client.rows.Read(request.local_step, &rows);
  if (head.end) return head;
  const int64_t bytes = rows_.Write(rows, &head, &slot.values);
  *values = slot.values.Lend(0, static_cast<size_t>(bytes));
  if (config_.net.checksum) head.checksum = net::PayloadChecksum(values->data, values->size);
  return head;
}

Feeder::Feeder(const Config& config, std::shared_ptr<const DataSet> train,
               std::unique_ptr<net::Channel> channel, uint64_t run_id, uint64_t token, Logger& log)
    : channel_(std::move(channel)), log_(log), server_(config, std::move(train), *channel_, log) {
  server_.set_run(run_id, token);
  thread_ = std::thread([this] { Run(); });
}

Feeder::~Feeder() {
  stop_ = true;
  thread_.join();
}

void Feeder::CheckAlive() const {
  if (!dead_.load(std::memory_order_acquire)) return;
  if (fault_ != nullptr) std::rethrow_exception(fault_);
  throw Failure(ExitCode::kInternal, "worker 0 cannot feed the other workers any more. Look at its log.");
}

net::ChannelStats Feeder::stats() const { return {bytes_sent_, bytes_received_, 0}; }

void Feeder::Run() {
  try {
    while (!stop_) {
      server_.Serve(Clock::now() + kTick);
      const net::ChannelStats stats = channel_->stats();
      bytes_sent_.store(stats.bytes_sent, std::memory_order_relaxed);
      bytes_received_.store(stats.bytes_received, std::memory_order_relaxed);
    }
  } catch (const std::exception& error) {
    log_.Error("the other workers get no batches any more: {}", FailureText(error));
    if (dynamic_cast<const UserError*>(&error) != nullptr) fault_ = std::current_exception();
    dead_.store(true, std::memory_order_release);
  }
}

}  // namespace dtrain
