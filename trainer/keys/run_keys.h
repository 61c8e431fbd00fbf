// RunKeys: keys that the parent of a run's tasks has made for this run alone (security.keys: auto). They are
// in its memory, and each task gets its own on a descriptor. Thread: any.
// KeyDescriptor: keys as a file in memory, from which each process that inherits it reads them from the
// beginning. Owner: the parent, as long as it starts tasks.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "net/keys.h"
#include "trainer/config/cluster_config.h"

namespace dtrain {

class RunKeys {
 public:
  explicit RunKeys(const ClusterConfig& cluster);

  // Returns the lines of the keys of one task: its secret key and the list of all tasks.
  std::string TextFor(TaskId task) const;

 private:
  std::vector<std::pair<std::string, std::string>> secrets_;  // by the name of the task
  std::vector<net::ListedKey> listed_;
};

class KeyDescriptor {
 public:
  explicit KeyDescriptor(const std::string& text);  // throws IoError
  ~KeyDescriptor();
  KeyDescriptor(KeyDescriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  KeyDescriptor& operator=(KeyDescriptor&&) = delete;

  int fd() const { return fd_; }

 private:
  int fd_;
};

}  // namespace dtrain
