#include "trainer/task/memory_need.h"

#include <doctest/doctest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>

#include "base/testing/files.h"

namespace dtrain {
namespace {

// A directory with its own /proc and /sys.
class Root {
 public:
  Root() { Write("proc/meminfo", "MemTotal:        8000 kB\nMemFree:         5 kB\n"); }
  ~Root() { std::filesystem::remove_all(path_); }
  Root(const Root&) = delete;
  Root& operator=(const Root&) = delete;
  void Write(const std::string& path, const std::string& content) const {
    std::filesystem::create_directories(std::filesystem::path(path_ + path).parent_path());
    std::ofstream(path_ + path) << content;
  }
  MachineMemory Read() const { return ReadMachineMemory(path_); }

 private:
  const std::string path_ = testing::NewDirectory() + "/";
};

TEST_CASE("machine memory: without a control group it is that of the machine") {
  const Root root;
  const MachineMemory memory = root.Read();
  CHECK(memory.bytes == 8000 * 1024);
  CHECK(memory.source == "MemTotal of /proc/meminfo");
}

TEST_CASE("machine memory: swap is added, also to a control group's limit") {
  const Root root;
  root.Write("proc/meminfo", "MemTotal:  8000 kB\nSwapTotal:  1000 kB\n");
  CHECK(root.Read().bytes == 9000 * 1024);
  CHECK(root.Read().source == "MemTotal of /proc/meminfo, and swap");
  root.Write("proc/self/cgroup", "0::/job\n");
  root.Write("sys/fs/cgroup/job/memory.max", "1024000\n");
  CHECK(root.Read().bytes == 1024000 + 1000 * 1024);
}

TEST_CASE("machine memory: the least limit of the control group and of those above it counts") {
  const Root root;
  root.Write("proc/self/cgroup", "0::/user.slice/job\n");
  root.Write("sys/fs/cgroup/user.slice/job/memory.max", "max\n");
  root.Write("sys/fs/cgroup/user.slice/memory.max", "4096000\n");
  CHECK(root.Read().bytes == 4096000);
  CHECK(root.Read().source == "/sys/fs/cgroup/user.slice/memory.max");
  root.Write("sys/fs/cgroup/user.slice/job/memory.max", "1024000\n");
  CHECK(root.Read().bytes == 1024000);
}

TEST_CASE("machine memory: version 1 has its own files, and a container sees only the mount's") {
  const Root root;
  root.Write("proc/self/cgroup", "4:cpu,memory:/docker/abc\n3:cpuset:/\n");
  root.Write("sys/fs/cgroup/memory/memory.limit_in_bytes", "2048000\n");
  CHECK(root.Read().bytes == 2048000);
  root.Write("sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  CHECK(root.Read().bytes == 8000 * 1024);
}

TEST_CASE("machine memory: unknown where nothing tells, known on this machine") {
  CHECK(ReadMachineMemory("/no/such/").bytes == 0);
  CHECK(ReadMachineMemory().bytes > 0);
}

TEST_CASE("machine memory: bytes are shown with a unit") {
  CHECK(BytesText(812) == "812 B");
  CHECK(BytesText(1024 * 1536) == "1.5 MiB");
  CHECK(BytesText(7.7 * 1024 * 1024 * 1024) == "7.7 GiB");
}

}  // namespace
}  // namespace dtrain
