// A table that grows beyond the memory of its control group. Where this system lets no test make a group, a
// limit of address space stands in for it, and the test says so.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>
#include <fstream>
#include <random>
#include <string>

#include "cmd/testing/job.h"

namespace dtrain::testing {
namespace {

// MemoryGroup: a control group below that of this process, of version 1 or 2, with a limit.
class MemoryGroup {
 public:
  explicit MemoryGroup(int64_t bytes) {
    std::ifstream groups("/proc/self/cgroup");
    for (std::string line; path_.empty() && std::getline(groups, line);) {
      const std::string group = line.substr(line.find(':', line.find(':') + 1) + 1);
      if (Contains(line, ":memory:")) Make("/sys/fs/cgroup/memory" + group, "memory.limit_in_bytes", bytes);
      if (Contains(line, "0::")) Make("/sys/fs/cgroup" + group, "memory.max", bytes);
    }
  }
  ~MemoryGroup() {
    if (!path_.empty()) rmdir(path_.c_str());
  }
  MemoryGroup(const MemoryGroup&) = delete;
  MemoryGroup& operator=(const MemoryGroup&) = delete;
  // Empty: there is none.
  const std::string& path() const { return path_; }
  int64_t max_usage() const {
    for (const char* name : {"/memory.max_usage_in_bytes", "/memory.peak"}) {
      int64_t bytes = 0;
      if (std::ifstream(path_ + name) >> bytes) return bytes;
    }
    return -1;
  }

 private:
  void Make(const std::string& parent, const char* limit_file, int64_t bytes) {
    path_ = fmt::format("{}/dtrain-test-{}", parent, getpid());
    if (mkdir(path_.c_str(), 0700) == 0) {
      std::ofstream limit(path_ + "/" + limit_file);
      limit << bytes << std::flush;
      if (limit.good() && access((path_ + "/cgroup.procs").c_str(), W_OK) == 0) return;
      rmdir(path_.c_str());
    }
    path_.clear();
  }

  std::string path_;
};

// Rows whose crosses are 1,600 features each, spread over all that there are.
std::string WideRows(int rows) {
  std::mt19937 random(1);
  std::string text;
  for (int row = 0; row < rows; ++row) {
    text += random() % 2 == 0 ? "1" : "-1";
    for (const char* space : {" |a", " |b"}) {
      text += space;
      for (int i = 0; i < 40; ++i) text += fmt::format(" {}", random() % 1000000000);
    }
    text += '\n';
  }
  return text;
}

// Sanitizers take memory and address space of their own.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
TEST_CASE(
    "memory group: a table that grows beyond it ends the run with 1, keys to change and a good checkpoint") {
  const LocalJob job(
      "model: {kind: logistic}\n"
      "data: {train: {format: vw, path: rows.vw}, hash_bits: 32, crosses: [ab], cache: none, shuffle: "
      "false}\n"
      "train: {batch_size: 4, epochs: 1, optimizer: {kind: adagrad, learning_rate: 0.1}}\n"
      "checkpoint: {dir: ckpt, every_steps: 5}\n");
  WriteFile(job.directory + "/rows.vw", WideRows(1500));
  constexpr int64_t kLimit = 200 << 20;
  const MemoryGroup group(kLimit);
  if (group.path().empty()) MESSAGE("no control group can be made here: a limit of address space stands in");
  const std::string enter =
      group.path().empty() ? "ulimit -v 1000000" : "echo $$ > " + group.path() + "/cgroup.procs";
  const std::string local = fmt::format(
      "{} && exec cmd/dtrain local --run none --config {} --ps 1 --workers 1 "
      "--set checkpoint.dir={}/ckpt",
      enter, job.config, job.directory);
  const Done done = Run({"-c", local}, Program{"/bin/sh", {}});
  CAPTURE(done.error);
  CHECK(done.code == 1);
  CHECK(Contains(done.error, "more ps"));
  if (group.path().empty()) return;
  CHECK(Contains(done.error, "Use more memory, fewer features (model.inputs or data.hash_bits)"));
  CHECK(group.max_usage() > kLimit / 2);
  CHECK(Run({"inspect", job.directory + "/ckpt"}).code == 0);
}
#endif

}  // namespace
}  // namespace dtrain::testing
