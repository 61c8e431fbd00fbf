#include "trainer/data/files/sparse_line.h"

#include "base/check.h"
#include "base/error.h"
#include "trainer/data/files/libsvm_line.h"

namespace dtrain {

std::unique_ptr<LineParser> MakeLineParser(const DataConfig& data, std::optional<int64_t> inputs) {
  switch (data.train.format) {
    case DataFormat::kLibsvm:
      return MakeLibsvmParser(data, inputs);
    case DataFormat::kVw:
      throw UserError("data.train.format = vw; is not read yet. Use libsvm.");
    case DataFormat::kCriteo:
      throw UserError("data.train.format = criteo; is not read yet. Use libsvm.");
    default:
      break;
  }
  DT_CHECK(false, static_cast<int>(data.train.format));
  return nullptr;
}

}  // namespace dtrain
