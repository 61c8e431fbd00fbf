// YAML and configs: a text is a config, or the user is told why not.
#include "base/error.h"
#include "fuzz/input.h"
#include "fuzz/target.h"
#include "trainer/config/load.h"

namespace dtrain::fuzz {
namespace {

int FuzzOne(const uint8_t* data, size_t size) {
  Input input(data, size);
  LoadOptions options;
  options.cluster_optional = input.Flag();
  std::vector<std::string> sets;
  if (input.Flag()) sets.push_back(input.Text(100));
  const MemoryFile file(input.Rest());
  try {
    LoadConfig(file.path(), sets, options);
  } catch (const UserError&) {
  }
  return 0;
}

const AddTarget added("config", FuzzOne);

}  // namespace
}  // namespace dtrain::fuzz
