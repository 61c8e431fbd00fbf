// scripts/gpu_check.sh itself: that it counts what it runs, fails where something fails, and says where there
// is no GPU. The programs of its bundle are those whose devices are played, each as short as can be.
#include <doctest/doctest.h>
#include <fmt/core.h>
#include <stdio.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "bench/report/process.h"

namespace dtrain::bench {
namespace {

namespace fs = std::filesystem;

struct Ended {
  int status;
  std::string said;
};

Ended Run(const std::string& command) {
  FILE* const running = popen((command + " 2>&1").c_str(), "r");
  REQUIRE(running != nullptr);
  std::string said;
  char buffer[4096];
  while (const size_t got = fread(buffer, 1, sizeof buffer, running)) said.append(buffer, got);
  return {pclose(running), said};
}

// A folder as scripts/gpu_bundle.sh packs it.
class FakeBundle {
 public:
  explicit FakeBundle(const std::string& dtrain) {
    Put("cmd/dtrain", dtrain);
    Put("bench/gpu_bench", "bench/gpu_bench_fake");
    Put("tests/ops_test", "trainer/model/device_steps_on_fake");
    std::ofstream(path("about")) << "played\n";
  }
  std::string path(const std::string& name) const { return scratch_.path() + "/" + name; }
  Ended Check(const std::string& flags) const {
    return Run(fmt::format("PATH={}:$PATH scripts/gpu_check.sh {} --smoke --out {} {}", path("tools"),
                           scratch_.path(), path("out"), flags));
  }
  void PutScript(const std::string& name, const std::string& text) {
    fs::create_directories(fs::path(path(name)).parent_path());
    std::ofstream(path(name)) << "#!/bin/sh\n" << text << "\n";
    fs::permissions(path(name), fs::perms::owner_all);
  }

 private:
  void Put(const std::string& name, const std::string& program) {
    fs::create_directories(fs::path(path(name)).parent_path());
    fs::create_symlink(fs::absolute(program), path(name));
  }

  Scratch scratch_;
};

bool Contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST_CASE("gpu check: every part runs, is counted and is written down") {
  FakeBundle bundle("cmd/dtrain_fake_gpu");
  bundle.PutScript("tools/compute-sanitizer", "shift 4; \"$@\" && echo '========= ERROR SUMMARY: 0 errors'");
  const Ended all = bundle.Check("");
  CAPTURE(all.said);
  CHECK(all.status == 0);
  for (const char* const part :
       {"passed  device steps: ", "passed  linear_regression: w", "passed  mnist_mlp: accuracy",
        "passed  softmax, 20 sync steps from zeros, parameters on the GPU: weights",
        "passed  softmax, 20 sync steps from drawn: the same bits again", "passed  model_mlp",
        "passed  run_softmax_3", "passed  racecheck of 2 of 2 test cases", " passed, 0 failed, "}) {
    CAPTURE(std::string(part));
    CHECK(Contains(all.said, part));
  }
  for (const char* const file : {"gpu_check.json", "gpu_check.txt", "logs.tar.gz"}) {
    CHECK(fs::exists(bundle.path(std::string("out/") + file)));
  }
}

TEST_CASE("gpu check: what the sanitizer finds fails the check") {
  FakeBundle bundle("cmd/dtrain_fake_gpu");
  bundle.PutScript("tools/compute-sanitizer", "echo '========= ERROR SUMMARY: 3 errors'; exit 97");
  const Ended found = bundle.Check("--only sanitizer");
  CAPTURE(found.said);
  CHECK(found.status != 0);
  CHECK(Contains(found.said, "failed  memcheck of 2 of 2 test cases: ERROR SUMMARY: 3 errors"));
  CHECK(Contains(found.said, "0 passed, 2 failed, 0 skipped"));
}

TEST_CASE("gpu check: a machine without a GPU is told so, and nothing counts as passed") {
  setenv("CUDA_VISIBLE_DEVICES", "-1", 1);
  const FakeBundle bundle("cmd/dtrain");
  const Ended none = bundle.Check("");
  unsetenv("CUDA_VISIBLE_DEVICES");
  CAPTURE(none.said);
  CHECK(none.status != 0);
  CHECK(Contains(none.said, "gpu_check: no GPU: "));
  CHECK_FALSE(Contains(none.said, "passed"));
}

TEST_CASE("gpu check: its scripts are ones that bash reads") {
  for (const char* const script : {"scripts/gpu_check.sh", "scripts/gpu_bundle.sh"}) {
    const Ended read = Run(std::string("bash -n ") + script);
    CAPTURE(read.said);
    CHECK(read.status == 0);
  }
  const Ended checked = Run("shellcheck scripts/gpu_check.sh scripts/gpu_bundle.sh");
  CAPTURE(checked.said);
  CHECK(checked.status == 0);
}

}  // namespace
}  // namespace dtrain::bench
