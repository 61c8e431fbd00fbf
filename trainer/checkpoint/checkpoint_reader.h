// CheckpointReader: the tensors of one checkpoint, by name and element, whatever pieces they were written
// in. Each piece is verified as it is read. The files stay open, so that a checkpoint that is pruned
// meanwhile can be read to its end.
// Owner: who restores or inspects. Thread: one at a time.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "trainer/checkpoint/manifest.h"
#include "trainer/model/layout.h"

namespace dtrain {

// Of the checkpoint at `path`, verified. Throws BadCheckpoint.
Manifest ReadManifest(const std::string& path);

// InputFile: a file of a checkpoint, open to be read. Read and not mapped: a mapped file that is cut off
// meanwhile, or a bad sector, would kill the process. What goes wrong is told as a BadCheckpoint.
class InputFile {
 public:
  // `name` in the directory `checkpoint`.
  InputFile(std::string checkpoint, std::string name);
  ~InputFile();
  InputFile(InputFile&& other) noexcept;
  InputFile& operator=(InputFile&&) = delete;

  int64_t size() const { return size_; }
  const std::string& name() const { return name_; }
  void ReadAt(int64_t offset, int64_t bytes, void* out) const;
  // All of it; a file of more than `most` bytes is not read.
  std::string ReadAll(int64_t most) const;

 private:
  [[noreturn]] void Fail(const std::string& problem) const;

  std::string checkpoint_;
  std::string name_;
  int fd_ = -1;
  int64_t size_ = 0;
};

class CheckpointReader {
 public:
  // Reads the manifest and all that is in no piece: config.yaml, the sizes and headers of the shard files.
  // Throws BadCheckpoint, as all that reads.
  explicit CheckpointReader(const std::string& path);

  const std::string& path() const { return path_; }
  const Manifest& manifest() const { return manifest_; }

  // Reads every piece.
  void Verify();
  // The effective YAML of the run that wrote it.
  std::string Config() const;

  // Elements [first, first + count) of a tensor; `slot`: kWeights, or an optimizer's slot. The tensor, the
  // slot and the elements must be there.
  static constexpr char kWeights[] = "";
  void Read(const std::string& tensor, const std::string& slot, int64_t first, int64_t count, float* out);

  // Whether it can be restored into the model of `layout` and an optimizer with these slots. UserError naming
  // the first tensor, by name, that is missing or has another shape, or the optimizer that differs.
  void CheckFits(const Layout& layout, const std::vector<std::string>& slots) const;

 private:
  struct Place {
    size_t shard;
    size_t piece;
    int64_t first;  // element of the tensor
  };
  const std::vector<Place>& PlacesOf(const std::string& tensor, const std::string& slot) const;
  void OpenShards();
  void VerifyHeader(size_t shard) const;
  // Reads and verifies a piece; its elements, good until the next call.
  const float* Load(size_t shard, size_t piece);

  const std::string path_;
  const Manifest manifest_;
  std::vector<InputFile> shards_;
  std::vector<std::vector<Place>> places_;  // [tensor * (slots + 1) + slot], by first element
  std::vector<float> values_;               // of the piece that was read last
  size_t loaded_shard_ = 0;
  size_t loaded_piece_ = 0;
  bool loaded_ = false;
};

}  // namespace dtrain
