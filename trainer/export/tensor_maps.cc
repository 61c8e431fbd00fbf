#include "trainer/export/tensor_maps.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <map>
#include <optional>
#include <utility>

#include "base/error.h"
#include "trainer/config/user_text.h"
#include "trainer/config/yaml.h"

namespace dtrain {
namespace {

struct Map {
  std::string text;  // as the user wrote it
  std::string theirs, ours;
  bool is_pattern() const { return ours.find('*') != ours.npos; }
};

// Splits "theirs=ours". A map that is none has no `ours`, and goes through as it is.
Map Split(const std::string& text) {
  const size_t equals = text.rfind('=');
  if (equals == text.npos) return {text, text, ""};
  return {text, text.substr(0, equals), text.substr(equals + 1)};
}

// The names that fit a pattern with one *, by the text that stands in its place.
std::map<std::string, std::string> Fitting(const std::string& pattern, const std::vector<std::string>& names,
                                           const std::vector<std::string>& taken) {
  const size_t star = pattern.find('*'), around = pattern.size() - 1;
  std::map<std::string, std::string> fitting;
  for (const std::string& name : names) {
    const bool fits = name.size() >= around && name.compare(0, star, pattern, 0, star) == 0 &&
                      name.compare(name.size() - (around - star), around - star, pattern, star + 1) == 0;
    if (fits && std::count(taken.begin(), taken.end(), name) == 0)
      fitting.emplace(name.substr(star, name.size() - around), name);
  }
  return fitting;
}

// Returns the number that a text is, with "_" in front or not; nothing is 0, as the first of dense, dense_1.
std::optional<int64_t> NumberIn(std::string text) {
  if (!text.empty() && text[0] == '_') text.erase(0, 1);
  if (text.size() > 9 || text.find_first_not_of("0123456789") != text.npos) return std::nullopt;
  return text.empty() ? 0 : std::stoll(text);
}

// Returns the names in the order of their numbers; unset: some have none, or two have the same.
std::optional<std::vector<std::string>> ByNumber(const std::map<std::string, std::string>& names) {
  std::map<int64_t, std::string> ordered;
  for (const auto& [text, name] : names) {
    const std::optional<int64_t> number = NumberIn(text);
    if (!number || !ordered.emplace(*number, name).second) return std::nullopt;
  }
  std::vector<std::string> all;
  for (auto& [number, name] : ordered) all.push_back(std::move(name));
  return all;
}

void CheckPattern(const Map& map) {
  if (std::count(map.theirs.begin(), map.theirs.end(), '*') == 1 &&
      std::count(map.ours.begin(), map.ours.end(), '*') == 1)
    return;
  throw UserError("--map {}: must have one * on both sides, or none. Try --map 'dense_*/kernel=weights/W*'.",
                  map.text);
}

std::string NamesOf(const std::map<std::string, std::string>& names) {
  std::vector<std::string> all;
  for (const auto& each : names) all.push_back(each.second);
  return ListShown(all);
}

// Returns "theirs=ours" for all that one pattern means.
std::vector<std::string> Pairs(const Map& map, const std::string& path,
                               const std::map<std::string, std::string>& theirs,
                               const std::map<std::string, std::string>& ours) {
  std::vector<std::string> pairs;
  for (const auto& [text, name] : theirs) {
    if (const auto found = ours.find(text); found != ours.end()) pairs.push_back(name + "=" + found->second);
  }
  if (pairs.size() == theirs.size()) return pairs;
  const auto their_order = ByNumber(theirs), our_order = ByNumber(ours);
  if (!their_order || !our_order) {
    if (!pairs.empty()) return pairs;
  } else if (their_order->size() == our_order->size()) {
    pairs.clear();
    for (size_t i = 0; i < their_order->size(); ++i)
      pairs.push_back((*their_order)[i] + "=" + (*our_order)[i]);
    return pairs;
  }
  throw UserError(
      "--map {}: the texts in place of * do not go together: {} has {}, and the model {}. Name each of them: "
      "--map THEIRS=OURS.",
      map.text, path, NamesOf(theirs), ours.empty() ? "none of these" : NamesOf(ours));
}

}  // namespace

std::string NearestName(const std::string& name, const std::vector<std::string>& names) {
  const std::string closest = ClosestName(name, names);
  return closest.empty() ? "" : fmt::format(" Did you mean {}?", Shown(closest));
}

std::string ListShown(const std::vector<std::string>& names) {
  std::vector<std::string> shown;
  for (const std::string& name : names) {
    if (shown.size() < 20) shown.push_back(Shown(name));
  }
  if (names.size() > shown.size()) shown.push_back(fmt::format("{} more", names.size() - shown.size()));
  return ListText(shown, "and");
}

std::vector<std::string> WithMapsOf(std::vector<std::string> maps, const std::string& path) {
  if (path.empty()) return maps;
  std::ifstream file(path, std::ios::binary);
  const std::string text(std::istreambuf_iterator<char>(file), {});
  if (!file.is_open() || file.bad())
    throw UserError("--maps {}: cannot be read.{} Name a file of THEIRS: OURS.", path, SimilarPathHint(path));
  const auto refuse = [&](int line) {
    throw UserError(
        "{}:{}: must be THEIRS: OURS, the name of a tensor there and ours. Try dense/kernel: "
        "weights/W1.",
        path, line);
  };
  try {
    const YamlNode root = ParseYaml(text);
    if (root.kind != YamlNode::Kind::kMap) refuse(std::max(root.line, 1));
    for (const YamlNode& pair : root.children) {
      const std::vector<YamlNode> one = {pair};
      for (const YamlNode& ours : pair.kind == YamlNode::Kind::kList ? pair.children : one) {
        if (ours.kind != YamlNode::Kind::kScalar) refuse(pair.key_line);
        maps.push_back(pair.key + "=" + ours.text);
      }
    }
  } catch (const YamlError& error) {
    throw UserError("{}:{}: {}", path, error.line, error.what());
  }
  return maps;
}

std::vector<std::string> ExpandMaps(const std::vector<std::string>& maps, const std::string& path,
                                    const std::vector<std::string>& theirs,
                                    const std::vector<std::string>& ours) {
  std::vector<std::string> expanded, their_taken, our_taken;
  const auto add = [&](const std::string& text) {
    const Map map = Split(text);
    expanded.push_back(text);
    their_taken.push_back(map.theirs);
    our_taken.push_back(map.ours);
  };
  for (const std::string& text : maps) {
    if (!Split(text).is_pattern()) add(text);
  }
  for (const std::string& text : maps) {
    const Map map = Split(text);
    if (!map.is_pattern()) continue;
    CheckPattern(map);
    const auto fitting = Fitting(map.theirs, theirs, their_taken);
    if (fitting.empty()) {
      throw UserError("--map {}: {} has no such tensor that no other map has; it has {}.", text, path,
                      ListShown(theirs));
    }
    for (const std::string& pair : Pairs(map, path, fitting, Fitting(map.ours, ours, our_taken))) add(pair);
  }
  return expanded;
}

std::vector<std::string> ExpandMaps(const std::vector<std::string>& maps,
                                    const std::vector<std::string>& ours) {
  std::vector<std::string> expanded, taken;
  const auto add = [&](const Map& map) {
    if (map.theirs.empty() || std::count(ours.begin(), ours.end(), map.ours) == 0 ||
        std::count(taken.begin(), taken.end(), map.ours) > 0) {
      throw UserError("--map {}: must be THEIRS=OURS, once for each tensor; ours are {}.{}", map.text,
                      ListShown(ours), NearestName(map.ours, ours));
    }
    expanded.push_back(map.theirs + "=" + map.ours);
    taken.push_back(map.ours);
  };
  for (const std::string& text : maps) {
    if (const Map map = Split(text); !map.is_pattern()) add(map);
  }
  for (const std::string& text : maps) {
    const Map map = Split(text);
    if (!map.is_pattern()) continue;
    CheckPattern(map);
    const auto fitting = Fitting(map.ours, ours, taken);
    if (fitting.empty()) {
      throw UserError("--map {}: no tensor of the model is such that no other map has it; ours are {}.", text,
                      ListShown(ours));
    }
    for (const auto& [star, name] : fitting)
      add({text, std::string(map.theirs).replace(map.theirs.find('*'), 1, star), name});
  }
  return expanded;
}

}  // namespace dtrain
