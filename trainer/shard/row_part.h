// RowPart: what the shards of all tables do alike (model/table_layout.h): the versions of blocks, the sums
// of rounds, the version before, and answers with rows. Where rows lie and how they are updated is the part
// of a subclass, which is asked for spans of keys: TablePart (ranges of numbers), HashPart (keys of 64
// bits). Owner: PsServer. Thread: the ps loop.
#pragma once

#include <cstdint>
#include <cstring>
#include <future>
#include <optional>
#include <string>
#include <vector>

#include "net/lent_buffer.h"
#include "trainer/config/choices.h"
#include "trainer/model/layout.h"
#include "trainer/shard/part.h"
#include "trainer/table/key_list.h"
#include "trainer/table/row_optimizer.h"
#include "trainer/table/row_pieces.h"
#include "trainer/table/row_sum.h"

namespace dtrain {

class RowPart : public Part {
 public:
  RowPart(const Config& config, const Layout& layout, int ps_index);

  using Part::ApplyMean;
  using Part::Initialise;
  using Part::TakeSnapshot;
  bool Initialise(TimePoint until) override;
  void BeginRestore(uint64_t version) override;
  void SetRestored(uint64_t version) override;
  bool initialised() const override { return initialised_; }

  std::vector<std::string> slot_names() const override { return slot_names_; }

  const TableLayout* table() const override { return &table_; }
  int64_t block_count() const override { return static_cast<int64_t>(blocks_.size()); }
  RowRange BlockRows(int64_t block) const override { return At(block).rows; }
  size_t bytes(int64_t) const override { return 0; }
  size_t tensor_bytes(int64_t) const override { return 0; }
  uint64_t version(int64_t block) const override { return At(block).version; }

  void Apply(int64_t block, const BlockGradient& gradient) override;
  void ApplyMean(int64_t block, const RoundGradients& gradients, double scale) override;
  void AddSquaresOfMean(int64_t block, const RoundGradients& gradients, gpu::SquareSum* sum) override;

  net::LentBytes Lend(int64_t block, KeySpan keys) override;
  bool has_previous(int64_t block) const override { return At(block).has_previous; }
  net::LentBytes LendPrevious(int64_t block, KeySpan keys) override;

  using Part::Report;
  std::optional<ShardReport> Report(TimePoint until) override;

 protected:
  const Config& config() const { return config_; }
  const TableLayout& layout() const { return table_; }
  RowOptimizer& optimizer() { return optimizer_; }
  bool keeps_previous() const { return keeps_previous_; }
  // Of the checkpoint that is being restored.
  uint64_t restored_version() const { return restored_version_; }
  // Returns the bytes of free memory that this ps may take: the ps of one host share it. SIZE_MAX: unknown.
  size_t MemoryLeft();
  // Adds rows to those that the latest update of a block changed, as they were. `weights`: [keys, width].
  void KeepPrevious(int64_t block, KeySpan keys, const float* weights);

  // Forgets what an unfinished restore has left.
  virtual void ClearRows() = 0;
  // Copies the weights of rows to [keys, width]. A row that was never made stays so.
  virtual void ReadRows(KeySpan keys, float* weights) = 0;
  // Applies the gradient of a block's update to rows.
  virtual void UpdateRows(int64_t block, const UpdateStep& step, KeySpan keys, const std::byte* gradient) = 0;
  // Appends the rows of a range whose weights are not the initial ones, in ascending order and as
  // AddTableRows() has them, until it has looked at about kRowsAtOnce. Returns the row to go on with; the
  // range's end: none.
  static constexpr int64_t kRowsAtOnce = 4096;
  virtual uint64_t PackChanged(RowRange range, std::vector<std::byte>* rows) const = 0;
  // Writes one, and returns where the next goes.
  std::byte* Pack(uint64_t row, const float* weights, std::byte* to) const {
    std::memcpy(to, &row, sizeof row);
    row_bytes() == sizeof(float) ? std::memcpy(to + sizeof row, weights, sizeof(float))
                                 : std::memcpy(to + sizeof row, weights, row_bytes());
    return to + packed_bytes();
  }
  size_t packed_bytes() const { return sizeof(uint64_t) + row_bytes(); }

 private:
  struct Block {
    RowRange rows;
    uint64_t version = 0;
    // The version before, where it is kept: the rows that the latest update changed, as they were.
    bool has_previous = false;
    KeyList previous_keys;
    std::vector<float> previous_weights;  // [keys, width]
  };

  // A report that has not ended.
  struct Reporting {
    ShardReport report;
    RowRange rest;                // of the block of the latest part
    std::vector<std::byte> rows;  // that were looked at last, as AddTableRows() has them
  };

  void MeasureMemory();
  void ReportSome();
  std::string NonFiniteIn(const std::vector<std::byte>& rows) const;
  Block& At(int64_t block) { return blocks_[static_cast<size_t>(block)]; }
  const Block& At(int64_t block) const { return blocks_[static_cast<size_t>(block)]; }
  size_t row_bytes() const { return static_cast<size_t>(table_.width()) * sizeof(float); }
  void Update(int64_t index, KeySpan keys, const std::byte* gradient, float scale);
  void BeginPrevious(Block* block, KeySpan keys);
  void Sum(int64_t index, const RoundGradients& gradients);

  const Config& config_;
  const TableLayout table_;
  const char* const factors_name_;
  const std::vector<std::string> slot_names_;
  const bool keeps_previous_;
  RowOptimizer optimizer_;
  RowSum sum_;
  std::vector<Block> blocks_;
  net::LentBuffers answers_;  // bounded by the replies that can be out
  gpu::Stream stream_;
  std::vector<RowSum::Part> parts_;  // of a round; kept to spare the allocation
  std::vector<float> shares_;
  std::optional<Reporting> reporting_;
  size_t memory_left_ = SIZE_MAX;
  std::future<size_t> measuring_;  // the memory left
  uint64_t restored_version_ = 0;
  bool initialised_ = false;
};

}  // namespace dtrain
