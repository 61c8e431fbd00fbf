#include "trainer/model/device_data.h"

namespace dtrain {

using gpu::cuda::Buffer;

DeviceData::DeviceData(gpu::cuda::Queue& uploads, gpu::MatrixView<const uint8_t> bytes,
                       gpu::MatrixView<const float> floats)
    : source_(bytes.data != nullptr ? static_cast<const void*>(bytes.data) : floats.data),
      rows_(bytes.data != nullptr ? bytes.rows : floats.rows),
      columns_(bytes.data != nullptr ? bytes.cols : floats.cols) {
  constexpr const char* kWhat = "the training set (data.cache: device)";
  if (bytes.data != nullptr) {
    bytes_ = Buffer<uint8_t>(uploads, bytes.size(), kWhat);
    uploads.Copy(bytes_.data(), bytes.data, bytes_.bytes());
  } else {
    floats_ = Buffer<float>(uploads, floats.size(), kWhat);
    uploads.Copy(floats_.data(), floats.data, floats_.bytes());
  }
  uploads.Wait();
}

}  // namespace dtrain
