#include "trainer/table/block_memory.h"

#include <doctest/doctest.h>

#include <cstring>
#include <fstream>
#include <vector>

#include "base/error.h"

namespace dtrain {
namespace {

int64_t ResidentBytes() {
  std::ifstream file("/proc/self/statm");
  int64_t all = 0, resident = 0;
  file >> all >> resident;
  return resident * 4096;
}

TEST_CASE("block memory: a block that was given back takes no memory, and is taken again") {
  constexpr size_t kBytes = 300'000;
  BlockMemory memory;
  CHECK(BlockMemory::Taken(kBytes) == 303'104);  // whole pages
  CHECK(BlockMemory::Taken(100) == 100);
  std::vector<std::byte*> blocks;
  const int64_t before = ResidentBytes();
  for (int i = 0; i < 300; ++i) {  // more than one region
    blocks.push_back(memory.Take(kBytes));
    std::memset(blocks.back(), i, kBytes);
  }
  CHECK(memory.bytes() == 300 * 303'104);
  CHECK(ResidentBytes() - before > 80'000'000);
  for (std::byte* const block : blocks) memory.Give(block, kBytes);
  CHECK(memory.bytes() == 0);
#if !defined(__SANITIZE_THREAD__)  // whose own notes on that memory stay
  CHECK(ResidentBytes() - before < 10'000'000);
#endif
  CHECK(memory.Take(kBytes) == blocks.back());
  CHECK(memory.Take(kBytes)[0] == std::byte{0});
}

TEST_CASE("block memory: each of those that share the machine leaves room for the others") {
  RowMemory memory;
  memory.left = [] { return MachineMemory{200 << 20, "the test"}; };
  BlockMemory alone(memory);
  CHECK(alone.Take(300'000) != nullptr);
  memory.sharers = 3;
  BlockMemory one_of_three(memory);
  CHECK_THROWS_WITH_AS(one_of_three.Take(300'000), doctest::Contains("200.0 MiB are left (the test)"),
                       Failure);
  CHECK(one_of_three.bytes() == 0);
}

TEST_CASE("block memory: small blocks are apart") {
  BlockMemory memory;
  std::byte* const one = memory.Take(100);
  std::byte* const other = memory.Take(100);
  std::memset(one, 1, 100);
  std::memset(other, 2, 100);
  CHECK(one[99] == std::byte{1});
  memory.Give(one, 100);
  memory.Give(other, 100);
  CHECK(memory.bytes() == 0);
}

}  // namespace
}  // namespace dtrain
