// The bytes of a data file or of a pipe, plain or packed, in order. Owner: the reader of the file. Thread:
// one.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "base/file.h"
#include "trainer/input/decoders.h"

namespace dtrain {

// Calls read(2), again after a signal.
ssize_t ReadAgain(int fd, char* out, int64_t size);

// PipeSource: what is read in place of a file (IsPipe): standard input, or what a command writes. Errors are
// as those of InputBytes. A test gives one of its own.
class PipeSource {
 public:
  virtual ~PipeSource() = default;
  // Reads up to `size` bytes, no more than have arrived; waits for the first. Returns 0 at the end.
  virtual int64_t Read(char* out, int64_t size) = 0;
};

// InputBytes: the content of one data file or pipe, read from front to back; unpacked if its first bytes are
// those of gzip or zstd (decoders.h), of TFRecord also of zlib. From a pipe it comes as it arrives. Errors
// are UserErrors that begin with the path and name the config key. Owner: the reader of the file. Thread:
// one.
class InputBytes {
 public:
  // Opens a file, or standard input for "-". Never runs a command: a path of exec: is a file here, and
  // OpenInput() (sources.h) is for what the user has named. `key` is "data.train.images" or the like, for
  // messages. Throws UserError if the file is missing, not a regular file, unreadable or empty.
  InputBytes(const std::string& path, const std::string& key);
  // Reads `pipe`; `name` is for messages. Reads nothing yet.
  InputBytes(std::unique_ptr<PipeSource> pipe, std::string name);
  InputBytes(const InputBytes&) = delete;
  InputBytes& operator=(const InputBytes&) = delete;

  // Whether the content begins with a record of TFRecord. Call it before anything is read: a length may look
  // like the mark of a packing, which is found anew then. `is_expected`: else zlib is none.
  bool BeginsRecords(bool is_expected);
  // Reads up to `size` bytes of content; fewer only at the end. Throws UserError for damaged packed data and
  // for other data behind it, and at the end of a command that failed.
  int64_t Read(void* out, int64_t size);
  // The same, but from a pipe no more than has arrived: waits only for the first byte. Returns 0 at the end.
  int64_t ReadSome(void* out, int64_t size);
  // Whether SkipTo() can go back, and costs nothing.
  bool CanSeek() const { return pipe_ == nullptr && !compressed(); }
  // Goes to a byte of the content, from 0: in a compressed file one that is not behind.
  void SkipTo(int64_t byte);
  // Returns how many of the next bytes are in `blanks`, up to some thousand. Consumes none.
  size_t CountBlanks(std::string_view blanks);
  // Whether the content continues with `text`, `behind` bytes further on. Consumes nothing and waits for no
  // byte behind the first that differs.
  bool ContinuesWith(std::string_view text, size_t behind = 0);

  // From now on keeps what is read, in memory, so that Rewind() can give it again: the head of a pipe, which
  // cannot be opened again. The caller watches kept().
  void KeepHead();
  int64_t kept() const { return static_cast<int64_t>(head_.size()); }
  // Goes back to where KeepHead() was called, and keeps no more.
  void Rewind();

  // Whether the file can contain `size` bytes of content: exact for a plain file; a packed file holds at most
  // MaxRatio() times its own size. Callers check this before they allocate memory for the sizes in a header.
  bool CanHold(uint64_t size) const;

  // Returns the total bytes of content: exact for a plain file; for a packed one an estimate from the ratio
  // so far; for a pipe what has been read.
  int64_t ExpectedContent() const;

  const std::string& path() const { return path_; }
  bool is_pipe() const { return pipe_ != nullptr; }
  Packing packing() const { return packing_; }
  bool compressed() const { return packing_ != Packing::kNone; }  // of a pipe: known with its first byte
  uint64_t file_size() const { return file_size_; }               // 0 for a pipe

 private:
  bool HasPeeked(size_t count);  // reads what is missing
  int64_t ReadUnpeeked(char* out, int64_t size);
  int64_t ReadContent(char* out, int64_t size);
  void FindPacking();
  void SetPacking(Packing packing);
  int64_t ReadRaw(char* out, int64_t size);  // before it is unpacked

  const std::string path_;                  // for messages
  const std::unique_ptr<PipeSource> pipe_;  // null: a file
  FileDescriptor fd_;                       // of a file
  uint64_t file_size_ = 0;
  bool knows_packing_ = false;  // of a pipe: since its first bytes have come
  std::string first_;           // the bytes by which the packing was found, until they are read
  Packing packing_ = Packing::kNone;
  std::unique_ptr<Decoder> decoder_;  // null: plain
  std::string peeked_;                // content that is read again, from peeked_at_ on
  size_t peeked_at_ = 0;
  bool keeps_ = false;
  std::string head_;    // what was read since KeepHead()
  int64_t offset_ = 0;  // in the content
};

// Returns what to tell of a data file of `key` that cannot be opened; of a file that is named as those of
// MNIST also how to get it.
std::string NotOpenedText(const std::string& path, const std::string& key, int error_number);

}  // namespace dtrain
