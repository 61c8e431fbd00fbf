#include "trainer/ps/checkpoint_desk.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/fault_point.h"
#include "trainer/peer/peer_limits.h"
#include "trainer/peer/this_host.h"
#include "trainer/ps/shared_directory.h"

namespace dtrain {
CheckpointDesk::CheckpointDesk(const Parts& parts)
    : parts_(parts), keeper_(parts.config, parts.shard, parts.rule, parts.outbox, [this] { OnKept(); }) {
  if (parts.coordinator != nullptr) {
    Coordinate();
  } else {
    const auto slots = static_cast<int64_t>(parts.shard.slot_names().size());
    shard_saver_ = std::make_unique<ShardSaver>(parts.layout, parts.self.index, slots);
  }
}

// ps 0.
void CheckpointDesk::Coordinate() {
  const Config& config = parts_.config;
  if (config.checkpoint.dir.empty()) return;
  directory_ = ShowSharedDirectory(config, parts_.history.run, !parts_.history.begun);
  const std::string self =
      fmt::format("{} on {}", TaskNameAndAddress(config.cluster, parts_.self), HostName());
  const auto ask = [this](size_t ps, uint64_t number, int64_t piece) {
    const Member& member = parts_.members.At({Role::kPs, static_cast<int>(ps)});
    if (!member.here()) return;
    parts_.outbox.Send(member.node, 0, [&](auto& builder) {
      return wire::CreateReadPiece(builder, number, static_cast<uint64_t>(piece));
    });
  };
  joint_ = std::make_unique<JointSave>(config, parts_.layout, *directory_, self, ask, parts_.log);
  Coordinator* const coordinator = parts_.coordinator;
  saves_ = std::make_unique<SaveDesk>(
      SaveDesk::Parts{config, parts_.members, parts_.outbox, parts_.rule, keeper_, parts_.history, parts_.log,
                      *joint_, [coordinator](const Member& ps) { return coordinator->SeesDirectory(ps); },
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
  if (cut.write() && kept && !shard_saver_->Of(cut.number()) && parts_.uplink->sees_directory()) {
    const auto step = static_cast<int64_t>(std::min<uint64_t>(cut.step(), kMostSteps));
    const std::string token = SaveToken(parts_.uplink->run(), cut.number());
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

void CheckpointDesk::OnPiece(const Member& ps, net::Message message) {
  if (saves_) saves_->OnPiece(ps, std::move(message));
}

void CheckpointDesk::Tick(TimePoint now) {
  if (saves_) saves_->Tick(now);
  if (shard_saver_ && shard_saver_->Poll()) OnKept();
}

bool CheckpointDesk::writing() const {
  return (shard_saver_ && shard_saver_->busy()) || (saves_ && saves_->writing());
}

}  // namespace dtrain
