// StillThere: of a file that is to be locked.
#pragma once

#include <sys/stat.h>

namespace dtrain {

// Whether the file is still in its directory: another process may have removed it between opening and
// locking.
inline bool StillThere(int fd) {
  struct stat status {};
  return fstat(fd, &status) == 0 && status.st_nlink > 0;
}

}  // namespace dtrain
