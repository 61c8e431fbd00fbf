#include "trainer/checkpoint/check_meaning.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/error.h"
#include "trainer/batch/class_names.h"
#include "trainer/checkpoint/checkpoint_directory.h"
#include "trainer/checkpoint/checkpoint_reader.h"
#include "trainer/checkpoint/shard_format.h"
#include "trainer/config/config.h"
#include "trainer/config/dump.h"
#include "trainer/config/fields.h"
#include "trainer/config/load.h"
#include "trainer/config/user_text.h"

namespace dtrain {
namespace {

// `kind`: "feature" or "class".
void CheckNames(const std::string& path, const char* kind, const std::vector<std::string>& saved,
                const std::vector<std::string>& now, const MeaningWords& words) {
  if (saved.empty() || now.empty() || saved == now) return;
  const auto [then, here] = std::mismatch(saved.begin(), saved.end(), now.begin(), now.end());
  const auto name = [](const auto& place, const std::vector<std::string>& names) {
    return place == names.end() ? "missing" : Quoted(Shown(*place));
  };
  RefuseMeaning(path,
                fmt::format("{} {} is {} in the {} and {} in data.train", kind, here - now.begin(),
                            name(then, saved), words.origin, name(here, now)),
                "Give the data that it was trained with, in that order", words);
}

// Unset: this dtrain cannot read it.
std::optional<Config> SavedConfig(const std::string& path) {
  try {
    return LoadConfig(path + "/" + kConfigName, {}, LoadOptions::WithoutCluster());
  } catch (const UserError&) {
    return std::nullopt;
  }
}

// Where a run writes, and what it goes on from, is new at each start.
bool IsOfThisStart(const std::string& key) {
  return FindField(key)->type == FieldType::kOutputPath || key == "checkpoint.resume" ||
         key.rfind("run.", 0) == 0;
}

std::string ValueIn(const std::string& key, const Json& value) {
  if (key == "cluster.ps" || key == "cluster.worker") return fmt::format("{} of them", value.size());
  return Shown(value.is_string() ? value.get<std::string>() : value.dump());
}

std::string NewestIn(const std::string& directory) {
  if (IsOneCheckpoint(directory)) return directory;
  const CheckpointDirectory checkpoints(directory);
  const std::vector<ListedCheckpoint> listed = checkpoints.List();
  return listed.empty() ? "" : checkpoints.PathOf(listed.front().name);
}

// The checkpoint that a run would take if all here are whole; empty: none.
std::string CheckpointToTake(const CheckpointConfig& config) {
  const bool is_auto = config.resume == "auto";
  if (!is_auto && config.resume != "never") return NewestIn(CheckpointsOf(config.resume));
  const std::string own = is_auto && !config.dir.empty() ? NewestIn(config.dir) : "";
  if (!own.empty() || config.start_from.empty()) return own;
  std::vector<std::string> unreadable;
  const std::vector<std::string> choices = ChoicesOf(CheckpointsOf(config.start_from), &unreadable);
  return choices.empty() ? "" : choices.front();
}

}  // namespace

void RefuseMeaning(const std::string& path, const std::string& what, const char* remedy,
                   const MeaningWords& words) {
  throw UserError("{}: another model: {}. {}, or {}.", path, what, remedy, words.otherwise);
}

void CheckKeys(const std::string& path, const Config& saved, const Config& config,
               const MeaningWords& words) {
  const std::optional<std::string> other = OtherMeaning(saved, config);
  if (other) RefuseMeaning(path, *other + ", as its weights were trained with", "Leave it as it was", words);
}

void CheckKeys(const std::string& path, const Config& config, const MeaningWords& words) {
  if (const std::optional<Config> saved = SavedConfig(path)) CheckKeys(path, *saved, config, words);
}

std::optional<SavedShape> FindSavedShape(const Config& config) {
  try {
    const std::string path = CheckpointToTake(config.checkpoint);
    if (path.empty()) return std::nullopt;
    const std::optional<Config> saved = SavedConfig(path);
    if (!saved || OtherMeaning(*saved, config)) return std::nullopt;
    return SavedShape{ReadManifest(path).inputs.value_or(InputForm()), saved->model.inputs,
                      saved->model.outputs};
  } catch (const UserError&) {  // told when the run takes it
    return std::nullopt;
  }
}

std::vector<std::string> ChangedKeys(const std::string& path, const Config& config) {
  const std::optional<Config> saved = SavedConfig(path);
  if (!saved) return {};
  Json then = FlatConfig(*saved), now = FlatConfig(config);
  // The keys of a part's optimizer are there where they are given.
  for (auto [all, some] : {std::pair(&now, &then), std::pair(&then, &now)}) {
    for (const auto& [key, value] : some->items()) {
      if (all->Find(key) == nullptr) (*all)[key] = nullptr;
    }
  }
  std::vector<std::array<std::string, 3>> rows = {{"key", "in the checkpoint", "now"}};
  for (const auto& [key, value] : now.items()) {
    const std::string before = ValueIn(key, then.at(key)), here = ValueIn(key, value);
    // What auto takes is not known here.
    const auto is_open = [](const std::string& shown) { return shown == "auto" || shown == "null"; };
    const bool unknown = key.rfind("device.", 0) == 0 && (is_open(before) || is_open(here));
    if (before != here && !unknown && !IsOfThisStart(key)) rows.push_back({key, before, here});
  }
  std::array<size_t, 2> widths = {};
  for (const auto& row : rows) {
    for (size_t i = 0; i < widths.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::vector<std::string> lines;
  for (const auto& row : rows) {
    lines.push_back(fmt::format("  {:<{}}  {:<{}}  {}", row[0], widths[0], row[1], widths[1], row[2]));
  }
  return lines.size() > 1 ? lines : std::vector<std::string>();
}

void CheckForm(const std::string& path, const InputForm& saved, const InputForm& form,
               const MeaningWords& words) {
  // How columns become features is not compared: the run takes it from the checkpoint.
  std::vector<std::string> columns = ColumnNames(saved), here = ColumnNames(form);
  if (HasHashedColumns(saved)) {
    std::sort(columns.begin(), columns.end());
    std::sort(here.begin(), here.end());
  }
  CheckNames(path, "feature", columns, here, words);
  const bool named = !columns.empty() || !here.empty();
  const bool known = saved.label_column >= 0 && form.label_column >= 0;
  if (!named && known && saved.label_column != form.label_column) {
    RefuseMeaning(path,
                  fmt::format("the label is column {} in the {} and column {} in data.train, from 0",
                              saved.label_column, words.origin, form.label_column),
                  "Give the data that it was trained with", words);
  }
  // Rows are read with the checkpoint's order of classes.
  const auto is_there = [&](const std::string& name) { return FindClass(saved.classes, name).has_value(); };
  const bool all_there = std::all_of(form.classes.begin(), form.classes.end(), is_there);
  if (!all_there) CheckNames(path, "class", saved.classes, form.classes, words);
  if (saved.classes.empty() == form.classes.empty()) return;
  // Labels -1 and 1 were 0 and 1 in checkpoints of older versions.
  if (saved.classes == SignedClasses() || form.classes == SignedClasses()) return;
  RefuseMeaning(path,
                saved.classes.empty() ? "its classes are numbers, and names in data.train"
                                      : "its classes have names, and are numbers in data.train",
                "Give the data that it was trained with", words);
}

void CheckMeaning(const std::string& path, const Manifest& manifest, const Config& config,
                  const InputForm& form, const MeaningWords& words) {
  CheckKeys(path, config, words);
  if (manifest.inputs) CheckForm(path, *manifest.inputs, form, words);
}

}  // namespace dtrain
