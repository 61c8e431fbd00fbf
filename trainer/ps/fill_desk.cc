#include "trainer/ps/fill_desk.h"

#include "base/fault_point.h"
#include "trainer/peer/form_message.h"

namespace dtrain {
namespace {

constexpr milliseconds kTurn{20};

}  // namespace

FillDesk::FillDesk(const Config& config, const Layout& layout, int ps, ParameterShard& shard,
                   const Coordinator* coordinator, Outbox& outbox)
    : shard_(shard), coordinator_(coordinator), outbox_(outbox) {
  if (config.checkpoint.writer == CheckpointWriter::kPs) loader_.emplace(config, layout, ps, shard);
}

// In a run epoch only one worker is told to, and only ps 0 knows which.
bool FillDesk::MayAsk(const Member& member) const {
  return coordinator_ != nullptr ? coordinator_->IsChief(member) : member.task.role == Role::kWorker;
}

void FillDesk::OnInitialise(const Member& member, uint64_t request, const wire::Initialise& initialise) {
  if (!MayAsk(member)) return;
  if (initialise.restored() && initialise.version() >> 62 == 0) {
    shard_.SetRestored(initialise.version());
    const FaultScope fault("restore.range_complete");
    return outbox_.Ack(member.node, request);
  }
  making_ = {member.node, request};
  Turn();
}

void FillDesk::OnRestore(const Member& member, uint64_t request, const wire::Restore& restore,
                         net::TensorView values) {
  const bool sum_fits =
      restore.checksum() == 0 || restore.checksum() == net::PayloadChecksum(values.data, values.size);
  if (!MayAsk(member) || !sum_fits || !shard_.Fits(restore.slot(), restore.first(), values.size)) {
    return outbox_.Refuse(member.node, request, wire::Reason::BadRequest,
                          "these restored values do not fit here");
  }
  shard_.Restore(restore.slot(), static_cast<int64_t>(restore.first()), values);
  const FaultScope fault("restore.piece_taken");
  outbox_.Ack(member.node, request);
}

bool FillDesk::OnLoad(const Member& member, uint64_t request, const wire::Load& load) {
  if (!MayAsk(member) || !loader_) return false;
  loader_->Begin({member.node, request}, load.name() == nullptr ? "" : load.name()->str());
  if (!loader_->busy()) AnswerLoad();
  return true;
}

// Large ranges take longer than a ps may be silent.
void FillDesk::Turn() {
  if (making_ && shard_.Initialise(Clock::now() + kTurn)) {
    const FaultScope fault("start.filled");
    outbox_.Ack(making_->from, making_->request);
    making_.reset();
  }
  if (loader_ && loader_->Turn()) AnswerLoad();
}

void FillDesk::AnswerLoad() {
  const RangeLoader::Outcome& outcome = *loader_->outcome();
  const FaultScope fault("restore.loaded");
  outbox_.Send(loader_->question().from, loader_->question().request, [&](auto& builder) {
    const auto inputs = outcome.inputs ? EncodeForm(*outcome.inputs, builder) : 0;
    const auto error = outcome.error.empty() ? 0 : builder.CreateString(outcome.error);
    return wire::CreateLoaded(builder, error, outcome.misfit, static_cast<uint64_t>(outcome.step),
                              builder.CreateString(outcome.positions), inputs);
  });
}

}  // namespace dtrain
