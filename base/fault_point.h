// Fault points: named moments at which a test kills, stops or ends this process. They stand around every
// fsync and rename, around every answer that a ps gives while a run starts, restores or saves, and around
// what the leader decides; a step has one where a worker sends a block. //cmd:dtrain_faults acts at them (the
// names are in base/testing/faults.h). In every other program FaultPoint() is empty. Thread: any.
#pragma once

namespace dtrain {

// Reaches the point `moment` ("before" or "after") of `what`. `path` is the file of the operation; null when
// `what` is an answer.
void FaultPoint(const char* what, const char* path, const char* moment);

// FaultScope: reaches the point "before" when it is made and the point "after" when it ends.
class FaultScope {
 public:
  // `what` is an answer, with the part of the run that it belongs to, such as "save.range_kept"; or "fsync"
  // or "rename", with the file or directory (for a rename, its new name) in `path`. Both texts outlive this
  // object.
  explicit FaultScope(const char* what, const char* path = nullptr) : what_(what), path_(path) {
    FaultPoint(what_, path_, "before");
  }
  ~FaultScope() { FaultPoint(what_, path_, "after"); }
  FaultScope(const FaultScope&) = delete;
  FaultScope& operator=(const FaultScope&) = delete;

 private:
  const char* const what_;
  const char* const path_;
};

}  // namespace dtrain
