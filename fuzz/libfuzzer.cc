// The entry of libFuzzer into the one target that is linked in.
#include "fuzz/target.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  return dtrain::fuzz::Targets().front().one(data, size);
}
