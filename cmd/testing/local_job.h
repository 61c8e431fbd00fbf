// LocalJob: a job of `dtrain local` in a directory of its own.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cmd/testing/job.h"

namespace dtrain::testing {

struct LocalJob {
  std::string directory = NewDirectory();
  std::string config = directory + "/job.yaml";
  std::string result = directory + "/result.json";

  explicit LocalJob(const std::string& job) { WriteFile(config, job); }
  ~LocalJob();  // checks that no file was left unfinished
  LocalJob(const LocalJob&) = delete;
  LocalJob& operator=(const LocalJob&) = delete;
  // With --result.
  std::unique_ptr<Process> Start(const std::vector<std::string>& more = {}) const;
};

// The child of `parent` that is this task; -1 when there is none.
pid_t ChildOf(const Process& parent, const std::string& role, int index);

}  // namespace dtrain::testing
