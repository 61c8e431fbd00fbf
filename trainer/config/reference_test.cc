#include "trainer/config/reference.h"

#include <doctest/doctest.h>

#include "base/testing/files.h"
#include "trainer/config/fields.h"

namespace dtrain {
namespace {

TEST_CASE("reference: has a row for every key") {
  const std::string text = ConfigReference();
  for (const Field& field : Fields()) CHECK(text.find("\n| `" + field.key + "` | ") != std::string::npos);
}

TEST_CASE("reference: docs/config.md is the text of the table") {
  const bool up_to_date = testing::FileContent("docs/config.md") == ConfigReference();
  CHECK_MESSAGE(up_to_date,
                "docs/config.md is stale. Run: bazel run //trainer/config:write_reference > docs/config.md");
}

}  // namespace
}  // namespace dtrain
