// Abort: how a failure travels: from the task that failed to ps 0, and from there to everybody.
#pragma once

#include <string>

#include "base/error.h"
#include "net/codec.h"
#include "trainer/config/config.h"
#include "trainer/peer/peer_limits.h"
#include "trainer/result/run_summary.h"

namespace dtrain {

// Another task has ended the run. What this one ends with is for RunTask() to say: a lost peer where all ends
// are judged together, else the exit code of the run, as whoever looks at one task alone has to know whether
// a new start is of use.
class RunEnded : public PeerLost {
 public:
  RunEnded(ExitCode cause, const std::string& text) : PeerLost("{}", text), cause_(cause) {}
  ExitCode cause() const { return cause_; }

 private:
  ExitCode cause_;
};

// `summary`: of a run that was stopped; null: of one that failed.
flatbuffers::Offset<wire::Abort> CreateAbort(flatbuffers::FlatBufferBuilder& builder, int exit_code,
                                             TaskId task, const std::string& text,
                                             const RunSummary* summary = nullptr);

// "worker 1 (10.0.0.4:9002) ended the run with exit code 2: ...".
std::string AbortText(const ClusterConfig& cluster, const wire::Abort& abort);
// Why a run has failed: the exit code of the task that ended it, kPeerLost where it names none of a failure.
ExitCode CauseOf(const wire::Abort& abort);
// The exit code of a run that has failed or was stopped.
ExitCode ExitCodeOf(const wire::Abort& abort);
// As the failure of whoever hears it: RunEnded, or RunStopped with the exit code that it names.
[[noreturn]] void ThrowAbort(const ClusterConfig& cluster, const wire::Abort& abort);

}  // namespace dtrain
