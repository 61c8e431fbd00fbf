// Event files read back by plain loops, without checking their checksums: TensorBoard does that
// (cmd/summary_test.cc).
#pragma once

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "trainer/summary/event.pb.h"

namespace dtrain {

inline std::string TestDirectory(const std::string& name) {
  const char* root = std::getenv("TEST_TMPDIR");
  const std::string path = std::string(root == nullptr ? "/tmp" : root) + "/" + name;
  std::filesystem::remove_all(path);
  return path;
}

inline std::string FileContent(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

inline std::vector<event::Event> ReadEvents(const std::string& path) {
  const std::string content = FileContent(path);
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
