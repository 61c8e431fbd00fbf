// Limits do what they claim: they move the bytes and make the products that their plans name.
#include <cblas.h>
#include <doctest/doctest.h>

#include <cstdio>

#include "bench/limit/run.h"
#include "bench/limit/step.h"

namespace dtrain::bench {
namespace {

// Clients are forked, and OpenBLAS has had threads by then, which ThreadSanitizer does not allow.
bool CanFork() {
#if defined(__SANITIZE_THREAD__)
  std::puts("SKIPPED: ThreadSanitizer cannot follow the limit's forks");
  return false;
#else
  openblas_set_num_threads(1);
  return true;
#endif
}

LimitPlan SmallPlan() {
  LimitPlan plan;
  plan.clients = 2;
  plan.exchanges = 50;
  plan.open = 3;
  plan.request_header = 104;
  plan.reply_header = 112;
  return plan;
}

}  // namespace

TEST_CASE("limit: an exchange without a payload moves its headers") {
  if (!CanFork()) return;
  const LimitResult result = RunLimit(SmallPlan());
  CHECK(result.bytes_per_exchange == 104 + 112);
  CHECK(result.exchanges_per_s > 0);
}

TEST_CASE("limit: a step moves its gradient there and the weights back") {
  if (!CanFork()) return;
  LimitPlan plan = SmallPlan();
  plan.layers = {20, 8, 4};
  plan.batch = 10;
  plan.parameters = plan.block = 21 * 8 + 9 * 4;
  CHECK(RunLimit(plan).bytes_per_exchange == 104 + 112 + 2 * plan.block * 4);
}

TEST_CASE("limit: a pull of blocks moves them one way") {
  if (!CanFork()) return;
  LimitPlan plan = SmallPlan();
  plan.parameters = 4096;
  plan.block = 1024;
  plan.warm_up = 10;
  plan.gradients = false;
  CHECK(RunLimit(plan).bytes_per_exchange == 104 + 112 + 1024 * 4);
}

TEST_CASE("limit: the gradient of a last layer is the product of its inputs and its slopes") {
  LimitPlan plan;
  plan.layers = {3, 2};
  plan.batch = 1;
  std::vector<float> parameters(8, 0.5f);
  std::vector<float> gradient(8, -1.0f);
  LimitStep(plan).Run(parameters.data(), gradient.data());
  for (size_t input = 0; input < 3; ++input) {
    CHECK(gradient[2 * input] > 0);
    CHECK(gradient[2 * input] == gradient[2 * input + 1]);  // the same slope for both outputs
  }
  CHECK(gradient[6] == -1.0f);  // biases are left alone
}

}  // namespace dtrain::bench
