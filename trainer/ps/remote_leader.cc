#include "trainer/ps/remote_leader.h"

#include <utility>
#include <vector>

#include "base/error.h"
#include "base/fault_point.h"
#include "trainer/config/config.h"
#include "trainer/optim/optimizer.h"
#include "trainer/peer/abort.h"
#include "trainer/peer/peer_limits.h"
#include "trainer/ps/outbox.h"
#include "trainer/ps/ps_task.h"
#include "trainer/ps/replica_holder.h"
#include "trainer/ps/replica_link.h"
#include "trainer/ps/run_history.h"
#include "trainer/ps/snapshot_keeper.h"
#include "trainer/ps/update_rule.h"

namespace dtrain {
namespace {

using wire::Body;

std::vector<RoundExchange> FromWire(const flatbuffers::Vector<const wire::Exchange*>* exchanges) {
  std::vector<RoundExchange> list;
  if (exchanges == nullptr) return list;
  for (const wire::Exchange* exchange : *exchanges) {
    list.push_back({static_cast<int>(exchange->worker()), exchange->incarnation()});
  }
  return list;
}

// Whether each worker is one of the run's and has one exchange.
bool IsSound(const RoundDecision& round, size_t workers) {
  std::vector<bool> named(workers);
  for (const auto* exchanges : {&round.contributors, &round.answered}) {
    for (const RoundExchange& exchange : *exchanges) {
      const auto worker = static_cast<size_t>(exchange.worker);
      if (worker >= workers || named[worker]) return false;
      named[worker] = true;
    }
  }
  return true;
}

std::string WhyNotShared(const PsTask& task) {
  const bool too_many = HasTooManyPieces(task.layout, task.self.index, SlotsOf(task.config).counts());
  return too_many ? "its range has too many pieces for one message" : "";
}

}  // namespace

RemoteLeader::RemoteLeader(const LeaderParts& parts)
    : parts_(parts),
      peers_(parts.task.config, parts.task.self, {MaxOpenRequests(kOpenBlocks)}, parts.task.channel,
             parts.task.transport, parts.activity, parts.task.log, parts.history.begun),
      shared_(parts.task.config, parts.task.self, WhyNotShared(parts.task), parts.task.log),
      next_round_(parts.task.config.train.mode == TrainMode::kSync ? 1 : 0) {
  peers_.set_on_lost(parts.task.on_lost);
  peers_.heartbeat().set_on_abort(parts.task.on_abort);
}

std::optional<double> RemoteLeader::OnNorm(uint64_t, const gpu::SquareSum& squares) {
  squares_ = squares;
  owes_norm_ = false;
  AskForEnd();
  return std::nullopt;
}

void RemoteLeader::OnOverdue(Member&, const std::string& why) { parts_.task.log.Warning("{}", why); }

bool RemoteLeader::OnAbort(Member&, const wire::Abort& abort, bool) {
  throw RunEnded(CauseOf(abort), AbortText(parts_.task.config.cluster, abort));
}

bool RemoteLeader::OnRequest(Member& member, const wire::Envelope& request, bool) {
  if (request.body_type() != Body::Done) return false;
  parts_.outbox.Ack(member.node, request.request());
  return true;
}

// Sends Ready when it is known whether this ps sees checkpoint.dir. One that comes in the place of a lost ps
// has all that it had, and goes on.
void RemoteLeader::SayReadyWhenFilledAndDirectoryIsKnown() {
  if (ready_) return;
  if (const uint64_t epoch = peers_.replica(); epoch != 0 && parts_.replica != nullptr) {
    parts_.outbox.set_run(run());
    parts_.replica->Fetch(epoch);
    if (!parts_.replica->fetched()) return;
    if (next_round_ != 0) next_round_ = parts_.rule.NextRound();
  }
  if (!shared_.Seen(run(), peers_.saves())) return;
  ready_ = true;
  leader().Ask(run(), [&](auto& builder) {
    const KnownCheckpoint& known = parts_.history.known;
    const auto checkpoint = known.where.empty() ? 0 : builder.CreateString(known.where);
    return wire::CreateReady(builder, parts_.history.begun, 0, 0, 0, checkpoint,
                             static_cast<uint64_t>(known.step), SeesDirectory());
  });
  AskForEnd();
}

// Asks for the end of the run and, in sync, for the next round or scale that the rule needs.
void RemoteLeader::AskForEnd() {
  if (asking_ || owes_norm_) return;
  asking_ = true;
  leader().Ask(run(), [&](auto& builder) {
    const auto words = squares_ ? builder.CreateVector(squares_->words.data(), squares_->words.size()) : 0;
    return wire::CreateWaitEnd(builder, next_round_, words, squares_ && !squares_->finite,
                               parts_.replica == nullptr ? 0 : parts_.replica->oldest_round());
  });
}

void RemoteLeader::OnMessage(const wire::Envelope& envelope, net::Message& message) {
  if (peers_.Take(0, envelope)) {
    if (peers_.joined()) SayReadyWhenFilledAndDirectoryIsKnown();
    return;
  }
  switch (envelope.body_type()) {
    case Body::Order:
      return CarryOut(*envelope.body_as_Order());
    case Body::ReadPiece: {
      const wire::ReadPiece& read = *envelope.body_as_ReadPiece();
      if (!read.replica()) return parts_.snapshots.OnReadPiece(node(), read);
      SnapshotKeeper* const held = parts_.holder == nullptr ? nullptr : parts_.holder->Keeper();
      return held == nullptr ? void() : held->OnReadPiece(node(), read);
    }
    case Body::Piece:
      return parts_.filler.OnPiece(*envelope.body_as_Piece(),
                                   net::Tensor(message, *envelope.body_as_Piece()));
    case Body::Round:
      if (envelope.body_as_Round()->replica()) return TakeRoundOfReplica(*envelope.body_as_Round());
      return TakeAnswer(envelope);
    case Body::Start:
    case Body::End:
      return TakeAnswer(envelope);
    default:
      return;
  }
}

void RemoteLeader::CarryOut(const wire::Order& order) {
  if (const wire::Fill* const fill = order.fill()) {
    parts_.filler.Take({fill->number(), fill->checkpoint() == nullptr ? "" : fill->checkpoint()->str(),
                        static_cast<int64_t>(fill->step() & kMaxSteps), fill->manifest(), fill->keep(),
                        fill->begins(), static_cast<int64_t>(fill->earlier_updates() & kMaxSteps),
                        static_cast<int64_t>(fill->decay_steps() & kMaxSteps)});
  }
  if (const wire::SnapshotOrder* const snapshot = order.snapshot()) {
    if (snapshot->replica() == 0)
      parts_.snapshots.OnOrder(*snapshot);
    else if (parts_.holder != nullptr)
      parts_.holder->OnOrder(*snapshot);
  }
  if (order.stands_in() != 0 && parts_.holder != nullptr) parts_.holder->StandIn(order.stands_in());
  if (order.checksums()) SendReport();
  if (order.gone() != nullptr) TakeNoMore(*order.gone());
  if (order.replica() != 0 && parts_.replica != nullptr) parts_.replica->OnEpoch(order.replica());
}

// Nothing of the process is taken behind this report. Its later messages are a stranger's, and its Hello is
// refused. async and ssp keep nothing back to apply it later. In sync a decided round may name an exchange of
// it that some blocks have not applied: these go on without it (SyncRule::Here), as behind any loss. The
// gradients of a round that is measured stay in it, and were counted when they were measured. Where rounds
// wait for the lost (RoundsWaitForLost) its blocks are dropped too; the next process sends that gradient once
// more.
void RemoteLeader::TakeNoMore(const wire::Incarnation& gone) {
  Member* const member = parts_.members.Worker(gone.worker());
  if (member == nullptr) return;
  if (member->here() && member->incarnation == gone.incarnation()) {
    parts_.task.log.Debug("{} was given up", parts_.members.NameOf(*member));
    parts_.outbox.Refuse(member->node, 0, wire::Reason::Unregistered,
                         "the run gave this task up" + RowsOfGoneText(parts_.task.config));
    parts_.outbox.DropLate(member->node);
    parts_.members.Remove(*member);
    parts_.rule.Lost(*member);
  }
  const TakenOfProcess taken = member->TakeNoMoreOf(gone.incarnation());
  if (parts_.replica != nullptr) parts_.replica->Worker(*member, true);
  parts_.outbox.Answer(node(), 0, [&](auto& builder) {
    return wire::CreateReport(builder, 0, 0, 0,
                              wire::CreateTakenState(builder, gone.worker(), taken.incarnation,
                                                     taken.gradients, taken.blocks, taken.dropped));
  });
}

void RemoteLeader::TakeAnswer(const wire::Envelope& envelope) {
  const bool answers = leader().Answered(envelope.request());
  if (const wire::Start* const start = envelope.body_as_Start()) {
    parts_.history.begun |= answers;
    if (answers) peers_.Started();
    parts_.history.known.Learn(start->checkpoint(), start->checkpoint_step());
    return;
  }
  if (!answers) return;
  asking_ = false;
  if (const wire::End* const end = envelope.body_as_End()) {
    end_ = end->json()->str();
    return peers_.SayBye();
  }
  TakeRound(*envelope.body_as_Round());
  AskForEnd();
}

void RemoteLeader::TakeRoundOfReplica(const wire::Round& round) {
  if (parts_.holder != nullptr) parts_.holder->OnRound(DecisionIn(round));
}

// Throws when it is not sound.
RoundDecision RemoteLeader::DecisionIn(const wire::Round& round) const {
  RoundDecision decision{round.number(), FromWire(round.contributors()), FromWire(round.answered())};
  if (IsSound(decision, parts_.task.config.cluster.worker.size())) return decision;
  throw Failure(ExitCode::kInternal,
                fmt::format("ps 0 sent round {} with a worker that is not there, or twice", round.number()));
}

// A round, or the scale of the round before.
void RemoteLeader::TakeRound(const wire::Round& round) {
  if (round.scale()) {
    if (!(*round.scale() >= 0 && *round.scale() <= 1)) {
      throw Failure(ExitCode::kInternal, fmt::format("ps 0 sent {} as the scale of round {}; must be 0 to 1",
                                                     *round.scale(), round.number()));
    }
    squares_.reset();
    return parts_.rule.OnScale(round.number(), *round.scale());
  }
  if (round.number() != next_round_) return;
  ++next_round_;
  RoundDecision decision = DecisionIn(round);
  owes_norm_ = NormOfRounds(parts_.task.config.train) && !decision.contributors.empty();
  parts_.rule.OnRound(std::move(decision));
  parts_.rule.Advance();
}

void RemoteLeader::OnFilled(const FillOutcome& outcome) {
  const FaultScope fault("start.filled");
  leader().Tell(run(), [&](auto& builder) {
    const auto error = outcome.error.empty() ? 0 : builder.CreateString(outcome.error);
    return wire::CreateReport(builder, wire::CreateFilled(builder, outcome.number, error, outcome.kept));
  });
}

void RemoteLeader::OnSnapshot(int ps, uint64_t number, const ShardSaver::Outcome* part) {
  const bool failed = part != nullptr && !part->error.empty();
  const bool written = part != nullptr && !failed;
  const FaultScope fault(part == nullptr ? "save.range_kept" : "save.part_written");
  leader().Tell(run(), [&](auto& builder) {
    const auto error = failed ? builder.CreateString(part->error) : 0;
    const auto checksums = written ? builder.CreateVector(part->part.checksums) : 0;
    const auto sizes = written && !part->part.sizes.empty() ? builder.CreateVector(part->part.sizes) : 0;
    const auto firsts = written && !part->part.firsts.empty() ? builder.CreateVector(part->part.firsts) : 0;
    return wire::CreateReport(builder, 0,
                              wire::CreateSnapshotState(builder, number, written, error, checksums, sizes,
                                                        firsts, ps != parts_.task.self.index));
  });
}

void RemoteLeader::AskForPiece(uint64_t number, Piece piece) {
  leader().Tell(run(), [&](auto& builder) {
    return wire::CreateReadPiece(builder, number, static_cast<uint8_t>(piece.part),
                                 static_cast<uint64_t>(piece.number));
  });
}

// The weights are final, so a repeated question gets the same answer.
void RemoteLeader::SendReport() {
  if (!report_) report_ = parts_.report();
  reporting_ = !report_;
  if (reporting_) return;
  const FaultScope fault("end.report");
  leader().Tell(run(), [&](auto& builder) {
    std::vector<flatbuffers::Offset<wire::Part>> parts;
    for (const ShardReport::Part& part : report_->parts) {
      const auto values = part.values.empty() ? 0 : builder.CreateVector(part.values);
      parts.push_back(wire::CreatePart(builder, builder.CreateString(part.sum.name),
                                       static_cast<uint64_t>(part.sum.first_row),
                                       static_cast<uint64_t>(part.sum.bytes), part.sum.crc, values));
    }
    const auto non_finite = report_->non_finite.empty() ? 0 : builder.CreateString(report_->non_finite);
    flatbuffers::Offset<wire::TableFigures> table;
    if (const std::optional<TableFigures>& its = report_->table) {
      table = wire::CreateTableFigures(
          builder, static_cast<uint64_t>(its->rows), static_cast<uint64_t>(its->candidates),
          static_cast<uint64_t>(its->evicted), static_cast<uint64_t>(its->bytes));
    }
    const auto list = wire::CreateChecksumList(builder, builder.CreateVector(parts),
                                               static_cast<uint64_t>(report_->bytes_sent),
                                               static_cast<uint64_t>(report_->bytes_received), non_finite,
                                               table, static_cast<uint64_t>(report_->bytes_saved));
    return wire::CreateReport(builder, 0, 0, list);
  });
}

void RemoteLeader::Tick(TimePoint now) {
  if (!peers_.joined()) {
    peers_.SayHello(now);
    return;
  }
  if (KnownCheckpoint told = peers_.heartbeat().checkpoint(); !told.where.empty()) {
    parts_.history.known = std::move(told);
  }
  peers_.OnQuiet(now, nullptr);
  if (reporting_) SendReport();
  if (parts_.replica != nullptr) TellOfReplica(now);
  SayReadyWhenFilledAndDirectoryIsKnown();
}

bool RemoteLeader::fills() const { return parts_.replica != nullptr && parts_.replica->fetching(); }

void RemoteLeader::OnReplicaDiffers(const std::string& why) {
  parts_.task.log.Error("{}", why);
  leader().Tell(run(), [&](auto& builder) {
    const auto differs = builder.CreateString(ShortText(why));
    return wire::CreateReport(builder, 0, 0, 0, 0,
                              wire::CreateReplicaState(builder, 0, wire::ReplicaPhase::Broken, 0, differs));
  });
}

void RemoteLeader::TellOfReplica(TimePoint now) {
  const std::optional<ReplicaLink::Report> report = parts_.replica->TakeReport(now);
  if (!report) return;
  leader().Tell(run(), [&](auto& builder) {
    return wire::CreateReport(
        builder, 0, 0, 0, 0, wire::CreateReplicaState(builder, report->epoch, report->phase, report->behind));
  });
}

RunSummary RemoteLeader::Summary() const {
  RunSummary summary;
  if (!FromWireJson(*end_, &summary)) {
    throw Failure(ExitCode::kInternal, "ps 0 ended the run with a summary that cannot be read");
  }
  return summary;
}

// Closes the connection; the next run epoch opens another.
void RemoteLeader::Leave(const std::string&) { parts_.task.channel.Disconnect(node()); }

void RemoteLeader::Abort(int exit_code, const std::string& text, const RunSummary*) {
  peers_.Abort(exit_code, text);
}

}  // namespace dtrain
