#include "trainer/ps/snapshot_keeper.h"

#include <fmt/core.h>

#include <algorithm>
#include <limits>
#include <optional>

#include "base/fault_point.h"
#include "trainer/checkpoint/checkpoint_directory.h"
#include "trainer/config/config.h"
#include "trainer/optim/optimizer.h"
#include "trainer/peer/peer_limits.h"
#include "trainer/shard/range_filler.h"
#include "trainer/shard/shared_directory.h"

namespace dtrain {
namespace {

double MiB(const SnapshotCost& cost) { return static_cast<double>(cost.max_bytes) / (1 << 20); }

}  // namespace

SnapshotKeeper::SnapshotKeeper(const Parts& parts)
    : parts_(parts), saver_(parts.layout, parts.ps, SlotsOf(parts.config).counts()) {}

void SnapshotKeeper::OnOrder(const wire::SnapshotOrder& order) {
  if (order.drop()) return Drop(order.number());
  if (order.write() && leader_->SeesDirectory()) {
    const auto step = static_cast<int64_t>(std::min<uint64_t>(order.step(), kMaxSteps));
    const CheckpointDirectory directory(parts_.config.checkpoint.dir);
    const std::string token = SaveToken(leader_->run(), order.number());
    if (Write(order.number(), directory.TemporaryPath(step, token))) {
      parts_.log.Debug("writes its part of the checkpoint of global step {}", step);
    }
  }
  Take(order.number(), order.round(), order.base(), order.evaluate());
}

void SnapshotKeeper::Take(uint64_t number, uint64_t round, uint64_t base, bool evaluate) {
  if (Kept(number)) return Tell();
  if (number <= number_) return;
  if (base != 0 && (base != last_full_ || parts_.config.checkpoint.delta == 0)) return;
  Drop(number_);
  number_ = number;
  round_ = round;
  base_ = base;
  evaluate_ = evaluate;
  due_ = true;
  AfterMessage();
}

bool SnapshotKeeper::Write(uint64_t number, const std::string& directory) {
  if (!Kept(number) || saver_.Of(number) != nullptr || saver_.busy()) return false;
  snapshot_->LetUpdatesWait();
  saver_.Begin(number, snapshot_, directory);
  return true;
}

void SnapshotKeeper::Drop(uint64_t number) {
  if (number != number_) return;
  due_ = false;
  if (!snapshot_) return;
  TellCost(snapshot_->Cost());
  parts_.shard.Drop(*snapshot_);
  snapshot_.reset();
}

void SnapshotKeeper::TellCost(const SnapshotCost& cost) const {
  if (cost.max_bytes == 0) return;
  const std::string text = fmt::format(
      "the rows that changed took {:.1f} MiB; updates waited {:.2f} s in all, the longest {:.1f} ms",
      MiB(cost), cost.waited_s, cost.longest_wait_s * 1e3);
  if (cost.given_up) {
    parts_.log.Warning("a checkpoint was given up: {}.", WhyGivenUp(cost));
  } else if (cost.slowed) {
    parts_.log.Info("while the checkpoint was written, {}", text);
  } else {
    parts_.log.Debug("while the checkpoint was written, {}", text);
  }
}

std::string SnapshotKeeper::WhyGivenUp(const SnapshotCost& cost) const {
  const char* const faster = leader_->SeesDirectory() ? "a faster disk for checkpoint.dir"
                                                      : "a checkpoint.dir that this ps shares with ps 0";
  return fmt::format(
      "the rows that changed while it was written took {:.1f} MiB, more than they may. Use {}, "
      "more memory or more ps",
      MiB(cost), faster);
}

// A snapshot that was given up after its last piece was written is as good as any.
void SnapshotKeeper::Tell() {
  const ShardSaver::Outcome* const part = saver_.Of(number_);
  const SnapshotCost cost = snapshot_->Cost();
  const bool is_written = part != nullptr && part->error.empty();
  if (!cost.given_up || is_written) return leader_->OnSnapshot(parts_.ps, number_, part);
  told_given_up_ = true;
  const ShardSaver::Outcome given_up{{}, WhyGivenUp(cost)};
  leader_->OnSnapshot(parts_.ps, number_, &given_up);  // which may drop it
}

void SnapshotKeeper::TakeWhenFinished() {
  if (!parts_.shard.initialised() || !parts_.rule.HasFinished(round_)) return;
  due_ = told_given_up_ = false;
  if (base_ == 0) last_full_ = number_;
  snapshot_ = parts_.shard.TakeSnapshot(base_ == 0 ? SnapshotOf::kAll : SnapshotOf::kChanges);
  if (evaluate_) snapshot_->KeepForEvaluation();
  if (const std::optional<TableFigures> table = parts_.shard.Figures()) {
    parts_.log.Info("{} in this checkpoint: {}", kTableName, TableText(*table));
  }
  Tell();
}

void SnapshotKeeper::OnReadPiece(net::NodeId from, const wire::ReadPiece& read) {
  if (!Kept(read.number())) return;
  const uint64_t last = std::numeric_limits<int64_t>::max();
  const Piece piece{read.part(), static_cast<int64_t>(std::min(read.piece(), last))};
  snapshot_->ReleaseBefore({piece.part, piece.number - kOpenPieces + 1});  // the leader has written them
  const std::optional<net::LentBytes> values = snapshot_->Lend(piece);
  if (!values) return snapshot_->Cost().given_up ? Tell() : void();
  const uint64_t sum = parts_.config.net.checksum ? net::PayloadChecksum(values->data, values->size) : 0;
  const FaultScope fault("save.piece");
  parts_.outbox.Piece(from, read.number(), piece, sum, *values, parts_.of_replica);
}

void SnapshotKeeper::OnPull(const Member& worker, uint64_t request, const wire::Pull& pull) {
  std::optional<net::LentBytes> weights;
  const RowDesk::Keys keys = parts_.rule.rows().Find(worker.task.index, pull.block(), request);
  if (Kept(pull.snapshot()) && keys != nullptr) {
    weights = parts_.shard.LendOf(*snapshot_, pull.block(), *keys);
  }
  if (!weights) {
    parts_.outbox.Send(worker.node, request, [](auto& builder) {
      return wire::CreateWeights(builder, 0, 0, 0, 0, 0, 0, 0, 0, /*gone=*/true);
    });
    return;
  }
  net::WeightsHead head;
  if (parts_.config.net.checksum) head.checksum = net::PayloadChecksum(weights->data, weights->size);
  parts_.outbox.Weights(worker.node, request, head, *weights);
}

void SnapshotKeeper::Tick() {
  const bool is_written = saver_.Poll();
  if (!snapshot_) return;
  if (is_written || (!told_given_up_ && snapshot_->Cost().given_up)) Tell();
}

}  // namespace dtrain
