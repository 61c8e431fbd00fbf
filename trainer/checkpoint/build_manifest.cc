#include "trainer/checkpoint/build_manifest.h"

#include <fmt/core.h>

#include "base/clock.h"
#include "base/error.h"
#include "trainer/checkpoint/part_pieces.h"
#include "trainer/checkpoint/shard_format.h"
#include "trainer/config/config.h"
#include "trainer/config/fields.h"
#include "trainer/version.h"

namespace dtrain {
namespace {

StoredShard BuildShard(const Layout& layout, int ps, SlotCounts slots, const WrittenPart& part) {
  StoredShard shard{ShardName(ps, static_cast<int64_t>(layout.ps.size())), kShardAlignment, {}};
  WrittenNumbers said{part};
  bool enough = true;
  for (const auto& pieces : PartsOf(layout, ps, slots)) {
    enough = enough && pieces->AddTo(&shard, &said);
  }
  if (enough && said.all_taken()) return shard;
  throw Failure(
      ExitCode::kInternal,
      fmt::format("ps {}: its {} checksums are not those of the pieces of its part of a checkpoint. "
                  "Does it run the same dtrain and the same file?",
                  ps, part.checksums.size()));
}

}  // namespace

Manifest BuildManifest(const Layout& layout, const ModelSlots& slots, const std::vector<WrittenPart>& parts) {
  if (parts.size() != layout.ps.size()) {
    throw Failure(ExitCode::kInternal, fmt::format("a checkpoint of {} ps has the checksums of {}.",
                                                   layout.ps.size(), parts.size()));
  }
  Manifest manifest = ModelManifest(layout, slots);
  for (size_t ps = 0; ps < layout.ps.size(); ++ps) {
    manifest.shards.push_back(BuildShard(layout, static_cast<int>(ps), slots.counts(), parts[ps]));
  }
  return manifest;
}

namespace {

std::string ChoiceText(const std::string& key, const Config& config) {
  const Field& field = *FindField(key);
  return ValueText(field, ValueOrCommon(field, config));
}

// "adam", or "ftrl and adagrad".
std::string OptimizerText(const Config& config) {
  std::string text;
  for (const NamedOptimizer& each : OptimizersOf(config.train)) {
    text += (text.empty() ? "" : " and ") + ChoiceText(each.key + ".kind", config);
  }
  return text;
}

}  // namespace

Manifest RunManifest(const Config& config, const Layout& layout, const ModelSlots& slots,
                     const std::vector<WrittenPart>& parts, const SavedMoment& moment) {
  Manifest manifest = BuildManifest(layout, slots, parts);
  manifest.step = moment.step;
  manifest.saved_unix_ms = WallNanos() / 1000000;
  manifest.run_id = moment.run_id;
  manifest.run_epoch = moment.run_epoch;
  manifest.version = kVersion;
  manifest.optimizer = OptimizerText(config);
  manifest.mode = ChoiceText("train.mode", config);
  manifest.positions = moment.positions;
  manifest.loss = moment.loss;
  manifest.accuracy = moment.accuracy;
  manifest.best_by = moment.best_by;
  manifest.inputs = moment.inputs;
  manifest.origin = moment.origin;
  manifest.base = moment.base;
  return manifest;
}

}  // namespace dtrain
