// ModelFigures: what the newest checkpoint of a run tells of its model: where its parameters lay, its largest
// weights, as pictures if its inputs are pixels, and its evaluation if that is quickly done. Thread: one.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cmd/common/run_files.h"
#include "cmd/models/evaluation.h"
#include "cmd/models/largest_weights.h"

namespace dtrain {

struct ModelFigures {
  // One ps and what it holds.
  struct Place {
    int64_t values = 0;
    std::vector<std::string> parts;  // "weights/W1 [0:784)"
  };
  struct Picture {
    std::string name;
    std::string uri;  // data:image/png;base64,...
  };

  std::string checkpoint;  // its path; empty: there is none
  int64_t step = 0;
  std::vector<Place> placement;  // by ps; empty: not known
  std::vector<Picture> pictures;
  std::string pictures_of;  // "the first layer"
  WeightTable weights;  // the largest ones, where names need no look at the rows; else without rows
  std::optional<EvaluationOutcome> evaluation;
  std::vector<std::string> notes;  // sentences on what is left out, and why
};

ModelFigures LookAtModel(const RunFiles& run);

// Returns the URI of a picture of `width` x `height` weights: what is positive is blue, what is negative red,
// and 0 is transparent.
std::string PictureUri(const std::vector<float>& weights, int width, int height);

}  // namespace dtrain
