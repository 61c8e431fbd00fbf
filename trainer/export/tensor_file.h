// Tensors in files of other programs, and the numbers that they hold.
// Owner: the command. Thread: one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"

namespace dtrain {

// The numbers that files of tensors hold, and how they become float32.
enum class ElementType { kFloat32, kFloat64, kFloat16, kBfloat16 };

int64_t BytesOf(ElementType type);
// "F32" of safetensors; unset: not one of these.
std::optional<ElementType> FromSafetensors(const std::string& name);
// The bytes of an element of a type that safetensors has and we do not read ("I64"); unset: not known.
std::optional<int64_t> BytesOfForeign(const std::string& name);
// "<f4" of numpy, little-endian; unset: not one of these.
std::optional<ElementType> FromNumpy(const std::string& descr);

// A finite float64 whose float32 is not.
struct BeyondFloat32 {
  int64_t element = 0;
  double value = 0;
  // "weights/W1[0, 1] is 1e+299 in the file, ..."
  std::string Text(const std::string& element_text) const;
};

// `count` elements as `read(bytes, to)` gives them, one piece after the other, rounded to the nearest
// float32. The first that is beyond it ends the reading; unset: there is none.
std::optional<BeyondFloat32> ReadElements(ElementType type, int64_t count,
                                          const std::function<void(uint64_t bytes, void* to)>& read,
                                          float* out);

// [rows, cols] row by row into [cols, rows] row by row.
void Transpose(int64_t rows, int64_t cols, const float* from, float* to);

// Without the sides of 1: a column, a row and a vector are the same values in the same order.
std::vector<int64_t> Squeezed(std::vector<int64_t> shape);

// The product of the sides times the bytes of an element; unset where that is no 62-bit number.
std::optional<int64_t> BytesOfShape(const std::vector<int64_t>& shape, int64_t element_bytes);

// TensorFile: tensors of a .safetensors or .npz file by name, as float32, whatever they are stored as. The
// file may come from anywhere: every length and offset in it is held against the file's size before it is
// used, and no memory is taken on its word. Errors are UserErrors that begin with the path. Owner: the
// command. Thread: one.
struct FileTensor {
  std::string name;
  std::vector<int64_t> shape;
  std::string unreadable = {};  // why Read() cannot be asked for it; empty: it can
  int64_t size() const;         // elements
  // "100 x 10"; "scalar".
  std::string ShapeText() const;
  // "weights/W1[3, 5]": an element by its place in the order of rows.
  std::string ElementText(int64_t element) const;
};

class TensorFile {
 public:
  virtual ~TensorFile() = default;
  const std::vector<FileTensor>& tensors() const { return tensors_; }
  // Names of what is in the file and no tensor.
  const std::vector<std::string>& others() const { return others_; }
  // What a safetensors file says of itself: texts by name, values that are no text as JSON.
  const std::map<std::string, std::string>& metadata() const { return metadata_; }
  // All elements of tensors()[index], row by row, to out[size()].
  virtual void Read(size_t index, float* out) = 0;

 protected:
  std::vector<FileTensor> tensors_;
  std::vector<std::string> others_;
  std::map<std::string, std::string> metadata_;
};

// Its first bytes tell which of the two it is.
std::unique_ptr<TensorFile> OpenTensorFile(const std::string& path);

// SourceFile: a file that is read at given places. Owner: a TensorFile. Thread: one.
class SourceFile {
 public:
  // Throws UserError where it cannot be read.
  explicit SourceFile(const std::string& path);
  ~SourceFile();
  SourceFile(const SourceFile&) = delete;
  SourceFile& operator=(const SourceFile&) = delete;

  const std::string& path() const { return path_; }
  uint64_t size() const { return size_; }
  // UserError where the file ends before.
  void ReadAt(uint64_t offset, uint64_t bytes, void* out) const;
  // Whether `bytes` bytes from `offset` are in the file.
  bool Holds(uint64_t offset, uint64_t bytes) const { return offset <= size_ && bytes <= size_ - offset; }
  // A UserError that begins with the path.
  [[noreturn]] void Refuse(const std::string& text) const { throw UserError("{}: {}", path_, text); }

 private:
  const std::string path_;
  int fd_ = -1;
  uint64_t size_ = 0;
};

// One of a format, which the first bytes have told (OpenTensorFile).
std::unique_ptr<TensorFile> OpenSafetensors(std::unique_ptr<SourceFile> file);
std::unique_ptr<TensorFile> OpenNpz(std::unique_ptr<SourceFile> file);

}  // namespace dtrain
