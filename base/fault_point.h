// Fault points: named moments at which a test lets this process die, stop or exit. They stand around every
// fsync and rename, and around every answer that a ps gives while a run starts, restores or saves; not on the
// path of a step. //cmd:dtrain_faults acts at them (base/testing/faults.h has the names); in any other
// program FaultPoint() is empty. Thread: any.
#pragma once

namespace dtrain {

// `path`: the file of an operation; null: `what` is an answer.
void FaultPoint(const char* what, const char* path, const char* moment);

// The points "before" and "after" what is done in its scope.
class FaultScope {
 public:
  // An answer and the part of a run that it belongs to, such as "save.range_kept"; or, with the file or
  // directory, "fsync" or "rename" (its new name). Both texts outlive this object.
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
