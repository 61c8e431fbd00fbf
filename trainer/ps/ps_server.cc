#include "trainer/ps/ps_server.h"

#include <algorithm>

#include "base/error.h"
#include "trainer/peer/heartbeat.h"
#include "trainer/peer/peer_limits.h"
#include "trainer/ps/abort_farewell.h"
#include "trainer/ps/device_shard.h"
#include "trainer/ps/host_shard.h"

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
constexpr char kNotInitialised[] = "a pull before the initial values";
constexpr char kNoSuchBlock[] = "it asks for a block that is not here";

std::unique_ptr<ParameterShard> MakeShard(const PsTask& task) {
  if (task.store == nullptr) return std::make_unique<HostShard>(task.config, task.layout, task.self.index);
  return std::make_unique<DeviceShard>(task.config, task.layout, task.self.index, *task.store);
}

}  // namespace

PsServer::PsServer(const PsTask& task, RunHistory& history, PsSummary* summary)
    : task_(task),
      config_(task.config),
      self_(task.self),
      layout_(task.layout),
      channel_(task.channel),
      log_(task.log),
      history_(history),
      shard_owner_(MakeShard(task)),
      shard_(*shard_owner_),
      members_(config_, self_),
      outbox_(channel_),
      activity_(task.stop),
      summary_(summary),
      tick_(std::min<milliseconds>(Heartbeat::Interval(config_.failure.detect_s), milliseconds(50))) {
  if (self_.index == 0) {
    outbox_.set_run(history.run);
    coordinator_ = std::make_unique<Coordinator>(config_, members_, outbox_, log_, history_);
  }
  rule_ = MakeUpdateRule(
      {config_, shard_, members_, outbox_, coordinator_.get(), [this] { uplink_->AskForEnd(); }});
  if (coordinator_) {
    Coordinate();
  } else {
    uplink_ = std::make_unique<Uplink>(task_, activity_, *rule_, history_);
  }
  check_.emplace(config_, self_, layout_, shard_, *rule_, coordinator_.get());
  filler_.emplace(FillerParts());
  checkpoints_.emplace(CheckpointDesk::Parts{config_, self_, layout_, shard_, *rule_, members_, outbox_,
                                             history_, log_, coordinator_.get(), uplink_.get()});
  if (coordinator_) restore_.emplace(RestoreParts());
  registrar_.emplace(
      Registrar::Parts{task_, shard_, *rule_, members_, outbox_, coordinator_.get(), uplink_.get()});
}

void PsServer::Coordinate() {
  coordinator_->set_start_point([this](Member& worker) { return rule_->OnStart(worker); });
  coordinator_->set_on_begun(task_.on_begun);
  coordinator_->set_end_early([this] { rule_->EndEarly(); });
  coordinator_->set_own_report([this] { return Report(); });
  coordinator_->set_begin_at([this](int64_t step) { rule_->BeginAt(static_cast<uint64_t>(step)); });
  coordinator_->set_fill(
      [this](bool again, const std::optional<DataFacts>& data) { restore_->Begin(again, data); });
}

RangeFiller::Parts PsServer::FillerParts() {
  return {config_,
          layout_,
          self_.index,
          shard_,
          log_,
          [this] { return uplink_->sees_directory(); },
          [this](uint64_t number, int64_t piece) { uplink_->AskForPiece(number, piece); },
          [this](const FillOutcome& outcome) {
            uplink_ ? uplink_->SendFilled(outcome) : restore_->OnOutcome(0, outcome);
          }};
}

Restore::Parts PsServer::RestoreParts() {
  return {config_,
          layout_,
          members_,
          outbox_,
          history_,
          checkpoints_->directory(),
          [this](const FillOrder& order) { filler_->Take(order); },
          [this](const StartedFrom& from) { coordinator_->OnFilled(from); },
          log_};
}

TimePoint PsServer::NextTick(TimePoint now) const {
  if (filler_->busy()) return now;
  if (outbox_.late()) return now + kLateTick;
  return now + (checkpoints_->writing() ? std::min(tick_, kSavingTick) : tick_);
}

RunSummary PsServer::Run() {
  net::NodeId from = 0;
  net::Message message;
  TimePoint now = Clock::now();
  while (!Finished(now)) {
    activity_.Turn();
    Tick(now);
    if (outbox_.late()) outbox_.SendLate();
    filler_->Turn(now);
    const TimePoint next_tick = NextTick(now);
    for (int i = 0; i < kMessagesPerTick; ++i) {
      if (channel_.Receive(next_tick, &from, &message) != net::ReceiveResult::kMessage) break;
      Handle(from, message);
      checkpoints_->AfterMessage();
    }
    checkpoints_->AfterMessage();
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
  checkpoints_->Tick(now);
  if (restore_) restore_->Tick(now);
  if (uplink_) uplink_->Tick(now);
  if (uplink_) outbox_.set_run(uplink_->run());
  registrar_->Watch(now);
  rule_->Tick();
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

void PsServer::DropFrame(net::NodeId from, const char* why) {
  if (frames_dropped_++ == 0) log_.Warning("dropped a frame from peer {:016x}: {}", from, why);
}

void PsServer::Handle(net::NodeId from, net::Message& message) {
  const wire::Envelope* envelope = net::Decode(message);
  if (envelope == nullptr) return DropFrame(from, "it is not a message of dtrain");
  if (uplink_ && from == uplink_->node()) return HandleLeader(*envelope, message);
  if (const auto* hello = envelope->body_as_Hello()) {
    if (from & 1) return DropFrame(from, "it says Hello from a connection for heartbeats");
    return registrar_->OnHello(from, *hello);
  }
  Member* member = members_.Find(from);
  if (member == nullptr) return registrar_->RefuseStranger(from, *envelope);
  member->heard = true;
  if (const auto* beat = envelope->body_as_Heartbeat()) return registrar_->OnHeartbeat(*member, from, *beat);
  if (RunIdOf(*envelope) != outbox_.run()) {
    return outbox_.Refuse(from, envelope->request(), Reason::Run, "this is another run");
  }
  HandleMember(*member, *envelope, message);
  if (summary_ && coordinator_->global_step() != summarised_step_) SummariseStep();
}

void PsServer::HandleLeader(const wire::Envelope& envelope, net::Message& message) {
  switch (envelope.body_type()) {
    case Body::Cut:
      return checkpoints_->OnCut(*envelope.body_as_Cut());
    case Body::Checksums:
      return SendReport();
    case Body::ReadPiece:
      return checkpoints_->OnReadPiece(uplink_->node(), *envelope.body_as_ReadPiece());
    case Body::Fill: {
      const wire::Fill& fill = *envelope.body_as_Fill();
      return filler_->Take({fill.number(), fill.checkpoint() == nullptr ? "" : fill.checkpoint()->str(),
                            static_cast<int64_t>(fill.step() & kMostSteps), fill.manifest(), fill.keep()});
    }
    case Body::Piece:
      return filler_->OnPiece(*envelope.body_as_Piece(), net::Tensor(message, *envelope.body_as_Piece()));
    default:
      return uplink_->Handle(envelope);
  }
}

// What another ps tells or asks ps 0 about checkpoints, without a number. False: it is none of that.
bool PsServer::HandlePs(const Member& ps, const wire::Envelope& envelope, net::Message& message) {
  const auto index = static_cast<size_t>(ps.task.index);
  switch (envelope.body_type()) {
    case Body::CutState:
      checkpoints_->OnCutState(ps, *envelope.body_as_CutState());
      return true;
    case Body::ChecksumList:
      coordinator_->OnChecksums(ps, *envelope.body_as_ChecksumList());
      return true;
    case Body::Piece:
      checkpoints_->OnPiece(ps, std::move(message));
      return true;
    case Body::ReadPiece:
      restore_->OnReadPiece(ps, *envelope.body_as_ReadPiece());
      return true;
    case Body::Filled: {
      const wire::Filled& filled = *envelope.body_as_Filled();
      const std::string error = filled.error() == nullptr ? "" : ShortText(filled.error()->str());
      restore_->OnOutcome(index, {filled.number(), error, filled.kept()});
      return true;
    }
    default:
      return false;
  }
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
  if (const auto* abort = envelope.body_as_Abort()) return registrar_->OnAbort(member, *abort);
  if (member.task.role == Role::kPs && HandlePs(member, envelope, message)) return;
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
    case Body::Stop:
      if (!coordinator_ || member.task.role != Role::kWorker) break;
      if (!repeated) OnStop(member, *envelope.body_as_Stop());
      return outbox_.Ack(member.node, request);
    case Body::Save:
      if (!coordinator_ || member.task.role != Role::kWorker) break;
      if (!repeated) checkpoints_->OnSave();
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

void PsServer::OnPush(Member& member, uint64_t request, const wire::Push& push, net::Message& message) {
  const net::TensorView gradient = net::Tensor(message, push);
  const std::string wrong = check_->Judge(member, push, gradient);
  if (!wrong.empty()) {
    log_.Error("a gradient of {} is refused: {}", members_.NameOf(member), wrong);
    // Its number is not taken: a repeat is judged anew, and what was sent behind it waits.
    member.last_request = request - 1;
    return outbox_.Refuse(member.node, request, Reason::BadRequest, wrong);
  }
  if (++member.next_block == shard_.block_count()) member.next_block = 0;
  rule_->OnPush(member, request, push, message);
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

ShardReport PsServer::Report() const {
  ShardReport report = shard_.Report();
  const net::ChannelStats stats = channel_.stats();
  report.bytes_sent = static_cast<int64_t>(stats.bytes_sent);
  report.bytes_received = static_cast<int64_t>(stats.bytes_received);
  return report;
}

// The weights are final: a question that comes again gets the same answer.
void PsServer::SendReport() {
  if (!shard_.initialised()) return;
  if (!report_) report_ = Report();
  uplink_->SendReport(*report_);
}

void PsServer::OnStop(const Member& member, const wire::Stop& stop) {
  log_.Info("{} ends the run early: {}", TaskName(member.task), ShortText(stop.reason()->str()));
  rule_->EndEarly();
}

void PsServer::Abort(int exit_code, const std::string& text, const RunSummary* summary) {
  if (uplink_) return uplink_->Abort(exit_code, text);
  SayFarewell({self_, exit_code, text, summary}, tick_, members_, channel_, outbox_);
}

}  // namespace dtrain
