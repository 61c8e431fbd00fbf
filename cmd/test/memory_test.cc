// Jobs that do not fit into memory, met by the real binary: a clear line and an exit code, never an abort.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <sys/resource.h>

#include "cmd/testing/job.h"

namespace dtrain::testing {
namespace {

// 10^12 weights: more than any machine has.
constexpr const char* kHugeModel =
    "model: {kind: mlp, hidden: [1000000, 1000000]}\n"
    "data: {train: {format: synthetic, name: digits, rows: 1000}}\n"
    "train: {batch_size: 10, steps: 10}\n";

std::string ConfigOf(const std::string& job) {
  const std::string config = NewDirectory() + "/job.yaml";
  WriteFile(config, job);
  return config;
}

TEST_CASE("memory: a local cluster that needs more than the machine has is exit 2 before it starts") {
  const std::string config = ConfigOf(kHugeModel);
  for (const char* mode : {"--in-process", "--ps=10"}) {
    Process local({"local", "--config", config, mode});
    CHECK(RunToEnd(local) == 2);
    CAPTURE(local.standard_error());
    CHECK(Contains(local.standard_error(), " needs about "));
    CHECK(Contains(local.standard_error(), "and this machine has "));
    CHECK(Contains(local.standard_error(), "most of it: gradients"));
    CHECK(Contains(local.standard_error(), "Use a smaller model, or a machine with more memory."));
  }
}

TEST_CASE("memory: check and plan warn, because another machine may be larger") {
  const std::string config = ConfigOf(kHugeModel);
  for (const char* command : {"check", "plan"}) {
    Process process({command, "--config", config});
    CHECK(RunToEnd(process) == 0);
    CHECK(Contains(process.standard_error(), "dtrain: warning: ps 0 needs about "));
    CHECK(Contains(process.standard_error(), "dtrain: warning: worker 0 needs about "));
  }
}

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
  const std::string config = ConfigOf(
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
