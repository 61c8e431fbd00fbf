// Manifest: what a checkpoint consists of: which pieces of which tensors lie where in which file, with their
// checksums, and what was known of the run. The bytes of the file `manifest`: docs/checkpoint.md.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/config/config.h"
#include "trainer/data/files/input_form.h"
#include "trainer/model/layout.h"

namespace dtrain {

struct StoredTensor {
  std::string name;
  int64_t rows = 0;
  int64_t cols = 0;
  int64_t size() const { return rows * cols; }
};

struct StoredPiece {
  int64_t tensor = 0;  // index into tensors
  int64_t slot = 0;    // 0: weights; then slots, from 1
  int64_t first = 0;   // element of the tensor
  int64_t count = 0;
  int64_t offset = 0;     // byte of the file
  uint64_t checksum = 0;  // of the padded bytes
  int64_t bytes() const { return count * static_cast<int64_t>(sizeof(float)); }
};

struct StoredShard {
  std::string file;
  int64_t bytes = 0;
  std::vector<StoredPiece> pieces;
};

struct Manifest {
  int64_t sequence = 0;  // 1 and up: the newest of a directory has the largest
  int64_t step = 0;
  int64_t saved_unix_ms = 0;
  uint64_t run_id = 0;
  uint32_t run_epoch = 0;  // how often the run had gone back to a checkpoint
  std::string version;     // of the dtrain that wrote it
  std::string optimizer;
  std::string mode;
  std::vector<StoredTensor> tensors;
  std::vector<std::string> slots;
  std::vector<StoredShard> shards;
  std::string positions;     // JSON: where the workers were in their data; opaque here
  int64_t config_bytes = 0;  // of config.yaml
  uint64_t config_checksum = 0;
  double loss = std::numeric_limits<double>::quiet_NaN();  // NaN: not evaluated
  double accuracy = std::numeric_limits<double>::quiet_NaN();
  std::optional<InputForm> inputs;  // unset: who wrote it did not know the data

  // Of all files but the manifest's own.
  int64_t bytes() const;
};

// The file's bytes. The manifest must be one that FromBytes() takes.
std::string ToBytes(const Manifest& manifest);
// Any bytes are fine: returns what is wrong with them, or nothing and fills `manifest`.
std::optional<std::string> FromBytes(std::string_view bytes, Manifest* manifest);
// The rules that hold in every manifest, so that a reader may rely on them; what breaks one, or nothing.
std::optional<std::string> ManifestProblem(const Manifest& manifest);

// Tensors, slots and shards of what the ps of `layout` hold; `checksums` of the pieces of each ps, in the
// order of PiecesOf(). Failure where a ps told another number of them.
Manifest BuildManifest(const Layout& layout, const std::vector<std::string>& slots,
                       const std::vector<std::vector<uint64_t>>& checksums);

// What the manifest of a checkpoint says of the run that writes it.

// What a checkpoint is of.
struct SavedMoment {
  uint64_t run_id = 0;
  uint32_t run_epoch = 0;
  int64_t step = 0;       // global
  std::string positions;  // of the workers, as JSON
  bool best = false;      // of all evaluations so far, with these figures:
  double loss = std::numeric_limits<double>::quiet_NaN();
  double accuracy = std::numeric_limits<double>::quiet_NaN();  // not a number: it does not classify
  std::optional<InputForm> inputs = std::nullopt;              // unset: who writes it does not know the data
};

// As BuildManifest(), with what is known of the run; saved now.
Manifest RunManifest(const Config& config, const Layout& layout, const std::vector<std::string>& slots,
                     const std::vector<std::vector<uint64_t>>& checksums, const SavedMoment& moment);

}  // namespace dtrain
