#include "trainer/shard/shard_report.h"

#include <doctest/doctest.h>

#include <cmath>
#include <vector>

#include "trainer/model/model.h"
#include "trainer/testing/small_config.h"

namespace dtrain {
namespace {

ShardReport Report(int64_t inputs, std::vector<float> weights) {
  Config config = LinearCluster(1, 1, 10);
  config.model.inputs = inputs;
  const Layout layout = PlaceVariables(ModelVariables(config.model), 1, config.placement);
  weights.resize(static_cast<size_t>(layout.size), 0.5f);
  return ReportShard(layout, 0, [&](int64_t) { return weights.data(); });
}

TEST_CASE("shard report: the values of models of up to 64 values are in it") {
  for (const int64_t inputs : {63, 64}) {
    const ShardReport report = Report(inputs, {});
    REQUIRE(report.parts.size() == 2);
    CHECK(report.parts[0].values.size() == (inputs == 63 ? 63 : 0));
    CHECK(report.non_finite.empty());
  }
}

TEST_CASE("shard report: it names the first value that is not finite") {
  CHECK(Report(3, {1, std::nanf(""), INFINITY}).non_finite == "weights/W1[1] is nan");
}

}  // namespace
}  // namespace dtrain
