// Starting weights from a file of tensors: whose names and shapes are the model's, said of all that are not.
// Thread: any.
#pragma once

#include <string>
#include <vector>

#include "trainer/export/tensor_file.h"
#include "trainer/model/layout.h"

namespace dtrain {

struct TakeOptions {
  std::vector<std::string> maps;  // "theirs=ours"; other names are ours
  bool transpose = false;         // matrices of the file are [outputs, inputs], as those of PyTorch's Linear
};

struct TakenTensors {
  std::vector<float> values;        // the flat vector of the layout
  std::vector<std::string> unused;  // what else is in the file
};

// UserError with a line for each tensor of the model that is missing or has another shape.
TakenTensors TakeTensors(TensorFile* file, const std::string& path, const Layout& layout,
                         const TakeOptions& options);

}  // namespace dtrain
