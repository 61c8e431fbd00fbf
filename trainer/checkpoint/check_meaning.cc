#include "trainer/checkpoint/check_meaning.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "trainer/checkpoint/shard_format.h"
#include "trainer/config/fields.h"
#include "trainer/config/load.h"
#include "trainer/config/user_text.h"

namespace dtrain {
namespace {

// `kind`: "feature" or "class".
void CheckNames(const std::string& path, const char* kind, const std::vector<std::string>& saved,
                const std::vector<std::string>& now, const MeaningWords& words) {
  const auto [then, here] = std::mismatch(
      saved.begin(), saved.begin() + static_cast<int64_t>(std::min(saved.size(), now.size())), now.begin());
  if (here == now.end() || then == saved.end()) return;
  RefuseMeaning(path,
                fmt::format("{} {} is {} in the {} and {} in data.train", kind, here - now.begin(),
                            Quoted(Shown(*then)), words.origin, Quoted(Shown(*here))),
                "Give the data that it was trained with, in that order", words);
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
  LoadOptions options;
  options.cluster_optional = true;
  Config saved;
  try {
    saved = LoadConfig(path + "/" + kConfigName, {}, options);
  } catch (const UserError&) {
    return;
  }
  CheckKeys(path, saved, config, words);
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
  CheckNames(path, "class", saved.classes, form.classes, words);
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
