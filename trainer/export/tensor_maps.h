// TensorMaps: which tensor of a file is which of the model, as --map and --maps say it: "theirs=ours", where
// nothing in front of the = means a tensor of zeros. Thread: any; free functions.
#pragma once

#include <string>
#include <vector>

namespace dtrain {

// Returns `maps` and behind them the pairs of a YAML file, "THEIRS: OURS" or "THEIRS: [OURS, OURS]". An empty
// path names no file. Throws UserError with the line of what is no such pair.
std::vector<std::string> WithMapsOf(std::vector<std::string> maps, const std::string& path);

// Replaces each map with one * on both sides by the maps that it stands for, among the names that no other
// map has: * is the same text on both sides, or, where the texts are numbers that differ, as 0, 1, 2 and
// 1, 2, 3, one goes with the other in their order. Throws UserError for a * on one side alone, and for one
// that no names fit. `path`: of the file, for messages.
std::vector<std::string> ExpandMaps(const std::vector<std::string>& maps, const std::string& path,
                                    const std::vector<std::string>& theirs,
                                    const std::vector<std::string>& ours);
// The same for a file that is written: the name of each of ours there, "theirs=ours". Throws UserError also
// for a map that is none, names what the model does not have, or names it twice.
std::vector<std::string> ExpandMaps(const std::vector<std::string>& maps,
                                    const std::vector<std::string>& ours);

template <typename Named>
std::vector<std::string> NamesOf(const std::vector<Named>& all) {
  std::vector<std::string> names;
  for (const Named& one : all) names.push_back(one.name);
  return names;
}

// " Did you mean weights/W1?" of a name that is not among `names`; empty: none is close.
std::string NearestName(const std::string& name, const std::vector<std::string>& names);
// "a, b and 7 more"
std::string ListShown(const std::vector<std::string>& names);

}  // namespace dtrain
