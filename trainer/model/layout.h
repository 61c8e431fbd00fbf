// Layout: where each variable of a model lies in one flat vector of float32, and which contiguous range of it
// each ps owns. The placement chooses the order of the variables, so that every ps has one contiguous range
// under every policy: one payload, one copy. Thread: any; plain values and free functions.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "trainer/batch/batch.h"
#include "trainer/config/choices.h"
#include "trainer/model/table_layout.h"

namespace dtrain {

// The names of the variables that have the weights and the bias of a table's rows.
constexpr char kTableWeights[] = "weights/W1";
constexpr char kTableBiases[] = "biases/b1";
// The name of the variable that has the factors of a factorization machine.
constexpr char kFactorsName[] = "factors/V1";
// The same of the embeddings of a model of the kind wide_deep.
constexpr char kEmbeddingsName[] = "embeddings/E1";

// Variable: a [rows, cols] row-major tensor; vectors have cols 1.
struct Variable {
  std::string name;  // "weights/W1", "biases/b1", "factors/V1"
  int64_t rows = 0;
  int64_t cols = 1;
  bool bias = false;
  int64_t fan_in = 1;  // for glorot
  int64_t fan_out = 1;
  int64_t offset = 0;  // of element 0 in the flat vector
  int64_t size() const { return rows * cols; }
};

struct Range {
  int64_t begin = 0;
  int64_t end = 0;
  int64_t size() const { return end - begin; }
};

// Segment: rows [first_row, first_row + rows) of one variable, at `offset` of the flat vector.
struct Segment {
  int variable = 0;  // index into Layout::variables
  int64_t first_row = 0;
  int64_t rows = 0;
  int64_t offset = 0;
};

struct Layout {
  std::vector<Variable> variables;
  int64_t size = 0;
  std::vector<Range> ps;  // ps i owns [begin, end); in order, without gaps
  // The rows of a sparse model, which has them in place of variables or beside them.
  std::optional<TableLayout> table;
  BatchForm form;  // of its batches
  bool has_hash_table() const { return table && table->hashed(); }

  // Without what lies between variables to align them (PlaceVariables).
  int64_t parameters() const;
  std::vector<Segment> SegmentsOf(int ps_index) const;
  // Returns "weights/W1 [0:392)".
  std::string RowsText(const Segment& segment) const;
  const Variable& Find(const std::string& name) const;
  // What the factors of a table's rows are called.
  const char* factors_name() const { return variables.empty() ? kFactorsName : kEmbeddingsName; }
};

// The layout of a sparse model, whose weights are rows of a table. inputs and outputs of `config` must be
// set. `batch_rows`: of the batches that are exchanged; the rows of large ones travel in several blocks, so
// that a ps works on one while the next is on its way. Throws UserError if a row has too many values.
Layout TableLayoutOf(const ModelConfig& config, int ps_count, int64_t batch_rows = 1);

// The layout of a model with both: that of its tensors, and a table beside them.
Layout JointLayout(Layout tensors, const Layout& rows, const ModelConfig& config);

// Places the variables on the ps:
//   bytes: the flat vector is cut at row boundaries into ranges of nearly equal size.
//   round_robin: whole variables in turn, variable i on ps i mod n.
//   pin: whole variables, each on the ps of the first entry of `pins` that matches ("weights/W1=0",
//      "biases/*=1"); the others, largest first, on the ps with the fewest bytes. Throws UserError if an
//      entry matches no variable or names no ps.
// Every variable and range begins at a multiple of `group` elements; what lies between is zero and stays so.
// Every task computes the same layout from the same config.
Layout PlaceVariables(std::vector<Variable> variables, int ps_count, const PlacementConfig& placement,
                      int64_t group = 1);

// Blocks: the pieces in which a ps's range is sent and updated. A range of up to kBlockValues is one block; a
// larger one is cut from its beginning. So a large tensor is sent, applied and answered block by block,
// several at a time, and neither side holds a second copy of it.

constexpr int64_t kBlockValues = 1 << 18;  // 1 MiB of float32

// Returns at least 1: an empty range has one empty block.
inline int64_t BlockCount(Range range) {
  return std::max<int64_t>(1, (range.size() + kBlockValues - 1) / kBlockValues);
}

// Returns the number of blocks of a ps's range. With a table an empty range has none.
inline int64_t RangeBlocksOf(const Layout& layout, size_t ps) {
  return layout.table && layout.ps[ps].size() == 0 ? 0 : BlockCount(layout.ps[ps]);
}

// Returns the number of blocks of a ps: those of its range, and behind them those of its rows.
inline int64_t BlocksOf(const Layout& layout, size_t ps) {
  return RangeBlocksOf(layout, ps) + (layout.table ? layout.table->blocks_of_ps() : 0);
}

// The order in which the blocks of a ps travel: those of its range from the last to the first, because the
// gradient of a model's last layer is known first (wait-free backpropagation, Zhang et al., Poseidon, USENIX
// ATC 2017), and then those of its rows. Returns the block that travels at position `i`. The function is its
// own inverse: it also returns the position of block `i`. `range_blocks`: the result of RangeBlocksOf().
inline int64_t InOrder(int64_t range_blocks, int64_t i) {
  return i < range_blocks ? range_blocks - 1 - i : i;
}

// Returns block `index` of `range`, as a range of the flat vector.
inline Range BlockOf(Range range, int64_t index) {
  const int64_t begin = range.begin + index * kBlockValues;
  return {begin, std::min(range.end, begin + kBlockValues)};
}

// RangePiece: a part of what a ps keeps for its range (the weights, then each slot of the optimizer), at most
// one block large. Pieces are numbered: the weights of the first block, each slot of it, then the next block.
// A reader that takes them in order is done with a block early, so that updates need not copy it any more.
struct RangePiece {
  int64_t slot = 0;  // 0: the weights
  Range elements;    // of the ps's range, whose first element is 0
};

inline int64_t RangePieceCount(Range range, int64_t slots) { return BlockCount(range) * (1 + slots); }

inline RangePiece RangePieceAt(Range range, int64_t slots, int64_t piece) {
  const Range block = BlockOf(range, piece / (1 + slots));
  return {piece % (1 + slots), {block.begin - range.begin, block.end - range.begin}};
}

// model_crc: one checksum for the weights of a whole model, independent of the parts that it is stored in.

// ModelPart: consecutive rows of one variable.
struct ModelPart {
  std::string name;
  int64_t first_row = 0;
  int64_t bytes = 0;
  uint32_t crc = 0;  // CRC-32C of the little-endian float32 values
};

// Adds rows of a table, whose weights are not the initial ones, to the part of it: of each its number
// (uint64) and its weights behind each other. Rows are added in the order of their numbers.
void AddTableRows(gpu::Span<const std::byte> rows, ModelPart* part);

// Returns the CRC-32C over all weights, variables by name in byte order, rows in order, as 8 hex digits.
std::string ModelChecksum(std::vector<ModelPart> parts);

}  // namespace dtrain
