#include "cmd/launch/bundled_libraries.h"

#include <link.h>

#include <filesystem>

namespace dtrain {
namespace {

namespace fs = std::filesystem;

extern "C" int AddLoaded(dl_phdr_info* info, size_t, void* names) {
  static_cast<std::vector<std::string>*>(names)->emplace_back(info->dlpi_name);
  return 0;
}

}  // namespace

std::vector<std::string> BundledLibraries(const std::string& program) {
  const fs::path root = fs::path(program).parent_path().parent_path();
  if (root == "/" || root == "/usr") return {};
  std::vector<std::string> loaded, bundled;
  dl_iterate_phdr(AddLoaded, &loaded);
  for (const std::string& name : loaded) {
    std::error_code failed;
    const fs::path directory = fs::canonical(fs::path(name).parent_path(), failed);
    if (!failed && !name.empty() && directory == root / "lib") bundled.push_back(name);
  }
  return bundled;
}

}  // namespace dtrain
