#include "base/machine_memory.h"

#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <string>

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
  MachineMemory Left() const { return ReadMemoryLeft(path_); }

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

TEST_CASE("machine memory: the lowest limit of the control group and of those above it counts") {
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

TEST_CASE("memory left: what the machine has, or less if its control group has less") {
  const Root root;
  root.Write("proc/meminfo", "MemTotal:  8000 kB\nMemAvailable:  3000 kB\nSwapFree:  100 kB\n");
  CHECK(root.Left().bytes == 3100 * 1024);
  CHECK(root.Left().source == "MemAvailable of /proc/meminfo, and swap");
  root.Write("proc/self/cgroup", "0::/slice/job\n");
  root.Write("sys/fs/cgroup/slice/memory.max", "2048000\n");
  root.Write("sys/fs/cgroup/slice/memory.current", "1048000\n");
  root.Write("sys/fs/cgroup/slice/memory.stat", "anon 5\ninactive_file 3000\nactive_file 500\n");
  CHECK(root.Left().bytes == 1003500);
  CHECK(root.Left().source == "/sys/fs/cgroup/slice/memory.max");
  root.Write("sys/fs/cgroup/slice/memory.current", "2248000\n");
  CHECK(root.Left().bytes == 1);
}

TEST_CASE("memory left: of a control group of version 1") {
  const Root root;
  root.Write("proc/self/cgroup", "4:memory:/job\n");
  root.Write("sys/fs/cgroup/memory/job/memory.limit_in_bytes", "2048000\n");
  root.Write("sys/fs/cgroup/memory/job/memory.usage_in_bytes", "48000\n");
  root.Write("sys/fs/cgroup/memory/job/memory.stat", "inactive_file 9\ntotal_inactive_file 1000\n");
  CHECK(root.Left().bytes == 2001000);
}

TEST_CASE("memory left: unknown where nothing tells, known on this machine") {
  CHECK(ReadMemoryLeft("/no/such/").bytes == 0);
  CHECK(ReadMemoryLeft().bytes > 0);
  CHECK(ReadMemoryLeft().bytes <= ReadMachineMemory().bytes);
}

TEST_CASE("machine memory: bytes are shown with a unit") {
  CHECK(BytesText(812) == "812 B");
  CHECK(BytesText(1024 * 1536) == "1.5 MiB");
  CHECK(BytesText(7.7 * 1024 * 1024 * 1024) == "7.7 GiB");
}

}  // namespace
}  // namespace dtrain
