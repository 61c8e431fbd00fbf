// Lines of Vowpal Wabbit's format: a row, or a fault within the line, whatever is crossed.
#include "fuzz/input.h"
#include "fuzz/sparse_line.h"
#include "trainer/config/config.h"
#include "trainer/rows/vw_line.h"

namespace dtrain::fuzz {
namespace {

int FuzzOne(const uint8_t* data, size_t size) {
  Input input(data, size);
  DataConfig config;
  config.train.format = DataFormat::kVw;
  config.hash_bits = 1 + static_cast<int64_t>(input.Below(40));
  for (size_t left = input.Below(4); left > 0; --left) {
    config.crosses.push_back({static_cast<char>(input.Byte()), static_cast<char>(input.Byte())});
  }
  const uint64_t inputs = input.Flag() ? uint64_t{1} << *config.hash_bits : 1 + input.Short();
  ParseLines(MakeVwParser(config, {static_cast<int64_t>(inputs)}).get(), input.Rest(), inputs);
  return 0;
}

const AddTarget added("vw", FuzzOne);

}  // namespace
}  // namespace dtrain::fuzz
