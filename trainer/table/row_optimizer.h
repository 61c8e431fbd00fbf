// RowOptimizer: updates rows of a table, each of which holds its weights and then the optimizer's slots for
// them (optim/model_slots.h). It copies some rows into arrays, applies the optimizer of dense ranges to these
// (optim/optimizer.h) and copies the result back: the same arithmetic, with the same bits. Where the parts of
// a model have optimizers of their own, it does so for the columns of each part. A gradient of a row that a
// hash table has no values for is dropped. What depends on time alone, as the decay of a momentum, happens to
// a row only when it has a gradient. Owner: RowPart. Thread: one.
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
  // Updates weights [first, first + count) of the rows of one tile.
  struct Updater {
    int64_t first;
    int64_t count;
    std::vector<int64_t> slots;  // where a row has them
    bool decay_biases;
    bool is_ftrl;
    std::unique_ptr<Optimizer> optimizer = nullptr;
    std::vector<float*> values = {};  // of its slots
  };

  void ApplyTile(const UpdateStep& step, int64_t count, const std::byte* gradient);
  const std::byte* PartOf(const Updater& by, int64_t count, const std::byte* gradient);
  static UpdateStep StepOf(const Updater& updater, const UpdateStep& step);
  void Copy(int64_t offset, int64_t values, int64_t count, float* array) const;
  void CopyBack(int64_t offset, int64_t values, int64_t count, const float* array) const;

  const int64_t width_;
  const int64_t tile_rows_;
  bool decay_biases_ = true;  // of all parts
  const uint64_t bias_row_;
  std::vector<Updater> updaters_;
  std::vector<float*> rows_;  // of the tile
  std::vector<float> weights_;
  std::vector<float> part_;      // of the gradient, where there are several updaters
  std::vector<float> gradient_;  // of the rows of a tile of a hash table that have values
};

}  // namespace dtrain
