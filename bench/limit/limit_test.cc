// Limits do what they claim: they move the bytes and make the products that their plans name.
#include <cblas.h>
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>
#include <thread>
#include <vector>

#include "bench/limit/limit.h"
#include "bench/limit/rows.h"
#include "bench/limit/step.h"

namespace dtrain::bench {
namespace {

// Clients are forked, and OpenBLAS has had threads by then, which ThreadSanitizer does not allow; nor does it
// see how libzmq, which is not instrumented, hands messages from thread to thread.
bool CanExchange() {
#if defined(__SANITIZE_THREAD__)
  std::puts("SKIPPED: ThreadSanitizer follows neither the limit's forks nor libzmq");
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

LimitPlan StepPlan() {
  LimitPlan plan = SmallPlan();
  plan.layers = {20, 8, 4};
  plan.batch = 10;
  plan.parameters = plan.block = 21 * 8 + 9 * 4;
  return plan;
}

LimitPlan PullPlan() {
  LimitPlan plan = SmallPlan();
  plan.parameters = 4096;
  plan.block = 1024;
  plan.gradients = false;
  return plan;
}

// The weights that the server and its only client hold when they are done.
struct Ending {
  std::vector<float> server;
  std::vector<float> client;
};

// The client is a thread here, so that its weights can be seen.
Ending RunOneClient(const LimitPlan& plan) {
  RawSocket socket(ZMQ_ROUTER);
  LimitServer server(plan, socket);
  Ending ending;
  const std::string endpoint = socket.Bind();
  std::thread client([&] { ending.client = RunLimitClient(plan, endpoint); });
  server.Run();
  client.join();
  ending.server = server.Weights();
  return ending;
}

void CheckClose(const std::vector<float>& values, const std::vector<float>& expected) {
  REQUIRE(values.size() == expected.size());
  for (size_t i = 0; i < values.size(); ++i) CHECK(values[i] == doctest::Approx(expected[i]));
}

}  // namespace

TEST_CASE("limit: alone it takes steps and moves no bytes") {
  LimitPlan plan = StepPlan();
  plan.alone = true;
  const LimitResult result = RunLimit(plan);
  CHECK(result.exchanges_per_s > 0);
  CHECK(result.bytes_per_exchange == 0);
}

TEST_CASE("limit: an exchange without a payload moves its headers") {
  if (!CanExchange()) return;
  const LimitResult result = RunLimit(SmallPlan());
  CHECK(result.bytes_per_exchange == 104 + 112);
  CHECK(result.exchanges_per_s > 0);
}

TEST_CASE("limit: a step moves its gradient there and the weights back") {
  if (!CanExchange()) return;
  const LimitPlan plan = StepPlan();
  CHECK(RunLimit(plan).bytes_per_exchange == 104 + 112 + 2 * plan.block * 4);
}

TEST_CASE("limit: a round answers all clients with one update by all of their gradients") {
  if (!CanExchange()) return;
  LimitPlan plan = StepPlan();
  plan.rounds = true;
  plan.open = 1;
  CHECK(RunLimit(plan).bytes_per_exchange == 104 + 112 + 2 * plan.block * 4);
  plan.layers.clear();
  plan.rate = 0.25f;
  plan.exchanges = 3;
  RawSocket socket(ZMQ_ROUTER);
  LimitServer server(plan, socket);
  const std::string endpoint = socket.Bind();
  std::vector<float> seen[2];
  std::thread first([&] { seen[0] = RunLimitClient(plan, endpoint); });
  std::thread second([&] { seen[1] = RunLimitClient(plan, endpoint); });
  server.Run();
  first.join();
  second.join();
  for (const float weight : server.Weights()) {
    CHECK(weight == doctest::Approx(kFirstValue * (1 - 3 * 2 * 0.25)));
  }
  for (const std::vector<float>& weights : seen) CheckClose(weights, server.Weights());
}

TEST_CASE("limit: a pull of blocks moves them one way") {
  if (!CanExchange()) return;
  LimitPlan plan = PullPlan();
  plan.warm_up = 10;
  CHECK(RunLimit(plan).bytes_per_exchange == 104 + 112 + 1024 * 4);
}

TEST_CASE("limit: a step's outputs and gradients are those of two layers by hand") {
  LimitPlan plan;
  plan.layers = {2, 3, 2};
  plan.batch = 2;
  LimitStep step(plan,
                 {1, 2,  //
                  3, 4},
                 true);
  const std::vector<float> parameters = {1, 0, 2,  //
                                         0, 1, 1,  //
                                         9, 9, 9,  // biases, which nobody reads
                                         1, 2,     //
                                         3, 4,     //
                                         5, 6,     //
                                         9, 9};
  std::vector<float> gradient(parameters.size(), -1);
  step.Run(parameters.data(), gradient.data());
  // The hidden layer is {1, 2, 4}, {3, 4, 10} and has the slopes 3, 7, 11 in both rows.
  CHECK(step.outputs() == std::vector<float>{27, 34, 65, 82});
  for (size_t i = 0; i < 4; ++i) {
    CHECK(step.input_slopes()[i] == doctest::Approx(kSlope * (i % 2 == 0 ? 25 : 18)));
  }
  const std::vector<float> expected = {12, 28, 44,  //
                                       18, 42, 66,  //
                                       -1, -1, -1,  // biases, which nobody writes
                                       4,  4,       //
                                       6,  6,       //
                                       14, 14,      //
                                       -1, -1};
  for (size_t i = 0; i < expected.size(); ++i) {
    CHECK(gradient[i] == doctest::Approx(expected[i] < 0 ? expected[i] : kSlope * expected[i]));
  }
}

TEST_CASE("limit: each block's weights are those after its own gradients, in the server and in the client") {
  if (!CanExchange()) return;
  LimitPlan plan = SmallPlan();
  plan.clients = 1;
  plan.exchanges = 10;  // the first two of four blocks three times, the others twice
  plan.parameters = 8;
  plan.block = 2;
  plan.rate = 0.25f;
  const Ending ending = RunOneClient(plan);
  CheckClose(ending.client, ending.server);
  for (size_t i = 0; i < ending.server.size(); ++i) {
    CHECK(ending.server[i] == doctest::Approx(kFirstValue * (1 - (i < 4 ? 3 : 2) * 0.25)));
  }
}

TEST_CASE("limit: weights after steps are those of the same steps one after another, in one block or many") {
  if (!CanExchange()) return;
  constexpr int64_t kSteps = 5;
  LimitPlan plan = StepPlan();
  plan.clients = 1;
  plan.rate = 10;
  plan.open = 1;
  plan.exchanges = kSteps;
  SUBCASE("one") {}
  SUBCASE("many") {
    plan.open = 3;
    plan.block = plan.parameters / 4;
    plan.exchanges = kSteps * plan.blocks();
  }
  const Ending ending = RunOneClient(plan);
  const auto size = static_cast<size_t>(plan.parameters);
  LimitStep step(plan, RandomBatch(plan));
  std::vector<float> seen(size);  // none before the first answer
  std::vector<float> weights(size, kFirstValue);
  std::vector<float> gradient(size, kFirstValue);
  for (int64_t i = 0; i < kSteps; ++i) {
    step.Run(seen.data(), gradient.data());
    for (size_t j = 0; j < size; ++j) weights[j] -= plan.rate * gradient[j];
    seen = weights;
  }
  CheckClose(ending.server, weights);
  CheckClose(ending.client, weights);
}

TEST_CASE("limit: a pull brings the server's weights to the client") {
  if (!CanExchange()) return;
  LimitPlan plan = PullPlan();
  plan.clients = 1;
  const Ending ending = RunOneClient(plan);
  CHECK(ending.client == std::vector<float>(static_cast<size_t>(plan.parameters), kFirstValue));
}

TEST_CASE("limit: without passes blocks are moved and weights stay as they are") {
  if (!CanExchange()) return;
  LimitPlan plan = SmallPlan();
  plan.clients = 1;
  plan.parameters = plan.block = 1024;
  plan.rate = 1;
  plan.passes = false;
  const Ending ending = RunOneClient(plan);
  CHECK(ending.server == std::vector<float>(1024, kFirstValue));
  CHECK(ending.client == std::vector<float>(1024, 0));
}

namespace {

RowPlan SmallRowPlan() {
  RowPlan plan;
  plan.exchanges = 20;
  plan.batch = 4;
  plan.features = 3;
  plan.rows = 64;
  plan.used_rows = 50;
  plan.pool = 20;
  plan.blocks = 3;
  plan.rate = 0.125f;
  return plan;
}

// What the server holds when its only client, a thread, is done.
struct RowEnding {
  LimitResult result;
  std::vector<float> rows;
  std::vector<float> layers;
};

RowEnding RunRows(const RowPlan& plan) {
  RawSocket socket(ZMQ_ROUTER);
  RowServer server(plan, socket);
  const std::string endpoint = socket.Bind();
  std::thread client([&] { RunRowClient(plan, endpoint); });
  const LimitResult result = server.Run();
  client.join();
  return {result, {server.rows(), server.rows() + plan.rows * plan.row_floats()}, server.layers()};
}

// The features of a step's batch.
const uint32_t* BatchOf(const RowPlan& plan, const std::vector<uint32_t>& pool, int64_t step) {
  return pool.data() + step % plan.steps_in_pool() * plan.batch * plan.features;
}

}  // namespace

TEST_CASE("limit of rows: the table has the updates of each step, one after another") {
  if (!CanExchange()) return;
  const RowPlan plan = SmallRowPlan();
  const RowEnding ending = RunRows(plan);
  CHECK(ending.result.bytes_per_exchange > 3 * 2 * 64);
  const std::vector<uint32_t> pool = PoolOf(plan);
  std::vector<float> weights(64);
  for (int64_t step = 0; step < plan.exchanges; ++step) {
    const uint32_t* const batch = BatchOf(plan, pool, step);
    std::vector<float> gradient(64);
    for (int row = 0; row < 4; ++row) {
      float sum = 1;
      for (int i = 0; i < 3; ++i) sum += weights[batch[row * 3 + i]];
      for (int i = 0; i < 3; ++i) gradient[batch[row * 3 + i]] += sum;
    }
    for (size_t i = 0; i < 64; ++i) weights[i] -= plan.rate * gradient[i];
  }
  CheckClose(ending.rows, weights);
}

TEST_CASE("limit of rows: with layers both have the updates of each step by adagrad, one after another") {
  if (!CanExchange()) return;
  RowPlan plan = SmallRowPlan();
  plan.width = 3;  // a weight and two values
  plan.adagrad = true;
  plan.rate = 10;
  plan.layers = {3 * 2 + 1, 4, 1};
  const RowEnding ending = RunRows(plan);
  CHECK(ending.result.bytes_per_exchange > 4 * 2 * 64 + 2 * plan.flat() * 4);
  const std::vector<uint32_t> pool = PoolOf(plan);
  LimitPlan of_layers;
  of_layers.layers = plan.layers;
  of_layers.batch = plan.batch;
  LimitStep net(of_layers, RandomBatch(of_layers), true);
  const auto flat = static_cast<size_t>(plan.flat());
  std::vector<float> layers(flat, kFirstValue), layer_sums(flat, kFirstAccumulator);
  std::vector<float> rows(64 * 3), row_sums(64 * 3, kFirstAccumulator);
  const auto update = [&](const std::vector<float>& gradient, std::vector<float>* weights,
                          std::vector<float>* sums) {
    for (size_t i = 0; i < gradient.size(); ++i) {
      (*sums)[i] += gradient[i] * gradient[i];
      (*weights)[i] -= plan.rate * gradient[i] / std::sqrt((*sums)[i]);
    }
  };
  for (int64_t step = 0; step < plan.exchanges; ++step) {
    const uint32_t* const batch = BatchOf(plan, pool, step);
    std::vector<float> gradient(64 * 3), layers_gradient(flat);
    for (int row = 0; row < 4; ++row) {
      for (int i = 0; i < 3; ++i) {
        std::copy_n(rows.data() + batch[row * 3 + i] * 3 + 1, 2, net.inputs() + row * 7 + i * 2);
      }
    }
    net.Run(layers.data(), layers_gradient.data());
    for (int row = 0; row < 4; ++row) {
      float sum = 1;
      for (int i = 0; i < 3; ++i) sum += rows[batch[row * 3 + i] * 3];
      for (int i = 0; i < 3; ++i) {
        float* const of_row = gradient.data() + batch[row * 3 + i] * 3;
        of_row[0] += sum;
        for (int j = 0; j < 2; ++j) of_row[1 + j] += net.input_slopes()[row * 7 + i * 2 + j];
      }
    }
    update(gradient, &rows, &row_sums);
    update(layers_gradient, &layers, &layer_sums);
  }
  CheckClose(ending.layers, layers);
  std::vector<float> table;
  for (size_t row = 0; row < 64; ++row) {
    table.insert(table.end(), rows.data() + row * 3, rows.data() + row * 3 + 3);
    table.insert(table.end(), row_sums.data() + row * 3, row_sums.data() + row * 3 + 3);
  }
  CheckClose(ending.rows, table);
}

}  // namespace dtrain::bench
