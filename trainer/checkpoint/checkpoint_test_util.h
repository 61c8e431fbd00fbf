// Small checkpoints for tests; their values are a function of (salt, variable, slot, element).
#pragma once

#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "base/check.h"
#include "base/random.h"
#include "base/testing/files.h"
#include "trainer/checkpoint/build_manifest.h"
#include "trainer/checkpoint/checkpoint_directory.h"
#include "trainer/checkpoint/shard_format.h"
#include "trainer/checkpoint/shard_writer.h"
#include "trainer/config/model_config.h"

namespace dtrain::testing {

inline std::vector<std::string> NamesIn(const std::string& directory) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    names.push_back(entry.path().filename().string());
  }
  std::sort(names.begin(), names.end());
  return names;
}

// weights/W1 [rows, 3] and biases/b1 [3].
inline Layout SmallLayout(int ps, int64_t rows = 5, PlacementPolicy policy = PlacementPolicy::kBytes) {
  PlacementConfig placement;
  placement.policy = policy;
  std::vector<Variable> variables(2);
  variables[0].name = "weights/W1";
  variables[0].rows = rows;
  variables[0].cols = 3;
  variables[1].name = "biases/b1";
  variables[1].rows = 3;
  return PlaceVariables(variables, ps, placement);
}

struct SmallCheckpoint {
  Layout layout = SmallLayout(2);
  std::vector<std::string> slots = {"m", "v"};
  uint64_t salt = 1;
  int64_t step = 12000;
  std::string positions = "{\"workers\":[]}";
};

inline float ValueOf(uint64_t salt, const std::string& variable, int slot, int64_t element) {
  const CounterRandom random = CounterRandom(salt).Stream(variable).Stream(static_cast<uint64_t>(slot));
  return static_cast<float>(random.Uniform(static_cast<uint64_t>(element)) - 0.5);
}

// Writes the file of one ps into `directory`; returns the checksums of its pieces.
inline std::vector<uint64_t> WriteShard(const std::string& directory, const SmallCheckpoint& of, int ps) {
  ShardWriter writer(directory + "/" + ShardName(ps, static_cast<int64_t>(of.layout.ps.size())));
  std::vector<uint64_t> checksums;
  for (const TensorPiece& piece : PiecesOf(of.layout, ps, static_cast<int>(of.slots.size()))) {
    const std::string& name = of.layout.variables[static_cast<size_t>(piece.variable)].name;
    std::vector<float> values;
    for (int64_t i = 0; i < piece.count; ++i) {
      values.push_back(ValueOf(of.salt, name, piece.slot, piece.first + i));
    }
    checksums.push_back(writer.Add(values.data(), values.size() * sizeof(float)));
  }
  writer.Finish();
  return checksums;
}

inline dtrain::Manifest ManifestOf(const SmallCheckpoint& of, const std::vector<dtrain::WrittenPart>& parts) {
  dtrain::Manifest manifest = BuildManifest(of.layout, of.slots, parts);
  manifest.step = of.step;
  manifest.saved_unix_ms = 1767225600000;  // 2026-01-01 00:00 UTC
  manifest.run_id = 0x1122334455667788;
  manifest.optimizer = of.slots.empty() ? "sgd" : "adam";
  manifest.mode = "sync";
  manifest.positions = of.positions;
  manifest.loss = 0.25;
  return manifest;
}

inline std::string SaveSmall(CheckpointDirectory* directory, const SmallCheckpoint& of) {
  const std::string temporary = directory->BeginSave(of.step);
  std::vector<dtrain::WrittenPart> parts;
  for (size_t ps = 0; ps < of.layout.ps.size(); ++ps) {
    parts.push_back(WriteShard(temporary, of, static_cast<int>(ps)));
  }
  directory->Seal(temporary, ManifestOf(of, parts), "train: {steps: 1}\n");
  return directory->Publish(temporary);
}

}  // namespace dtrain::testing
