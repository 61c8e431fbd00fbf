// The lock of a run's directory, the file .in-use: it keeps other runs out as long as the process that has it
// lives, and tells whether a run goes on. Thread: any.
#pragma once

#include <string>

#include "base/json.h"

namespace dtrain {

// Locks the directory for this process. Returns a descriptor, which is not inherited, or a number below 0
// with errno. A file system without locks keeps nobody out; if `strictly`, that is a failure.
int LockRun(const std::string& directory, bool strictly);
// Gives the directory free. `lock`: from LockRun().
void UnlockRun(const std::string& directory, int lock);

// Whether a run has the directory, whose record (kRunRecord) is `record`: a process has its lock. Where
// somebody has removed that, a run that does not say that it has ended has the directory unless it is known
// to be gone.
bool IsInUse(const std::string& directory, const Json& record);
// Whether nobody works on the run in the directory: no process has its lock. Where that cannot be known, the
// process that wrote the record is gone. Of a run on another host nothing is known: false.
bool IsGone(const std::string& directory, const Json& record);

}  // namespace dtrain
