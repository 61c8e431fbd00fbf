// Whether the weights of a checkpoint mean the same to a run that goes on with them. Tensors of the right
// shapes (CheckpointReader::CheckFits) may be of other columns or classes. Thread: any; free functions.
#pragma once

#include <string>

#include "trainer/checkpoint/manifest.h"
#include "trainer/config/config.h"
#include "trainer/data/files/input_form.h"

namespace dtrain {

// What an error says of the weights' origin and of the way that is always open.
struct MeaningWords {
  const char* origin = "checkpoint";
  const char* otherwise = "begin anew: another checkpoint.dir, or checkpoint.resume: never";
};

// UserError: `path`: another model: `what`. `remedy`, or ...
[[noreturn]] void RefuseMeaning(const std::string& path, const std::string& what, const char* remedy,
                                const MeaningWords& words = {});

// UserError naming the first key that differs from `saved`, the config of the run that has trained them.
void CheckKeys(const std::string& path, const Config& saved, const Config& config,
               const MeaningWords& words = {});
// The same of the config that was saved with the checkpoint at `path`. One that this dtrain cannot read, of
// another version, is not compared.
void CheckKeys(const std::string& path, const Config& config);
// UserError naming the first feature or class that differs. `saved`: of the weights; `form`: of the run's
// own data. How features are scaled is not compared: what was saved counts.
void CheckForm(const std::string& path, const InputForm& saved, const InputForm& form,
               const MeaningWords& words = {});
// Both, as far as `manifest`, the checkpoint's, tells.
void CheckMeaning(const std::string& path, const Manifest& manifest, const Config& config,
                  const InputForm& form);

}  // namespace dtrain
