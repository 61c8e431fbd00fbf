// RowOptimizer: updates rows of a table, each of which holds its weights and then the optimizer's slots for
// them: [weights, slot 1, slot 2 ...], each of the table's width. It copies some rows into arrays, applies
// the optimizer of dense ranges to these (optim/optimizer.h) and copies the result back: the same arithmetic,
// with the same bits. A gradient of a row that a hash table has no values for is dropped. What depends on
// time alone, as the decay of a momentum, happens to a row only when it has a gradient. Owner: RowPart.
// Thread: one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "trainer/config/choices.h"
#include "trainer/model/table_layout.h"
#include "trainer/optim/optimizer.h"
#include "trainer/table/hash_store.h"
#include "trainer/table/key_list.h"
#include "trainer/table/row_store.h"

namespace dtrain {

// The values of a row: its weights and slots.
int64_t RowValues(const Config& config, int64_t width);

// Writes the slots of a row, whose weights are there, as they are before its first update.
std::function<void(float* row)> FirstSlots(const Config& config, int64_t width);

// What the rows of a ps ask before they take more memory.
RowMemory RowMemoryOf(const Config& config);

// An empty store for `rows` of a table, with slots. Their initial values are functions of (seed, feature).
RowStore EmptyRows(const Config& config, const TableLayout& table, RowRange rows);
// The same of a hash table.
HashStore EmptyHashRows(const Config& config, const TableLayout& table, RowRange rows);

class RowOptimizer {
 public:
  RowOptimizer(const Config& config, const TableLayout& table);

  // Applies a gradient to the rows `keys`. `gradient`: [keys, width] float32, at any address. `rows`: a
  // RowStore or a HashStore.
  template <typename Rows>
  void Apply(const UpdateStep& step, KeySpan keys, const std::byte* gradient, Rows* rows);

 private:
  void ApplyRun(const UpdateStep& step, KeySpan keys, const std::byte* gradient, RowStore* rows);
  void ApplyRun(const UpdateStep& step, KeySpan keys, const std::byte* gradient, HashStore* rows);
  void ApplyTile(const UpdateStep& step, int64_t count, const std::byte* gradient);
  UpdateStep StepOf(const UpdateStep& step) const;
  void Copy(size_t part, int64_t count, float* array) const;
  void CopyBack(size_t part, int64_t count, const float* array) const;

  const int64_t width_;
  const int64_t tile_rows_;
  const bool decay_biases_;
  const uint64_t bias_row_;
  const bool is_ftrl_;
  const std::unique_ptr<Optimizer> optimizer_;  // of the rows of one tile
  const std::vector<Slot> slots_;               // its own
  std::vector<float*> rows_;                    // of the tile
  std::vector<float> weights_;
  std::vector<float> gradient_;  // of the rows of a tile of a hash table that have values
};

}  // namespace dtrain
