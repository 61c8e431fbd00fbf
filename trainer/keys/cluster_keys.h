// Cluster keys: a key pair for each task of a cluster, as files of a directory that security.keys names.
// Formats and rules: net/key_files.h. Thread: one at a time for each directory.
#pragma once

#include <string>
#include <vector>

#include "trainer/config/choices.h"

namespace dtrain {

// KeyDirectory: a directory of keys and the names of those who have one: the tasks of the cluster, "worker"
// (any other worker) and "status" (an operator).
class KeyDirectory {
 public:
  KeyDirectory(std::string path, const ClusterConfig& cluster);

  const std::string& path() const { return path_; }
  const std::vector<std::string>& names() const { return names_; }
  std::string ListPath() const;
  std::string SecretPath(const std::string& name) const;

  // Reads the list and all secret keys that are here, and returns whose they are. Throws UserError when one
  // of them is not good, or when a task has none that is listed.
  std::vector<std::string> Check() const;

  // Makes the directory, and a key for each name that has none. Keys that are there stay as they are, so a
  // call that was interrupted may be repeated. Returns how many it has listed. Throws Failure.
  size_t AddMissing() const;
  // Makes a new key for a name that has one, and lists it beside the old one, so that the task is let in
  // before and after it gets the new one. Returns the old lines of the list. Throws Failure.
  std::vector<std::string> Replace(const std::string& name) const;

 private:
  const std::string path_;
  std::vector<std::string> names_;
};

}  // namespace dtrain
