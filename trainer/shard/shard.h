// Shard: the parameters of one ps, a list of parts (part.h): a range of the flat vector, rows of a table, or
// both. Blocks are numbered through all parts, pieces in each. Owner: PsServer. Thread: the ps loop.
// ShardSnapshot: the snapshots of all its parts, of one moment; Thread: as Snapshot.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "trainer/checkpoint/part_pieces.h"
#include "trainer/shard/part.h"

namespace dtrain {

class DeviceStore;

class ShardSnapshot {
 public:
  explicit ShardSnapshot(std::vector<std::shared_ptr<Snapshot>> parts) : parts_(std::move(parts)) {}

  const std::vector<std::shared_ptr<Snapshot>>& parts() const { return parts_; }
  std::optional<net::LentBytes> Lend(Piece piece) const {
    return piece.part < parts_.size() ? parts_[piece.part]->Lend(piece.number) : std::nullopt;
  }
  // Releases all pieces before this one, and all of the parts before its.
  void ReleaseBefore(Piece piece);
  void Release() { ReleaseBefore({parts_.size(), 0}); }
  // The sum of all parts.
  SnapshotCost Cost() const;
  // See Snapshot.
  void LetUpdatesWait();
  void KeepForEvaluation();

 private:
  const std::vector<std::shared_ptr<Snapshot>> parts_;
};

// The parts of a ps. `store`: its values are on a GPU; null: in host memory.
std::vector<std::unique_ptr<Part>> MakeParts(const Config& config, const Layout& layout, int ps,
                                             DeviceStore* store = nullptr);

class Shard {
 public:
  explicit Shard(std::vector<std::unique_ptr<Part>> parts);

  // For all parts, as for one (Part).
  bool Initialise(TimePoint until);
  void Initialise() { Initialise(TimePoint::max()); }
  void BeginRestore(uint64_t version);
  std::string Put(Piece piece, net::TensorView bytes) { return parts_[piece.part]->Put(piece.number, bytes); }
  void SetRestored(uint64_t version);
  void SetCounts(int64_t earlier, int64_t decay_steps);
  int64_t earlier_updates() const { return parts_[0]->earlier_updates(); }
  int64_t decay_steps() const { return parts_[0]->decay_steps(); }
  bool initialised() const;
  std::shared_ptr<ShardSnapshot> TakeSnapshot(SnapshotOf of);
  std::shared_ptr<ShardSnapshot> TakeSnapshot() { return TakeSnapshot(SnapshotOf::kAll); }
  void Drop(const ShardSnapshot& snapshot);
  std::optional<TableFigures> Figures() const;
  std::optional<ShardReport> Report(TimePoint until);
  ShardReport Report() { return *Report(TimePoint::max()); }

  int64_t block_count() const { return static_cast<int64_t>(places_.size()); }
  // The order in which blocks travel.
  int64_t InOrder(int64_t i) const { return dtrain::InOrder(range_blocks_, i); }
  bool has_table() const { return range_blocks_ < block_count(); }

  // For one block, as in its part.
  const TableLayout* table(int64_t block) const { return At(block).part->table(); }
  RowRange BlockRows(int64_t block) const { return Of(block, &Part::BlockRows); }
  size_t bytes(int64_t block, size_t rows = 0) const { return At(block).part->bytes(At(block).block, rows); }
  net::Compression FormOf(int64_t block, net::Compression configured) const {
    return At(block).part->FormOf(configured);
  }
  bool reads_values() const { return parts_[0]->reads_values(); }
  uint64_t version(int64_t block) const { return Of(block, &Part::version); }
  void Apply(int64_t block, const BlockGradient& gradient) {
    At(block).part->Apply(At(block).block, gradient);
  }
  void ApplyMean(int64_t block, const RoundGradients& gradients, double scale = 1) {
    At(block).part->ApplyMean(At(block).block, gradients, scale);
  }
  RoundSum SumOf(int64_t block, const RoundGradients& gradients, double scale = 1) {
    return At(block).part->SumOf(At(block).block, gradients, scale);
  }
  void ApplySum(int64_t block, const RoundSum& sum) { At(block).part->ApplySum(At(block).block, sum); }
  // Units of a copy, as in the parts: those of the first part come first. PutUnit() refuses a unit that
  // is not the next one.
  int64_t unit_count() const;
  net::LentBytes CopyUnit(int64_t unit);
  void BeginCopy();
  std::string PutUnit(int64_t unit, net::TensorView bytes);
  // "part 0, unit 3", for people.
  std::string UnitName(int64_t unit) const;
  void AddSquaresOfMean(int64_t block, const RoundGradients& gradients, gpu::SquareSum* sum) {
    At(block).part->AddSquaresOfMean(At(block).block, gradients, sum);
  }
  std::optional<std::string> WhereNotFinite(int64_t block, const BlockGradient& gradient) const {
    return At(block).part->WhereNotFinite(At(block).block, gradient);
  }
  std::optional<net::LentBytes> LendOf(const ShardSnapshot& snapshot, int64_t block, KeySpan keys) {
    const Place& place = At(block);
    return place.part->LendOf(*snapshot.parts()[place.number], place.block, keys);
  }
  net::LentBytes Lend(int64_t block, KeySpan keys = {}) {
    return At(block).part->Lend(At(block).block, keys);
  }
  bool has_previous(int64_t block) const { return Of(block, &Part::has_previous); }
  net::LentBytes LendPrevious(int64_t block, KeySpan keys = {}) {
    return At(block).part->LendPrevious(At(block).block, keys);
  }
  uint64_t previous_checksum(int64_t block) const { return Of(block, &Part::previous_checksum); }
  uint64_t checksum(int64_t block) const { return Of(block, &Part::checksum); }

 private:
  // Where a block is: number `block` of a part.
  struct Place {
    Part* part = nullptr;
    size_t number = 0;  // of the part
    int64_t block = 0;
  };
  const Place& At(int64_t block) const { return places_[static_cast<size_t>(block)]; }
  // The part that has a unit, and the number of the unit there.
  Piece UnitAt(int64_t unit) const;
  template <typename Result>
  Result Of(int64_t block, Result (Part::*get)(int64_t) const) const {
    const Place& place = At(block);
    return (place.part->*get)(place.block);
  }

  const std::vector<std::unique_ptr<Part>> parts_;
  std::vector<Place> places_;  // by block
  int64_t range_blocks_ = 0;   // the first of them, which are of the flat vector
  int64_t next_unit_ = -1;     // that PutUnit() takes; -1: no copy was begun
};

}  // namespace dtrain
