#include "trainer/config/suggest.h"

#include <fmt/format.h>

#include <algorithm>

#include "trainer/config/fields.h"
#include "trainer/config/user_text.h"

namespace dtrain {
namespace {

constexpr size_t kMaxElsewhere = 2;  // more keys of one name say nothing

// "optimizer" and "train.optimizer.kind" of every key "train.optimizer.kind": keys and sections.
std::vector<std::string> AllNames() {
  std::vector<std::string> names;
  for (const Field& field : Fields()) {
    for (size_t dot = field.key.find('.'); dot != std::string::npos; dot = field.key.find('.', dot + 1)) {
      names.push_back(field.key.substr(0, dot));
    }
    names.push_back(field.key);
  }
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

std::string LastPart(const std::string& key) { return key.substr(key.rfind('.') + 1); }

// Full names whose last part is `name`, but for `slips`.
std::vector<std::string> NamesElsewhere(const std::string& name, int slips) {
  std::vector<std::string> found;
  for (const std::string& full : AllNames()) {
    if (EditDistance(name, LastPart(full)) <= slips) found.push_back(full);
  }
  return found;
}

}  // namespace

Meant DidYouMean(const std::string& section, const std::string& written) {
  if (written.size() > kMaxNameBytes) return {};
  const std::string name = LowerCase(written);
  const std::string here = ClosestName(name, NamesIn(section));
  if (!here.empty()) return {{JoinKey(section, here)}, fmt::format("did you mean \"{}\"?", here)};
  if (FindField(name) != nullptr) {
    const size_t dot = name.rfind('.');
    return {{name},
            fmt::format("did you mean \"{}\" in the map \"{}\"?", name.substr(dot + 1), name.substr(0, dot))};
  }
  std::vector<std::string> elsewhere = NamesElsewhere(name, 0);
  if (elsewhere.empty() && name.size() >= 6) elsewhere = NamesElsewhere(name, 1);
  if (elsewhere.empty() || elsewhere.size() > kMaxElsewhere) return {};
  std::vector<std::string> quoted;
  for (const std::string& full : elsewhere) quoted.push_back("\"" + full + "\"");
  return {elsewhere, fmt::format("did you mean {}?", ListText(quoted, "or"))};
}

}  // namespace dtrain
