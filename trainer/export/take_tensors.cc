#include "trainer/export/take_tensors.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "base/error.h"
#include "trainer/config/user_text.h"
#include "trainer/export/tensor_file.h"

namespace dtrain {
namespace {

std::string ShapeText(const Variable& variable) {
  return fmt::format("{} x {}", variable.rows, variable.cols);
}

class TensorTaker {
 public:
  TensorTaker(TensorFile* file, const std::string& path, const Layout& layout, const TakeOptions& options)
      : file_(*file), path_(path), layout_(layout), options_(options) {
    for (size_t i = 0; i < file_.tensors().size(); ++i) place_[file_.tensors()[i].name] = i;
    for (const std::string& map : options.maps) TakeMap(map);
  }

  TakenTensors Take() {
    std::vector<std::pair<const Variable*, size_t>> taken;
    for (const Variable& variable : layout_.variables) {
      if (const std::optional<size_t> index = Find(variable)) taken.emplace_back(&variable, *index);
    }
    if (!problems_.empty()) throw UserError(fmt::format("{}", fmt::join(problems_, "\n")));
    TakenTensors result;
    result.values.resize(static_cast<size_t>(layout_.size));
    for (const auto& [variable, index] : taken) {
      Read(*variable, index, result.values.data() + variable->offset);
      result.names.push_back(file_.tensors()[index].name);
      place_.erase(file_.tensors()[index].name);
    }
    for (const auto& unused : place_) result.unused.push_back(unused.first);
    result.unused.insert(result.unused.end(), file_.others().begin(), file_.others().end());
    return result;
  }

 private:
  std::vector<std::string> FileNames() const {
    std::vector<std::string> names;
    for (const FileTensor& tensor : file_.tensors()) names.push_back(tensor.name);
    return names;
  }

  std::vector<std::string> ModelNames() const {
    std::vector<std::string> names;
    for (const Variable& variable : layout_.variables) names.push_back(variable.name);
    return names;
  }

  static std::string SuggestName(const std::string& name, const std::vector<std::string>& names) {
    const std::string closest = ClosestName(name, names);
    return closest.empty() ? "" : fmt::format(" Did you mean {}?", Shown(closest));
  }

  static std::string List(const std::vector<std::string>& names) {
    std::vector<std::string> shown;
    for (const std::string& name : names) {
      if (shown.size() < 20) shown.push_back(Shown(name));
    }
    if (names.size() > shown.size()) shown.push_back(fmt::format("{} more", names.size() - shown.size()));
    return ListText(shown, "and");
  }

  void TakeMap(const std::string& map) {
    const size_t equals = map.rfind('=');
    if (equals == std::string::npos || equals == 0 || equals + 1 == map.size()) {
      problems_.push_back(
          fmt::format("--map {}: must be THEIRS=OURS. Try --map fc1.weight=weights/W1.", map));
      return;
    }
    const std::string theirs = map.substr(0, equals), ours = map.substr(equals + 1);
    if (place_.count(theirs) == 0) {
      problems_.push_back(fmt::format("--map {}: {} has no tensor {}; it has {}.{}", map, path_,
                                      Shown(theirs), List(FileNames()), SuggestName(theirs, FileNames())));
    }
    const std::vector<std::string> names = ModelNames();
    if (std::count(names.begin(), names.end(), ours) == 0) {
      problems_.push_back(fmt::format("--map {}: the model has no tensor {}; it has {}.{}", map, Shown(ours),
                                      List(names), SuggestName(ours, names)));
    }
    const auto [mapped, is_new] = theirs_.emplace(ours, theirs);
    if (is_new) return;
    problems_.push_back(fmt::format("--map {}: {} is to be {} already. Leave out one of the two.", map,
                                    Shown(ours), Shown(mapped->second)));
  }

  std::optional<size_t> Find(const Variable& variable) {
    const auto mapped = theirs_.find(variable.name);
    const std::string& name = mapped == theirs_.end() ? variable.name : mapped->second;
    const auto place = place_.find(name);
    if (place == place_.end()) {
      if (mapped == theirs_.end()) {
        problems_.push_back(
            fmt::format("{}: no tensor {} ({} in the model); it has {}{}.{} Rename it: --map THEIRS={}.",
                        path_, variable.name, ShapeText(variable), List(FileNames()), OfShape(variable),
                        SuggestName(name, FileNames()), variable.name));
      }
      return std::nullopt;
    }
    const FileTensor& tensor = file_.tensors()[place->second];
    if (!tensor.unreadable.empty()) {
      problems_.push_back(fmt::format("{}: {}: {}", path_, Shown(tensor.name), tensor.unreadable));
      return std::nullopt;
    }
    return Fits(variable, tensor) ? place->second : std::optional<size_t>();
  }

  bool HasShape(const Variable& variable, const FileTensor& tensor, bool transpose) const {
    return Squeezed(tensor.shape) ==
           (transpose ? Squeezed({variable.cols, variable.rows}) : Squeezed({variable.rows, variable.cols}));
  }

  std::string OfShape(const Variable& variable) const {
    for (const bool other : {false, true}) {
      std::vector<std::string> names;
      for (const FileTensor& tensor : file_.tensors()) {
        if (!HasShape(variable, tensor, options_.transpose != other)) continue;
        names.push_back(tensor.unreadable.empty() ? tensor.name : tensor.name + ", but " + tensor.unreadable);
      }
      const char* const how = !other               ? ""
                              : options_.transpose ? ", without --transpose,"
                                                   : ", with --transpose,";
      if (!names.empty()) return fmt::format("; of this shape{} {}", how, List(names));
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

  void Read(const Variable& variable, size_t index, float* out) {
    if (!options_.transpose || variable.rows == 1 || variable.cols == 1) return file_.Read(index, out);
    std::vector<float> turned(static_cast<size_t>(variable.size()));
    file_.Read(index, turned.data());
    Transpose(variable.cols, variable.rows, turned.data(), out);
  }

  TensorFile& file_;
  const std::string& path_;
  const Layout& layout_;
  const TakeOptions& options_;
  std::map<std::string, size_t> place_;        // index of each tensor in the file
  std::map<std::string, std::string> theirs_;  // the file's name by our name
  std::vector<std::string> problems_;
};

}  // namespace

TakenTensors TakeTensors(TensorFile* file, const std::string& path, const Layout& layout,
                         const TakeOptions& options) {
  return TensorTaker(file, path, layout, options).Take();
}

}  // namespace dtrain
