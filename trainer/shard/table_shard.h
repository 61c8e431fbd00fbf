// TableShard: the rows of a table on one ps (model/table_layout.h), with their optimizer slots. A row that
// was never written costs nothing and reads as its initial values. Owner: PsServer. Thread: the ps loop.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "net/lent_buffer.h"
#include "trainer/config/config.h"
#include "trainer/model/layout.h"
#include "trainer/shard/parameter_shard.h"
#include "trainer/shard/table_snapshot.h"
#include "trainer/table/key_list.h"
#include "trainer/table/row_optimizer.h"
#include "trainer/table/row_store.h"
#include "trainer/table/row_sum.h"

namespace dtrain {

class TableShard : public ParameterShard {
 public:
  TableShard(const Config& config, const Layout& layout, int ps_index);
  ~TableShard() override { DropSnapshot(); }
  TableShard(const TableShard&) = delete;
  TableShard& operator=(const TableShard&) = delete;

  using ParameterShard::ApplyMean;
  using ParameterShard::Initialise;
  bool Initialise(TimePoint until) override;
  void RestoreRow(uint64_t row, const float* values) override;
  void SetRestored(uint64_t version) override;
  bool initialised() const override { return initialised_; }

  std::vector<std::string> slot_names() const override { return slot_names_; }
  std::shared_ptr<Snapshot> TakeSnapshot() override;
  void DropSnapshot() override;

  const TableLayout* table() const override { return &table_; }
  int64_t block_count() const override { return static_cast<int64_t>(blocks_.size()); }
  RowRange BlockRows(int64_t block) const override { return At(block).rows; }
  size_t bytes(int64_t) const override { return 0; }
  size_t tensor_bytes(int64_t) const override { return 0; }
  bool reads_values() const override { return true; }
  uint64_t version(int64_t block) const override { return At(block).version; }

  void Apply(int64_t block, const BlockGradient& gradient) override;
  void ApplyMean(int64_t block, const RoundGradients& gradients, double scale) override;
  void AddSquaresOfMean(int64_t block, const RoundGradients& gradients, gpu::SquareSum* sum) override;

  // Only rows are lent.
  net::LentBytes Lend(int64_t) const override { return {}; }
  net::LentBytes LendPrevious(int64_t) const override { return {}; }
  uint64_t checksum(int64_t) const override { return 0; }
  uint64_t previous_checksum(int64_t) const override { return 0; }
  net::LentBytes LendRows(int64_t block, KeySpan keys) override;
  bool has_previous(int64_t block) const override { return At(block).has_previous; }
  net::LentBytes LendPreviousRows(int64_t block, KeySpan keys) override;

  ShardReport Report() const override;
  // Rows whose group takes memory, and the bytes that all take.
  int64_t rows_written() const { return rows_.groups_written() * rows_.group_rows(); }

 private:
  struct Block {
    RowRange rows;
    uint64_t version = 0;
    // The version before, where it is kept: the rows that the latest update changed, as they were.
    bool has_previous = false;
    KeyList previous_keys;
    std::vector<float> previous_weights;  // [keys, width]
  };

  Block& At(int64_t block) { return blocks_[static_cast<size_t>(block)]; }
  const Block& At(int64_t block) const { return blocks_[static_cast<size_t>(block)]; }
  size_t row_bytes() const { return static_cast<size_t>(table_.width()) * sizeof(float); }
  void Update(Block* block, KeySpan keys, const std::byte* gradient, float scale);
  void KeepPrevious(Block* block, KeySpan keys);
  void ReadRows(KeySpan keys, float* weights);
  void Sum(int64_t index, const RoundGradients& gradients);
  template <typename Visit>
  void VisitChanged(RowRange range, Visit&& visit) const;

  const Config& config_;
  const TableLayout table_;
  const std::vector<std::string> slot_names_;
  const bool keeps_previous_;
  RowStore rows_;
  RowOptimizer optimizer_;
  RowSum sum_;
  std::vector<Block> blocks_;
  std::shared_ptr<TableSnapshot> snapshot_;  // null: none
  std::vector<float> initial_;               // a row, for those that were never written
  net::LentBuffers answers_;                 // bounded by the replies that can be out
  gpu::Stream stream_;
  std::vector<RowSum::Part> parts_;  // of a round; kept to spare the allocation
  std::vector<float> shares_;
  bool initialised_ = false;
};

}  // namespace dtrain
