// Files of tests. Thread: any.
#pragma once

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>

#include "base/check.h"

namespace dtrain::testing {

// A new empty directory where Bazel wants a test's files (TEST_TMPDIR), or under /tmp.
inline std::string NewDirectory() {
  const char* const root = std::getenv("TEST_TMPDIR");
  std::string path = std::string(root != nullptr ? root : "/tmp") + "/dtrain.XXXXXX";
  DT_CHECK(mkdtemp(path.data()) != nullptr, path);
  return path;
}

// All of a file; empty where it cannot be opened.
inline std::string FileContent(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

}  // namespace dtrain::testing
