// Config as text: the effective YAML of --dump-config, the run-scope settings that joining tasks compare, and
// the documentation of all keys.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/json.h"
#include "trainer/config/choices.h"

namespace dtrain {

// All keys, nested; paths absolute. Loaded again it gives the same Config and the same text.
std::string DumpConfig(const Config& config);

// The config without the values of the environment in launch.hosts, which may be secret: for all that is kept
// or shown. The names of the variables stay.
Config WithoutSecrets(Config config);

// Key and canonical value text of every run-scope key, in the table's order. Take them before
// model.inputs and model.outputs are filled in from the data: not every task can do that.
using Settings = std::vector<std::pair<std::string, std::string>>;
Settings RunSettings(const Config& config);

// Every key of WithoutSecrets() with its value in effect, by its name in full: {"train.batch_size": 100,
// ...}; those of a part's optimizer (train.optimizer.wide) where they are given.
Json FlatConfig(const Config& config);

// XXH3-64 over key, a zero byte, value and a zero byte of each setting, in their order. Two tasks whose
// hashes are equal need not compare the lists.
uint64_t SettingsHash(const Settings& settings);

// The hash of the config's RunSettings(), as 16 hex digits: two runs with one digest had the same job.
std::string ConfigDigest(const Config& config);

struct SettingDifference {
  std::string key;
  std::string ours;  // kMissingSetting where a side has no such key: another version of the program
  std::string theirs;
};
constexpr const char* kMissingSetting = "(no such key)";

// The first key, in our order, that differs; then those that only they have. `theirs` comes from a peer: any
// content is fine.
std::optional<SettingDifference> FirstDifference(const Settings& ours, const Settings& theirs);

// docs/config.md, in Markdown.
std::string ConfigReference();

}  // namespace dtrain
