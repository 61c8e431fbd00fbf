#include "trainer/ps/uplink.h"

#include <utility>
#include <vector>

#include "base/fault_point.h"
#include "trainer/optim/optimizer.h"

namespace dtrain {

using wire::Body;

Uplink::Uplink(const PsTask& task, const Activity& activity, UpdateRule& rule, RunHistory& history)
    : channel_(task.channel),
      rule_(rule),
      history_(history),
      peers_(task.config, task.self, {MostOpenRequests(kOpenBlocks)}, task.channel, task.transport, activity,
             task.log, history.begun),
      shared_(
          task.config, task.self,
          HasTooManyPieces(task.layout, task.self.index, static_cast<int64_t>(SlotNames(task.config).size()))
              ? "its range has too many pieces for one message"
              : "",
          task.log) {
  peers_.set_on_lost(task.on_lost);
  peers_.heartbeat().set_on_abort(task.on_abort);
}

// ps 0 hears that this task is ready when it is known whether it sees checkpoint.dir.
void Uplink::AskWhenDirectoryIsKnown() {
  if (asked_ || !shared_.Seen(run(), peers_.saves())) return;
  asked_ = true;
  leader().Ask(run(), [&](auto& builder) {
    const KnownCheckpoint& known = history_.known;
    const auto checkpoint = known.where.empty() ? 0 : builder.CreateString(known.where);
    return wire::CreateReady(builder, history_.begun, 0, 0, 0, checkpoint, static_cast<uint64_t>(known.step),
                             sees_directory());
  });
  AskForEnd();
}

void Uplink::AskForEnd() {
  if (asking_ || rule_.OwesNorm()) return;
  asking_ = true;
  leader().Ask(run(), [&](auto& builder) {
    const gpu::SquareSum* norm = rule_.squares();
    const auto words = norm == nullptr ? 0 : builder.CreateVector(norm->words.data(), norm->words.size());
    return wire::CreateWaitEnd(builder, rule_.NextRound(), words, norm != nullptr && !norm->finite);
  });
}

void Uplink::Handle(const wire::Envelope& message) {
  if (peers_.Take(0, message)) {
    if (peers_.joined()) AskWhenDirectoryIsKnown();
    return;
  }
  const Body body = message.body_type();
  if (body != Body::Start && body != Body::Round && body != Body::Scale && body != Body::End) return;
  const bool answers = leader().Answered(message.request());
  if (body == Body::Start) {
    history_.begun |= answers;
    if (answers) peers_.Started();
    history_.known.Learn(message.body_as_Start()->checkpoint(), message.body_as_Start()->checkpoint_step());
    return;
  }
  if (!answers) return;
  asking_ = false;
  if (body == Body::End) {
    end_ = message.body_as_End()->json()->str();
    return peers_.SayBye();
  }
  body == Body::Round ? rule_.OnRound(*message.body_as_Round()) : rule_.OnScale(*message.body_as_Scale());
  AskForEnd();
}

void Uplink::Tick(TimePoint now) {
  if (!peers_.joined()) {
    peers_.SayHello(now);
    return;
  }
  if (KnownCheckpoint told = peers_.heartbeat().checkpoint(); !told.where.empty()) {
    history_.known = std::move(told);
  }
  peers_.OnQuiet(now, nullptr);
  AskWhenDirectoryIsKnown();
}

void Uplink::SendCutState(uint64_t number, const ShardSaver::Outcome* shard) {
  const bool failed = shard != nullptr && !shard->error.empty();
  const bool written = shard != nullptr && !failed;
  const FaultScope fault(shard == nullptr ? "save.range_kept" : "save.part_written");
  leader().Tell(run(), [&](auto& builder) {
    const auto error = failed ? builder.CreateString(shard->error) : 0;
    const auto checksums = written ? builder.CreateVector(shard->checksums) : 0;
    return wire::CreateCutState(builder, number, written, error, checksums);
  });
}

void Uplink::SendFilled(const FillOutcome& outcome) {
  const FaultScope fault("start.filled");
  leader().Tell(run(), [&](auto& builder) {
    const auto error = outcome.error.empty() ? 0 : builder.CreateString(outcome.error);
    return wire::CreateFilled(builder, outcome.number, error, outcome.kept);
  });
}

void Uplink::AskForPiece(uint64_t number, int64_t piece) {
  leader().Tell(run(), [&](auto& builder) {
    return wire::CreateReadPiece(builder, number, static_cast<uint64_t>(piece));
  });
}

void Uplink::SendReport(const ShardReport& report) {
  const FaultScope fault("end.report");
  leader().Tell(run(), [&](auto& builder) {
    std::vector<flatbuffers::Offset<wire::Part>> parts;
    for (const ShardReport::Part& part : report.parts) {
      const auto values = part.values.empty() ? 0 : builder.CreateVector(part.values);
      parts.push_back(wire::CreatePart(builder, builder.CreateString(part.sum.name),
                                       static_cast<uint64_t>(part.sum.first_row),
                                       static_cast<uint64_t>(part.sum.bytes), part.sum.crc, values));
    }
    const auto non_finite = report.non_finite.empty() ? 0 : builder.CreateString(report.non_finite);
    return wire::CreateChecksumList(builder, builder.CreateVector(parts),
                                    static_cast<uint64_t>(report.bytes_sent),
                                    static_cast<uint64_t>(report.bytes_received), non_finite);
  });
}

}  // namespace dtrain
