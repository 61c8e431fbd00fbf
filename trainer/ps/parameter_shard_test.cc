#include "trainer/ps/parameter_shard.h"

#include <doctest/doctest.h>

#include <cstring>

#include "base/crc32c.h"
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

const float* Floats(const net::LentBytes& bytes) { return static_cast<const float*>(bytes.data); }

TEST_CASE("shard: each gradient raises the version by one and is applied once") {
  Fixture f(false);
  ParameterShard shard(f.config, f.layout, 0);
  shard.Initialise();
  const float gradient[] = {1, -2};
  shard.Apply(View(gradient, 2));
  shard.Apply(View(gradient, 2));
  CHECK(shard.version() == 2);
  const net::LentBytes now = shard.Lend();
  CHECK(Floats(now)[0] == 1.0f);
  CHECK(Floats(now)[1] == 4.0f);
  now.release(now.context);
}

TEST_CASE("shard: a version that is lent out is not written again") {
  Fixture f(true);
  ParameterShard shard(f.config, f.layout, 0);
  shard.Initialise();
  const net::LentBytes first = shard.Lend();
  const uint64_t first_sum = shard.checksum();
  const float gradient[] = {1, 1};
  for (int i = 0; i < 5; ++i) {
    shard.Apply(View(gradient, 2));
    const net::LentBytes other = shard.Lend();
    other.release(other.context);
  }
  CHECK(Floats(first)[0] == 2.0f);
  CHECK(net::PayloadChecksum(first.data, first.size) == first_sum);
  first.release(first.context);
  CHECK(shard.version() == 5);
}

TEST_CASE("shard: initial values are set once") {
  Fixture f(false);
  ParameterShard shard(f.config, f.layout, 0);
  CHECK_FALSE(shard.initialised());
  shard.Initialise();
  const float gradient[] = {1, 1};
  shard.Apply(View(gradient, 2));
  shard.Initialise();
  const net::LentBytes now = shard.Lend();
  CHECK(Floats(now)[0] == 1.5f);
  now.release(now.context);
}

TEST_CASE("shard: checksums of the parts of two ps combine to that of one") {
  Fixture f(false);
  f.config.cluster.ps.push_back("127.0.0.1:10002");
  const Layout two = PlaceVariables(ModelVariables(f.config.model), 2, PlacementConfig());
  uint32_t combined = 0;
  for (int ps = 0; ps < 2; ++ps) {
    ParameterShard shard(f.config, two, ps);
    shard.Initialise();
    for (const PartChecksum& part : shard.PartChecksums()) {
      combined = Crc32cCombine(combined, part.crc, static_cast<uint64_t>(part.bytes));
    }
  }
  const float whole[] = {2, 2};
  CHECK(combined == Crc32cExtend(0, whole, sizeof whole));
}

}  // namespace
}  // namespace dtrain
