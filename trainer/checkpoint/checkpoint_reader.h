// CheckpointReader: reads the tensors of one checkpoint by name and element, independent of the pieces in
// which they were written. Of a delta it reads the base too, which lies beside it, and gives the rows of both
// together. Each piece is verified when it is read. The files stay open, so a checkpoint that
// is pruned in the meantime can be read to its end.
// Owner: a task that restores or inspects. Thread: one at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "trainer/checkpoint/manifest.h"
#include "trainer/model/layout.h"
#include "trainer/table/hash_pieces.h"

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

// The manifest of a delta's base, and where it is.
struct FoundBase {
  std::string path;
  Manifest manifest;
};
// Finds the base of the delta at `delta`, or of one that is not published yet, in the directory where that
// lies. Throws BadCheckpoint if it is not there.
FoundBase FindBase(const std::string& delta, const StoredBase& base);

// Verifies every byte of a shard file of the checkpoint, or of a save that is not published yet. Throws
// BadCheckpoint.
void VerifyShard(const std::string& checkpoint, const StoredShard& shard);

class CheckpointReader {
 public:
  // Reads the manifest and everything outside the pieces: config.yaml, the sizes and headers of the shard
  // files. Throws BadCheckpoint, like all calls that read.
  explicit CheckpointReader(const std::string& path) : CheckpointReader(path, ReadManifest(path)) {}

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

  // For a hash table: the number of parts in which the rows of a range are read, of two pieces at most, and
  // the rows of one of them that lie in the range, in ascending order.
  size_t HashPieces(RowRange range) const { return static_cast<size_t>(HashWindows(range).size); }
  void ReadHashPiece(RowRange range, size_t number, const VisitHashRow& visit);

  // Whether the checkpoint fits the model of `layout` and an optimizer with these slots. Throws UserError
  // with the first tensor, by name, that is missing or has another shape, or with the optimizer that differs.
  // `otherwise`: what the user may name in its place.
  void CheckFits(const Layout& layout, const ModelSlots& slots,
                 const char* otherwise = "another checkpoint.dir") const;

  // For a run that begins with it (checkpoint.start_from): the same for the model, and any optimizer. If that
  // of `config` has other slots, Read() and ReadRows() give the slots that it begins with from now on.
  void BeginWith(const dtrain::Config& config, const Layout& layout);
  // The slots of tensors, as Read() gives them.
  const std::vector<std::string>& slots() const {
    return slots_begin_anew() ? new_slots_.names : manifest_.slots;
  }
  bool slots_begin_anew() const { return first_slots_ != nullptr; }
  // The updates that the slots have had, of the run that wrote them and before; 0 if they begin anew.
  int64_t slot_updates() const;

 private:
  struct Place {
    size_t shard;
    size_t piece;
    int64_t first;  // element of the tensor
  };
  // A piece of a hash table, and the rows up to the next one.
  struct HashPlace {
    size_t shard;
    size_t piece;
    RowRange rows;
  };
  // Rows that lie in one piece, and of a delta in at most one of it and of its base.
  struct HashWindow {
    RowRange rows;
    const HashPlace* own = nullptr;
    const HashPlace* base = nullptr;
  };
  gpu::Span<const HashWindow> HashWindows(RowRange range) const;
  void FindHashPlaces();
  void FindHashWindows();
  HashPieceView LoadHashPiece(const HashPlace* place);
  [[noreturn]] void FailPiece(size_t shard, size_t piece, const std::string& wrong) const;
  CheckpointReader(const std::string& path, Manifest manifest);
  void OpenBase();
  template <typename Call>
  auto OfBase(Call&& call);
  void ReadStoredRows(RowRange range, const VisitRow& visit);
  void ReadPieceRows(size_t shard, RowRange piece, RowRange range, const VisitRow& visit);
  net::TensorView LoadRows(size_t shard, RowRange piece);
  const std::vector<Place>& PlacesOf(const std::string& tensor, const std::string& slot) const;
  // Reads and verifies a piece; returns its elements, valid until the next call.
  const float* Load(size_t shard, size_t piece);

  const std::string path_;
  const Manifest manifest_;
  std::vector<InputFile> shards_;
  std::unique_ptr<CheckpointReader> base_;  // of a delta
  std::vector<std::vector<Place>> places_;  // [tensor * (slots + 1) + slot], by first element
  std::vector<HashPlace> hash_places_;      // in order
  std::vector<HashWindow> hash_windows_;    // in order
  std::vector<float> values_;               // of the last piece read
  // With slots that begin anew: their names, the values of those of tensors, and those of a row of a table.
  ModelSlots new_slots_;
  std::vector<float> slot_values_;
  std::function<void(float* row)> first_slots_;
  size_t loaded_shard_ = 0;
  size_t loaded_piece_ = 0;
  bool loaded_ = false;
};

}  // namespace dtrain
