// flowers.csv is what write_flowers prints: whoever wants other flowers can make them.
#include <doctest/doctest.h>

#include <cstdio>
#include <string>

#include "base/testing/files.h"

namespace {

std::string OutputOf(const char* command) {
  std::FILE* const output = popen(command, "r");
  REQUIRE(output != nullptr);
  std::string text;
  for (int c = std::fgetc(output); c != EOF; c = std::fgetc(output)) text += static_cast<char>(c);
  CHECK(pclose(output) == 0);
  return text;
}

TEST_CASE("flowers.csv: is what write_flowers prints") {
  const std::string text = dtrain::testing::FileContent("configs/data/flowers.csv");
  CHECK(text.size() > 3000);
  CHECK(OutputOf("configs/data/write_flowers") == text);
}

}  // namespace
