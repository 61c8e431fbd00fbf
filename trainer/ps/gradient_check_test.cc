#include "trainer/ps/gradient_check.h"

#include <doctest/doctest.h>

#include <limits>
#include <string>
#include <vector>

#include "base/error.h"
#include "trainer/ps/gradient_reader.h"
#include "trainer/ps/ps_test_util.h"

namespace dtrain {
namespace {

// A gradient as worker 0 of one would push it: of `values` floats, all of them `value`.
class Pushed {
 public:
  explicit Pushed(size_t values = 2, float value = 1, uint32_t block = 0, uint64_t checksum = 0,
                  net::Compression form = net::Compression::kNone, uint32_t rows = 1)
      : values_(values, value),
        message_(encoder_.Push({}, block, rows, checksum,
                               {reinterpret_cast<const std::byte*>(values_.data()),
                                values_.size() * sizeof(float), nullptr, nullptr},
                               0, {}, {}, form)) {}
  const wire::Push& push() const { return *net::Decode(message_)->body_as_Push(); }
  net::TensorView gradient() const { return net::Tensor(message_, push()); }

 private:
  const std::vector<float> values_;
  net::Encoder encoder_;
  const net::Message message_;
};

// Linear regression has a weight and a bias.
class Ps : public PsFixture {
 public:
  explicit Ps(const Config& config = LinearCluster(1, 1, 10)) : PsFixture(config) {}
  std::string Judge(const Pushed& pushed) {
    const GradientCheck check(config, {Role::kPs, 0}, shard, rule);
    const std::string wrong = check.WhyNot(*members.Worker(0), pushed.push(), pushed.gradient());
    if (wrong.empty()) check.CheckFinite(*members.Worker(0), pushed.push(), pushed.gradient());
    return wrong;
  }
};

TEST_CASE("gradient check: a block of the right size, in turn, may be applied") {
  CHECK(Ps().Judge(Pushed()).empty());
}

TEST_CASE("gradient check: a block out of turn, or of another size, is told from the one that is due") {
  CHECK(Ps().Judge(Pushed(2, 1, 3)) == "it has block 3, and block 0 is the next");
  CHECK(Ps().Judge(Pushed(3)) == "block 0 of 1 row has 12 bytes, that of ps 0 has 8");
}

TEST_CASE("gradient check: one of no rows has no values, in any form") {
  CHECK(Ps().Judge(Pushed(0, 1, 0, 0, net::Compression::kNone, 0)).empty());
  CHECK(Ps().Judge(Pushed(2, 1, 0, 0, net::Compression::kNone, 0)) ==
        "block 0 of 0 rows has 8 bytes, that of ps 0 has 0");
  CHECK(Ps().Judge(Pushed(0)) == "block 0 of 1 row has 0 bytes, that of ps 0 has 8");
  Config config = LinearCluster(1, 1, 10);
  config.net.compress.push = net::Compression::kInt8;
  CHECK(Ps(config).Judge(Pushed(0, 1, 0, 0, net::Compression::kInt8, 0)).empty());
}

TEST_CASE("gradient check: values come in the form of net.compress.push, and in no other") {
  CHECK(Ps().Judge(Pushed(2, 1, 0, 0, net::Compression::kInt8)) ==
        "block 0 has its values as int8, and must have them as none (net.compress.push)");
  Config config = LinearCluster(1, 1, 10);
  config.net.compress.push = net::Compression::kBf16;
  CHECK(Ps(config).Judge(Pushed()) ==
        "block 0 has its values as none, and must have them as bf16 (net.compress.push)");
  CHECK(Ps(config).Judge(Pushed(2, 1, 0, 0, net::Compression::kBf16)) ==
        "block 0 of 1 row has 8 bytes, that of ps 0 has 4");
  const Pushed two(1, 1, 0, 0, net::Compression::kBf16);
  Ps ps(config);
  const GradientCheck check(ps.config, {Role::kPs, 0}, ps.shard, ps.rule);
  CHECK(check.WhyNot(*ps.members.Worker(0), two.push(), two.gradient()).empty());
}

TEST_CASE("gradient reader: keys behind the gradient of a block of no table are refused") {
  Ps ps;
  const std::vector<float> values(3, 1);  // the last in the place of keys
  net::PushedRows rows;
  rows.keys = 1;
  rows.key_bytes = sizeof(float);
  net::Encoder encoder;
  net::Message message = encoder.Push(
      {}, 0, 1, 0, {values.data(), values.size() * sizeof(float), nullptr, nullptr}, 0, {}, rows);
  GradientReader reader(ps.config, {Role::kPs, 0}, ps.shard, ps.rule);
  CHECK(reader.Read(*ps.members.Worker(0), 1, *net::Decode(message)->body_as_Push(), &message) ==
        "it has 4 bytes of keys, and block 0 is of no table");
}

TEST_CASE("gradient check: bytes that are not those of the checksum are refused") {
  const Pushed plain;
  const uint64_t sum = net::PayloadChecksum(plain.gradient().data, plain.gradient().size);
  CHECK(Ps().Judge(Pushed(2, 1, 0, sum)).empty());
  CHECK(Ps().Judge(Pushed(2, 1, 0, sum + 1)) ==
        "its bytes do not have the checksum that it names (net.checksum)");
}

TEST_CASE("gradient check: without initial values there is nothing to apply it to") {
  Ps ps;
  const Shard fresh(MakeParts(ps.config, ps.layout, 0));
  const GradientCheck check(ps.config, {Role::kPs, 0}, fresh, ps.rule);
  const Pushed pushed;
  CHECK(check.WhyNot(*ps.members.Worker(0), pushed.push(), pushed.gradient()) ==
        "there are no initial values yet");
}

TEST_CASE("gradient check: a step that the leader has not granted is not taken") {
  Ps ps;
  ps.fake().may_step = false;
  CHECK(ps.Judge(Pushed()) == "its step was not granted");
}

TEST_CASE("gradient check: a value that is not finite ends the run, unless hooks.stop_on_nan is off") {
  const Pushed broken(2, std::numeric_limits<float>::infinity());
  Config config = LinearCluster(1, 1, 10);
  config.hooks.stop_on_nan = NonFinite::kStop;
  CHECK_THROWS_WITH_AS(Ps(config).Judge(broken),
                       doctest::Contains("worker 0, local step 1, at version 0 of ps 0: in its gradient "
                                         "weights/W1[0] is inf: the run has diverged"),
                       Failure);
  config.hooks.stop_on_nan = NonFinite::kApply;
  CHECK(Ps(config).Judge(broken).empty());
}

}  // namespace
}  // namespace dtrain
