// BuildManifest: the manifest of a checkpoint whose shard files are written. Thread: any; free functions.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "trainer/checkpoint/manifest.h"
#include "trainer/config/choices.h"
#include "trainer/model/layout.h"

namespace dtrain {

// ModelManifest() with the shards of the ps of `layout`. Throws Failure when a ps has reported another number
// of pieces.
Manifest BuildManifest(const Layout& layout, const ModelSlots& slots, const std::vector<WrittenPart>& parts);

// The moment of a run that a checkpoint holds.
struct SavedMoment {
  uint64_t run_id = 0;
  uint32_t run_epoch = 0;
  int64_t step = 0;       // global
  std::string positions;  // of the workers in their data, as JSON
  bool best = false;      // the best of all evaluations so far, with these figures:
  double loss = std::numeric_limits<double>::quiet_NaN();
  double accuracy = std::numeric_limits<double>::quiet_NaN();  // NaN: the model does not classify
  std::optional<StoredFigure> best_by = std::nullopt;          // unset: the loss
  std::optional<InputForm> inputs = std::nullopt;              // unset: the writer does not know the data
  Origin origin = {};
  std::optional<StoredBase> base = std::nullopt;  // set: it has what has changed since that one
};

// BuildManifest() with the facts about the run, saved now.
Manifest RunManifest(const Config& config, const Layout& layout, const ModelSlots& slots,
                     const std::vector<WrittenPart>& parts, const SavedMoment& moment);

}  // namespace dtrain
