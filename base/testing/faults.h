// Faults: what a program that links this library does at fault points (base/fault_point.h).
//
//   DTRAIN_FAULT=NAME:OCCURRENCE:ACTION[:MARKER]    as in manifest.rename.before:1:kill:/tmp/t/done
//     When the process reaches point NAME for the OCCURRENCE-th time (from 1), it sends itself SIGKILL (kill)
//     or SIGSTOP (stop), or exits with code 1 (exit). With MARKER only the first process that reaches the
//     point acts: it creates the file MARKER, and a process that finds the file continues.
//   DTRAIN_FAULT_TRACE=FILE    appends the name of each point that is reached, one per line
//   DTRAIN_FAULT_ONLY=WORDS    both only in a process that has these arguments, as in "--role ps --index 0"
//
// A point whose name is not listed below aborts the program, and so does a malformed DTRAIN_FAULT. The list
// defines "any moment" of a start, a save and a restore for the chaos tests.
#pragma once

#include <fmt/format.h>

#include <string>
#include <vector>

namespace dtrain::testing {

// What stands between the two points of a scope. For files, the first word says what is synced or renamed:
// "temporary" is the directory of a checkpoint that is being written or removed, "probe" is the file that
// proves that a directory can be written, "file" is any other file, such as that of --result.
constexpr const char* kFaultScopes[] = {
    "shard.fsync",       "config.fsync",    "config.rename",    "manifest.fsync",
    "manifest.rename",   "temporary.fsync", "temporary.rename", "checkpoint.rename",
    "replaced.rename",   "best.fsync",      "best.rename",      "probe.fsync",
    "probe.rename",      "directory.fsync", "file.fsync",       "file.rename",
    "start.welcome",      // a task that says hello is admitted
    "start.fill",         // a ps is told to initialise its range or to restore it from a checkpoint
    "start.filled",       // a ps has done so
    "start.piece",        // a ps that does not see the checkpoint gets a piece of it
    "start.begin",        // a task that is ready is told to begin
    "step.block",         // a worker sends a block of a step to a ps
    "save.order",         // a ps is told to take a snapshot of its range, or to write it
    "save.range_kept",    // a ps has taken a snapshot of its range for the checkpoint
    "save.part_written",  // a ps has written its range
    "save.piece",         // a ps that does not see the directory sends a piece of its range
    "evaluate.snapshot",  // every ps has the snapshot that is evaluated
    "evaluate.taken",     // the figures of an evaluation have arrived
    "end.done",           // a worker that has no steps left may wait for the end
    "end.report",         // a ps reports its final weights
    "end.evaluate",       // a worker is told to evaluate the final weights
    "end.results",        // the results of the run are reported
};

// What the leader decides.
constexpr const char* kLeaderFaultScopes[] = {
    "leader.grant",     // steps are granted
    "leader.round",     // a round is decided (sync)
    "leader.patience",  // the run ends early (eval.patience)
};

// The same around messages of replicas (failure.replicas). A run that no ps is lost in reaches all but the
// last two.
constexpr const char* kReplicaFaultScopes[] = {
    "replica.open",    // a ps begins its replica, or the way to that of the one before it
    "replica.unit",    // it sends a unit of a part
    "replica.push",    // a record of a gradient
    "replica.round",   // a record of a round (sync)
    "replica.turn",    // ps 0 ends a turn of records
    "replica.record",  // the next ps takes a record
    "replica.ack",     // and acknowledges what it has
    "replica.read",    // it answers a ps that fills itself
    "replica.item",    // which takes the answer
};

// Returns each scope with ".before" and with ".after".
template <size_t kCount>
std::vector<std::string> FaultNamesOf(const char* const (&scopes)[kCount]) {
  std::vector<std::string> names;
  for (const char* scope : scopes) {
    for (const char* moment : {"before", "after"}) names.push_back(fmt::format("{}.{}", scope, moment));
  }
  return names;
}
inline std::vector<std::string> FaultNames() { return FaultNamesOf(kFaultScopes); }
inline std::vector<std::string> LeaderFaultNames() { return FaultNamesOf(kLeaderFaultScopes); }
inline std::vector<std::string> ReplicaFaultNames() { return FaultNamesOf(kReplicaFaultScopes); }

}  // namespace dtrain::testing
