#include "trainer/ps/replica_holder.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "base/fault_point.h"
#include "base/machine_memory.h"
#include "trainer/config/config.h"
#include "trainer/peer/peer_limits.h"
#include "trainer/peer/this_host.h"
#include "trainer/ps/replica_link.h"

namespace dtrain {

using wire::Reason;

namespace {

// Whether the host of this ps has more processors than tasks.
bool HasFreeProcessor(const ClusterConfig& cluster, int ps) {
  const std::string host = HostOf(cluster.ps[static_cast<size_t>(ps)]);
  int64_t tasks = 0;
  for (const auto* const addresses : {&cluster.ps, &cluster.worker}) {
    tasks += std::count_if(addresses->begin(), addresses->end(),
                           [&](const std::string& address) { return HostOf(address) == host; });
  }
  return Processors() > tasks;
}

}  // namespace

ReplicaHolder::Shadow::Shadow(const PsTask& task, int of, Outbox& to_leader)
    : shard(MakeParts(task.config, task.layout, of)),
      members(task.config, {Role::kPs, of}, shard.block_count()),
      outbox(task.channel, MaxOpenRequests(MaxOpenBlocks(task.config.train, shard.block_count()))),
      rule(MakeUpdateRule({task.config, shard, members, outbox})),
      reader(StateOf(task, of, *this)),
      gradients(task.config, {Role::kPs, of}, shard, *rule),
      keeper({task.config, shard, *rule, to_leader, task.layout, of, task.log, /*of_replica=*/true}),
      records(shard.has_table() || HasFreeProcessor(task.config.cluster, task.self.index),
              [this](net::Message& record) { Apply(record); }) {
  outbox.SetMute(true);
}

// On the thread of records.
void ReplicaHolder::Shadow::Apply(net::Message& record) {
  if (!wrong.empty()) return;
  const FaultScope fault("replica.record");
  const wire::Envelope& envelope = *net::Decode(record);
  if (const wire::ReplicaCheck* const check = envelope.body_as_ReplicaCheck()) {
    if (std::string unit = Compare(*check); !unit.empty()) difference = std::move(unit);
  } else {
    wrong_record = envelope.request();
    wrong = reader.Take(envelope, &record);
  }
  if (!wrong.empty() || !difference.empty()) has_news = true;
}

// The bytes of a unit are the same on both sides. Returns which are not.
std::string ReplicaHolder::Shadow::Compare(const wire::ReplicaCheck& check) {
  if (check.unit() >= static_cast<uint64_t>(shard.unit_count())) return std::string();
  const auto unit = static_cast<int64_t>(check.unit());
  const bool same = ChecksumOf(shard.CopyUnit(unit)) == check.checksum();
  return same ? std::string() : shard.UnitName(unit);
}

PsState ReplicaHolder::StateOf(const PsTask& task, int of, Shadow& shadow) {
  return {task.config,
          {Role::kPs, of},
          task.layout,
          shadow.shard,
          shadow.members,
          *shadow.rule,
          of == 0 ? &shadow.leader : nullptr};
}

ReplicaHolder::~ReplicaHolder() {
  if (session_.node() != 0) task_.channel.SetKnown(session_.node(), false);
}

void ReplicaHolder::Refuse(net::NodeId to, uint64_t request, Reason reason, const std::string& text) {
  outbox_.Refuse(to, request, reason, text);
}

// With keys the sender must be that ps. A conversation that is not the one whose records are taken any more
// is told so: its replica does not count.
bool ReplicaHolder::OnStranger(net::NodeId from, uint32_t key, const wire::Envelope& envelope) {
  if (of_ == 0 && !sought_ && RunIdOf(envelope) == outbox_.run() && Keeper() != nullptr) {
    sought_ = shadow_->members.Find(from) != nullptr;
  }
  const wire::ReplicaOpen* const open = envelope.body_as_ReplicaOpen();
  const bool record =
      envelope.body_as_ReplicaWorker() != nullptr || envelope.body_as_ReplicaRound() != nullptr ||
      envelope.body_as_ReplicaRead() != nullptr || envelope.body_as_ReplicaCheck() != nullptr ||
      envelope.body_as_ReplicaLeader() != nullptr;
  const bool asks = envelope.body_as_ReplicaAsk() != nullptr;
  if (open == nullptr && !record && !asks) return false;
  const uint64_t request = envelope.request();
  const TaskId sender{Role::kPs, of_};
  if (!task_.channel.MayActAs(key, TaskName(sender))) {
    return Refuse(from, request, Reason::WrongTask, "its key is not the one of " + TaskName(sender)), true;
  }
  if (asks) return OnAsk(from, envelope), true;
  if (RunIdOf(envelope) != outbox_.run() || !outbox_.run().known()) {
    return Refuse(from, request, Reason::NotReady, "this ps is in another run, or in none yet"), true;
  }
  if (open == nullptr || open->ps() != static_cast<uint32_t>(of_)) {
    return Refuse(from, request, Reason::Unregistered,
                  "another one has taken its place here, or it was restarted"),
           true;
  }
  if (open->kernels()->str() != KernelsText()) {
    const std::string text =
        fmt::format("it computes with {}, and {} with {}; a replica needs the same bits",
                    ShortText(open->kernels()->str()), TaskName(task_.self), KernelsText());
    return Refuse(from, request, Reason::Config, text), true;
  }
  if (stands_in_) {
    return Refuse(from, request, Reason::NotReady, "this ps stands in for it until the run has ended"), true;
  }
  const uint64_t owner = owner_ != 0 ? owner_ : leader_->LeaderIncarnation();
  if (of_ == 0 && !open->fetches() && owner != 0 && open->incarnation() != owner) {
    return Refuse(from, request, Reason::Duplicate, "another ps 0 has taken its place"), true;
  }
  if (shadow_ != nullptr) Settle();
  const net::NodeId before = session_.node();
  if (session_.Open(from, request, open->epoch(), open->fetches()) != ReplicaSession::Take::kTake) {
    return Refuse(from, request, Reason::Unregistered,
                  fmt::format("the replica of epoch {} is not here", open->epoch())),
           true;
  }
  if (before != 0) task_.channel.SetKnown(before, false);
  task_.channel.SetKnown(from, true);
  owes_ = true;
  owner_ = open->incarnation();
  turn_.clear();
  if (open->fetches()) {
    task_.log.Info("{} ({}) fills itself from its replica here", TaskName(sender),
                   ShortText(open->process()->str()));
    items_.emplace(StateOf(task_, of_, *shadow_));
    return true;
  }
  items_.reset();
  shadow_ = std::make_unique<Shadow>(task_, of_, outbox_);
  shadow_->keeper.set_leader(*leader_);
  shadow_->shard.SetCounts(static_cast<int64_t>(open->earlier_updates() & kMaxSteps),
                           static_cast<int64_t>(open->decay_steps() & kMaxSteps));
  shadow_->shard.BeginCopy();
  task_.log.Debug("holds the replica of {} ({})", TaskName(sender), ShortText(open->process()->str()));
  return true;
}

void ReplicaHolder::OnMessage(net::Message& message) {
  const wire::Envelope* const envelope = net::Decode(message);
  if (envelope == nullptr || RunIdOf(*envelope) != outbox_.run()) return;
  if (const wire::ReplicaRead* const read = envelope->body_as_ReplicaRead()) return OnRead(*read);
  OnRecord(*envelope, message);
}

void ReplicaHolder::OnRecord(const wire::Envelope& envelope, net::Message& message) {
  switch (session_.OnRecord(session_.node(), envelope.request())) {
    case ReplicaSession::Take::kDrop:
      return;
    case ReplicaSession::Take::kRepeated:
      owes_ = true;
      return;
    case ReplicaSession::Take::kTake:
      break;
  }
  owes_ = true;
  items_.reset();
  const bool ends = of_ != 0 || envelope.body_as_ReplicaLeader() != nullptr;
  turn_.push_back(std::move(message));
  if (!ends) return;
  for (net::Message& record : turn_) shadow_->records.Add(std::move(record));
  turn_.clear();
}

// Waits until all records are applied, so that the shadow can be used here.
void ReplicaHolder::Settle() {
  Shadow& shadow = *shadow_;
  shadow.records.Wait();
  const bool whole = shadow.shard.initialised() && (of_ != 0 || !shadow.leader.empty());
  if (!session_.complete() && session_.node() != 0 && whole) session_.SetComplete();
  if (!shadow.has_news.exchange(false)) return;
  const TaskId ps{Role::kPs, of_};
  if (!shadow.difference.empty()) {
    on_difference_(
        fmt::format("{} of {} differs from its replica on {} ({}): one of the two computes wrongly, or its "
                    "memory is damaged. "
                    "Checkpoints since then may be damaged too (failure.replica_check)",
                    std::exchange(shadow.difference, ""), TaskNameAndAddress(task_.config.cluster, ps),
                    TaskName(task_.self), ProcessText()));
  }
  if (shadow.wrong.empty() || session_.node() == 0) return;
  task_.log.Error("a record of {} is refused: {}", TaskName(ps), shadow.wrong);
  Refuse(session_.node(), shadow.wrong_record, Reason::BadRequest, shadow.wrong);
  task_.channel.SetKnown(session_.node(), false);
  session_.Close();
}

// A new ps 0, which goes on with this run if its replica is whole here.
void ReplicaHolder::OnAsk(net::NodeId from, const wire::Envelope& envelope) {
  const bool here = of_ == 0 && !stands_in_ && outbox_.run().known() && Keeper() != nullptr;
  if (here && envelope.body_as_ReplicaAsk()->settings_hash() != members_.settings_hash()) {
    return outbox_.RefuseQuestion(
        from, envelope, Reason::Config,
        "the run has other settings; give every task the same file and --set flags");
  }
  const net::Envelope answer = (here ? outbox_.run() : RunId()).Envelope(envelope.request());
  const auto quiet = std::chrono::duration_cast<milliseconds>(Clock::now() - heard_);
  flatbuffers::FlatBufferBuilder& builder = encoder_.Begin();
  net::Message message =
      encoder_.Finish(answer, wire::CreateReplicaHeld(builder, here ? session_.epoch() : 0,
                                                      here ? static_cast<uint64_t>(quiet.count()) : 0));
  task_.channel.Send(from, message);  // asked for again
}

// Before the records are applied, since answers wait for it.
void ReplicaHolder::Acknowledge() {
  owes_ = false;
  if (session_.node() == 0) return;
  if (of_ == 0) heard_ = Clock::now();
  const FaultScope fault("replica.ack");
  outbox_.Send(session_.node(), session_.last(), [this](auto& builder) {
    if (!items_) return wire::CreateReplicaAck(builder);
    return wire::CreateReplicaAck(builder, static_cast<uint64_t>(items_->size()),
                                  static_cast<uint64_t>(shadow_->shard.earlier_updates()),
                                  static_cast<uint64_t>(shadow_->shard.decay_steps()));
  });
  shadow_->records.Begin();
}

std::string ReplicaHolder::HandOver(const PsState& to) {
  if (Keeper() == nullptr)
    return fmt::format("the replica of {} is not whole here", TaskName({Role::kPs, of_}));
  to.shard.SetCounts(shadow_->shard.earlier_updates(), shadow_->shard.decay_steps());
  to.shard.BeginCopy();
  CopyItems items(StateOf(task_, of_, *shadow_));
  RecordReader reader(to);
  std::string wrong;
  for (int64_t item = 0; item < items.size() && wrong.empty(); ++item) {
    net::Message record = items.Make(item, outbox_.run().Envelope(1), &encoder_);
    wrong = reader.Take(*net::Decode(record), &record);
  }
  task_.channel.SetKnown(session_.node(), false);
  session_.Close();
  shadow_.reset();
  return wrong;
}

void ReplicaHolder::OnRead(const wire::ReplicaRead& read) {
  if (!items_ || read.item() >= static_cast<uint64_t>(items_->size())) return;
  const FaultScope fault("replica.read");
  const net::Envelope envelope = outbox_.run().Envelope(read.item() + 1);
  net::Message item = items_->Make(static_cast<int64_t>(read.item()), envelope, &encoder_);
  task_.channel.Send(session_.node(), item);  // asked for again where the queue is full
}

SnapshotKeeper* ReplicaHolder::Keeper(uint64_t epoch) {
  if (shadow_ != nullptr) Settle();
  const bool here = session_.complete() && (epoch == 0 || epoch == session_.epoch());
  return here ? &shadow_->keeper : nullptr;
}

// As a ps that has filled itself from it: what the parameters have is not taken again.
void ReplicaHolder::StandIn(uint64_t epoch) {
  if (Keeper(epoch) == nullptr) return;
  if (!std::exchange(stands_in_, true)) {
    task_.log.Info("answers the workers in the place of {}, from its replica", TaskName({Role::kPs, of_}));
    if (session_.node() != 0) task_.channel.SetKnown(session_.node(), false);
    shadow_->outbox.set_run(outbox_.run());
    shadow_->outbox.SetMute(false);
    for (Member& member : shadow_->members.all()) {
      member.last_request = member.settled;
      member.blocks_come = member.settled_blocks;
      if (member.here()) task_.channel.SetKnown(member.node, true);
    }
  }
  for (const Member& member : members_.all()) {
    if (!member.is_worker() || !member.here()) continue;
    outbox_.Send(member.node, 0, [this](auto& builder) {
      return wire::CreateWelcome(builder, 0, false, 0, 0, static_cast<uint32_t>(of_));
    });
  }
}

void ReplicaHolder::OnWorker(net::NodeId from, net::Message& message) {
  Member& member = *shadow_->members.Find(from);
  const wire::Envelope* const envelope = net::Decode(message);
  if (envelope == nullptr || message.key != member.key || RunIdOf(*envelope) != outbox_.run()) return;
  bool repeated = false;
  const uint64_t request = envelope->request();
  if (!member.TakeRequest(request, &repeated)) return;
  const std::string wrong = Take(member, *envelope, repeated, message);
  if (!wrong.empty()) shadow_->outbox.Refuse(from, request, Reason::BadRequest, wrong);
}

// Returns what is wrong with the request; empty: nothing.
std::string ReplicaHolder::Take(Member& member, const wire::Envelope& envelope, bool repeated,
                                net::Message& message) {
  UpdateRule& rule = *shadow_->rule;
  GradientReader& gradients = shadow_->gradients;
  const uint64_t request = envelope.request();
  const auto blocks = static_cast<uint64_t>(shadow_->shard.block_count());
  if (const wire::Push* const push = envelope.body_as_Push()) {
    const auto block = static_cast<int64_t>(push->block());
    if (push->block() >= blocks) return "it is of a block that is not here";
    std::string wrong = repeated ? gradients.TakeKeys(member, request, *push, net::Tensor(message, *push))
                                 : gradients.Read(member, request, *push, &message);
    if (!wrong.empty()) return wrong;
    repeated ? rule.OnRepeated(member, request, block)
             : rule.OnPush(member, request, *net::Decode(message)->body_as_Push(), message);
  } else if (const wire::Pull* const pull = envelope.body_as_Pull()) {
    if (pull->block() >= blocks) return "it is of a block that is not here";
    std::string wrong = gradients.TakeKeys(member, request, *pull, message);
    if (!wrong.empty()) return wrong;
    repeated ? rule.OnRepeatedPull(member, request, *pull) : rule.OnPull(member, request, *pull);
  } else if (envelope.body_type() == wire::Body::Done) {
    if (!repeated) rule.Left(member);
    shadow_->outbox.Ack(member.node, request);
  }
  return std::string();
}

void ReplicaHolder::OnRound(RoundDecision round) {
  if (!stands_in_) return;
  shadow_->rule->OnRound(std::move(round));
  shadow_->rule->Advance();
}

// Who has left this ps has left the lost one: rounds do not wait for it there.
void ReplicaHolder::DropLostWorkers() {
  for (Member& member : shadow_->members.all()) {
    const Member& here = *members_.Worker(member.task.index);
    if (!member.here() || (here.here() && here.incarnation == member.incarnation)) continue;
    shadow_->outbox.DropLate(member.node);
    shadow_->members.Remove(member);
    shadow_->rule->Lost(member);
  }
}

void ReplicaHolder::OnOrder(const wire::SnapshotOrder& order) {
  if (SnapshotKeeper* const keeper = Keeper(order.replica())) return keeper->OnOrder(order);
  if (order.drop()) return;
  const ShardSaver::Outcome none{
      {}, fmt::format("the replica of {} is not whole here", TaskName({Role::kPs, of_}))};
  leader_->OnSnapshot(of_, order.number(), &none);
}

void ReplicaHolder::Tick() {
  if (shadow_ == nullptr) return;
  if (shadow_->has_news) Settle();
  if (shadow_->keeper.keeps()) {  // its part may be asked for before it stands in
    shadow_->records.Wait();
    shadow_->keeper.Tick();
  }
  if (!stands_in_) return;
  DropLostWorkers();
  shadow_->rule->Tick();
  if (shadow_->outbox.late()) shadow_->outbox.SendLate();
}

}  // namespace dtrain
