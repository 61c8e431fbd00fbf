#include "trainer/keys/run_keys.h"

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/check.h"
#include "base/error.h"
#include "base/file.h"
#include "net/key_files.h"

namespace dtrain {

RunKeys::RunKeys(const ClusterConfig& cluster) {
  const auto add = [this](Role role, size_t count) {
    for (size_t i = 0; i < count; ++i) {
      const std::string name = TaskName({role, static_cast<int>(i)});
      const net::KeyPair pair = net::NewKeyPair();
      secrets_.emplace_back(name, pair.secret_key);
      listed_.push_back({name, pair.public_key});
    }
  };
  add(Role::kPs, cluster.ps.size());
  add(Role::kWorker, cluster.worker.size());
}

std::string RunKeys::TextFor(TaskId task) const {
  const std::string name = TaskName(task);
  for (const auto& [each, secret] : secrets_) {
    if (each == name) return net::KeyRingText(secret, listed_);
  }
  DT_CHECK(false, name);
  return "";
}

KeyDescriptor::KeyDescriptor(const std::string& text) : fd_(memfd_create("dtrain-keys", MFD_CLOEXEC)) {
  if (fd_ < 0) throw NoDescriptor("the keys of a task", errno);
  const int failed = WriteAll(fd_, text);
  if (failed == 0) return;
  close(fd_);
  throw IoError("the keys of a task: {}.", ErrnoText(failed));
}

KeyDescriptor::~KeyDescriptor() {
  if (fd_ >= 0) close(fd_);
}

}  // namespace dtrain
