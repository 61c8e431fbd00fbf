#include "base/names.h"

#include <doctest/doctest.h>

namespace dtrain {
namespace {

TEST_CASE("plural: one is one, all else are many") {
  CHECK(Plural(0, "row") == "0 rows");
  CHECK(Plural(1, "row") == "1 row");
  CHECK(Plural(2, "row") == "2 rows");
  CHECK(Plural(1, "batch", "batches") == "1 batch");
  CHECK(Plural(3, "batch", "batches") == "3 batches");
}

}  // namespace
}  // namespace dtrain
