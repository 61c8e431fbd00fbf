// CheckpointReader: reads the tensors of one checkpoint by name and element, independent of the pieces in
// which they were written. Each piece is verified when it is read. The files stay open, so a checkpoint that
// is pruned in the meantime can be read to its end.
// Owner: a task that restores or inspects. Thread: one at a time.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "trainer/checkpoint/manifest.h"
#include "trainer/model/layout.h"

namespace dtrain {

// The verified manifest of the checkpoint at `path`. Throws BadCheckpoint.
Manifest ReadManifest(const std::string& path);

// InputFile: an open file of a checkpoint. It is read and not mapped: truncation or a bad sector would kill a
// process that has mapped it. Errors are thrown as BadCheckpoint.
class InputFile {
 public:
  // Opens the file `name` in the directory `checkpoint`.
  InputFile(std::string checkpoint, std::string name);
  ~InputFile();
  InputFile(InputFile&& other) noexcept;
  InputFile& operator=(InputFile&&) = delete;

  int64_t size() const { return size_; }
  const std::string& name() const { return name_; }
  void ReadAt(int64_t offset, int64_t bytes, void* out) const;
  // The whole file. Refuses a file of more than `most` bytes.
  std::string ReadAll(int64_t most) const;

 private:
  [[noreturn]] void Fail(const std::string& problem) const;

  std::string checkpoint_;
  std::string name_;
  int fd_ = -1;
  int64_t size_ = 0;
};

// Verifies every byte of a shard file of the checkpoint, or of a save that is not published yet. Throws
// BadCheckpoint.
void VerifyShard(const std::string& checkpoint, const StoredShard& shard);

class CheckpointReader {
 public:
  // Reads the manifest and everything outside the pieces: config.yaml, the sizes and headers of the shard
  // files. Throws BadCheckpoint, like all calls that read.
  explicit CheckpointReader(const std::string& path);

  const std::string& path() const { return path_; }
  const Manifest& manifest() const { return manifest_; }

  // Reads every piece.
  void Verify();
  // The effective YAML of the run that wrote the checkpoint.
  std::string Config() const;

  // Read(): elements [first, first + count) of a tensor. `slot`: kWeights, or an optimizer slot. Tensor, slot
  // and elements must exist.
  static constexpr char kWeights[] = "";
  void Read(const std::string& tensor, const std::string& slot, int64_t first, int64_t count, float* out);

  // Calls `visit` for the rows of the table in [range.begin, range.end) that are not as they were in the
  // beginning, in ascending order, each with its weights and slots. The manifest has a table.
  void ReadRows(RowRange range, const VisitRow& visit);

  // Whether the checkpoint fits the model of `layout` and an optimizer with these slots. Throws UserError
  // with the first tensor, by name, that is missing or has another shape, or with the optimizer that differs.
  void CheckFits(const Layout& layout, const std::vector<std::string>& slots) const;

 private:
  struct Place {
    size_t shard;
    size_t piece;
    int64_t first;  // element of the tensor
  };
  const std::vector<Place>& PlacesOf(const std::string& tensor, const std::string& slot) const;
  // Reads and verifies a piece; returns its elements, valid until the next call.
  const float* Load(size_t shard, size_t piece);

  const std::string path_;
  const Manifest manifest_;
  std::vector<InputFile> shards_;
  std::vector<std::vector<Place>> places_;  // [tensor * (slots + 1) + slot], by first element
  std::vector<float> values_;               // of the last piece read
  size_t loaded_shard_ = 0;
  size_t loaded_piece_ = 0;
  bool loaded_ = false;
};

}  // namespace dtrain
