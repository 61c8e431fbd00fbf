// Manifest: the contents of a checkpoint: which pieces of which tensors lie where in which file, with their
// checksums, and facts about the run. Bytes of the file `manifest`: docs/checkpoint.md.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "trainer/batch/input_form.h"
#include "trainer/config/choices.h"
#include "trainer/model/layout.h"
#include "trainer/optim/model_slots.h"
#include "trainer/table/row_pieces.h"

namespace dtrain {

struct StoredTensor {
  std::string name;
  int64_t rows = 0;
  int64_t cols = 0;
  int64_t size() const { return rows * cols; }
};

// A piece of a table (trainer/table/row_pieces.h) has the first row of its range as `first`, slot 0, and its
// size in the file as `count`. A piece without rows is left out. That of a hash table has its own first row,
// as an unsigned number (trainer/table/hash_pieces.h).
struct StoredPiece {
  int64_t tensor = 0;     // index into tensors
  int64_t slot = 0;       // 0: weights; then slots, from 1
  int64_t first = 0;      // first element of the tensor
  int64_t count = 0;      // float32
  int64_t offset = 0;     // in the file, in bytes
  uint64_t checksum = 0;  // of the padded bytes
  int64_t bytes() const { return count * static_cast<int64_t>(sizeof(float)); }
};

struct StoredShard {
  std::string file;
  int64_t bytes = 0;
  std::vector<StoredPiece> pieces;
};

// The table of a sparse model. Its tensor, the last one, is named kTableName and has a row for each feature
// and for the bias; that of a hash table (TableLayout::kHashed features), the only one, stands for all keys
// with one row. In a shard file its pieces are behind those of all others.
struct StoredTable {
  int64_t features = 0;
  int64_t width = 0;
  std::optional<std::vector<std::string>> linear_slots;  // of the first value of a row; unset: those of all
  bool hashed() const { return features == TableLayout::kHashed; }
  int64_t tensor_rows() const { return hashed() ? 1 : features + 1; }
};

// Origin: what a run began with (checkpoint.start_from).
struct Origin {
  std::string path;     // of the checkpoint, as ps 0 saw it; empty: initial values
  int64_t updates = 0;  // that the optimizer's slots had had there; 0: they began anew, or there are none
  template <typename Archive>
  void State(Archive& archive) {
    archive(path, updates);
  }
};

// StoredBase: the checkpoint of all rows since which those of a delta have changed. Both are in one
// directory.
struct StoredBase {
  int64_t sequence = 0;
  int64_t step = 0;
  uint64_t checksum = 0;  // Manifest::checksum
};

// StoredFigure: a figure of an evaluation, by its name as a value of eval.metric.
struct StoredFigure {
  std::string metric;
  double value = 0;
};

struct Manifest {
  int64_t sequence = 0;  // from 1; the newest checkpoint of a directory has the largest
  int64_t step = 0;
  int64_t saved_unix_ms = 0;
  uint64_t run_id = 0;
  uint32_t run_epoch = 0;  // the number of rollbacks
  std::string version;     // of the dtrain that wrote the checkpoint
  std::string optimizer;
  std::string mode;
  std::vector<StoredTensor> tensors;
  std::vector<std::string> slots;  // of tensors, and of rows but for table.linear_slots
  std::vector<StoredShard> shards;
  std::string positions;     // JSON: the workers' places in their data; opaque here
  int64_t config_bytes = 0;  // of config.yaml
  uint64_t config_checksum = 0;
  double loss = std::numeric_limits<double>::quiet_NaN();  // NaN: not evaluated
  double accuracy = std::numeric_limits<double>::quiet_NaN();
  std::optional<StoredFigure> best_by;  // set: what makes it the best one, in the place of the loss
  std::optional<InputForm> inputs;      // unset: the writer did not know the data
  std::optional<StoredTable> table;
  Origin origin;
  std::optional<StoredBase> base;  // set: this is a delta
  uint64_t checksum = 0;           // that the file ends with; 0: it was not read from one

  // Those of the table's rows among them.
  ModelSlots all_slots() const;
  // The values of a row with its slots. `table` is set.
  int64_t row_values() const { return all_slots().counts().RowValues(table->width); }
  // The index of the table in `tensors`, of which it is the last. `table` is set.
  int64_t table_tensor() const { return static_cast<int64_t>(tensors.size()) - 1; }
  // The rows that the pieces of the table in shard file `shard` are of. `table` is set, and no hash table.
  RowPieces RowPiecesOf(size_t shard) const;
  // The rows of that file. `table` is set.
  RowRange RowsOf(size_t shard) const;
  // The figure of the evaluation that it was written after; NaN: none.
  double FigureOf(EvalMetric metric) const;
  // The size of all files without the manifest.
  int64_t bytes() const;
};

// The largest step, and number of updates.
constexpr int64_t kMaxStep = (int64_t{1} << 62) - 1;

// The tensors, slots and table that a checkpoint of the model of `layout` has; no shards.
Manifest ModelManifest(const Layout& layout, const ModelSlots& slots);

// The bytes of the file. FromBytes() must accept the manifest. `checksum`, if not null, gets
// Manifest::checksum.
std::string ToBytes(const Manifest& manifest, uint64_t* checksum = nullptr);
// Reads any bytes: fills `manifest`, or returns what is wrong with them.
std::optional<std::string> FromBytes(std::string_view bytes, Manifest* manifest);
// The rules that every manifest keeps and readers rely on: what breaks one, if anything.
std::optional<std::string> ManifestProblem(const Manifest& manifest);

// What the writer of a shard file says of it, part by part (part_pieces.h): the checksums of what it has in
// the file; of rows of a table also the bytes, 0 for a piece without rows; of a hash table also where each
// piece begins.
struct WrittenPart {
  WrittenPart() = default;
  WrittenPart(std::vector<uint64_t> of_pieces) : checksums(std::move(of_pieces)) {}
  std::vector<uint64_t> checksums;
  std::vector<uint64_t> sizes;
  std::vector<uint64_t> firsts;
};

}  // namespace dtrain
