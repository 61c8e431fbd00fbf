// FileLimit: while it lives, no file of this process and its children grows beyond the limit, as on a full
// disk. Owner: the test.
#pragma once

#include <signal.h>
#include <sys/resource.h>

#include "base/check.h"

namespace dtrain {

class FileLimit {
 public:
  explicit FileLimit(rlim_t bytes) : handler_(signal(SIGXFSZ, SIG_IGN)) {
    DT_CHECK(getrlimit(RLIMIT_FSIZE, &before_) == 0);
    const rlimit limit{bytes, before_.rlim_max};
    DT_CHECK(setrlimit(RLIMIT_FSIZE, &limit) == 0);
  }
  ~FileLimit() {
    setrlimit(RLIMIT_FSIZE, &before_);
    signal(SIGXFSZ, handler_);
  }
  FileLimit(const FileLimit&) = delete;
  FileLimit& operator=(const FileLimit&) = delete;

 private:
  const sighandler_t handler_;
  rlimit before_{};
};

}  // namespace dtrain
