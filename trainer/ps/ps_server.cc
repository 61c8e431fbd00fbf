#include "trainer/ps/ps_server.h"

#include <signal.h>

#include <algorithm>

#include "base/error.h"
#include "trainer/model/blocks.h"
#include "trainer/model/finite.h"
#include "trainer/peer/abort.h"
#include "trainer/peer/this_host.h"
#include "trainer/ps/peer_limits.h"

namespace dtrain {
namespace {

using wire::Body;
using wire::Reason;

// Messages between two looks at the clock while they come without a pause.
constexpr int kMessagesPerTick = 256;
// Until weights are tried again that a full queue did not take.
constexpr milliseconds kLateTick{1};
// Until it is looked again how far a checkpoint is that is written here.
constexpr milliseconds kSavingTick{5};
// Of a directory's checkpoints.
constexpr size_t kMostNames = 1000;
constexpr size_t kLongestLine = 400;
constexpr int kRefusalsLogged = 20;
constexpr char kNotInitialised[] = "a pull before the initial values";
constexpr char kNoSuchBlock[] = "it asks for a block that is not here";
// How long a failed ps 0 tries to tell the others why.
constexpr milliseconds kAbortFarewell{1000};

}  // namespace

PsServer::PsServer(const PsTask& task, RunHistory& history, PsSummary* summary)
    : task_(task),
      config_(task.config),
      self_(task.self),
      layout_(task.layout),
      channel_(task.channel),
      log_(task.log),
      history_(history),
      shard_(config_, layout_, self_.index),
      members_(config_, self_),
      outbox_(channel_),
      summary_(summary),
      slow_workers_(config_.cluster.worker.size()),
      tick_(std::min<milliseconds>(Heartbeat::Interval(config_.failure.detect_s), milliseconds(50))) {
  activity_.stop = task.stop;
  if (self_.index == 0) {
    outbox_.set_run(history.run);
    coordinator_ = std::make_unique<Coordinator>(config_, members_, outbox_, log_, history_);
  }
  rule_ = MakeUpdateRule(
      {config_, shard_, members_, outbox_, coordinator_.get(), [this] { uplink_->AskForEnd(); }});
  keeper_ = std::make_unique<CutKeeper>(config_, shard_, *rule_, outbox_, [this] { OnKept(); });
  WriteTogether();
  coordinator_ ? Coordinate() : void(uplink_ = std::make_unique<Uplink>(task_, activity_, *rule_, history_));
}

// checkpoint.writer: ps.
void PsServer::WriteTogether() {
  if (config_.checkpoint.writer != CheckpointWriter::kPs) return;
  loader_ = std::make_unique<RangeLoader>(config_, layout_, self_.index, shard_);
  if (!coordinator_) {
    const auto slots = static_cast<int64_t>(shard_.slot_names().size());
    shard_saver_ = std::make_unique<ShardSaver>(layout_, self_.index, slots);
  } else if (PsWrite(config_)) {
    shared_ = ShowSharedDirectory(config_, history_.run.id);
    const std::string self = fmt::format("{} on {}", TaskNameAndAddress(config_.cluster, self_), HostName());
    joint_ = std::make_unique<JointSave>(config_, layout_, *shared_, self, log_);
  }
}

void PsServer::Coordinate() {
  coordinator_->set_start_point([this](Member& worker) { return rule_->OnStart(worker); });
  coordinator_->set_on_begun(task_.on_begun);
  coordinator_->set_begin_at([this](int64_t step) { rule_->BeginAt(static_cast<uint64_t>(step)); });
  if (config_.checkpoint.dir.empty()) return;
  saves_ = std::make_unique<SaveDesk>(SaveDesk::Parts{
      config_, members_, outbox_, *rule_, *keeper_, history_, log_, joint_.get(),
      [this] { return coordinator_->global_step(); }, [this] { return coordinator_->PositionsNow(); }});
  coordinator_->set_saves(saves_.get());
}

// The range is kept for a checkpoint.
void PsServer::OnKept() {
  if (uplink_) {
    const uint64_t number = keeper_->number();
    return uplink_->SendCutState(number, shard_saver_ ? shard_saver_->Of(number) : nullptr);
  }
  if (saves_) saves_->OnKept();
}

// From ps 0.
void PsServer::OnCut(const wire::Cut& cut) {
  const bool kept = keeper_->cut() && keeper_->number() == cut.number();
  if (cut.write() && kept && shard_saver_ && !shard_saver_->Of(cut.number())) {
    const auto step = static_cast<int64_t>(std::min<uint64_t>(cut.step(), kMostSteps));
    const std::string token = SaveToken(uplink_->run().id, cut.number());
    const CheckpointDirectory directory(config_.checkpoint.dir);
    if (!shard_saver_->busy()) log_.Debug("writes its part of the checkpoint of global step {}", step);
    shard_saver_->Begin(cut.number(), keeper_->cut(), directory.TemporaryPath(step, token));
  }
  keeper_->OnCut(cut);
}

TimePoint PsServer::NextTick(TimePoint now) const {
  if (loader_ && loader_->busy()) return now;
  if (outbox_.late()) return now + kLateTick;
  const bool writes = (shard_saver_ && shard_saver_->busy()) || (saves_ && saves_->writing_here());
  return now + (writes ? std::min(tick_, kSavingTick) : tick_);
}

RunSummary PsServer::Run() {
  net::NodeId from = 0;
  net::Message message;
  TimePoint now = Clock::now();
  while (!Finished(now)) {
    activity_.Turn();
    Tick(now);
    if (outbox_.late()) outbox_.SendLate();
    if (loader_ && loader_->Turn()) AnswerLoad();
    const TimePoint next_tick = NextTick(now);
    for (int i = 0; i < kMessagesPerTick; ++i) {
      if (channel_.Receive(next_tick, &from, &message) != net::ReceiveResult::kMessage) break;
      Handle(from, message);
      keeper_->Tick();
    }
    keeper_->Tick();
    now = Clock::now();
  }
  return Summary();
}

bool PsServer::Finished(TimePoint now) const {
  return coordinator_ ? coordinator_->Finished(now) : uplink_->end().has_value();
}

RunSummary PsServer::Summary() const {
  if (coordinator_) return coordinator_->summary();
  RunSummary summary;
  if (!FromWireJson(*uplink_->end(), &summary)) {
    throw Failure(ExitCode::kInternal, "ps 0 ended the run with a summary that cannot be read");
  }
  return summary;
}

void PsServer::Tick(TimePoint now) {
  if (coordinator_ && activity_.stop_signal() != 0) coordinator_->Stop(activity_.stop_signal());
  if (coordinator_) coordinator_->Tick(now);
  if (saves_) saves_->Tick(now);
  if (shard_saver_ && shard_saver_->Poll()) OnKept();
  if (uplink_) uplink_->Tick(now);
  if (uplink_) outbox_.set_run(uplink_->run());
  WatchMembers(now);
  rule_->Tick();
}

void PsServer::WatchMembers(TimePoint now) {
  for (Member* member : members_.Tick(now)) {
    const std::string text = members_.WhyOverdue(*member);
    // Its heartbeats end it: nobody waits for it any more.
    if (coordinator_ && members_.Stuck(*member)) {
      outbox_.Send(member->node | 1, 0, [&](auto& builder) {
        return CreateAbort(builder, static_cast<int>(ExitCode::kPeerLost), self_, text);
      });
    }
    GiveUp(*member);
    OnLoss(*member, text);
  }
}

void PsServer::GiveUp(const Member& member) {
  if (task_.on_lost && coordinator_) task_.on_lost(member.task);
}

// All tasks begin again from the newest checkpoint; what is here goes.
void PsServer::RollBack(const std::string& why) {
  coordinator_->NoteLoss();
  throw RolledBack{why};
}

// What is sent from now on is of the next epoch, and those who hear of it join that.
void PsServer::SendAway(const std::string& why) {
  if (uplink_) return uplink_->Leave();
  ++history_.run.epoch;
  outbox_.set_run(history_.run);
  for (const Member& member : members_.all()) {
    if (member.here()) outbox_.Refuse(member.node, 0, Reason::Run, why);
  }
}

// Ends the run, or goes on, as failure.worker_lost says.
void PsServer::OnLoss(Member& member, const std::string& why) {
  const Loss loss = coordinator_ ? coordinator_->WhatIfLost(member) : Loss::kGoesOn;
  if (loss == Loss::kRollsBack) RollBack(why);
  if (loss == Loss::kEnds) {
    if (member.task.role == Role::kPs) throw PeerLost("{}. Look at its log.", why);
    throw PeerLost("{}; {}. Look at its log.", why,
                   config_.failure.worker_lost == WorkerLost::kFail
                       ? "failure.worker_lost is fail"
                       : "it was the chief, and no other worker can take its place");
  }
  if (loss == Loss::kWaits) {
    log_.Warning("{}; the run waits for it up to {} s (failure.wait_s)", why, config_.failure.wait_s);
  } else {
    log_.Warning("{}{}", why, coordinator_ && coordinator_->begun() ? "; the run goes on without it" : "");
  }
  Forget(member);
}

// The member has to say Hello again. Before the start a lost ps takes the workers' registrations along: they
// are registered with it too, and with its successor they are not.
void PsServer::Forget(Member& member) {
  if (coordinator_) coordinator_->Left(member);
  outbox_.DropLate(member.node);
  members_.Remove(member);
  rule_->Lost(member);
  if (coordinator_) coordinator_->PassChiefOn();
  if (member.task.role == Role::kWorker) slow_workers_.Forget(member.task.index);
  if (member.task.role == Role::kPs) ForgetWorkers();
}

void PsServer::ForgetWorkers() {
  for (Member& member : members_.all()) {
    if (member.task.role == Role::kWorker && member.here()) Forget(member);
  }
}

void PsServer::DropFrame(net::NodeId from, const char* why) {
  if (frames_dropped_++ == 0) log_.Warning("dropped a frame from peer {:016x}: {}", from, why);
}

void PsServer::Handle(net::NodeId from, net::Message& message) {
  const wire::Envelope* envelope = net::Decode(message);
  if (envelope == nullptr) return DropFrame(from, "it is not a message of dtrain");
  if (uplink_ && from == uplink_->node()) {
    if (const auto* cut = envelope->body_as_Cut()) return OnCut(*cut);
    return uplink_->Handle(*envelope);
  }
  if (const auto* hello = envelope->body_as_Hello()) return OnHello(from, *hello);
  Member* member = members_.Find(from);
  if (member == nullptr && HandleSaver(from, *envelope)) return;
  if (member == nullptr) {
    if (RunIdOf(*envelope).known() && RunIdOf(*envelope) == outbox_.run()) {
      return outbox_.Refuse(from, envelope->request(), Reason::Unregistered, GivenUpText());
    }
    return outbox_.Refuse(from, envelope->request(), Reason::Run,
                          "it was restarted, or has not met this task");
  }
  member->heard = true;
  if (const auto* beat = envelope->body_as_Heartbeat()) return OnHeartbeat(*member, from, *beat);
  if (RunIdOf(*envelope) != outbox_.run()) {
    return outbox_.Refuse(from, envelope->request(), Reason::Run, "this is another run");
  }
  HandleMember(*member, *envelope, message);
  if (summary_ && coordinator_->global_step() != summarised_step_) SummariseStep();
}

std::string PsServer::GivenUpText() const {
  return fmt::format(
      "it gave this task up, which it had not heard for {} s (failure.detect_s), or another took its index",
      config_.failure.detect_s);
}

// Requests are taken in the order of their numbers; a gap means that one was lost and comes again.
bool PsServer::TakeRequest(Member& member, uint64_t request, bool* repeated) {
  *repeated = request <= member.last_request;
  if (*repeated) return true;
  if (request != member.last_request + 1 && member.last_request != 0) return false;
  member.last_request = request;
  member.GrantOf(request) = 0;
  return true;
}

void PsServer::HandleMember(Member& member, const wire::Envelope& envelope, net::Message& message) {
  if (const auto* abort = envelope.body_as_Abort()) return OnAbort(member, *abort);
  if (const auto* state = envelope.body_as_CutState()) {
    if (saves_ && member.task.role == Role::kPs) saves_->OnCutState(member, *state);
    return;
  }
  const uint64_t request = envelope.request();
  bool repeated = false;
  if (!TakeRequest(member, request, &repeated)) return;
  const bool tensor = envelope.body_type() == Body::Push || envelope.body_type() == Body::Pull;
  if (tensor && member.task.role != Role::kWorker)
    return DropFrame(member.node, "only workers exchange tensors");
  switch (envelope.body_type()) {
    case Body::Push:
      if (repeated) return OnRepeated(member, request, envelope.body_as_Push()->block());
      return OnPush(member, request, *envelope.body_as_Push(), message);
    case Body::Pull:
      if (repeated) return OnRepeatedPull(member, request, *envelope.body_as_Pull());
      return OnPull(member, request, *envelope.body_as_Pull());
    case Body::Restore:
      return OnRestore(member, request, *envelope.body_as_Restore(), message);
    case Body::Load:
      return OnLoad(member, request, *envelope.body_as_Load());
    case Body::ListCheckpoints:
      return OnListCheckpoints(member, request);
    case Body::Initialise:
      return OnInitialise(member, request, *envelope.body_as_Initialise());
    case Body::Checksums:
      return OnChecksums(member, request);
    case Body::Stop:
      if (!coordinator_ || member.task.role != Role::kWorker) break;
      if (!repeated) OnStop(member, *envelope.body_as_Stop());
      return outbox_.Ack(member.node, request);
    case Body::Save:
      if (!coordinator_ || member.task.role != Role::kWorker) break;
      if (!repeated && saves_) saves_->OnSave(*envelope.body_as_Save());
      return outbox_.Ack(member.node, request);
    case Body::Done:
      if (!repeated) rule_->Left(member);
      if (!coordinator_) return outbox_.Ack(member.node, request);
      break;
    case Body::WaitEnd:
      if (!coordinator_) break;
      coordinator_->Handle(member, envelope);
      return rule_->OnNorm();
    default:
      break;
  }
  if (coordinator_ && coordinator_->Handle(member, envelope)) return;
  DropFrame(member.node, "its kind is not for this ps");
}

// The chief's saver has a conversation of its own, without Hello.
bool PsServer::HandleSaver(net::NodeId from, const wire::Envelope& envelope) {
  if (!outbox_.run().known() || RunIdOf(envelope) != outbox_.run()) return false;
  if (const auto* read = envelope.body_as_ReadCut()) {
    keeper_->OnReadCut(from, envelope.request(), *read);
  } else if (const auto* question = envelope.body_as_AskSave(); question != nullptr && saves_) {
    saves_->OnAskSave(from, envelope.request(), *question);
  } else if (const auto* confirm = envelope.body_as_ConfirmSave(); confirm != nullptr && saves_) {
    saves_->OnConfirm(from, envelope.request(), *confirm);
  } else {
    return false;
  }
  return true;
}

void PsServer::OnRestore(Member& member, uint64_t request, const wire::Restore& restore,
                         const net::Message& message) {
  const net::TensorView values = net::Tensor(message, restore);
  const bool sum_fits =
      restore.checksum() == 0 || restore.checksum() == net::PayloadChecksum(values.data, values.size);
  if (!MayInitialise(member) || !sum_fits || !shard_.Fits(restore.slot(), restore.first(), values.size)) {
    return outbox_.Refuse(member.node, request, Reason::BadRequest, "these restored values do not fit here");
  }
  shard_.Restore(restore.slot(), static_cast<int64_t>(restore.first()), values);
  outbox_.Ack(member.node, request);
}

// In a run epoch only one worker is told to, and only ps 0 knows which.
bool PsServer::MayInitialise(const Member& member) const {
  return coordinator_ ? coordinator_->IsChief(member) : member.task.role == Role::kWorker;
}

// Answered when it has ended. One that comes again meanwhile is not answered for itself.
void PsServer::OnLoad(const Member& member, uint64_t request, const wire::Load& load) {
  if (!MayInitialise(member) || !loader_) return DropFrame(member.node, "nothing is loaded for it here");
  loader_->Begin({member.node, request}, load.name() == nullptr ? "" : load.name()->str());
  if (!loader_->busy()) AnswerLoad();
}

void PsServer::AnswerLoad() {
  const RangeLoader::Outcome& outcome = *loader_->outcome();
  outbox_.Send(loader_->question().from, loader_->question().request, [&](auto& builder) {
    const auto error = outcome.error.empty() ? 0 : builder.CreateString(outcome.error);
    return wire::CreateLoaded(builder, error, outcome.misfit, static_cast<uint64_t>(outcome.step),
                              builder.CreateString(outcome.positions));
  });
}

void PsServer::OnListCheckpoints(const Member& member, uint64_t request) {
  std::vector<std::string> names, unreadable;
  if (shared_) {
    for (const ListedCheckpoint& each : shared_->List(&unreadable)) names.push_back(each.name);
  }
  names.resize(std::min(names.size(), kMostNames));
  unreadable.resize(std::min(unreadable.size(), kMostNames));
  for (std::string& line : unreadable) line = line.substr(0, kLongestLine);
  outbox_.Send(member.node, request, [&](auto& builder) {
    return wire::CreateCheckpoints(builder, builder.CreateVectorOfStrings(names),
                                   builder.CreateVectorOfStrings(unreadable));
  });
}

void PsServer::OnInitialise(const Member& member, uint64_t request, const wire::Initialise& initialise) {
  if (!MayInitialise(member)) return;
  if (initialise.restored() && initialise.version() >> 62 == 0) {
    shard_.SetRestored(initialise.version());
  } else {
    shard_.Initialise();
  }
  outbox_.Ack(member.node, request);
}

void PsServer::OnHello(net::NodeId from, const wire::Hello& hello) {
  if (from & 1) return DropFrame(from, "it says Hello from a connection for heartbeats");
  if (uplink_ && !uplink_->run().known()) {
    return outbox_.Refuse(from, 0, Reason::NotReady,
                          fmt::format("{} has not joined ps 0 yet", TaskName(self_)));
  }
  if (uplink_) outbox_.set_run(uplink_->run());
  const auto closed = [this](net::NodeId old) {
    const auto ping = [](auto& builder) {
      return wire::CreateHeartbeat(builder, builder.CreateString("serve"), 0, builder.CreateString(""));
    };
    return outbox_.Send(old, 0, ping) == net::SendResult::kGone;
  };
  const bool was_here = members_.Find(from) != nullptr;
  const Membership::Decision decision = members_.Admit(from, hello, Clock::now(), closed);
  if (!decision.welcome) return RefuseHello(from, hello, decision);
  Member& member = *members_.Find(from);
  if (member.task.role == Role::kPs && coordinator_->begun()) {
    const std::string why =
        members_.NameOf(member) + " was restarted during the run and has lost its weights";
    if (RecoversPs(config_)) RollBack(why);
    throw PeerLost("{}. Start the run again.", why);
  }
  if (decision.replaced) {
    log_.Warning("{} takes the place of an earlier one whose connection is gone", members_.NameOf(member));
    if (member.task.role == Role::kPs) ForgetWorkers();
  } else {
    log_.Debug("{} is here", members_.NameOf(member));
  }
  // What it had open before this Hello.
  if (coordinator_ && (decision.replaced || was_here)) coordinator_->Left(member);
  rule_->Lost(member);
  if (coordinator_) coordinator_->PassChiefOn();
  const auto heartbeat_ms = static_cast<uint32_t>(Heartbeat::Interval(config_.failure.detect_s).count());
  outbox_.Send(from, 0, [&](auto& builder) { return wire::CreateWelcome(builder, heartbeat_ms); });
}

void PsServer::RefuseHello(net::NodeId from, const wire::Hello& hello, const Membership::Decision& decision) {
  outbox_.Refuse(from, 0, decision.reason, decision.text);
  // Bounded: a stranger may ask for ever.
  if (decision.reason == Reason::Held || ++hellos_refused_ > kRefusalsLogged) return;
  log_.Warning("refused a task ({}): {}", ShortText(hello.process()->str()), decision.text);
}

void PsServer::WatchPace(const Member& member, const wire::Heartbeat& beat) {
  // Whatever a peer says, differences of these fit.
  const auto bounded = [](uint64_t count) { return static_cast<int64_t>(count & 0x3fffffffffffffff); };
  const SlowWorkers::Pace pace{bounded(beat.steps()), bounded(beat.own_us())};
  const std::optional<SlowWorkers::Change> change =
      slow_workers_.Report(member.task.index, pace, members_.workers());
  if (!change) return;
  const std::string text = fmt::format("{} {}", members_.NameOf(member), PaceText(*change));
  change->slow ? log_.Warning("{}", text) : log_.Info("{}", text);
}

void PsServer::OnHeartbeat(Member& member, net::NodeId from, const wire::Heartbeat& beat) {
  members_.NoteBeat(member, beat);
  if (coordinator_ && member.task.role == Role::kWorker) WatchPace(member, beat);
  if (coordinator_ && (beat.stop() == SIGINT || beat.stop() == SIGTERM)) coordinator_->Stop(beat.stop());
  const std::string status = coordinator_ ? coordinator_->Status() : std::string();
  const int workers = coordinator_ ? members_.workers() : 0;
  outbox_.Send(from, 0, [&](auto& builder) {
    return wire::CreateHeartbeat(builder, builder.CreateString("serve"), shard_.version(0),
                                 builder.CreateString(status), static_cast<uint32_t>(workers), 0, 0,
                                 coordinator_ ? coordinator_->stop_signal() : 0,
                                 coordinator_ ? static_cast<uint32_t>(coordinator_->chief()) : 0,
                                 coordinator_ ? coordinator_->term() : 0);
  });
}

void PsServer::OnPush(Member& member, uint64_t request, const wire::Push& push, net::Message& message) {
  const net::TensorView gradient = net::Tensor(message, push);
  const std::string wrong = WhyNotApplied(member, push, gradient);
  if (wrong.empty()) {
    CheckFinite(member, push, gradient);
  } else {
    log_.Error("a gradient of {} is refused: {}", members_.NameOf(member), wrong);
    // Its number is not taken: a repeat is judged anew, and what was sent behind it waits.
    member.last_request = request - 1;
    return outbox_.Refuse(member.node, request, Reason::BadRequest, wrong);
  }
  if (++member.next_block == shard_.block_count()) member.next_block = 0;
  rule_->OnPush(member, request, push, message);
}

// Throws where the block has a value that is not finite: before anything of it is applied, or kept for its
// round.
void PsServer::CheckFinite(const Member& member, const wire::Push& push, net::TensorView gradient) const {
  if (!config_.hooks.stop_on_nan) return;
  const Range range = BlockOf(layout_.ps[static_cast<size_t>(self_.index)], push.block());
  const std::optional<std::string> wrong = FirstNonFinite(layout_, range, gradient.data);
  if (!wrong) return;
  throw Diverged(fmt::format("{}, local step {}, at version {} of {}: in its gradient {}",
                             TaskName(member.task), member.taken + 1, shard_.version(push.block()),
                             TaskName(self_), *wrong));
}

void PsServer::SummariseStep() {
  summarised_step_ = coordinator_->global_step();
  if (summary_->Due(summarised_step_)) summary_->OnUpdate(summarised_step_, members_.workers());
}

void PsServer::OnPull(Member& member, uint64_t request, const wire::Pull& pull) {
  if (!shard_.initialised()) return DropFrame(member.node, kNotInitialised);
  if (pull.block() >= shard_.block_count()) return DropFrame(member.node, kNoSuchBlock);
  if (member.next_block != 0 || rule_->Waits(member, pull.block())) {
    return DropFrame(member.node, "a pull before its gradient was answered");
  }
  rule_->OnPull(member, request, pull);
}

void PsServer::OnRepeated(Member& member, uint64_t request, int64_t block) {
  if (!shard_.initialised()) return DropFrame(member.node, kNotInitialised);
  if (block >= shard_.block_count()) return DropFrame(member.node, kNoSuchBlock);
  rule_->OnRepeated(member, request, block);
}

void PsServer::OnRepeatedPull(Member& member, uint64_t request, const wire::Pull& pull) {
  if (!shard_.initialised()) return DropFrame(member.node, kNotInitialised);
  if (pull.block() >= shard_.block_count()) return DropFrame(member.node, kNoSuchBlock);
  rule_->OnRepeatedPull(member, request, pull);
}

// Empty for a gradient that may be applied.
std::string PsServer::WhyNotApplied(Member& member, const wire::Push& push, net::TensorView gradient) {
  if (push.block() != member.next_block) {
    return fmt::format("it has block {}, and block {} is the next", push.block(), member.next_block);
  }
  if (gradient.size != shard_.bytes(push.block())) {
    return fmt::format("block {} has {} bytes, that of {} has {}", push.block(), gradient.size,
                       TaskName(self_), shard_.bytes(push.block()));
  }
  if (!shard_.initialised()) return "there are no initial values yet";
  if (coordinator_ && !coordinator_->MayStep(member)) return "its step was not granted";
  if (rule_->Waits(member, push.block())) return "the one before it is not answered yet";
  if (push.checksum() != 0 && push.checksum() != net::PayloadChecksum(gradient.data, gradient.size)) {
    return "its bytes do not have the checksum that it names (net.checksum)";
  }
  return std::string();
}

void PsServer::OnStop(const Member& member, const wire::Stop& stop) {
  log_.Info("{} ends the run early: {}", TaskName(member.task), ShortText(stop.reason()->str()));
  rule_->EndEarly();
}

void PsServer::OnChecksums(Member& member, uint64_t request) {
  outbox_.Send(member.node, request, [&](flatbuffers::FlatBufferBuilder& builder) {
    std::vector<flatbuffers::Offset<wire::Part>> parts;
    for (const PartChecksum& part : shard_.PartChecksums()) {
      parts.push_back(wire::CreatePart(builder, builder.CreateString(part.name),
                                       static_cast<uint64_t>(part.first_row),
                                       static_cast<uint64_t>(part.bytes), part.crc));
    }
    const net::ChannelStats stats = channel_.stats();
    return wire::CreateChecksumList(builder, builder.CreateVector(parts), stats.bytes_sent,
                                    stats.bytes_received);
  });
}

// A run that diverges, or has not begun, ends with the task that failed; otherwise it is one that is lost.
void PsServer::OnAbort(Member& member, const wire::Abort& abort) {
  const std::string text = AbortText(config_.cluster, abort);
  const bool of_run = abort.exit_code() == static_cast<int>(ExitCode::kDiverged);
  if (of_run || !coordinator_ || coordinator_->starting()) throw PeerLost("{}", text);
  const Loss loss = coordinator_->WhatIfLost(member);
  // What keeps one chief from restoring keeps the next one.
  const bool no_start = member.task.role == Role::kWorker && loss == Loss::kRollsBack;
  if (no_start || loss == Loss::kEnds) throw PeerLost("{}", text);
  OnLoss(member, fmt::format("{} ended with exit code {}: {}", members_.NameOf(member), abort.exit_code(),
                             ShortText(abort.text()->str())));
}

void PsServer::Abort(int exit_code, const std::string& text, const RunSummary* summary) {
  if (uplink_) return uplink_->Abort(exit_code, text);
  std::set<net::NodeId> untold;
  for (const Member& member : members_.all()) {
    if (member.here()) untold.insert(member.node);
  }
  // A connection that closes takes along what its peer has not read yet, so this stays until each has said
  // Bye or is gone.
  const TimePoint deadline = Clock::now() + kAbortFarewell;
  while (!untold.empty() && Clock::now() < deadline) {
    for (auto node = untold.begin(); node != untold.end();) {
      const auto abort = [&](auto& builder) { return CreateAbort(builder, exit_code, self_, text, summary); };
      outbox_.Send(*node | 1, 0, abort);  // read at once, by a task that is busy as well
      node = outbox_.Send(*node, 0, abort) == net::SendResult::kGone ? untold.erase(node) : std::next(node);
    }
    TakeByes(std::min(deadline, Clock::now() + tick_), &untold);
  }
}

void PsServer::TakeByes(TimePoint deadline, std::set<net::NodeId>* untold) {
  net::NodeId from = 0;
  net::Message message;
  while (!untold->empty() && channel_.Receive(deadline, &from, &message) == net::ReceiveResult::kMessage) {
    const wire::Envelope* envelope = net::Decode(message);
    if (envelope != nullptr && envelope->body_type() == Body::Bye) untold->erase(from);
  }
}

}  // namespace dtrain
