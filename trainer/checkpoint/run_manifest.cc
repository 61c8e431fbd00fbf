#include "trainer/checkpoint/run_manifest.h"

#include "base/clock.h"
#include "trainer/config/fields.h"
#include "trainer/version.h"

namespace dtrain {
namespace {

std::string ChoiceText(const char* key, const Config& config) {
  const Field& field = *FindField(key);
  return ValueText(field, field.get(config));
}

}  // namespace

Manifest RunManifest(const Config& config, const Layout& layout, const std::vector<std::string>& slots,
                     const std::vector<std::vector<uint64_t>>& checksums, const SavedMoment& moment) {
  Manifest manifest = BuildManifest(layout, slots, checksums);
  manifest.step = moment.step;
  manifest.saved_unix_ms = WallNanos() / 1000000;
  manifest.run_id = moment.run_id;
  manifest.run_epoch = moment.run_epoch;
  manifest.version = kVersion;
  manifest.optimizer = ChoiceText("train.optimizer.kind", config);
  manifest.mode = ChoiceText("train.mode", config);
  manifest.positions = moment.positions;
  manifest.loss = moment.loss;
  manifest.accuracy = moment.accuracy;
  manifest.inputs = moment.inputs;
  return manifest;
}

}  // namespace dtrain
