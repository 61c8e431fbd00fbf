#include "trainer/ps/uplink.h"

#include "base/error.h"
#include "base/fault_point.h"
#include "trainer/optim/optimizer.h"
#include "trainer/peer/abort.h"

namespace dtrain {
namespace {

using wire::Body;

constexpr milliseconds kStatusEvery{5000};

}  // namespace

Uplink::Uplink(const PsTask& task, const Activity& activity, UpdateRule& rule, RunHistory& history)
    : config_(task.config),
      task_(task),
      self_(task.self),
      channel_(task.channel),
      rule_(rule),
      history_(history),
      activity_(activity),
      log_(task.log),
      registration_(config_, self_, 0, net::NewNodeId(), channel_),
      heartbeat_(task.transport, {{registration_.link().node(), registration_.address()}},
                 config_.failure.detect_s, activity),
      stop_(config_),
      begun_(Clock::now()),
      next_status_(begun_ + kStatusEvery),
      shared_(config_, self_,
              HasTooManyPieces(task.layout, self_.index, static_cast<int64_t>(SlotNames(config_).size()))
                  ? "its range has too many pieces for one message"
                  : "",
              log_) {
  heartbeat_.set_on_abort(task.on_abort);
  if (history.begun) registration_.set_was_in_run();
}

// ps 0 hears that this task is ready when it is known whether it sees checkpoint.dir.
void Uplink::AskWhenDirectoryIsKnown() {
  if (asked_ || !shared_.Seen(run(), registration_.saves())) return;
  asked_ = true;
  Ask();
}

void Uplink::Ask() {
  PeerLink& link = registration_.link();
  const net::Envelope ready = run().Envelope(link.NextRequest());
  flatbuffers::FlatBufferBuilder& builder = encoder_.Begin();
  const KnownCheckpoint& known = history_.known;
  const auto checkpoint = known.where.empty() ? 0 : builder.CreateString(known.where);
  link.Send(ready.request,
            encoder_.Finish(ready, wire::CreateReady(builder, history_.begun, 0, 0, 0, checkpoint,
                                                     static_cast<uint64_t>(known.step), sees_directory())));
  AskForEnd();
}

void Uplink::AskForEnd() {
  if (asking_ || rule_.OwesNorm()) return;
  asking_ = true;
  PeerLink& link = registration_.link();
  const net::Envelope end = run().Envelope(link.NextRequest());
  flatbuffers::FlatBufferBuilder& builder = encoder_.Begin();
  const gpu::SquareSum* norm = rule_.squares();
  const auto words = norm == nullptr ? 0 : builder.CreateVector(norm->words.data(), norm->words.size());
  const bool infinite = norm != nullptr && !norm->finite;
  link.Send(end.request,
            encoder_.Finish(end, wire::CreateWaitEnd(builder, rule_.NextRound(), words, infinite)));
}

void Uplink::Handle(const wire::Envelope& message) {
  PeerLink& link = registration_.link();
  switch (message.body_type()) {
    case Body::Welcome:
      if (registration_.welcomed()) return;
      registration_.OnWelcome(RunIdOf(message), message.body_as_Welcome()->saves());
      heartbeat_.Watch(0);
      asked_ = false;
      return AskWhenDirectoryIsKnown();
    case Body::Refuse:
      return OnRefuse(*message.body_as_Refuse());
    case Body::Start:
      started_ |= link.Answered(message.request());
      history_.begun |= started_;
      history_.known.Learn(message.body_as_Start()->checkpoint(), message.body_as_Start()->checkpoint_step());
      return;
    case Body::Round:
      if (!link.Answered(message.request())) return;
      asking_ = false;
      rule_.OnRound(*message.body_as_Round());
      return AskForEnd();
    case Body::Scale:
      if (!link.Answered(message.request())) return;
      asking_ = false;
      rule_.OnScale(*message.body_as_Scale());
      return AskForEnd();
    case Body::End:
      if (!link.Answered(message.request())) return;
      end_ = message.body_as_End()->json()->str();
      return SayBye();
    case Body::Abort:
      SayBye();
      ThrowAbort(config_.cluster, *message.body_as_Abort());
    default:
      return;
  }
}

void Uplink::OnRefuse(const wire::Refuse& refuse) {
  const bool was_here = registration_.welcomed();
  registration_.OnRefuse(refuse);
  if (!was_here || registration_.welcomed()) return;
  const std::string& name = registration_.link().name();
  if (started_ && refuse.reason() == wire::Reason::Unregistered) {
    throw PeerLost("{} does not know this task any more: {}.", name, refuse.text()->str());
  }
  if (started_ && !RunRecovers()) {
    throw PeerLost("{} was restarted during the run and has lost its state. Start the run again.", name);
  }
  throw RolledBack{name + " was restarted, or has gone back to a checkpoint"};
}

void Uplink::SayBye() {
  const net::Envelope bye = run().Envelope(registration_.link().NextRequest());
  net::Message message = encoder_.Finish(bye, wire::CreateBye(encoder_.Begin()));
  channel_.Send(node(), message);
}

void Uplink::WaitForWelcome(TimePoint now) {
  registration_.SayHello();
  const char* const key = history_.begun ? "failure.wait_s" : "failure.startup_timeout_s";
  const double most = history_.begun ? config_.failure.wait_s : config_.failure.startup_timeout_s;
  if (SecondsBetween(begun_, now) > most) {
    throw PeerLost("{} s ({}) have passed without {}. Start it, or look at its log.", most, key,
                   registration_.Waiting());
  }
  stop_.Check(activity_.stop_signal(), now);
  if (now < next_status_) return;
  next_status_ = now + kStatusEvery;
  log_.Info("waiting for {}", registration_.Waiting());
}

void Uplink::CheckAlive() {
  const std::string& name = registration_.link().name();
  if (const net::Message message = heartbeat_.TakeAbort(); !message.header.empty()) {
    SayBye();
    ThrowAbort(config_.cluster, *net::Decode(message)->body_as_Abort());
  }
  if (heartbeat_.Lost(0)) {
    const std::string why = fmt::format("{} has not been heard for {:.1f} s (failure.detect_s = {})", name,
                                        heartbeat_.SilentSeconds(0), config_.failure.detect_s);
    if (!RunRecovers()) throw PeerLost("{}. Look at its log.", why);
    if (task_.on_lost) task_.on_lost({Role::kPs, 0});
    throw RolledBack{why};
  }
  if (started_ && RunRecovers() && heartbeat_.Left(0, run())) {
    throw RolledBack{name + " is of another run, or has gone back to a checkpoint"};
  }
}

void Uplink::Tick(TimePoint now) {
  if (!registration_.welcomed()) return WaitForWelcome(now);
  registration_.link().OnQuiet(now);
  if (KnownCheckpoint told = heartbeat_.checkpoint(); !told.where.empty()) history_.known = std::move(told);
  CheckAlive();
  AskWhenDirectoryIsKnown();
  const std::string status = heartbeat_.status();
  if (!started_ && now >= next_status_ && !status.empty()) {
    next_status_ = now + kStatusEvery;
    log_.Info("waiting: {}", status);
  }
}

void Uplink::SendCutState(uint64_t number, const ShardSaver::Outcome* shard) {
  flatbuffers::FlatBufferBuilder& builder = encoder_.Begin();
  const bool failed = shard != nullptr && !shard->error.empty();
  const bool written = shard != nullptr && !failed;
  const auto error = failed ? builder.CreateString(shard->error) : 0;
  const auto checksums = written ? builder.CreateVector(shard->checksums) : 0;
  net::Message message =
      encoder_.Finish(run().Envelope(0), wire::CreateCutState(builder, number, written, error, checksums));
  const FaultScope fault(shard == nullptr ? "save.range_kept" : "save.part_written");
  channel_.Send(node(), message);
}

void Uplink::SendFilled(const FillOutcome& outcome) {
  flatbuffers::FlatBufferBuilder& builder = encoder_.Begin();
  const auto error = outcome.error.empty() ? 0 : builder.CreateString(outcome.error);
  net::Message message =
      encoder_.Finish(run().Envelope(0), wire::CreateFilled(builder, outcome.number, error, outcome.kept));
  const FaultScope fault("start.filled");
  channel_.Send(node(), message);
}

void Uplink::AskForPiece(uint64_t number, int64_t piece) {
  net::Message message = encoder_.Finish(
      run().Envelope(0), wire::CreateReadPiece(encoder_.Begin(), number, static_cast<uint64_t>(piece)));
  channel_.Send(node(), message);
}

void Uplink::SendReport(const ShardReport& report) {
  flatbuffers::FlatBufferBuilder& builder = encoder_.Begin();
  std::vector<flatbuffers::Offset<wire::Part>> parts;
  for (const ShardReport::Part& part : report.parts) {
    const auto values = part.values.empty() ? 0 : builder.CreateVector(part.values);
    parts.push_back(wire::CreatePart(builder, builder.CreateString(part.sum.name),
                                     static_cast<uint64_t>(part.sum.first_row),
                                     static_cast<uint64_t>(part.sum.bytes), part.sum.crc, values));
  }
  const auto non_finite = report.non_finite.empty() ? 0 : builder.CreateString(report.non_finite);
  net::Message message = encoder_.Finish(
      run().Envelope(0),
      wire::CreateChecksumList(builder, builder.CreateVector(parts), static_cast<uint64_t>(report.bytes_sent),
                               static_cast<uint64_t>(report.bytes_received), non_finite));
  const FaultScope fault("end.report");
  channel_.Send(node(), message);
}

void Uplink::Abort(int exit_code, const std::string& text) {
  flatbuffers::FlatBufferBuilder& builder = encoder_.Begin();
  net::Message message = encoder_.Finish(run().Envelope(0), CreateAbort(builder, exit_code, self_, text));
  channel_.Send(node(), message);
}

}  // namespace dtrain
