#include "trainer/data/files/sparse_line.h"

#include "base/check.h"
#include "trainer/data/files/criteo_line.h"
#include "trainer/data/files/libsvm_line.h"
#include "trainer/data/files/vw_line.h"

namespace dtrain {

std::unique_ptr<LineParser> MakeLineParser(const DataConfig& data, std::optional<int64_t> inputs,
                                           bool labels) {
  switch (data.train.format) {
    case DataFormat::kLibsvm:
      return MakeLibsvmParser(data, inputs, labels);
    case DataFormat::kVw:
      return MakeVwParser(data, inputs);
    case DataFormat::kCriteo:
      return MakeCriteoParser(data, inputs);
    default:
      break;
  }
  DT_CHECK(false, static_cast<int>(data.train.format));
  return nullptr;
}

}  // namespace dtrain
