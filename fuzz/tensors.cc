// Files of tensors, .safetensors and .npz: no memory on their word.
#include <vector>

#include "base/error.h"
#include "fuzz/input.h"
#include "fuzz/target.h"
#include "trainer/export/tensor_file.h"

namespace dtrain::fuzz {
namespace {

int FuzzOne(const uint8_t* data, size_t size) {
  const MemoryFile bytes(Input(data, size).Rest());
  try {
    const std::unique_ptr<TensorFile> file = OpenTensorFile(bytes.path());
    for (size_t i = 0; i < file->tensors().size(); ++i) {
      const FileTensor& tensor = file->tensors()[i];
      if (!tensor.unreadable.empty()) continue;
      // Deflate packs at most 1032-fold, and float16 becomes twice as long.
      Require(tensor.size() >= 0 && static_cast<size_t>(tensor.size()) <= 1032 * size,
              "a tensor is in its file");
      std::vector<float> values(static_cast<size_t>(tensor.size()));
      file->Read(i, values.data());
    }
  } catch (const UserError&) {
  }
  return 0;
}

const AddTarget added("tensors", FuzzOne);

}  // namespace
}  // namespace dtrain::fuzz
