// SortedTable: a file of LevelDB's table format, which TensorFlow's index of a checkpoint is, and its older
// checkpoints are as a whole: keys in ascending order, each with a value, in blocks. Format:
// https://github.com/google/leveldb/blob/main/doc/table_format.md. LevelDB itself allocates what a damaged
// index says, and does not tell where the damage is. Owner: TfCheckpoint. Thread: one.
//
//   block    entries: shared, unshared and value length (varints), the unshared bytes of the key, the value;
//            restart offsets u32le; their count u32le; behind it: type u8, masked CRC-32C of block and type
//   footer   the last 48 bytes: handles of the metaindex and of the index block, zeros up to 40, the magic
//   handle   offset and size of a block without what is behind it (varints)
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/export/tensor_file.h"

namespace dtrain {

class SortedTable {
 public:
  struct Handle {
    uint64_t offset = 0;
    uint64_t size = 0;
  };

  // Whether the file ends as a table does.
  static bool IsTable(const SourceFile& file);
  // Reads where the blocks are. Throws UserError with the file and the byte of what is wrong.
  explicit SortedTable(std::unique_ptr<SourceFile> file);

  const SourceFile& file() const { return *file_; }
  const std::vector<Handle>& blocks() const { return blocks_; }
  // Reads a block, whose checksum is verified, and calls on_entry(key, value) for each of its entries. The
  // views are valid in the call.
  void ReadBlock(const Handle& block,
                 const std::function<void(std::string_view key, std::string_view value)>& on_entry) const;

 private:
  const std::unique_ptr<SourceFile> file_;
  std::vector<Handle> blocks_;
};

// Makes such a table in memory, as TensorFlow does: without compression, a block for each 256 KiB.
class SortedTableBuilder {
 public:
  // Keys come in ascending order.
  void Add(std::string_view key, std::string_view value);
  // Returns the file. Nothing may be added any more.
  std::string Finish();

 private:
  struct Block {
    std::string entries;
    std::vector<uint32_t> restarts;
    void Add(std::string_view key, std::string_view value);
  };
  void End(Block* block, std::string* handle);

  std::string file_, last_key_;
  Block data_, index_;
};

}  // namespace dtrain
