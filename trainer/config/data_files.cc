#include "trainer/config/data_files.h"

namespace dtrain {

std::vector<DataFile> DataFiles(const DataConfig& data) {
  std::vector<DataFile> files;
  const auto add = [&](const DataSourceConfig& source, const std::string& section) {
    if (source.format == DataFormat::kIdx) {
      files.push_back({section + ".images", source.images});
      files.push_back({section + ".labels", source.labels});
    }
    if (source.format == DataFormat::kCsv) files.push_back({section + ".path", source.path});
  };
  add(data.train, "data.train");
  add(data.test, "data.test");
  return files;
}

}  // namespace dtrain
