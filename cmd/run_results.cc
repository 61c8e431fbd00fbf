#include "cmd/run_results.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>

#include "base/check.h"
#include "base/error.h"

namespace dtrain {
namespace {

// Without moving the offset, which the children share.
size_t SizeOf(int fd) {
  struct stat found {};
  DT_CHECK(fstat(fd, &found) == 0, errno);
  return static_cast<size_t>(found.st_size);
}

RunSummary SummaryIn(int fd) {
  std::string text(SizeOf(fd), '\0');
  RunSummary summary;
  const ssize_t got = pread(fd, text.data(), text.size(), 0);
  if (got == static_cast<ssize_t>(text.size())) FromWireJson(text, &summary);
  return summary;
}

}  // namespace

RunResults::RunResults(size_t workers) {
  while (fds_.size() < 1 + workers) {
    const int fd = memfd_create("dtrain-result", MFD_CLOEXEC);
    if (fd < 0) throw NoDescriptor("no memory for results", errno);
    fds_.push_back(fd);
  }
}

RunResults::~RunResults() {
  for (const int fd : fds_) close(fd);
}

RunStage RunResults::Stage() const {
  if (IsDone(Read())) return RunStage::kDone;
  return SizeOf(ps_fd()) == 0 ? RunStage::kStarting : RunStage::kRunning;
}

RunSummary RunResults::Read() const {
  for (const int fd : fds_) {
    RunSummary summary = SummaryIn(fd);
    if (IsDone(summary)) return summary;
  }
  return SummaryIn(ps_fd());
}

bool IsDone(const RunSummary& summary) {
  return summary.status == "done" || summary.status == "already_done";
}

}  // namespace dtrain
