#include <fmt/ranges.h>

#include <map>

#include "base/error.h"
#include "trainer/checkpoint/checkpoint_reader.h"

namespace dtrain {
namespace {

struct Shapes {
  std::string here = "no such tensor";   // in the checkpoint
  std::string there = "no such tensor";  // in the model
};

std::string SlotsText(const std::vector<std::string>& slots) {
  return slots.empty() ? "no slots" : fmt::format("{}", fmt::join(slots, ", "));
}

}  // namespace

void CheckpointReader::CheckFits(const Layout& layout, const std::vector<std::string>& slots) const {
  std::map<std::string, Shapes> tensors;
  for (const StoredTensor& tensor : manifest_.tensors) {
    tensors[tensor.name].here = fmt::format("{} x {}", tensor.rows, tensor.cols);
  }
  for (const Variable& variable : layout.variables) {
    tensors[variable.name].there = fmt::format("{} x {}", variable.rows, variable.cols);
  }
  for (const auto& [name, shapes] : tensors) {
    if (shapes.here == shapes.there) continue;
    throw UserError(
        "{}: another model: {} is {} in the checkpoint and {} in this run. Use the file that it was written "
        "with "
        "({}/config.yaml), or another checkpoint.dir.",
        path_, name, shapes.here, shapes.there, path_);
  }
  if (manifest_.slots == slots) return;
  throw UserError(
      "{}: another optimizer: the checkpoint is of {} ({}), and train.optimizer of this run has {}. Use the "
      "file "
      "that it was written with ({}/config.yaml), or another checkpoint.dir.",
      path_, manifest_.optimizer, SlotsText(manifest_.slots), SlotsText(slots), path_);
}

}  // namespace dtrain
