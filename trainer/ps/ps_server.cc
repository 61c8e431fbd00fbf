#include "trainer/ps/ps_server.h"
#include "trainer/config/config.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "trainer/peer/conversation.h"
#include "trainer/peer/heartbeat.h"
#include "trainer/shard/shard.h"

namespace dtrain {
namespace {

using wire::Body;
using wire::Reason;

// How soon to try again to send weights that a full queue did not take.
constexpr milliseconds kLateTick{1};
// Ticks are not closer than this, however short the turns of the loop are.
constexpr milliseconds kTurnsTick{1};
// The messages of a turn behind the first one.
constexpr int kMoreInTurn = 16;
// How soon to look again at a checkpoint that is being written here, and to go on with a report.
constexpr milliseconds kSavingTick{5};
// How long to work on the report on the final weights before the next messages.
constexpr milliseconds kReportTurn{5};
constexpr char kOtherKey[] = "it has the key of another task";
constexpr char kNoMessage[] = "it is not a message of dtrain";
constexpr char kNotInitialised[] = "a pull before the initial values";
constexpr char kBadKeys[] = "it asks for rows that are not here";
constexpr char kNoSuchBlock[] = "it asks for a block that is not here";

}  // namespace

PsServer::PsServer(const PsTask& task, const MakeLeader& make_leader, RunHistory& history)
    : task_(task),
      make_leader_(make_leader),
      config_(task.config),
      channel_(task.channel),
      log_(task.log),
      shard_(MakeParts(config_, task.layout, task.self.index, task.store)),
      members_(config_, task.self, shard_.block_count()),
      outbox_(channel_, MaxOpenRequests(MaxOpenBlocks(config_.train, shard_.block_count()))),
      activity_(task.stop),
      rule_(MakeUpdateRule({config_, shard_, members_, outbox_})),
      snapshots_({config_, shard_, *rule_, outbox_, task.layout, task.self.index, log_}),
      filler_({config_, task.layout, task.self.index, shard_, log_,
               [this] { return leader_->SeesDirectory(); },
               [this](uint64_t number, Piece piece) { leader_->AskForPiece(number, piece); },
               [this](const FillOutcome& outcome) { leader_->OnFilled(outcome); }}),
      gradients_(config_, task.self, shard_, *rule_),
      tick_(std::min<milliseconds>(Heartbeat::Interval(config_.failure.detect_s), milliseconds(50))),
      dropped_(log_, "dropped frames"),
      dropped_of_strangers_(log_, "dropped frames of strangers") {
  if (HasReplica(config_)) channel_.Gather();
  members_.set_on_known([this](net::NodeId node, bool known) { channel_.SetKnown(node, known); });
  MakeReplicas();
  leader_ =
      make_leader({task_, history, activity_, members_, outbox_, *rule_, snapshots_, filler_,
                   [this] { return Report(); }, link_ ? &*link_ : nullptr, holder_ ? &*holder_ : nullptr});
  ledger_ = leader_->ledger();
  leader_node_ = leader_->node();
  rule_->set_leader(*leader_);
  snapshots_.set_leader(*leader_);
  if (holder_) holder_->set_leader(*leader_);
  outbox_.set_run(leader_->run());
  registrar_.emplace(Registrar::Parts{task_, shard_, *rule_, members_, outbox_, *leader_,
                                      FeedsOthers(config_) ? history.feed_token : 0});
}

void PsServer::MakeReplicas() {
  if (const std::optional<int> of = HeldReplica(config_, task_.self.index))
    holder_.emplace(task_, outbox_, members_, *of,
                    [this](const std::string& why) { leader_->OnReplicaDiffers(why); });
  if (!HasReplica(config_)) return;
  link_.emplace(
      ReplicaLink::Parts{task_, {config_, task_.self, task_.layout, shard_, members_, *rule_}, outbox_});
  rule_->set_replica(*link_);
  told_.resize(config_.cluster.worker.size());
}

TimePoint PsServer::NextTick(TimePoint now) const {
  if (IsUrgent() || OwesTurn()) return now;
  if (outbox_.late()) return now + kLateTick;
  if (in_place_) return now + kSavingTick;
  const bool saves = leader_->busy() || snapshots_.writing() || (holder_ && holder_->busy());
  return now + (saves ? std::min(tick_, kSavingTick) : tick_);
}

RunSummary PsServer::Run() {
  const auto handle = [&](net::NodeId from, net::Message& message) {
    Take(from, message);
    return !OwesTurn() && !IsUrgent();
  };
  int more = 0;
  const auto handle_more = [&](net::NodeId from, net::Message& message) {
    Take(from, message);
    return --more > 0 && !IsUrgent();
  };
  TimePoint now = Clock::now(), next_tick;
  while (!leader_->Finished(now)) {
    if (now >= next_tick || IsUrgent()) {
      next_tick = now + kTurnsTick;
      activity_.Turn();
      Tick(now);
      filler_.Turn(now);
    }
    if (outbox_.late()) SendLate();
    channel_.Serve(NextTick(now), handle);
    if (OwesTurn()) {  // what has come meanwhile belongs to the same turn
      more = kMoreInTurn;
      channel_.Serve(Clock::now(), handle_more);
    }
    EndTurn();
    if (holder_ && holder_->owes()) holder_->Acknowledge();
    snapshots_.AfterMessage();
    now = Clock::now();
  }
  return leader_->Summary();
}

// The holder of a replica owes an acknowledgement, or answers of ps 0 wait for the end of the turn.
bool PsServer::OwesTurn() const {
  return (holder_ && holder_->owes()) || (link_ && link_->records() && outbox_.owes_record());
}

// Every task waits for the values, or a unit can be sent.
bool PsServer::IsUrgent() const {
  return filler_.busy() || (link_ && (link_->busy() || link_->fetched() != restored_));
}

void PsServer::Take(net::NodeId from, net::Message& message) {
  Handle(from, message);
  snapshots_.AfterMessage();
  if (holder_) holder_->AfterMessage();
}

void PsServer::Tick(TimePoint now) {
  if (shard_.block_count() > 0) activity_.global_step = static_cast<int64_t>(shard_.version(0));
  const net::ChannelStats stats = channel_.stats();
  activity_.Tell({stats.bytes_sent, stats.bytes_received, rule_->bytes_saved()});
  leader_->Tick(now);
  outbox_.set_run(leader_->run());
  snapshots_.Tick();
  if (holder_) holder_->Tick();
  registrar_->Watch(now);
  if (link_) TendReplica(now);
  const std::string why = in_place_ || !holder_ ? "" : leader_->WhyLeads(holder_->sought());
  if (!why.empty()) LeadInPlace(why);
  if (in_place_) TendInPlace(now);
  dropped_.Tick(now);
  dropped_of_strangers_.Tick(now);
  rule_->Tick();
}

void PsServer::TendReplica(TimePoint now) {
  link_->Tick(now);
  if (link_->fetched() && !std::exchange(restored_, link_->fetched())) {
    if (ledger_ != nullptr) ledger_->TakeOver(link_->leader_state());
    registrar_->WelcomeBack();
  }
  TellWorkersLeft();
  if (!refused_ || link_->full()) return;
  refused_ = false;
  registrar_->WelcomeBack();
}

void PsServer::TellWorkersLeft() {
  for (size_t worker = 0; worker < told_.size(); ++worker) {
    const Member& member = *members_.Worker(static_cast<int64_t>(worker));
    if (std::exchange(told_[worker], member.node) != member.node && !member.here())
      link_->Worker(member, true);
  }
}

// On ps 0.
void PsServer::EndTurn() {
  if (ledger_ == nullptr || !link_) return;
  TellWorkersLeft();
  if (!link_->records() || leader_->fills()) return;
  ledger_->TellState(std::exchange(leads_, false) || link_->lacks_state(),
                     [this](size_t section, std::string_view bytes) { link_->PutState(section, bytes); });
  link_->EndTurn();
}

void PsServer::SendLate() {
  outbox_.SendLate();
  const net::NodeId overfull = outbox_.TakeOverfull();
  if (const Member* const member = overfull == 0 ? nullptr : members_.Find(overfull)) {
    dropped_.Warn(overfull, "it reads too little",
                  members_.NameOf(*member) +
                      " asks for more weights than it reads; answers that it has no room for are dropped");
  }
}

void PsServer::DropFrame(net::NodeId from, const char* why) {
  const Member* const member = members_.Find(from);
  PeerLog& log = member == nullptr ? dropped_of_strangers_ : dropped_;
  log.Warn(
      from, why,
      fmt::format("dropped a frame from {}: {}",
                  member == nullptr ? fmt::format("peer {:016x}", from) : members_.NameOf(*member), why));
}

void PsServer::Handle(net::NodeId from, net::Message& message) {
  if (link_ && from == link_->node()) return link_->OnMessage(message);
  if (holder_ && holder_->IsFrom(from)) return holder_->OnMessage(message);
  if (holder_ && holder_->StandsInFor(from)) return holder_->OnWorker(from, message);
  if (PsServer* const leads = in_place_ ? InPlaceFor(from) : nullptr) return leads->Take(from, message);
  const bool of_leader = from == leader_node_ && from != 0;
  Member* const member = of_leader ? nullptr : members_.Find(from);
  if (!of_leader && member == nullptr) return HandleStranger(from, message);
  if (!of_leader && member->key != message.key) return DropFrame(from, kOtherKey);
  const wire::Envelope* envelope = net::Decode(message);
  if (envelope == nullptr) return DropFrame(from, kNoMessage);
  if (of_leader) return leader_->OnMessage(*envelope, message);
  if (const auto* hello = envelope->body_as_Hello()) return OnHello(from, message.key, *envelope, *hello);
  member->heard = true;
  if (const auto* beat = envelope->body_as_Heartbeat()) {
    return registrar_->OnHeartbeat(*member, from, *envelope, *beat);
  }
  if (RunIdOf(*envelope) != outbox_.run()) {
    return outbox_.RefuseQuestion(from, *envelope, Reason::Run, "this is another run");
  }
  HandleMember(*member, *envelope, message);
}

// What strangers have used up their time for is dropped unread; a newcomer says Hello again.
void PsServer::HandleStranger(net::NodeId from, const net::Message& message) {
  const TimePoint begun = Clock::now();
  if (!strangers_.Allows(begun)) return;
  const wire::Envelope* const envelope = net::Decode(message);
  if (envelope == nullptr) {
    DropFrame(from, kNoMessage);
  } else if (const auto* hello = envelope->body_as_Hello()) {
    OnHello(from, message.key, *envelope, *hello);
  } else if (!holder_ || !holder_->OnStranger(from, message.key, *envelope)) {
    registrar_->RefuseStranger(from, message.key, *envelope);
  }
  strangers_.Used(Clock::now() - begun);
}

void PsServer::OnHello(net::NodeId from, uint32_t key, const wire::Envelope& envelope,
                       const wire::Hello& hello) {
  if (from & 1) return DropFrame(from, "it says Hello from a connection for heartbeats");
  if (link_ && link_->fetching()) {
    return outbox_.RefuseQuestion(from, envelope, Reason::NotReady, "this ps fills itself from its replica");
  }
  leads_ = true;
  if (link_) link_->ExpectRecord();
  registrar_->OnHello(from, key, envelope, hello);
  if (!link_) return;
  if (const Member* const member = members_.Find(from); member != nullptr && member->is_worker()) {
    link_->Worker(*member, true);
    told_[static_cast<size_t>(member->task.index)] = from;  // it may leave before the next tick
  }
  link_->Recorded();
}

void PsServer::HandleMember(Member& member, const wire::Envelope& envelope, net::Message& message) {
  if (!member.is_worker() && ledger_ != nullptr && ledger_->OnNotice(member, envelope, message)) {
    leads_ = true;
    return;
  }
  const uint64_t request = envelope.request();
  bool repeated = false;
  if (link_ && link_->fetching()) return;  // asked for again when all is here
  if (link_ && link_->full()) {
    refused_ = true;
    return;
  }
  const bool in_order = member.settled == member.last_request;  // no request before waits for anything
  if (!member.TakeRequest(request, &repeated)) return;
  if (const auto* abort = envelope.body_as_Abort()) return registrar_->OnAbort(member, *abort, request != 0);
  const bool tensor = envelope.body_type() == Body::Push || envelope.body_type() == Body::Pull;
  if (tensor && !member.is_worker()) return DropFrame(member.node, "only workers exchange tensors");
  switch (envelope.body_type()) {
    case Body::Push:
      if (repeated) return OnRepeated(member, request, *envelope.body_as_Push(), message);
      return OnPush(member, request, *envelope.body_as_Push(), message);
    case Body::Pull:
      return OnPull(member, request, repeated, *envelope.body_as_Pull(), message);
    case Body::Done:
      if (!repeated) OnDone(member, request);
      break;
    default:
      break;
  }
  leads_ = true;
  if (leader_->OnRequest(member, envelope, repeated)) {
    if (in_order && !repeated) member.settled = request;
    return;
  }
  DropFrame(member.node, "its kind is not for this ps");
}

void PsServer::OnPush(Member& member, uint64_t request, const wire::Push& push, net::Message& message) {
  const net::TensorView as_it_came = net::Tensor(message, push);
  net::Frame payload;
  if (link_ && link_->records() && !message.payload.empty()) payload = message.payload.Share();
  const std::string wrong = gradients_.Read(member, request, push, &message);
  if (!wrong.empty()) {
    return RefuseRequest(member, request, "a gradient", wrong);
  }
  if (link_) Record(member, request, push, std::move(payload), as_it_came);
  rule_->OnPush(member, request, push, message);
}

// In sync the parameters get it with its round, which is recorded then.
void PsServer::Record(Member& member, uint64_t request, const wire::Push& push, net::Frame payload,
                      net::TensorView as_it_came) {
  if (config_.train.mode != TrainMode::kSync) {
    member.settled = request;
    member.settled_blocks = member.blocks_come;
    return link_->Push(member, request, push, std::move(payload), as_it_came);
  }
  RowDesk::Parts parts;
  if (RowDesk::Split(as_it_came, push.key_bytes(), &parts))
    link_->Keys(member, request, push.block(), push.keys(), parts.keys);
}

void PsServer::OnDone(Member& member, uint64_t request) {
  if (link_) link_->ExpectRecord();
  rule_->Left(member);
  if (!link_) return;
  member.settled = request;
  link_->Worker(member);
  link_->Recorded();
}

// The number is not taken: a repeat is judged anew, and requests after it wait.
void PsServer::RefuseRequest(Member& member, uint64_t request, const char* what, const std::string& why) {
  log_.Error("{} of {} is refused: {}", what, members_.NameOf(member), why);
  member.last_request = request - 1;
  outbox_.Refuse(member.node, request, Reason::BadRequest, why);
}

void PsServer::OnPull(Member& member, uint64_t request, bool repeated, const wire::Pull& pull,
                      const net::Message& message) {
  if (!shard_.initialised()) return DropFrame(member.node, kNotInitialised);
  if (pull.block() >= shard_.block_count()) return DropFrame(member.node, kNoSuchBlock);
  if (!repeated && (member.blocks_come != 0 || rule_->Waits(member, pull.block()))) {
    return DropFrame(member.node, "a pull before its gradient was answered");
  }
  const std::string wrong = gradients_.TakeKeys(member, request, pull, message);
  if (!wrong.empty()) {
    return repeated ? DropFrame(member.node, kBadKeys) : RefuseRequest(member, request, "a pull", wrong);
  }
  if (!link_) return AnswerPull(member, request, repeated, pull);
  if (!pull.read()) link_->Keys(member, request, pull.block(), pull.keys(), net::Tensor(message, pull));
  link_->ExpectRecord();
  AnswerPull(member, request, repeated, pull);
  if (member.settled < request && !rule_->Waits(member, pull.block())) {
    member.settled = request;
    link_->Worker(member);
  }
  if (pull.workers() != nullptr) {
    for (const uint32_t worker : *pull.workers()) {
      const Member* const other = members_.Worker(worker);
      if (other != nullptr && other != &member && other->here()) link_->Worker(*other);
    }
  }
  link_->Recorded();
}

void PsServer::AnswerPull(Member& member, uint64_t request, bool repeated, const wire::Pull& pull) {
  if (pull.snapshot() != 0) return snapshots_.OnPull(member, request, pull);
  repeated ? rule_->OnRepeatedPull(member, request, pull) : rule_->OnPull(member, request, pull);
}

void PsServer::OnRepeated(Member& member, uint64_t request, const wire::Push& push,
                          const net::Message& message) {
  if (!shard_.initialised()) return DropFrame(member.node, kNotInitialised);
  if (push.block() >= shard_.block_count()) return DropFrame(member.node, kNoSuchBlock);
  const std::string wrong = gradients_.TakeKeys(member, request, push, net::Tensor(message, push));
  if (!wrong.empty()) return DropFrame(member.node, kBadKeys);
  rule_->OnRepeated(member, request, push.block());
}

// Between the parts of a large table's report the ps answers and tells that it is alive.
std::optional<ShardReport> PsServer::Report() {
  if (!shard_.initialised()) return std::nullopt;
  std::optional<ShardReport> report = shard_.Report(Clock::now() + kReportTurn);
  if (!report) return std::nullopt;
  const net::ChannelStats stats = channel_.stats();
  report->bytes_sent = static_cast<int64_t>(stats.bytes_sent);
  report->bytes_received = static_cast<int64_t>(stats.bytes_received);
  report->bytes_saved = static_cast<int64_t>(rule_->bytes_saved());
  return report;
}

}  // namespace dtrain
