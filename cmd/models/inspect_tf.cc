// dtrain inspect of a checkpoint of TensorFlow.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/error.h"
#include "base/json.h"
#include "base/names.h"
#include "base/printable.h"
#include "cmd/models/models.h"
#include "trainer/tf/tf_checkpoint.h"
#include "trainer/tf/tf_import.h"
#include "trainer/tf/tf_names.h"

namespace dtrain {
namespace {

// What is printed of a tensor.
struct Line {
  std::string name, shape, type, what, state;
};

std::string WhatOf(const TfCheckpoint& checkpoint, const TfTensor& tensor, const TfMeaning& meaning) {
  switch (meaning.role) {
    case TfRole::kSlot:
      if (meaning.slot.empty()) return "a slot of the optimizer's list";
      return meaning.of.empty() ? fmt::format("slot {} of the optimizer's list", Printable(meaning.slot))
                                : fmt::format("slot {} of {}", meaning.slot, Printable(meaning.of));
    case TfRole::kStep:
      return fmt::format("the step: {}", checkpoint.ReadInteger(tensor));
    case TfRole::kBookkeeping:
      return tensor.type == TfType::kString ? "texts, or the graph of objects" : "a counter or a rate";
    case TfRole::kTwin:
      return "another name of a variable";
    case TfRole::kWeights:
      break;
  }
  return "";
}

// Reads all of a tensor; what is wrong is its state.
std::string StateOf(const TfCheckpoint& checkpoint, const TfTensor& tensor) {
  if (!tensor.unreadable.empty()) return tensor.unreadable;
  try {
    checkpoint.Verify(tensor);
  } catch (const UserError& error) {
    return error.what();
  }
  return "good";
}

}  // namespace

void InspectTf(const TfPaths& paths, bool json) {
  const TfCheckpoint checkpoint(paths);
  const std::vector<TfMeaning> meanings = MeaningsOf(checkpoint);
  const char* const form = checkpoint.is_v1() ? "V1" : "V2";
  std::vector<Line> lines;
  int64_t bad = 0;
  for (size_t i = 0; i < meanings.size(); ++i) {
    const TfTensor& tensor = checkpoint.tensors()[i];
    Line& line = lines.emplace_back();
    line.name = Printable(tensor.name);
    line.shape = fmt::format("[{}]", fmt::join(tensor.shape, ", "));
    line.type = NameOf(tensor.type);
    line.state = StateOf(checkpoint, tensor);
    if (line.state == "good") line.what = WhatOf(checkpoint, tensor, meanings[i]);
    bad += line.state == "good" ? 0 : 1;
  }
  if (json) {
    Json list = Json::array();
    for (size_t i = 0; i < lines.size(); ++i) {
      const TfTensor& tensor = checkpoint.tensors()[i];
      list.push_back({{"name", lines[i].name},
                      {"shape", tensor.shape},
                      {"type", lines[i].type},
                      {"slices", tensor.is_sliced ? Json(tensor.pieces.size()) : Json(nullptr)},
                      {"slot", meanings[i].slot.empty() ? Json(nullptr) : Json(Printable(meanings[i].slot))},
                      {"of", meanings[i].of.empty() ? Json(nullptr) : Json(Printable(meanings[i].of))},
                      {"state", lines[i].state}});
    }
    std::optional<int64_t> step;
    try {
      step = StepOf(checkpoint, meanings);
    } catch (const UserError&) {
      // Its state says why.
    }
    const Json document = {{"path", paths.prefix},
                           {"format", fmt::format("TensorFlow {}", form)},
                           {"files", checkpoint.files()},
                           {"step", step ? Json(*step) : Json(nullptr)},
                           {"tensors", list}};
    fmt::print("{}\n", document.dump(2));
  } else {
    fmt::print("{}: a checkpoint of TensorFlow, {}, {} in {}{}\n", Printable(paths.prefix), form,
               Plural(static_cast<int64_t>(lines.size()), "tensor"), Plural(checkpoint.files(), "file"),
               paths.said_by.empty() ? "" : fmt::format("; {} names it", Printable(paths.said_by)));
    size_t widths[3] = {6, 5, 7};
    for (const Line& line : lines) {
      widths[0] = std::max(widths[0], line.name.size());
      widths[1] = std::max(widths[1], line.shape.size());
      widths[2] = std::max(widths[2], line.type.size());
    }
    const auto print = [&](const std::string& name, const std::string& shape, const std::string& type,
                           const std::string& slices, const std::string& what) {
      std::string text = fmt::format("  {:<{}}  {:<{}}  {:<{}}  {:>6}  {}", name, widths[0], shape, widths[1],
                                     type, widths[2], slices, what);
      text.erase(text.find_last_not_of(' ') + 1);
      fmt::print("{}\n", text);
    };
    print("tensor", "shape", "type", "slices", "");
    for (size_t i = 0; i < lines.size(); ++i) {
      const TfTensor& tensor = checkpoint.tensors()[i];
      print(lines[i].name, lines[i].shape, lines[i].type,
            tensor.is_sliced ? fmt::format("{}", tensor.pieces.size()) : "",
            lines[i].state == "good" ? lines[i].what : lines[i].state);
    }
  }
  if (bad == 0) return;
  throw UserError("{}: {} of {} cannot be read (see above).", paths.prefix, bad,
                  Plural(static_cast<int64_t>(lines.size()), "tensor"));
}

}  // namespace dtrain
