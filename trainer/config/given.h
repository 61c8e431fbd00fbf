// What the user gave: keys with value and place, and the list of what is wrong with them. Between the loader
// and the rules.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "trainer/config/fields.h"

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

// By key. A key whose default was asked for (null) is not in here.
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

}  // namespace dtrain
