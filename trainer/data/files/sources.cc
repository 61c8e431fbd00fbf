#include "trainer/data/files/sources.h"

namespace dtrain {

std::vector<std::string> SourceFiles(const std::vector<std::string>& paths, const std::string&) {
  return paths;
}

}  // namespace dtrain
