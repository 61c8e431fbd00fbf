// Abort: carries a failure from the task that failed to ps 0, and from there to every task.
#pragma once

#include <string>

#include "base/error.h"
#include "net/codec.h"
#include "trainer/config/cluster_config.h"
#include "trainer/peer/peer_limits.h"
#include "trainer/result/run_summary.h"

namespace dtrain {

// RunEnded: another task has ended the run. RunTask() chooses the exit code of this task: a lost peer where
// the launcher judges all exit codes together, else the exit code of the run, so that one task alone shows
// whether a new start can help.
class RunEnded : public PeerLost {
 public:
  RunEnded(ExitCode cause, const std::string& text) : PeerLost("{}", text), cause_(cause) {}
  ExitCode cause() const { return cause_; }

 private:
  ExitCode cause_;
};

// `summary`: of a run that was stopped; null: the run failed.
flatbuffers::Offset<wire::Abort> CreateAbort(flatbuffers::FlatBufferBuilder& builder, int exit_code,
                                             TaskId task, const std::string& text,
                                             const RunSummary* summary = nullptr);

// Between the name of the task and its exit code.
constexpr char kEndedRun[] = " ended the run with exit code ";
// "worker 1 (10.0.0.4:9002) ended the run with exit code 2: ...". If the sender tells of another task's end,
// the sender is left out.
std::string AbortText(const ClusterConfig& cluster, const wire::Abort& abort);
// The exit code of the task that made the run fail; kPeerLost when the Abort names no failure.
ExitCode CauseOf(const wire::Abort& abort);
// The exit code of a run that has failed or was stopped.
ExitCode ExitCodeOf(const wire::Abort& abort);
// Throws the Abort as this task's own error: RunEnded, or RunStopped with the Abort's exit code.
[[noreturn]] void ThrowAbort(const ClusterConfig& cluster, const wire::Abort& abort);

}  // namespace dtrain
