#include "trainer/export/take_tensors.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "base/error.h"
#include "trainer/config/user_text.h"
#include "trainer/export/tensor_file.h"
#include "trainer/export/tensor_maps.h"

namespace dtrain {
namespace {

std::string ShapeText(const Variable& variable) {
  return fmt::format("{} x {}", variable.rows, variable.cols);
}

class TensorFinder {
 public:
  TensorFinder(const std::vector<FileTensor>& tensors, const std::string& path, const Layout& layout,
               const TakeOptions& options)
      : tensors_(tensors), path_(path), layout_(layout), options_(options) {
    for (size_t i = 0; i < tensors.size(); ++i) place_[tensors[i].name] = i;
    for (const std::string& map : options.maps) TakeMap(map);
  }

  FoundTensors Find() {
    FoundTensors found;
    for (const Variable& variable : layout_.variables) {
      if (const std::optional<size_t> place = Find(variable)) found.places.push_back(*place);
    }
    if (!problems_.empty()) throw UserError(fmt::format("{}", fmt::join(problems_, "\n")));
    for (const size_t place : found.places) {
      if (place != FoundTensors::kZeros) place_.erase(tensors_[place].name);
    }
    for (const auto& unused : place_) found.unused.push_back(unused.first);
    return found;
  }

 private:
  std::vector<std::string> FileNames() const {
    std::vector<std::string> names;
    for (const FileTensor& tensor : tensors_) names.push_back(tensor.name);
    return names;
  }

  std::vector<std::string> ModelNames() const {
    std::vector<std::string> names;
    for (const Variable& variable : layout_.variables) names.push_back(variable.name);
    return names;
  }

  void TakeMap(const std::string& map) {
    const size_t equals = map.rfind('=');
    if (equals == std::string::npos || equals + 1 == map.size()) {
      problems_.push_back(
          fmt::format("--map {}: must be THEIRS=OURS. Try --map fc1.weight=weights/W1.", map));
      return;
    }
    const std::string theirs = map.substr(0, equals), ours = map.substr(equals + 1);
    if (!theirs.empty() && place_.count(theirs) == 0) {
      problems_.push_back(fmt::format("--map {}: {} has no tensor {}; it has {}.{}", map, path_,
                                      Shown(theirs), ListShown(FileNames()),
                                      NearestName(theirs, FileNames())));
    }
    const std::vector<std::string> names = ModelNames();
    if (std::count(names.begin(), names.end(), ours) == 0) {
      problems_.push_back(fmt::format("--map {}: the model has no tensor {}; it has {}.{}", map, Shown(ours),
                                      ListShown(names), NearestName(ours, names)));
    }
    const auto [mapped, is_new] = theirs_.emplace(ours, theirs);
    if (is_new) return;
    problems_.push_back(fmt::format("--map {}: {} is to be {} already. Leave out one of the two.", map,
                                    Shown(ours), mapped->second.empty() ? "zeros" : Shown(mapped->second)));
  }

  std::optional<size_t> Find(const Variable& variable) {
    const auto mapped = theirs_.find(variable.name);
    if (mapped != theirs_.end() && mapped->second.empty()) return FoundTensors::kZeros;
    const std::string& name = mapped == theirs_.end() ? variable.name : mapped->second;
    const auto place = place_.find(name);
    if (place == place_.end()) {
      if (mapped == theirs_.end()) {
        problems_.push_back(
            fmt::format("{}: no tensor {} ({} in the model); it has {}{}.{} Rename it: --map THEIRS={}.{}",
                        path_, variable.name, ShapeText(variable), ListShown(FileNames()), OfShape(variable),
                        NearestName(name, FileNames()), variable.name, ZerosText(variable)));
      }
      return std::nullopt;
    }
    const FileTensor& tensor = tensors_[place->second];
    if (!tensor.unreadable.empty()) {
      problems_.push_back(fmt::format("{}: {}: {}", path_, Shown(tensor.name), tensor.unreadable));
      return std::nullopt;
    }
    return Fits(variable, tensor) ? place->second : std::optional<size_t>();
  }

  // What the model there may have left out.
  static std::string ZerosText(const Variable& variable) {
    const bool may_be = variable.bias || variable.name.back() == ']';
    return may_be ? fmt::format(" If there is none, it is zeros: --map ={}.", variable.name) : "";
  }

  bool HasShape(const Variable& variable, const FileTensor& tensor, bool transpose) const {
    return Squeezed(tensor.shape) ==
           (transpose ? Squeezed({variable.cols, variable.rows}) : Squeezed({variable.rows, variable.cols}));
  }

  std::string OfShape(const Variable& variable) const {
    for (const bool other : {false, true}) {
      std::vector<std::string> names;
      for (const FileTensor& tensor : tensors_) {
        if (!HasShape(variable, tensor, options_.transpose != other)) continue;
        names.push_back(tensor.unreadable.empty() ? tensor.name : tensor.name + ", but " + tensor.unreadable);
      }
      const char* const how = !other               ? ""
                              : options_.transpose ? ", without --transpose,"
                                                   : ", with --transpose,";
      if (!names.empty()) return fmt::format("; of this shape{} {}", how, ListShown(names));
    }
    return "";
  }

  bool Fits(const Variable& variable, const FileTensor& tensor) {
    if (HasShape(variable, tensor, options_.transpose)) return true;
    const bool other = HasShape(variable, tensor, !options_.transpose);
    problems_.push_back(
        fmt::format("{}: {} is {} in the file and {} in the model.{}", path_, Shown(tensor.name),
                    tensor.ShapeText(), ShapeText(variable),
                    !other ? " Set model.inputs, model.hidden and model.outputs as the file has them."
                    : options_.transpose ? " Leave out --transpose."
                                         : " Is it [outputs, inputs], as PyTorch has it? Add --transpose."));
    return false;
  }

  const std::vector<FileTensor>& tensors_;
  const std::string& path_;
  const Layout& layout_;
  const TakeOptions& options_;
  std::map<std::string, size_t> place_;        // index of each tensor in the file
  std::map<std::string, std::string> theirs_;  // the file's name by our name
  std::vector<std::string> problems_;
};

}  // namespace

FoundTensors FindTensors(const std::vector<FileTensor>& tensors, const std::string& path,
                         const Layout& layout, const TakeOptions& options) {
  return TensorFinder(tensors, path, layout, options).Find();
}

TakenTensors TakeTensors(TensorFile* file, const std::string& path, const Layout& layout,
                         const TakeOptions& options) {
  FoundTensors found = FindTensors(file->tensors(), path, layout, options);
  TakenTensors result;
  result.values.resize(static_cast<size_t>(layout.size));
  for (size_t i = 0; i < found.places.size(); ++i) {
    if (found.places[i] == FoundTensors::kZeros) continue;
    const Variable& variable = layout.variables[i];
    float* const out = result.values.data() + variable.offset;
    file->Read(found.places[i], out);
    if (!options.transpose || variable.rows == 1 || variable.cols == 1) continue;
    const std::vector<float> turned(out, out + variable.size());
    Transpose(variable.cols, variable.rows, turned.data(), out);
  }
  result.unused = std::move(found.unused);
  result.unused.insert(result.unused.end(), file->others().begin(), file->others().end());
  return result;
}

}  // namespace dtrain
