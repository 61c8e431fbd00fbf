// Jobs that do not fit into memory, met by the real binary: a clear line and an exit code, never an abort.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <sys/resource.h>

#include "cmd/testing/job.h"

namespace dtrain::testing {
namespace {

// Sanitizers take address space without end.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
// While it lives, programs that this test starts get no more address space than `bytes`.
class AddressSpaceLimit {
 public:
  explicit AddressSpaceLimit(rlim_t bytes) {
    getrlimit(RLIMIT_AS, &before_);
    const rlimit lower{bytes, before_.rlim_max};
    setrlimit(RLIMIT_AS, &lower);
  }
  ~AddressSpaceLimit() { setrlimit(RLIMIT_AS, &before_); }

 private:
  rlimit before_{};
};

TEST_CASE("memory: a system that gives no more is exit 1 and a line that says so") {
  const std::string config = NewDirectory() + "/job.yaml";
  WriteFile(config,
            "model: {kind: softmax}\n"
            "data: {train: {format: synthetic, name: digits, rows: 2000000}}\n"
            "train: {batch_size: 10, steps: 10}\n");
  const AddressSpaceLimit limit(rlim_t{1} << 30);
  Process check({"check", "--config", config});
  CHECK(RunToEnd(check) == 1);
  CHECK(check.standard_error().substr(0, 50) == "dtrain: out of memory: the system gave no more. Us");
}
#endif

}  // namespace
}  // namespace dtrain::testing
