// TfCheckpoint: a checkpoint of TensorFlow, read without it: V2, an index and data files (tensor bundle), and
// V1, tables that hold the values. A tensor may be whole, or in slices over several files, as parameter
// servers with partitioned variables write it. All checksums are verified as bytes are read; V1 has those of
// blocks alone. Errors are UserErrors that name file, tensor and byte. What is refused: damage, slices that
// leave a hole or overlap, big-endian bundles. Owner: the command. Thread: one.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/tf/sorted_table.h"
#include "trainer/tf/tf_entries.h"
#include "trainer/tf/tf_paths.h"

namespace dtrain {

// TfPiece: where values of a tensor lie.
struct TfPiece {
  std::vector<int64_t> begin, length;  // the slice, by dimension
  // V2: in data file `file`, from `offset` on. V1: in table `file`, in the block at `offset`.
  int64_t file = 0;
  uint64_t offset = 0;
  uint64_t bytes = 0;  // V1: of the block
  uint32_t crc = 0;    // V2, masked
  std::string key;     // V1: of the entry in its block
  int64_t size() const;
};

struct TfTensor {
  std::string name;
  TfType type = TfType::kFloat32;
  std::vector<int64_t> shape;
  bool is_sliced = false;
  std::vector<TfPiece> pieces;
  std::string unreadable;  // why it cannot be read: "its slices have 3 of 5 rows"; empty: it can
  int64_t size() const;
};

class TfCheckpoint {
 public:
  // Reads what there is (FindTfCheckpoint()), but of V2 no values.
  explicit TfCheckpoint(TfPaths paths);

  const std::string& prefix() const { return paths_.prefix; }
  bool is_v1() const { return paths_.index.empty(); }
  // The files with the values: of V2 as the index says.
  int64_t files() const { return files_; }
  const std::vector<TfTensor>& tensors() const { return tensors_; }  // by name
  const TfTensor* Find(const std::string& name) const;

  // Returns a whole number of one value, as global_step has, of int32, int64, float32 or float64. Throws
  // UserError for others.
  int64_t ReadInteger(const TfTensor& tensor) const;
  // Returns a text, as the graph of objects is; empty: the tensor is none, or of more than kMaxDescription.
  std::string ReadText(const TfTensor& tensor) const;
  // Reads all bytes of a tensor of any type, and verifies their checksums.
  void Verify(const TfTensor& tensor) const;

 private:
  friend class TfStream;

  void ReadIndex();
  void ReadTables();
  void JoinParts();
  void CheckPieces(TfTensor* tensor) const;
  std::string FileName(int64_t number) const;
  const SourceFile& DataFile(int64_t number) const;
  // The data file of a piece, all of which lies in it.
  const SourceFile& FileOf(const TfTensor& tensor, const TfPiece& piece) const;
  void ReadBytes(const TfTensor& tensor, const TfPiece& piece,
                 const std::function<void(std::string_view bytes)>& take) const;
  void ReadValues(const TfTensor& tensor, const TfPiece& piece,
                  const std::function<void(std::string_view bytes)>& take) const;
  std::string ReadStrings(const TfTensor& tensor, const TfPiece& piece) const;
  [[noreturn]] void ThrowDamaged(const TfTensor& tensor, const TfPiece& piece) const;

  const TfPaths paths_;
  int64_t files_ = 0;
  std::vector<TfTensor> tensors_;                                // by name
  std::vector<std::unique_ptr<SortedTable>> tables_;             // of V1
  mutable std::map<int64_t, std::unique_ptr<SourceFile>> open_;  // data files of V2
};

}  // namespace dtrain
