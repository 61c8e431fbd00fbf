#include "trainer/hooks/hooks.h"

#include <doctest/doctest.h>

#include "trainer/hooks/hook_test_util.h"

namespace dtrain {
namespace {

TEST_CASE("step counter: a line every so many local steps, with both paces") {
  FileLog file;
  StepCounter counter(4, file.log());
  FakeStep step;
  HookRequests requests;
  counter.Begin(step.view);
  for (int64_t i = 1; i <= 11; ++i) {
    step.view.local_step = i;
    step.view.global_step = 3 * i;
    counter.AfterStep(step.view, &requests);
  }
  const std::vector<std::string> lines = file.Lines();
  REQUIRE(lines.size() == 2);
  CHECK(lines[0].find("global step 12, local step 4: ") != std::string::npos);
  CHECK(lines[1].find("global step 24, local step 8: ") != std::string::npos);
  // Three global steps per step of this worker.
  const size_t global = lines[1].find("local step 8: ") + 14, local = lines[1].find("global steps/s, ") + 16;
  CHECK(std::stod(lines[1].substr(global)) / std::stod(lines[1].substr(local)) ==
        doctest::Approx(3).epsilon(0.01));
}

}  // namespace
}  // namespace dtrain
