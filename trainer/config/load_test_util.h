// What the tests of loading share: configs in files of their own.
#pragma once

#include <stdlib.h>

#include <fstream>
#include <string>
#include <vector>

#include "base/error.h"
#include "trainer/config/load.h"

namespace dtrain {

// Writes a file beside which no other test writes. Returns its path.
inline std::string WriteTestFile(const std::string& name, const std::string& text) {
  const std::string path = std::string(getenv("TEST_TMPDIR")) + "/" + name;
  std::ofstream(path, std::ios::binary) << text;
  return path;
}

// The report that loading ends with; empty when it succeeds.
inline std::string LoadError(const std::string& path, const std::vector<std::string>& sets = {},
                             const LoadOptions& options = {}) {
  try {
    LoadConfig(path, sets, options);
    return "";
  } catch (const UserError& error) {
    return error.what();
  }
}

}  // namespace dtrain
