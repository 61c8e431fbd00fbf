// Checks whether the weights of a checkpoint mean the same to a run that goes on with them: tensors of the
// right shapes (CheckpointReader::CheckFits) may still belong to other columns or classes.
// Thread: any; free functions.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "trainer/batch/input_form.h"
#include "trainer/checkpoint/manifest.h"
#include "trainer/config/choices.h"

namespace dtrain {

// An error's words for the origin of the weights, and for the remedy that always works.
struct MeaningWords {
  const char* origin = "checkpoint";
  const char* otherwise = "begin anew: another checkpoint.dir, or checkpoint.resume: never";
};
// Those for checkpoint.start_from.
constexpr MeaningWords kStartWords{"checkpoint", "begin with initial values: without checkpoint.start_from"};

// Throws the UserError "`path`: another model: `what`", with `remedy` or the general one of `words`.
[[noreturn]] void RefuseMeaning(const std::string& path, const std::string& what, const char* remedy,
                                const MeaningWords& words = {});

// Throws UserError with the first key that differs from `saved`, the config that the weights were trained
// with.
void CheckKeys(const std::string& path, const Config& saved, const Config& config,
               const MeaningWords& words = {});
// The same for the config saved in the checkpoint at `path`; does nothing when this dtrain cannot read it, as
// it is another version's.
void CheckKeys(const std::string& path, const Config& config, const MeaningWords& words = {});
// Throws UserError with the first feature or class that differs. `saved`: of the weights; `form`: of the
// run's data. Does not compare the scale of the features: the saved one counts.
void CheckForm(const std::string& path, const InputForm& saved, const InputForm& form,
               const MeaningWords& words = {});
// Both checks, as far as `manifest`, that of the checkpoint, allows.
void CheckMeaning(const std::string& path, const Manifest& manifest, const Config& config,
                  const InputForm& form, const MeaningWords& words = {});

// SavedShape: what the rows of a model are, by the checkpoint that a run goes on from or begins with. Rows of
// now are read by it: a category that came or went since makes no other model.
struct SavedShape {
  InputForm form;  // without columns: the checkpoint does not say, or does not have them
  std::optional<int64_t> inputs;
  std::optional<int64_t> outputs;
};
// Returns that of the checkpoint that a run with this config would take, as this machine sees it. Reads its
// manifest and config alone; whether it is whole and fits is checked by who takes it. Unset: there is none,
// or it is of another model.
std::optional<SavedShape> FindSavedShape(const Config& config);

// The keys that have other values now than in the config saved in the checkpoint at `path`, as lines in
// columns under a line of titles: key, value there, value now. Leaves out where a run writes; of cluster.ps
// and cluster.worker the numbers count. Empty where there are none, or where this dtrain cannot read that
// config.
std::vector<std::string> ChangedKeys(const std::string& path, const Config& config);

}  // namespace dtrain
