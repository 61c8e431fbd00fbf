#include "trainer/checkpoint/check_meaning.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/error.h"
#include "trainer/checkpoint/shard_format.h"
#include "trainer/config/load.h"
#include "trainer/config/meaning.h"
#include "trainer/config/user_text.h"

namespace dtrain {
namespace {

[[noreturn]] void Refuse(const std::string& path, const std::string& what, const char* remedy) {
  throw UserError(
      "{}: another model: {}. {}, or begin anew: another checkpoint.dir, or checkpoint.resume: never.", path,
      what, remedy);
}

// `kind`: "feature", "class".
void CheckNames(const std::string& path, const char* kind, const std::vector<std::string>& saved,
                const std::vector<std::string>& now) {
  const auto [then, here] = std::mismatch(
      saved.begin(), saved.begin() + static_cast<int64_t>(std::min(saved.size(), now.size())), now.begin());
  if (here == now.end() || then == saved.end()) return;
  Refuse(path,
         fmt::format("{} {} is {} in the checkpoint and {} in data.train", kind, here - now.begin(),
                     Quoted(Shown(*then)), Quoted(Shown(*here))),
         "Give the data that it was trained with, in that order");
}

}  // namespace

void CheckKeys(const std::string& path, const Config& config) {
  LoadOptions options;
  options.cluster_optional = true;
  std::optional<std::string> other;
  try {
    other = OtherMeaning(LoadConfig(path + "/" + kConfigName, {}, options), config);
  } catch (const UserError&) {
    return;
  }
  if (other) Refuse(path, *other + ", as its weights were trained with", "Leave it as it was");
}

void CheckForm(const std::string& path, const InputForm& saved, const InputForm& form) {
  CheckNames(path, "feature", saved.features, form.features);
  const bool named = !saved.features.empty() || !form.features.empty();
  const bool known = saved.label_column >= 0 && form.label_column >= 0;
  if (!named && known && saved.label_column != form.label_column) {
    Refuse(path,
           fmt::format("the label is column {} in the checkpoint and column {} in data.train, from 0",
                       saved.label_column, form.label_column),
           "Give the data that it was trained with");
  }
  CheckNames(path, "class", saved.classes, form.classes);
  if (saved.classes.empty() == form.classes.empty()) return;
  Refuse(path,
         saved.classes.empty() ? "its classes are numbers, and names in data.train"
                               : "its classes have names, and are numbers in data.train",
         "Give the data that it was trained with");
}

void CheckMeaning(const std::string& path, const Manifest& manifest, const Config& config,
                  const InputForm& form) {
  CheckKeys(path, config);
  if (manifest.inputs) CheckForm(path, *manifest.inputs, form);
}

}  // namespace dtrain
