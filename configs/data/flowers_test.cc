// flowers.csv is what write_flowers prints: whoever wants other flowers can make them.
#include <doctest/doctest.h>

#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>

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
  std::ifstream file("configs/data/flowers.csv");
  const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  CHECK(text.size() > 3000);
  CHECK(OutputOf("configs/data/write_flowers") == text);
}

}  // namespace
