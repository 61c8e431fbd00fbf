// Rules: from the keys that the user gave, with value and place, to a Config, and what no key alone can tell:
// missing keys, keys without effect, keys that contradict one another. What needs the data itself is checked
// where the data is read. Owner: the loader. Thread: any.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "trainer/config/config.h"
#include "trainer/config/fields.h"
#include "trainer/config/load_options.h"

namespace dtrain {

// Where something stands. Sources are ordered: 0 is the file, then each --set.
struct Place {
  int source = 0;
  int line = 0;      // from 1; 0: nowhere in particular
  std::string name;  // "configs/mnist.yaml" or "--set train.steps=5"
  bool flag() const { return source > 0; }
};

struct GivenKey {
  Value value;        // null where it is bad
  std::string shown;  // as the user wrote it
  Place place;
  bool bad = false;  // reported already
};

// Given keys by name. A key whose default was asked for (null) is not in here.
using GivenKeys = std::map<std::string, GivenKey>;
// The defaults, and over them what was given and is not bad.
Config ConfigOf(const GivenKeys& given);

class Problems {
 public:
  // One line of the report: "configs/mnist.yaml:14: " and `text`.
  void Add(const Place& place, const std::string& text);
  // Throws all as one UserError, in the order of their places; what is nowhere in particular, as a key that
  // is missing, comes last, since what is somewhere may be the cause.
  void ThrowIfAny();

 private:
  struct Line {
    Place place;
    std::string text;
  };
  std::vector<Line> lines_;
};

// `path`: the file, named where something is missing. Keys that a flag has made meaningless leave `given`.
// The result is meant to be used only when no problem was added.
Config Resolve(const std::string& path, const LoadOptions& options, GivenKeys* given, Problems* problems);

}  // namespace dtrain
