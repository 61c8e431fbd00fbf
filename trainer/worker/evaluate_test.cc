#include "trainer/worker/evaluate.h"
#include "trainer/data/load_data.h"

#include <doctest/doctest.h>

namespace dtrain {
namespace {

TEST_CASE("evaluate: a run without the set that eval.on names has no evaluation") {
  Config config;
  CHECK(EvaluationSource(config, LoadedData()) == nullptr);
}

}  // namespace
}  // namespace dtrain
