#include "trainer/task/traffic.h"

#include <doctest/doctest.h>

#include "trainer/model/layout.h"
#include "trainer/task/run_task.h"
#include "trainer/testing/small_config.h"

namespace dtrain {
namespace {

TEST_CASE("traffic: a step of two values is the header that docs/wire.md shows with a loss, and its answer") {
  Config config = LinearCluster(1, 1, 1);
  config.net.checksum = false;
  const Traffic step = StepTraffic(config, MakeLayout(config, 1), 0);
  CHECK(step.in == 96 + 8);
  CHECK(step.out > 2 * 4 + 44);
}

TEST_CASE("traffic: a step of many blocks is as many messages") {
  Config config = LinearCluster(1, 1, 1);
  const auto step = [&](int64_t blocks) {
    config.model.inputs = blocks * kBlockValues - 1;  // and a bias
    return StepTraffic(config, MakeLayout(config, 1), 0);
  };
  CHECK(step(5).in - step(4).in == step(4).in - step(3).in);
  CHECK(step(5).out - step(4).out == step(4).out - step(3).out);
  CHECK(step(4).in - step(3).in > 4.0 * kBlockValues);
}

TEST_CASE("traffic: a compressed step is each direction in its form, and an evaluation is in full") {
  Config config = DigitsCluster(1, 1, 1);
  const auto layout = [&] { return MakeLayout(config, 1); };
  const Traffic plain = StepTraffic(config, layout(), 0);
  config.net.compress = {net::Compression::kTopk, net::Compression::kInt8};
  const Traffic step = StepTraffic(config, layout(), 0);
  CHECK(step.in < plain.in / 15);
  CHECK(step.out < plain.out / 3.5);
  CHECK(RunTraffic(config, layout(), 0, 1, 10).out > 10 * step.out + plain.out);
}

TEST_CASE("traffic: a ps without a range still answers each step") {
  const Config config = LinearCluster(3, 1, 1);
  const Layout layout = MakeLayout(config, 3);  // of two values
  int empty = 0;
  for (int ps = 0; ps < 3; ++ps) {
    if (layout.ps[static_cast<size_t>(ps)].size() > 0) continue;
    ++empty;
    CHECK(StepTraffic(config, layout, ps).in >= 44);
    CHECK(StepTraffic(config, layout, ps).out >= 44);
  }
  CHECK(empty == 1);
}

TEST_CASE("traffic: a push takes a ps's processor a time for each message and each value, more over TCP") {
  Config config = LinearCluster(1, 1, 1);
  const auto push = [&](int64_t blocks, bool local) {
    config.model.inputs = blocks * kBlockValues - 1;  // and a bias
    return PushMicroseconds(MakeLayout(config, 1), 0, local);
  };
  for (const bool local : {true, false}) {
    CHECK(push(4, local) == doctest::Approx(4 * push(1, local)));
    CHECK(push(1, local) > 100);
  }
  CHECK(push(1, false) > push(1, true));
}

TEST_CASE("traffic: with replicas a ps sends each gradient on, in sync each round's sum") {
  Config config = LinearCluster(3, 4, 1);
  config.model.inputs = 3 * kBlockValues - 1;  // and a bias
  const Layout layout = MakeLayout(config, 3);
  const auto step = [&](int ps) { return StepTraffic(config, layout, ps); };
  const double block = 4.0 * kBlockValues, messages = 300;
  Traffic plain[3];
  const auto sent_on = [&](int ps) { return step(ps).out - plain[ps].out; };
  for (const auto& [mode, of_gradient] :
       {std::pair{TrainMode::kAsync, 1.0}, {TrainMode::kSsp, 1.0}, {TrainMode::kSync, 0.25}}) {
    config.train.mode = mode;
    config.failure.replicas = 0;
    for (int ps = 0; ps < 3; ++ps) plain[ps] = step(ps);
    config.failure.replicas = 1;
    for (int ps = 0; ps < 3; ++ps) {
      CHECK(sent_on(ps) > of_gradient * block);
      CHECK(sent_on(ps) < of_gradient * block + messages);
      const int holder = (ps + 1) % 3;
      CHECK(step(holder).in - plain[holder].in == sent_on(ps));
    }
  }
  config.train.aggregate = 2;
  CHECK(sent_on(1) > 0.5 * block);
  config.train.optimizer.kind = OptimizerKind::kAdam;
  const double of_ten = RunTraffic(config, layout, 1, 4, 10).out, in_ten = 10 * sent_on(1);
  config.failure.replicas = 0;
  CHECK(of_ten - RunTraffic(config, layout, 1, 4, 10).out == doctest::Approx(in_ten + 3 * block));
}

TEST_CASE(
    "traffic: with replicas the rows of a gradient and its keys are sent on, in sync with those of a sum") {
  Config config = LinearCluster(2, 2, 1);
  config.data.train.format = DataFormat::kLibsvm;
  config.model.inputs = 1 << 20;
  const Layout layout = TableLayoutOf(config.model, 2);
  const auto sent_on = [&](double keys) {
    config.failure.replicas = 1;
    const double with = StepTraffic(config, layout, 1, keys).out;
    config.failure.replicas = 0;
    return with - StepTraffic(config, layout, 1, keys).out;
  };
  const auto of_row = [&] { return (sent_on(20000) - sent_on(10000)) / 5000; };
  CHECK(of_row() == doctest::Approx(4 + 0.95).epsilon(0.1));
  config.train.mode = TrainMode::kSync;
  CHECK(of_row() == doctest::Approx(4 + 0.85 + 0.95).epsilon(0.1));
}

// The max share of the messages that are not counted: greetings, and a few repeats on a busy machine.
constexpr double kTolerance = 0.04;

TEST_CASE("traffic: a run moves what was foretold, by what its result says was sent and was received") {
  for (const auto& [ps, form] :
       {std::pair{1, net::Compression::kNone}, {2, net::Compression::kNone}, {2, net::Compression::kInt8}}) {
    for (const EvalBy by : {EvalBy::kChief, EvalBy::kAll}) {
      Config config = DigitsCluster(ps, 2, 1);
      config.data.train.rows = 8000;  // 160 steps of 31 KB
      config.eval.by = by;
      config.net.compress = {form, form};
      Traffic all;
      for (int i = 0; i < ps; ++i) all += RunTraffic(config, MakeLayout(config, ps), i, 2, 160);
      LogOptions log;
      log.level = LogLevel::kWarning;
      const RunSummary summary = RunClusterInProcess(config, log, {});
      CAPTURE(ps);
      REQUIRE(summary.global_step == 160);
      CHECK(summary.train_s.value_or(0) > 0);
      CHECK(summary.first_step_nanos > 0);
      const double foretold = all.in + all.out;
      CHECK(static_cast<double>(summary.bytes_sent) == doctest::Approx(foretold).epsilon(kTolerance));
      CHECK(static_cast<double>(summary.bytes_received) == doctest::Approx(foretold).epsilon(kTolerance));
    }
  }
}

TEST_CASE("traffic: a batch that is fed is its features as the data set keeps them, labels and headers") {
  Config config = DigitsCluster(1, 2, 1);
  const Traffic images = FeedTraffic(config, 50, true);
  CHECK(images.out > 50 * 788);
  CHECK(images.out < 50 * 788 + 200);
  CHECK(images.in < 120);
  CHECK(FeedTraffic(config, 50, false).out - images.out == 50 * 784 * 3);
  CHECK(FeedTraffic(config, 1000000000, true).out > 788e9);  // and takes no memory
  config.data.train.format = DataFormat::kLibsvm;
  config.model.inputs = 1 << 20;
  config.data.class_weights = {"balanced"};
  const Traffic sparse = FeedTraffic(config, 1000, false, 20);
  CHECK(sparse.out > 1000 * (4 + 4 + 4 + 20 * (4 + 3)));
  CHECK(sparse.out < 1000 * (4 + 4 + 4 + 20 * (4 + 3)) + 200);
}

TEST_CASE("traffic: a step of a table moves the rows of its batch and the keys of another one") {
  Config config = LinearCluster(2, 1, 1);
  config.data.train.format = DataFormat::kLibsvm;
  config.model.inputs = 1 << 20;
  const Layout layout = TableLayoutOf(config.model, 2);
  const auto step = [&](double keys) { return StepTraffic(config, layout, 1, keys); };
  const double packed_key = (step(20000).in - step(10000).in) / 5000 - 4;
  CHECK(packed_key == doctest::Approx(0.95).epsilon(0.1));  // 52 rows lie between two of 10,000
  CHECK(step(20000).out - step(10000).out == 5000 * 4);
  CHECK(step(20000).out > 40000);
  const Traffic first = RunTraffic(config, layout, 1, 1, 0, 20000);  // which pulls rows and pushes none
  CHECK(first.in > 10000);
  CHECK(first.in < 12000);
  CHECK(RunTraffic(config, layout, 1, 3, 10, 20000).in == 10 * step(20000).in + 3 * first.in);
}

}  // namespace
}  // namespace dtrain
