// Lines of Criteo's logs: a row of 39 features, or a fault within the line.
#include "fuzz/input.h"
#include "fuzz/sparse_line.h"
#include "trainer/config/config.h"
#include "trainer/rows/criteo_line.h"

namespace dtrain::fuzz {
namespace {

int FuzzOne(const uint8_t* data, size_t size) {
  Input input(data, size);
  DataConfig config;
  config.train.format = DataFormat::kCriteo;
  config.hash_bits = 1 + static_cast<int64_t>(input.Below(40));
  const uint64_t inputs = input.Flag() ? uint64_t{1} << *config.hash_bits : 1 + input.Short();
  ParseLines(MakeCriteoParser(config, {static_cast<int64_t>(inputs)}).get(), input.Rest(), inputs);
  return 0;
}

const AddTarget added("criteo", FuzzOne);

}  // namespace
}  // namespace dtrain::fuzz
