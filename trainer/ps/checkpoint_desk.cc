#include "trainer/ps/checkpoint_desk.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "trainer/peer/peer_limits.h"
#include "trainer/peer/this_host.h"
#include "trainer/ps/shared_directory.h"

namespace dtrain {
namespace {

// Of a directory's checkpoints.
constexpr size_t kMostNames = 1000;
constexpr size_t kLongestLine = 400;

}  // namespace

CheckpointDesk::CheckpointDesk(const Parts& parts)
    : parts_(parts), keeper_(parts.config, parts.shard, parts.rule, parts.outbox, [this] { OnKept(); }) {
  if (parts.coordinator != nullptr) {
    Coordinate();
  } else if (parts.config.checkpoint.writer == CheckpointWriter::kPs) {
    const auto slots = static_cast<int64_t>(parts.shard.slot_names().size());
    shard_saver_ = std::make_unique<ShardSaver>(parts.layout, parts.self.index, slots);
  }
}

// ps 0.
void CheckpointDesk::Coordinate() {
  const Config& config = parts_.config;
  if (config.checkpoint.dir.empty()) return;
  if (PsWrite(config)) {
    shared_ = ShowSharedDirectory(config, parts_.history.run.id, !parts_.history.begun);
    const std::string self =
        fmt::format("{} on {}", TaskNameAndAddress(config.cluster, parts_.self), HostName());
    joint_ = std::make_unique<JointSave>(config, parts_.layout, *shared_, self, parts_.log);
  }
  Coordinator* const coordinator = parts_.coordinator;
  saves_ = std::make_unique<SaveDesk>(SaveDesk::Parts{config, parts_.members, parts_.outbox, parts_.rule,
                                                      keeper_, parts_.history, parts_.log, joint_.get(),
                                                      [coordinator] { return coordinator->global_step(); },
                                                      [coordinator] { return coordinator->PositionsNow(); }});
  coordinator->set_saves(saves_.get());
}

// The range is kept for a checkpoint.
void CheckpointDesk::OnKept() {
  if (parts_.uplink != nullptr) {
    const uint64_t number = keeper_.number();
    return parts_.uplink->SendCutState(number, shard_saver_ ? shard_saver_->Of(number) : nullptr);
  }
  if (saves_) saves_->OnKept();
}

void CheckpointDesk::OnCut(const wire::Cut& cut) {
  const bool kept = keeper_.cut() && keeper_.number() == cut.number();
  if (cut.write() && kept && shard_saver_ && !shard_saver_->Of(cut.number())) {
    const auto step = static_cast<int64_t>(std::min<uint64_t>(cut.step(), kMostSteps));
    const std::string token = SaveToken(parts_.uplink->run().id, cut.number());
    const CheckpointDirectory directory(parts_.config.checkpoint.dir);
    if (!shard_saver_->busy()) {
      parts_.log.Debug("writes its part of the checkpoint of global step {}", step);
    }
    shard_saver_->Begin(cut.number(), keeper_.cut(), directory.TemporaryPath(step, token));
  }
  keeper_.OnCut(cut);
}

void CheckpointDesk::OnCutState(const Member& ps, const wire::CutState& state) {
  if (saves_ && ps.task.role == Role::kPs) saves_->OnCutState(ps, state);
}

void CheckpointDesk::OnSave() {
  if (saves_) saves_->OnSave();
}

bool CheckpointDesk::HandleSaver(net::NodeId from, const wire::Envelope& envelope) {
  if (const auto* read = envelope.body_as_ReadCut()) {
    keeper_.OnReadCut(from, envelope.request(), *read);
  } else if (const auto* question = envelope.body_as_AskSave(); question != nullptr && saves_) {
    saves_->OnAskSave(from, envelope.request(), *question);
  } else if (const auto* confirm = envelope.body_as_ConfirmSave(); confirm != nullptr && saves_) {
    saves_->OnConfirm(from, envelope.request(), *confirm);
  } else {
    return false;
  }
  return true;
}

void CheckpointDesk::OnListCheckpoints(const Member& member, uint64_t request) {
  std::vector<std::string> names, unreadable;
  if (shared_) {
    for (const ListedCheckpoint& each : shared_->List(&unreadable)) names.push_back(each.name);
  }
  names.resize(std::min(names.size(), kMostNames));
  unreadable.resize(std::min(unreadable.size(), kMostNames));
  for (std::string& line : unreadable) line = line.substr(0, kLongestLine);
  parts_.outbox.Send(member.node, request, [&](auto& builder) {
    return wire::CreateCheckpoints(builder, builder.CreateVectorOfStrings(names),
                                   builder.CreateVectorOfStrings(unreadable));
  });
}

void CheckpointDesk::Tick(TimePoint now) {
  if (saves_) saves_->Tick(now);
  if (shard_saver_ && shard_saver_->Poll()) OnKept();
}

bool CheckpointDesk::writing() const {
  return (shard_saver_ && shard_saver_->busy()) || (saves_ && saves_->writing_here());
}

}  // namespace dtrain
