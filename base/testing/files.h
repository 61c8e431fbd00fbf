// Files for tests. Thread: any.
#pragma once

#include <cstddef>
#include <cstdlib>
#include <fstream>
#include <string>

#include "base/check.h"

namespace dtrain::testing {

// Creates an empty directory under TEST_TMPDIR, which Bazel sets, or under /tmp. Returns its path.
inline std::string NewDirectory() {
  const char* const root = std::getenv("TEST_TMPDIR");
  std::string path = std::string(root != nullptr ? root : "/tmp") + "/dtrain.XXXXXX";
  DT_CHECK(mkdtemp(path.data()) != nullptr, path);
  return path;
}

// Returns the content of a file; empty if it cannot be opened. In large pieces: tests are not optimised.
inline std::string FileContent(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string content;
  for (char piece[1 << 16]; file.read(piece, sizeof piece), file.gcount() > 0;) {
    content.append(piece, static_cast<size_t>(file.gcount()));
  }
  return content;
}

}  // namespace dtrain::testing
