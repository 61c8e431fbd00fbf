// Reads event files in plain loops, without verifying checksums: TensorBoard does that
// (cmd/test/summary_test.cc).
#pragma once

#include <cstring>
#include <string>
#include <vector>

#include "base/testing/files.h"
#include "trainer/summary/event.pb.h"

namespace dtrain {

inline std::vector<event::Event> ReadEvents(const std::string& path) {
  const std::string content = testing::FileContent(path);
  std::vector<event::Event> events;
  for (size_t at = 0; at + 16 <= content.size();) {
    uint64_t size = 0;
    std::memcpy(&size, content.data() + at, sizeof size);
    if (!events.emplace_back().ParseFromArray(content.data() + at + 12, static_cast<int>(size))) break;
    at += 16 + size;
  }
  return events;
}

}  // namespace dtrain
