// Input: takes numbers and texts off the bytes of one run of a target. MemoryFile: a file that is only in
// memory, for what opens files by their paths. ScratchDirectory: a directory for what makes files. Owner: the
// target. Thread: its.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>

#include "base/check.h"

namespace dtrain::fuzz {

// When the bytes are used up, numbers are 0 and texts are empty.
class Input {
 public:
  Input(const uint8_t* data, size_t size) : left_(reinterpret_cast<const char*>(data), size) {}

  bool empty() const { return left_.empty(); }
  size_t size() const { return left_.size(); }
  uint8_t Byte() { return static_cast<uint8_t>(Fixed<char>()); }
  size_t Short() {
    const size_t high = Byte();
    return high << 8 | Byte();
  }
  // Below `end`.
  uint64_t Below(uint64_t end) { return end <= 1 ? 0 : Byte() % end; }
  bool Flag() { return (Byte() & 1) != 0; }
  // Mostly small, sometimes at an edge, sometimes anything.
  uint64_t Number() {
    constexpr uint64_t kEdges[] = {UINT64_MAX,    uint64_t{1} << 63, uint64_t{1} << 62, INT64_MAX,
                                   UINT32_MAX,    uint64_t{1} << 31, INT32_MAX,         UINT16_MAX,
                                   (1 << 18) + 1, 1 << 18,           1000000007,        256};
    constexpr uint8_t kSmall = 200;
    const uint8_t first = Byte();
    if (first < kSmall) return first % 20;
    const size_t edge = first - kSmall;
    return edge < std::size(kEdges) ? kEdges[edge] : Fixed<uint64_t>();
  }
  double Real() {
    const uint8_t first = Byte();
    return first < 200 ? first / 16.0 : Fixed<double>();
  }
  std::string Text(size_t most) {
    const std::string_view text = left_.substr(0, std::min<size_t>(Byte(), most));
    left_.remove_prefix(text.size());
    return std::string(text);
  }
  std::string Rest() { return std::string(std::exchange(left_, {})); }

 private:
  template <typename Value>
  Value Fixed() {
    Value value{};
    const size_t size = std::min(sizeof value, left_.size());
    if (size > 0) std::memcpy(&value, left_.data(), size);  // the data of no bytes may be null
    left_.remove_prefix(size);
    return value;
  }

  std::string_view left_;
};

class MemoryFile {
 public:
  explicit MemoryFile(std::string_view content) : fd_(memfd_create("fuzz", MFD_CLOEXEC)) {
    DT_CHECK(fd_ >= 0 && write(fd_, content.data(), content.size()) == static_cast<ssize_t>(content.size()));
  }
  ~MemoryFile() { close(fd_); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;
  std::string path() const { return "/proc/self/fd/" + std::to_string(fd_); }

 private:
  const int fd_;
};

// A directory of this process, in memory where the system has such a place. Removed at the end of the
// process.
inline const std::string& ScratchDirectory() {
  static const struct Made {
    Made() { DT_CHECK(mkdtemp(path.data()) != nullptr, path); }
    ~Made() {
      std::error_code none;
      std::filesystem::remove_all(path, none);
    }
    std::string path =
        std::filesystem::is_directory("/dev/shm") ? "/dev/shm/dtrain-fuzz.XXXXXX" : "/tmp/dtrain-fuzz.XXXXXX";
  } made;
  return made.path;
}

}  // namespace dtrain::fuzz
