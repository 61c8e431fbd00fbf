// TensorFile: tensors of a .safetensors or .npz file by name, as float32, whatever they are stored as. The
// file may come from anywhere: every length and offset in it is held against the file's size before it is
// used, and no memory is taken on its word. Errors are UserErrors that begin with the path. Owner: the
// command. Thread: one.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace dtrain {

struct FileTensor {
  std::string name;
  std::vector<int64_t> shape;
  std::string unreadable = {};  // why Read() cannot be asked for it; empty: it can
  int64_t size() const;         // elements
  // "100 x 10"; "scalar".
  std::string ShapeText() const;
};

class TensorFile {
 public:
  virtual ~TensorFile() = default;
  const std::vector<FileTensor>& tensors() const { return tensors_; }
  // Names of what is in the file and no tensor.
  const std::vector<std::string>& others() const { return others_; }
  // All elements of tensors()[index], row by row, to out[size()].
  virtual void Read(size_t index, float* out) = 0;

 protected:
  std::vector<FileTensor> tensors_;
  std::vector<std::string> others_;
};

// Its first bytes tell which of the two it is.
std::unique_ptr<TensorFile> OpenTensorFile(const std::string& path);

}  // namespace dtrain
