// Problems: what is wrong with a config, all of it in one report. Owner: the loader. Thread: any.
#pragma once

#include <string>
#include <vector>

namespace dtrain {

// Where something stands. Sources are ordered: 0 is the file, then each --set.
struct Place {
  int source = 0;
  int line = 0;      // from 1; 0: nowhere in particular
  std::string name;  // "configs/mnist.yaml" or "--set train.steps=5"
  bool flag() const { return source > 0; }
};

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
