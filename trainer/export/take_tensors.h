// TakeTensors: initial weights from a file of tensors with the model's names and shapes. It reports all that
// do not match. Thread: any.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "trainer/export/tensor_file.h"
#include "trainer/model/layout.h"

namespace dtrain {

struct TakeOptions {
  std::vector<std::string> maps;  // "theirs=ours", "=ours": zeros; others have our names
  bool transpose = false;         // matrices in the file are [outputs, inputs], as in PyTorch's Linear
};

struct TakenTensors {
  std::vector<float> values;        // the layout's flat vector
  std::vector<std::string> unused;  // the other tensors of the file
};

// Throws UserError with a line for each tensor of the model that is missing or has another shape.
TakenTensors TakeTensors(TensorFile* file, const std::string& path, const Layout& layout,
                         const TakeOptions& options);

// FoundTensors: which tensors TakeTensors() reads.
struct FoundTensors {
  static constexpr size_t kZeros = SIZE_MAX;  // a place of none
  std::vector<size_t> places;                 // in `tensors`, by variable
  std::vector<std::string> unused;
};

// Finds them, and reads nothing. Throws as TakeTensors() does.
FoundTensors FindTensors(const std::vector<FileTensor>& tensors, const std::string& path,
                         const Layout& layout, const TakeOptions& options);

}  // namespace dtrain
