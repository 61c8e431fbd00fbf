// Files of tensors for tests: writing and reading them.
#pragma once

#include <cstdint>
#include <fstream>
#include <functional>
#include <string>

#include "base/error.h"
#include "trainer/checkpoint/checkpoint_test_util.h"
#include "trainer/export/take_tensors.h"

namespace dtrain::testing {

inline void WriteBytes(const std::string& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

inline std::string ErrorOf(const std::function<void()>& action) {
  try {
    action();
  } catch (const UserError& error) {
    return error.what();
  }
  return "";
}

// Opens the file and takes all tensors, as a reader does.
inline TakenTensors TakeAll(const std::string& path, const TakeOptions& options = {}) {
  return TakeTensors(OpenTensorFile(path).get(), path, SmallLayout(1), options);
}

inline std::string Safetensors(const std::string& header, const std::string& data) {
  const uint64_t size = header.size();
  return std::string(reinterpret_cast<const char*>(&size), sizeof size) + header + data;
}

}  // namespace dtrain::testing
