// What the manifest of a checkpoint says of the run that writes it.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "trainer/checkpoint/manifest.h"
#include "trainer/config/config.h"

namespace dtrain {

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
