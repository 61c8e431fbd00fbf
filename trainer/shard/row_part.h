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

  const TableLayout* table() const override { return &table_; }
  int64_t block_count() const override { return static_cast<int64_t>(blocks_.size()); }
  RowRange BlockRows(int64_t block) const override { return At(block).rows; }
  using Part::bytes;
  size_t bytes(int64_t, size_t rows) const override { return rows * row_bytes(); }
  net::Compression FormOf(net::Compression configured) const override { return net::FormOfRows(configured); }
  uint64_t version(int64_t block) const override { return At(block).version; }

  void Apply(int64_t block, const BlockGradient& gradient) override;
  void ApplyMean(int64_t block, const RoundGradients& gradients, double scale) override;
  RoundSum SumOf(int64_t block, const RoundGradients& gradients, double scale) override;
  void ApplySum(int64_t block, const RoundSum& sum) override;
  void AddSquaresOfMean(int64_t block, const RoundGradients& gradients, gpu::SquareSum* sum) override;

  std::optional<std::string> WhereNotFinite(int64_t block, const BlockGradient& gradient) const override;

  // The units of rows, and behind them one of the version before, where it is kept. Each begins with the
  // versions of all blocks.
  int64_t unit_count() const override { return row_units() + (keeps_previous_ ? 1 : 0); }
  net::LentBytes CopyUnit(int64_t unit) override;
  void BeginCopy() override;
  std::string PutUnit(int64_t unit, net::TensorView bytes) override;

  net::LentBytes Lend(int64_t block, KeySpan keys) override;
  bool has_previous(int64_t block) const override { return At(block).has_previous; }
  net::LentBytes LendPrevious(int64_t block, KeySpan keys) override;
  std::optional<net::LentBytes> LendOf(const Snapshot& snapshot, int64_t block, KeySpan keys) override;

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

  // Forgets all rows: an unfinished restore may have left some. Snapshots have no pieces any more.
  virtual void ClearRows() = 0;
  // The units of rows of a copy, at least one, in the order of their rows.
  virtual int64_t row_units() const = 0;
  virtual RowRange UnitRows(int64_t unit) const = 0;
  // Copies a unit of rows behind the head of one that TakeUnit() has begun, and lends it.
  virtual net::LentBytes CopyRows(int64_t unit) = 0;
  // Takes what CopyRows() has put behind the head. Returns what is wrong with it; empty: nothing.
  virtual std::string PutRows(int64_t unit, net::TensorView bytes) = 0;
  // Returns a buffer that has the head of a unit, and behind these head_bytes() room for so many bytes.
  const net::LentBuffer& TakeUnit(size_t bytes);
  static std::byte* BytesOf(const net::LentBuffer& buffer) {
    return reinterpret_cast<std::byte*>(buffer.floats());
  }
  size_t head_bytes() const { return blocks_.size() * sizeof(uint64_t); }
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
  static constexpr uint64_t kAll = ~uint64_t{0};

  struct Block {
    RowRange rows;
    uint64_t version = 0;
    // The version before, where it is kept: the rows that the latest update changed, as they were.
    bool has_previous = false;
    KeyList previous_keys = {};
    std::vector<float> previous_weights = {};  // [keys, width]
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
  void RepeatVersion(int64_t index);
  void BeginPrevious(Block* block, KeySpan keys);
  net::LentBytes CopyPrevious();
  std::string PutPrevious(net::TensorView bytes);
  void SetWhole();
  RoundSum SumInPlace(int64_t index, const RoundGradients& gradients, double scale);
  void Sum(int64_t index, const RoundGradients& gradients);

  const Config& config_;
  const TableLayout table_;
  const char* const factors_name_;
  const bool keeps_previous_;
  RowOptimizer optimizer_;
  RowSum sum_;
  std::vector<Block> blocks_;
  net::LentBuffers answers_;  // bounded by the replies that can be out
  net::LentBuffers sums_;     // bounded by the records that can be out
  net::LentBuffers units_;    // the same
  uint64_t here_ = kAll;      // of a copy: the rows before this one are here
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
