#include "gpu/cuda/fake/visible_devices.h"

#include <algorithm>
#include <cctype>
#include <numeric>
#include <sstream>
#include <string>

namespace dtrain::gpu::cuda {
namespace {

// -1: `word` is no number of a device.
int NumberOf(const std::string& word) {
  const auto is_digit = [](unsigned char c) { return std::isdigit(c) != 0; };
  if (word.empty() || word.size() > 4 || !std::all_of(word.begin(), word.end(), is_digit)) return -1;
  return std::stoi(word);
}

}  // namespace

std::vector<int> VisibleDevices(const char* setting, int count) {
  std::vector<int> visible;
  if (setting == nullptr) {
    visible.resize(static_cast<size_t>(count));
    std::iota(visible.begin(), visible.end(), 0);
    return visible;
  }
  std::istringstream words(setting);
  for (std::string word; std::getline(words, word, ',');) {
    const int number = NumberOf(word);
    if (number < 0 || number >= count) break;
    if (std::find(visible.begin(), visible.end(), number) != visible.end()) return {};
    visible.push_back(number);
  }
  return visible;
}

}  // namespace dtrain::gpu::cuda
