// Tensors in files of other programs, and their element types. Owner: the command. Thread: one.
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
#include "base/json.h"

namespace dtrain {

// ElementType: a type of numbers in files of tensors that can be converted to float32.
enum class ElementType { kFloat32, kFloat64, kFloat16, kBfloat16 };

int64_t BytesOf(ElementType type);
// Returns the type for a name of safetensors, such as "F32"; unset if it is not one of these.
std::optional<ElementType> FromSafetensors(const std::string& name);
// Returns the bytes per element of a safetensors type that we do not read ("I64"); unset if it is unknown.
std::optional<int64_t> BytesOfForeign(const std::string& name);
// Returns the type for a name of numpy, such as "<f4" (little-endian); unset if it is not one of these.
std::optional<ElementType> FromNumpy(const std::string& descr);

// BeyondFloat32: a finite float64 that float32 cannot hold.
struct BeyondFloat32 {
  int64_t element = 0;
  double value = 0;
  // Returns "weights/W1[0, 1] is 1e+299 in the file, ..."
  std::string Text(const std::string& element_text) const;
};

// Converts `count` elements to the nearest float32; `read(bytes, to)` provides them piece by piece. Stops at
// the first that float32 cannot hold and returns it; unset: there is none.
std::optional<BeyondFloat32> ReadElements(ElementType type, int64_t count,
                                          const std::function<void(uint64_t bytes, void* to)>& read,
                                          float* out);

// Transposes a [rows, cols] matrix into [cols, rows], both row-major.
void Transpose(int64_t rows, int64_t cols, const float* from, float* to);

// Removes dimensions of 1: a column, a row and a vector have the same values in the same order.
std::vector<int64_t> Squeezed(std::vector<int64_t> shape);

// Returns the product of the dimensions times the bytes of an element; unset if it exceeds 62 bits.
std::optional<int64_t> BytesOfShape(const std::vector<int64_t>& shape, int64_t element_bytes);

// TensorFile: the tensors of a .safetensors or .npz file by name, converted to float32. The file is
// untrusted: every length and offset is checked against the file's size before use, and no memory is
// allocated on its word. Errors are UserErrors that begin with the path. Owner: the command. Thread: one.
struct FileTensor {
  std::string name;
  std::vector<int64_t> shape;
  std::string unreadable = {};  // why it cannot be read; empty: it can
  int64_t size() const;         // number of elements
  // Returns "100 x 10" or "scalar".
  std::string ShapeText() const;
  // Returns the name of an element in row-major order: "weights/W1[3, 5]".
  std::string ElementText(int64_t element) const;
};

class TensorFile {
 public:
  virtual ~TensorFile() = default;
  const std::vector<FileTensor>& tensors() const { return tensors_; }
  // The names of entries that are not tensors.
  const std::vector<std::string>& others() const { return others_; }
  // The metadata of a safetensors file, or of an npz file of ours: texts by name; values that are not texts
  // as JSON.
  const std::map<std::string, std::string>& metadata() const { return metadata_; }
  // Reads all elements of tensors()[index], row by row, into out[size()].
  virtual void Read(size_t index, float* out) = 0;

 protected:
  static constexpr size_t kMaxMetadataDepth = 16;  // two are needed
  void AddMetadata(const Json& metadata);          // an object

  std::vector<FileTensor> tensors_;
  std::vector<std::string> others_;
  std::map<std::string, std::string> metadata_;
};

// Opens a file; its first bytes tell the format.
std::unique_ptr<TensorFile> OpenTensorFile(const std::string& path);

// The max size of what tells the names and places of a file's tensors. In memory it takes many times that.
constexpr uint64_t kMaxDescription = 16 << 20;

// SourceFile: a file that is read at given offsets. Owner: a TensorFile. Thread: one.
class SourceFile {
 public:
  // Throws UserError if the file cannot be read.
  explicit SourceFile(const std::string& path);
  ~SourceFile();
  SourceFile(const SourceFile&) = delete;
  SourceFile& operator=(const SourceFile&) = delete;

  const std::string& path() const { return path_; }
  uint64_t size() const { return size_; }
  // Throws UserError if the file ends before.
  void ReadAt(uint64_t offset, uint64_t bytes, void* out) const;
  // Whether [offset, offset + bytes) lies within the file.
  bool Holds(uint64_t offset, uint64_t bytes) const { return offset <= size_ && bytes <= size_ - offset; }
  // Throws a UserError that begins with the path.
  [[noreturn]] void Refuse(const std::string& text) const { throw UserError("{}: {}", path_, text); }

 private:
  const std::string path_;
  int fd_ = -1;
  uint64_t size_ = 0;
};

// Open a file of a known format; for OpenTensorFile().
std::unique_ptr<TensorFile> OpenSafetensors(std::unique_ptr<SourceFile> file);
std::unique_ptr<TensorFile> OpenNpz(std::unique_ptr<SourceFile> file);

}  // namespace dtrain
