// The largest weights of a model by the names of their features. Owner: the command. Thread: one.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cmd/common/arguments.h"
#include "cmd/common/report.h"
#include "trainer/batch/input_form.h"
#include "trainer/checkpoint/checkpoint_reader.h"
#include "trainer/config/config.h"
#include "trainer/model/layout.h"

namespace dtrain {

// Returns the name of a feature that needs no text: of a column "age" or "plan=pro", of libsvm its index. A
// feature that was hashed is "hash 123".
std::string FeatureName(const Config& config, const InputForm& form, uint64_t feature);
// Whether features are hashed, so that only rows tell their texts.
bool HasTexts(const Config& config);

struct LargeWeight {
  uint64_t feature = 0;
  int64_t output = 0;
  double weight = 0;  // of a linear part; of an mlp the norm of those from the feature to the first layer
  double unit = 0;    // what one unit of the feature does, as it is in the rows: data.scale is undone
  double norm = 0;    // of the feature's factors or embedding
};

struct LargestWeights {
  std::vector<LargeWeight> weights;  // by size, the largest first; none that is 0
  std::vector<double> bias;          // by output; empty of an mlp
  std::vector<double> at_zero;       // the outputs of a row whose features are all 0 before data.scale
};

// Returns up to `count` of the weights of a model with this layout. Reads the checkpoint once, a part at a
// time. Rows that a table does not have in it are as they began, and are not looked at.
LargestWeights FindLargestWeights(const Config& config, const Layout& layout, const InputForm& form,
                                  CheckpointReader* checkpoint, int64_t count);

// A row for each weight and each bias: its name, and figures as texts.
struct WeightTable {
  std::vector<std::string> heading;
  std::vector<std::vector<std::string>> rows;
};
// `names`: of the features of `found.weights`.
WeightTable TableOf(const Config& config, const InputForm& form, const LargestWeights& found,
                    const std::vector<std::string>& names);

// dtrain inspect --weights. Throws UserError as the commands do.
int InspectWeights(const InspectArguments& arguments, const ErrorLines& errors);

}  // namespace dtrain
