// The bytes of a data file, plain or gzip, or of standard input, in order.
// Owner: whoever reads the file. Thread: one.
#pragma once

#include <zlib.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace dtrain {

// GzipFile: the content of a gzip file, member after member (RFC 1952), from front to back. zlib's gzread
// ends without a word where a member is followed by anything but another, and rows would be missing.
// Owner: InputBytes. Thread: one.

// "path: cannot be read after byte 7 of its content: why. Fetch the file anew."
UserError UnreadableError(const std::string& path, int64_t content_byte, const std::string& why);

class GzipFile {
 public:
  // Writes up to `size` bytes of the file, those that follow, to `out`; returns how many. 0 at the end.
  using Source = std::function<int64_t(char* out, int64_t size)>;

  // Whether a file that begins with `bytes`, at least two, is taken for gzip.
  static bool IsGzip(std::string_view bytes);

  // `path`: for messages. `source` is asked from the first Read on.
  GzipFile(std::string path, Source source);
  ~GzipFile();
  GzipFile(const GzipFile&) = delete;
  GzipFile& operator=(const GzipFile&) = delete;

  // Reads up to `size` bytes of content, at most 4 GiB; fewer only at its end. UserError where the data are
  // damaged or cut off, or where what follows a member is neither another one nor zeros up to the file's end,
  // the padding of tapes and of block devices.
  int64_t Read(char* out, int64_t size);

  // Bytes of the file that came to the content up to now.
  int64_t offset() const { return taken_ - stream_.avail_in; }

 private:
  bool BeginMember();
  void Inflate();
  void SkipPadding();
  [[noreturn]] void ThrowRest(int64_t member_end) const;
  bool HasInput(size_t count);
  std::string_view Input() const;

  const std::string path_;
  const Source source_;
  std::vector<char> input_;
  z_stream stream_{};
  bool in_member_ = false;
  int64_t taken_ = 0;    // of the file
  int64_t content_ = 0;  // given by the calls of Read before this one
};

// InputBytes: one data file read from front to back, plain or gzip, which its first bytes tell; or standard
// input, plain, as it comes.
// Errors are UserErrors that begin with the path and name the config key that led to it.
// Owner: whatever reads the file. Thread: one.
class InputBytes {
 public:
  // `path`: "-" is standard input. `key`: "data.train.images", for messages. UserError where the file is
  // missing, no regular file, unreadable or empty.
  InputBytes(const std::string& path, const std::string& key);
  ~InputBytes();
  InputBytes(const InputBytes&) = delete;
  InputBytes& operator=(const InputBytes&) = delete;

  // Reads up to `size` bytes of content; fewer only at its end. UserError where gzip data are damaged, or
  // followed by what is none.
  int64_t Read(void* out, int64_t size);
  // The same, but of standard input no more than there is: waits only for the first byte. 0 at the end.
  int64_t ReadSome(void* out, int64_t size);
  // How many of the next bytes are `blanks`, up to some thousand; all stay.
  size_t CountBlanks(std::string_view blanks);
  // Whether the content goes on with `text` behind so many bytes; all stay. Waits for no byte behind the
  // first that differs.
  bool GoesOnWith(std::string_view text, size_t behind = 0);

  // Whether `size` bytes of content can be in the file at all: exactly known for a plain file; a gzip
  // file holds at most 1032 times its own size. Asked before memory is taken on a header's word.
  bool CanHold(uint64_t size) const;

  // Bytes of content in all: known for a plain file; for gzip as many as the pace up to now tells.
  int64_t ExpectedContent() const;

  const std::string& path() const { return path_; }
  bool compressed() const { return gzip_ != nullptr; }
  uint64_t file_size() const { return file_size_; }

 private:
  bool HasPeeked(size_t count);  // reads what is missing
  int64_t ReadUnpeeked(char* out, int64_t size);
  int64_t ReadFile(char* out, int64_t size);
  int64_t ReadStandardInput(char* out, int64_t size);
  int64_t ReadDescriptor(char* out, int64_t size);  // of the file itself

  const bool standard_input_;
  const std::string path_;  // for messages
  std::string peeked_;
  uint64_t file_size_ = 0;
  int64_t offset_ = 0;              // of the content
  int fd_ = -1;                     // of a file
  std::unique_ptr<GzipFile> gzip_;  // null: plain
};

}  // namespace dtrain
