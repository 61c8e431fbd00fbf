// JointShard: the part of a model on one ps that has both: a range of the flat vector, whose blocks come
// first, and behind them the blocks of its rows of a table. Each block is its shard's.
// Owner: PsServer. Thread: the ps loop.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "trainer/shard/host_shard.h"
#include "trainer/shard/row_shard.h"

namespace dtrain {

// JointSnapshot: the pieces of a range, and behind them those of rows. Thread: any.
class JointSnapshot : public Snapshot {
 public:
  JointSnapshot(std::shared_ptr<Snapshot> range, std::shared_ptr<Snapshot> rows)
      : range_(std::move(range)), rows_(std::move(rows)), of_range_(range_->piece_count()) {}

  int64_t piece_count() const override { return of_range_ + rows_->piece_count(); }
  std::optional<Piece> Read(int64_t piece, float* scratch) const override {
    return piece < of_range_ ? range_->Read(piece, scratch) : rows_->Read(piece - of_range_, scratch);
  }
  std::optional<net::LentBytes> Lend(int64_t piece) const override {
    return piece < of_range_ ? range_->Lend(piece) : rows_->Lend(piece - of_range_);
  }
  void ReleaseBefore(int64_t piece) override;
  SnapshotCost Cost() const override { return rows_->Cost(); }
  void LetUpdatesWait() override { rows_->LetUpdatesWait(); }
  void KeepForEvaluation() override { rows_->KeepForEvaluation(); }
  bool GoBack(KeySpan keys, float* weights) const override { return rows_->GoBack(keys, weights); }

 private:
  const std::shared_ptr<Snapshot> range_;
  const std::shared_ptr<Snapshot> rows_;
  const int64_t of_range_;  // pieces
};

class JointShard : public ParameterShard {
 public:
  // The ps has values of the flat vector. `rows`: its rows.
  JointShard(const Config& config, const Layout& layout, int ps_index, std::unique_ptr<RowShard> rows)
      : range_(config, layout, ps_index), rows_owner_(std::move(rows)), rows_(*rows_owner_) {}
  ~JointShard() override { DropSnapshot(); }

  using ParameterShard::ApplyMean;
  using ParameterShard::Initialise;
  bool Initialise(TimePoint until) override { return range_.Initialise(until) && rows_.Initialise(until); }
  void Restore(int64_t slot, int64_t first, net::TensorView values) override {
    range_.Restore(slot, first, values);
  }
  bool Fits(uint64_t slot, uint64_t first, size_t bytes) const override {
    return range_.Fits(slot, first, bytes);
  }
  void BeginRestore() override { rows_.BeginRestore(); }
  void RestoreRow(uint64_t row, const float* values) override { rows_.RestoreRow(row, values); }
  void RestoreHashRow(const HashRow& row) override { rows_.RestoreHashRow(row); }
  void SetRestored(uint64_t version) override;
  void SetCounts(int64_t earlier, int64_t decay_steps) override;
  bool initialised() const override { return range_.initialised() && rows_.initialised(); }

  std::vector<std::string> slot_names() const override { return rows_.slot_names(); }
  using ParameterShard::TakeSnapshot;
  std::shared_ptr<Snapshot> TakeSnapshot(SnapshotOf of) override;
  void DropSnapshot() override;

  const TableLayout* table(int64_t block) const override { return Of(block).table(Local(block)); }
  RowRange BlockRows(int64_t block) const override { return Of(block).BlockRows(Local(block)); }
  int64_t block_count() const override { return range_.block_count() + rows_.block_count(); }
  int64_t range_blocks() const override { return range_.block_count(); }
  size_t bytes(int64_t block) const override { return Of(block).bytes(Local(block)); }
  size_t tensor_bytes(int64_t block) const override { return Of(block).tensor_bytes(Local(block)); }
  bool reads_values() const override { return true; }
  uint64_t version(int64_t block) const override { return Of(block).version(Local(block)); }

  void Apply(int64_t block, const BlockGradient& gradient) override {
    Of(block).Apply(Local(block), gradient);
  }
  void ApplyMean(int64_t block, const RoundGradients& gradients, double scale) override {
    Of(block).ApplyMean(Local(block), gradients, scale);
  }
  void AddSquaresOfMean(int64_t block, const RoundGradients& gradients, gpu::SquareSum* sum) override {
    Of(block).AddSquaresOfMean(Local(block), gradients, sum);
  }

  net::LentBytes Lend(int64_t block) const override { return Of(block).Lend(Local(block)); }
  bool has_previous(int64_t block) const override { return Of(block).has_previous(Local(block)); }
  net::LentBytes LendPrevious(int64_t block) const override { return Of(block).LendPrevious(Local(block)); }
  net::LentBytes LendRows(int64_t block, KeySpan keys) override {
    return Of(block).LendRows(Local(block), keys);
  }
  net::LentBytes LendPreviousRows(int64_t block, KeySpan keys) override {
    return Of(block).LendPreviousRows(Local(block), keys);
  }
  uint64_t previous_checksum(int64_t block) const override {
    return Of(block).previous_checksum(Local(block));
  }
  uint64_t checksum(int64_t block) const override { return Of(block).checksum(Local(block)); }

  std::optional<TableFigures> Figures() const override { return rows_.Figures(); }
  using ParameterShard::Report;
  std::optional<ShardReport> Report(TimePoint until) override;

 private:
  bool IsOfRange(int64_t block) const { return block < range_.block_count(); }
  ParameterShard& Of(int64_t block) {
    if (IsOfRange(block)) return range_;
    return rows_;
  }
  const ParameterShard& Of(int64_t block) const {
    if (IsOfRange(block)) return range_;
    return rows_;
  }
  int64_t Local(int64_t block) const { return IsOfRange(block) ? block : block - range_.block_count(); }

  HostShard range_;
  const std::unique_ptr<RowShard> rows_owner_;
  RowShard& rows_;
};

}  // namespace dtrain
