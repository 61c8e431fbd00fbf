// What the weights of a model mean beside the shapes of its tensors. Thread: any; free functions.
#pragma once

#include <optional>
#include <string>

#include "trainer/config/config.h"

namespace dtrain {

// The first key of which `config` has another value than `saved`, the config of the run that has trained the
// weights, although they are of no use with another: "model.activation = tanh; must be relu". Unset: none.
std::optional<std::string> OtherMeaning(const Config& saved, const Config& config);

// Whether the features of data.train are bytes, 0 to 255, which the model takes as 0 to 1: those of images.
bool TakesPixels(const Config& config);

}  // namespace dtrain
