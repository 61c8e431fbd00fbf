#include "cmd/testing/full_disk.h"

#include <doctest/doctest.h>
#include <sys/resource.h>

namespace dtrain::testing {
namespace {

void LimitFilesOf(pid_t pid, rlim_t bytes) {
  const rlimit limit{bytes, RLIM_INFINITY};
  REQUIRE(prlimit(pid, RLIMIT_FSIZE, &limit, nullptr) == 0);
}

}  // namespace

void FillDiskOf(pid_t pid) { LimitFilesOf(pid, 0); }

void GiveRoomTo(pid_t pid) { LimitFilesOf(pid, RLIM_INFINITY); }

}  // namespace dtrain::testing
