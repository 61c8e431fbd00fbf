// YAML text as a plain tree with line numbers: what the loader needs of yaml-cpp, and no more of it.
// Aliases are copied in. Bounded: number of nodes, depth, and the bytes that anchors and aliases copy, so
// that no text can exhaust memory or stack.
#pragma once

#include <stdexcept>
#include <string>
#include <vector>

namespace dtrain {

struct YamlNode {
  enum class Kind { kNull, kScalar, kList, kMap };
  Kind kind = Kind::kNull;
  std::string text;     // of a scalar
  bool quoted = false;  // a scalar in quotes or a block: text, whatever it looks like
  int line = 0;         // from 1
  std::string key;      // inside a map: this value's key
  int key_line = 0;
  std::vector<YamlNode> children;
};

// The text is not a YAML document of the kind that we read.
struct YamlError : std::runtime_error {
  YamlError(int line_number, int column_number, const std::string& text)
      : std::runtime_error(text), line(line_number), column(column_number) {}
  int line;    // from 1; 0: no particular one
  int column;  // from 1
};

// The one document in `text`; null when there is nothing but comments. Throws YamlError.
YamlNode ParseYaml(const std::string& text);

}  // namespace dtrain
