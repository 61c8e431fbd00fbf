// A disk that is full for one process, and has room again.
#pragma once

#include <sys/types.h>

namespace dtrain::testing {

// From now on no file of the process grows.
void FillDiskOf(pid_t pid);
void GiveRoomTo(pid_t pid);

}  // namespace dtrain::testing
