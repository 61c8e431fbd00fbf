// Faults: what a program that is linked with this does at fault points (base/fault_point.h).
//
//   DTRAIN_FAULT=NAME:OCCURRENCE:ACTION[:MARKER]    as in manifest.rename.before:1:kill:/tmp/t/done
//     When this process reaches the point for the OCCURRENCE-th time, from 1, it sends itself SIGKILL (kill)
//     or SIGSTOP (stop), or ends with exit code 1 at once (exit). With MARKER only the first process that
//     comes to do so does: it makes that file, and a process that finds it there goes on.
//   DTRAIN_FAULT_TRACE=FILE    appends the name of each point that is reached, a line each
//
// A point that is not in the list of names ends the program, as does a DTRAIN_FAULT that cannot be read.
//
// The names are here in one place: "any moment" of a start, a save and a restore is this list.
#pragma once

#include <fmt/format.h>

#include <string>
#include <vector>

namespace dtrain::testing {

// What stands between two points. Of files: what it is that is synced or gets its name; "temporary" is the
// directory of a checkpoint that is being written or removed, "probe" the proof that a directory can be
// written, "file" any file of another purpose, such as that of --result.
constexpr const char* kFaultScopes[] = {
    "shard.fsync",       "config.fsync",    "config.rename",    "manifest.fsync",
    "manifest.rename",   "temporary.fsync", "temporary.rename", "checkpoint.rename",
    "replaced.rename",   "best.fsync",      "best.rename",      "probe.fsync",
    "probe.rename",      "directory.fsync", "file.fsync",       "file.rename",
    "start.welcome",      // a task that says hello is let in
    "start.fill",         // a ps is told what its range begins with: initial values or a checkpoint
    "start.filled",       // its range has them
    "start.piece",        // a ps that does not see the checkpoint gets a piece of it
    "start.begin",        // a task that is ready may begin
    "save.order",         // a ps is told to keep its range, or to write it
    "save.range_kept",    // a ps keeps its range as it is at the moment of the checkpoint
    "save.part_written",  // a ps has written its range
    "save.piece",         // a ps that does not see the directory sends a piece of its range
    "evaluate.taken",     // the figures of an evaluation are here
    "end.done",           // a worker that has no steps left may wait for the end
    "end.report",         // a ps tells what its final weights are
    "end.evaluate",       // a worker is told to evaluate them
    "end.results",        // the results of the run
};

// Each scope with ".before" and with ".after".
inline std::vector<std::string> FaultNames() {
  std::vector<std::string> names;
  for (const char* scope : kFaultScopes) {
    for (const char* moment : {"before", "after"}) names.push_back(fmt::format("{}.{}", scope, moment));
  }
  return names;
}

}  // namespace dtrain::testing
