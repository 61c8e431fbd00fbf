#include "trainer/shard/range_part.h"

#include <doctest/doctest.h>

#include <cstring>
#include <vector>

#include "base/crc32c.h"
#include "net/codec.h"
#include "trainer/model/layout.h"
#include "trainer/model/model.h"
#include "trainer/testing/small_config.h"

namespace dtrain {
namespace {

struct Fixture {
  explicit Fixture(bool checksum) : config(LinearCluster(1, 1, 100)) {
    config.model.init.kind = InitKind::kConstant;
    config.model.init.value = 2;
    config.model.init.bias = BiasInit::kSame;
    config.train.optimizer.learning_rate = 0.5;
    config.net.checksum = checksum;
    layout = PlaceVariables(ModelVariables(config.model), 1, PlacementConfig());
  }
  Config config;
  Layout layout;
};

net::TensorView View(const float* values, size_t count) {
  return {reinterpret_cast<const std::byte*>(values), count * sizeof(float)};
}

// Gradients of batches of one size, or of so many rows each.
RoundGradients Round(const std::vector<net::TensorView>& views, const std::vector<uint32_t>& rows = {}) {
  RoundGradients round;
  for (size_t i = 0; i < views.size(); ++i) round.Add(views[i], rows.empty() ? 50 : rows[i]);
  return round;
}

void Release(const net::LentBytes& bytes) { bytes.release(nullptr, bytes.context); }

const float* Floats(const net::LentBytes& bytes) { return static_cast<const float*>(bytes.data); }

TEST_CASE("range part: each gradient raises the version by one and is applied once") {
  Fixture f(false);
  RangePart shard(f.config, f.layout, 0);
  shard.Initialise();
  const float gradient[] = {1, -2};
  shard.Apply(0, View(gradient, 2));
  shard.Apply(0, View(gradient, 2));
  CHECK(shard.version(0) == 2);
  const net::LentBytes now = shard.Lend(0);
  CHECK(Floats(now)[0] == 1.0f);
  CHECK(Floats(now)[1] == 4.0f);
  Release(now);
}

TEST_CASE("range part: initial values are made until a time, and go on where they were") {
  Fixture f(false);
  RangePart shard(f.config, f.layout, 0);
  CHECK_FALSE(shard.Initialise(TimePoint()));
  CHECK_FALSE(shard.initialised());
  CHECK(shard.Initialise());
  CHECK(shard.initialised());
}

TEST_CASE(
    "range part: the norm of a mean is that of a plain loop, and the update is scaled by what follows") {
  Fixture f(false);
  f.config.model.inputs = 10000;  // more than one tile
  f.layout = PlaceVariables(ModelVariables(f.config.model), 1, PlacementConfig());
  const size_t size = 10001;
  for (const size_t count : {1, 2, 3}) {
    RangePart shard(f.config, f.layout, 0);
    shard.Initialise();
    std::vector<std::vector<float>> gradients(count, std::vector<float>(size));
    std::vector<net::TensorView> views;
    double expected = 0;
    for (size_t i = 0; i < size; ++i) {
      double mean = 0;
      for (size_t k = 0; k < count; ++k) {
        gradients[k][i] = static_cast<float>((i * 7 + k * 31) % 23) - 11;
        mean += static_cast<double>(gradients[k][i]) / static_cast<double>(count);
      }
      expected += mean * mean;
    }
    for (const auto& gradient : gradients) views.push_back(View(gradient.data(), size));
    gpu::SquareSum squares;
    shard.AddSquaresOfMean(0, Round(views), &squares);
    CHECK(gpu::Total(squares) == doctest::Approx(expected).epsilon(1e-6));
    CHECK(shard.version(0) == 0);
    shard.ApplyMean(0, Round(views), 0.25);
    const net::LentBytes now = shard.Lend(0);
    for (const size_t i : {size_t{0}, size_t{5000}, size - 1}) {
      double mean = 0;
      for (const auto& gradient : gradients)
        mean += static_cast<double>(gradient[i]) / static_cast<double>(count);
      CHECK(Floats(now)[i] == doctest::Approx(2 - 0.5 * 0.25 * mean).epsilon(1e-6));
    }
    Release(now);
  }
}

TEST_CASE("range part: a mean of batches of unequal sizes is the mean over all their rows") {
  Fixture f(false);
  f.config.model.inputs = 10000;  // more than one tile
  f.layout = PlaceVariables(ModelVariables(f.config.model), 1, PlacementConfig());
  const size_t size = 10001;
  const std::vector<uint32_t> rows = {50, 0, 7, 50};
  RangePart shard(f.config, f.layout, 0);
  shard.Initialise();
  std::vector<std::byte> memory(rows.size() * size * sizeof(float) + 1);
  std::vector<net::TensorView> views;
  std::vector<double> mean(size);
  double expected = 0;
  for (size_t k = 0; k < rows.size(); ++k) {
    std::byte* const at = memory.data() + 1 + k * size * sizeof(float);  // at an odd address
    for (size_t i = 0; i < size; ++i) {
      const float value = static_cast<float>((i * 7 + k * 31) % 23) - 11;
      std::memcpy(at + i * sizeof(float), &value, sizeof value);
      mean[i] += static_cast<double>(value) * rows[k] / 107;
    }
    views.push_back({at, size * sizeof(float)});
  }
  for (const double value : mean) expected += value * value;
  gpu::SquareSum squares;
  shard.AddSquaresOfMean(0, Round(views, rows), &squares);
  CHECK(gpu::Total(squares) == doctest::Approx(expected).epsilon(1e-6));
  shard.ApplyMean(0, Round(views, rows), 0.25);
  const net::LentBytes now = shard.Lend(0);
  for (const size_t i : {size_t{0}, size_t{5000}, size - 1}) {
    CHECK(Floats(now)[i] == doctest::Approx(2 - 0.5 * 0.25 * mean[i]).epsilon(1e-6));
  }
  Release(now);
}

TEST_CASE("range part: gradients of equally many rows have one mean, to the bit, whatever that number is") {
  Fixture f(false);
  const float first[] = {0.1f, -2.3f}, second[] = {0.7f, 1.9f}, none[] = {0, 0}, third[] = {-0.3f, 0.2f};
  const std::vector<net::TensorView> three = {View(first, 2), View(second, 2), View(third, 2)},
                                     four = {View(first, 2), View(second, 2), View(none, 2), View(third, 2)};
  std::vector<float> expected;
  for (const RoundGradients& round : {Round(three), Round(three, {1, 1, 1}), Round(four, {7, 7, 0, 7})}) {
    RangePart shard(f.config, f.layout, 0);
    shard.Initialise();
    shard.ApplyMean(0, round);
    const net::LentBytes now = shard.Lend(0);
    if (expected.empty()) expected = {Floats(now)[0], Floats(now)[1]};
    CHECK(Floats(now)[0] == expected[0]);
    CHECK(Floats(now)[1] == expected[1]);
    Release(now);
  }
}

TEST_CASE("range part: a round without rows is a new version of the same weights, and keeps the one before") {
  for (const WorkerLost lost : {WorkerLost::kContinue, WorkerLost::kWait}) {
    Fixture f(true);
    f.config.train.mode = TrainMode::kSync;
    f.config.failure.worker_lost = lost;
    RangePart shard(f.config, f.layout, 0);
    shard.Initialise();
    const float none[] = {0, 0};
    const uint64_t sum = shard.checksum(0);
    shard.ApplyMean(0, Round({View(none, 2)}, {0}));
    CHECK(shard.version(0) == 1);
    CHECK(shard.checksum(0) == sum);
    CHECK(shard.has_previous(0) == (lost == WorkerLost::kWait));
    if (lost == WorkerLost::kWait) CHECK(shard.previous_checksum(0) == sum);
  }
}

TEST_CASE("range part: of no gradient the norm is nothing") {
  Fixture f(false);
  RangePart shard(f.config, f.layout, 0);
  gpu::SquareSum squares;
  shard.AddSquaresOfMean(0, {}, &squares);
  CHECK(gpu::Total(squares) == 0);
}

TEST_CASE("range part: a version that is lent out is not written again") {
  Fixture f(true);
  RangePart shard(f.config, f.layout, 0);
  shard.Initialise();
  const net::LentBytes first = shard.Lend(0);
  const uint64_t first_sum = shard.checksum(0);
  const float gradient[] = {1, 1};
  for (int i = 0; i < 5; ++i) {
    shard.Apply(0, View(gradient, 2));
    const net::LentBytes other = shard.Lend(0);
    Release(other);
  }
  CHECK(Floats(first)[0] == 2.0f);
  CHECK(net::PayloadChecksum(first.data, first.size) == first_sum);
  Release(first);
  CHECK(shard.version(0) == 5);
}

TEST_CASE("range part: the optimizer is told which update of its block each gradient makes") {
  Fixture f(false);
  f.config.train.optimizer.kind = OptimizerKind::kAdam;
  RangePart shard(f.config, f.layout, 0);
  shard.Initialise();
  const float gradient[] = {1, -2};
  std::vector<net::LentBytes> versions;
  for (int update = 0; update < 3; ++update) {
    shard.Apply(0, View(gradient, 2));  // with one gradient repeated, adam's steps have equal lengths
    versions.push_back(shard.Lend(0));
  }
  for (size_t update = 0; update < 3; ++update) {
    const double way = 0.5 * static_cast<double>(update + 1);
    CHECK(Floats(versions[update])[0] == doctest::Approx(2 - way));
    CHECK(Floats(versions[update])[1] == doctest::Approx(2 + way));
    Release(versions[update]);
  }
}

TEST_CASE("range part: initial values are set once") {
  Fixture f(false);
  RangePart shard(f.config, f.layout, 0);
  CHECK_FALSE(shard.initialised());
  shard.Initialise();
  const float gradient[] = {1, 1};
  shard.Apply(0, View(gradient, 2));
  shard.Initialise();
  const net::LentBytes now = shard.Lend(0);
  CHECK(Floats(now)[0] == 1.5f);
  Release(now);
}

TEST_CASE("range part: checksums of the parts of two ps combine to that of one") {
  Fixture f(false);
  f.config.cluster.ps.push_back("127.0.0.1:10002");
  const Layout two = PlaceVariables(ModelVariables(f.config.model), 2, PlacementConfig());
  uint32_t combined = 0;
  for (int ps = 0; ps < 2; ++ps) {
    RangePart shard(f.config, two, ps);
    shard.Initialise();
    for (const ShardReport::Part& part : shard.Report().parts) {
      combined = Crc32cCombine(combined, part.sum.crc, static_cast<uint64_t>(part.sum.bytes));
    }
  }
  const float whole[] = {2, 2};
  CHECK(combined == Crc32cExtend(0, whole, sizeof whole));
}

TEST_CASE("range part: a block is applied, lent and versioned apart from the others") {
  Fixture f(true);
  f.config.model.inputs = 2 * kBlockValues + 3;
  f.layout = PlaceVariables(ModelVariables(f.config.model), 1, PlacementConfig());
  RangePart shard(f.config, f.layout, 0);
  shard.Initialise();
  REQUIRE(shard.block_count() == 3);
  REQUIRE(shard.bytes(2) == 4 * sizeof(float));
  const net::LentBytes before = shard.Lend(2);
  const float gradient[] = {1, 2, 3, 4};
  shard.Apply(2, View(gradient, 4));
  CHECK(shard.version(2) == 1);
  CHECK(shard.version(0) == 0);
  CHECK(Floats(before)[3] == 2.0f);
  const net::LentBytes after = shard.Lend(2), other = shard.Lend(1);
  CHECK(Floats(after)[3] == 0.0f);
  CHECK(net::PayloadChecksum(after.data, after.size) == shard.checksum(2));
  CHECK(Floats(other)[0] == 2.0f);
  for (const net::LentBytes& bytes : {before, after, other}) Release(bytes);
}

TEST_CASE("range part: checksums of parts go across blocks") {
  Fixture f(false);
  f.config.model.inputs = kBlockValues + 7;
  f.layout = PlaceVariables(ModelVariables(f.config.model), 1, PlacementConfig());
  RangePart shard(f.config, f.layout, 0);
  shard.Initialise();
  const std::vector<float> weights(kBlockValues + 7, 2);
  const std::vector<ShardReport::Part> parts = shard.Report().parts;
  REQUIRE(parts.size() == 2);
  CHECK(parts[0].sum.bytes == static_cast<int64_t>(weights.size() * sizeof(float)));
  CHECK(parts[0].sum.crc == Crc32cExtend(0, weights.data(), weights.size() * sizeof(float)));
  CHECK(parts[1].sum.bytes == sizeof(float));
}

TEST_CASE("range part: where rounds wait for lost workers the version before is kept, whoever reads it") {
  Fixture f(true);
  f.config.train.mode = TrainMode::kSync;
  f.config.failure.worker_lost = WorkerLost::kWait;
  RangePart shard(f.config, f.layout, 0);
  shard.Initialise();
  CHECK_FALSE(shard.has_previous(0));
  const float gradient[] = {1, 1};
  std::vector<net::LentBytes> out;
  for (int i = 0; i < 4; ++i) {
    const uint64_t sum = shard.checksum(0);
    shard.Apply(0, View(gradient, 2));
    REQUIRE(shard.has_previous(0));
    CHECK(shard.previous_checksum(0) == sum);
    out.push_back(shard.LendPrevious(0, {}));
    out.push_back(shard.Lend(0));
  }
  for (size_t i = 0; i < out.size(); ++i) {
    const auto version = static_cast<float>((i + 1) / 2);
    CHECK(Floats(out[i])[0] == 2 - version / 2);
    Release(out[i]);
  }
}

TEST_CASE("range part: restored it has checksums, its version, and nothing before it") {
  Fixture f(true);
  f.config.train.mode = TrainMode::kSync;
  f.config.failure.worker_lost = WorkerLost::kWait;
  RangePart shard(f.config, f.layout, 0);
  const float values[] = {7, 8};
  CHECK(shard.Put(0, View(values, 2)) == "");
  shard.SetRestored(41);
  CHECK(shard.version(0) == 41);
  CHECK(shard.checksum(0) == net::PayloadChecksum(values, sizeof values));
  CHECK_FALSE(shard.has_previous(0));
  shard.Initialise();
  const float others[] = {1, 2};
  CHECK(shard.Put(0, View(others, 2)) == "");  // it is initialised
  const net::LentBytes now = shard.Lend(0);
  CHECK(Floats(now)[0] == 7.0f);
  Release(now);
}

TEST_CASE("range part: initial values after a restore that came to no end leave nothing of it") {
  Fixture f(false);
  f.config.train.optimizer.kind = OptimizerKind::kAdagrad;
  f.config.train.optimizer.initial_accumulator = 0.5;
  RangePart shard(f.config, f.layout, 0);
  const float values[] = {7, 8};
  CHECK(shard.Put(0, View(values, 2)) == "");
  CHECK(shard.Put(1, View(values, 2)) == "");
  shard.Initialise();
  CHECK(shard.version(0) == 0);
  const std::shared_ptr<Snapshot> snapshot = shard.TakeSnapshot();
  std::vector<float> scratch(2);
  CHECK(reinterpret_cast<const float*>(snapshot->Read(0, scratch.data())->bytes.data)[1] == 2.0f);
  CHECK(reinterpret_cast<const float*>(snapshot->Read(1, scratch.data())->bytes.data)[1] == 0.5f);
}

TEST_CASE("range part: what is restored has to be the bytes of its piece") {
  Fixture f(false);
  f.config.train.optimizer.kind = OptimizerKind::kAdam;
  RangePart shard(f.config, f.layout, 0);
  const float values[] = {7, 8, 9};
  CHECK(shard.Put(2, View(values, 2)) == "");
  CHECK(shard.Put(2, View(values, 1)) == "it has 4 bytes, not 8");
  CHECK(shard.Put(0, View(values, 3)) == "it has 12 bytes, not 8");
}

}  // namespace
}  // namespace dtrain
