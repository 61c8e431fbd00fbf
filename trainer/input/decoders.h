// Decoders: the content of a compressed data file: gzip (RFC 1952) or zstd (RFC 8878), chosen by its first
// bytes and not by its name. A file is one member after the other, as gzip and zstd write them joined. Of
// TFRecord it may be zlib (RFC 1950) too, one stream.
// Errors are UserErrors that begin with the path. Owner: InputBytes. Thread: one.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace dtrain {

enum class Packing { kNone, kGzip, kZstd, kZlib };

// The bytes of a file by which PackingOf() decides.
constexpr size_t kPackingBytes = 4;
// Returns how a file is packed that begins with `bytes`, kPackingBytes of them or the whole file. Never says
// zlib, since texts may begin as its streams do.
Packing PackingOf(std::string_view bytes);
// Whether bytes may be the begin of a zlib stream.
bool BeginsZlib(std::string_view bytes);
// Whether more bytes behind `bytes` could make a file of either packing. A reader of a pipe waits for no byte
// that decides nothing.
bool MayBePacked(std::string_view bytes);

// Returns how many times its own size a file of this packing can hold at most.
uint64_t MaxRatio(Packing packing);

// Returns the error "path: cannot be read after byte 7 of its content: why. Fetch the file anew."
UserError UnreadableError(const std::string& path, int64_t content_byte, const std::string& why);

// Returns what a file is whose content begins with `bytes`, some hundred of them, where that is no text, and
// what to do about it: "is packed with bzip2; .. exec:bzcat t.bz2"; empty: it may be text. `packing`: what
// the content was in. `path` is for the command.
std::string NoTextBecause(std::string_view bytes, Packing packing, const std::string& path);

class Decoder {
 public:
  // Source: writes up to `size` following bytes of the file to `out` and returns their number; 0 at the end.
  using Source = std::function<int64_t(char* out, int64_t size)>;

  // `path` is for messages. `source` is first called by Read().
  Decoder(std::string path, Source source);
  virtual ~Decoder() = default;
  Decoder(const Decoder&) = delete;
  Decoder& operator=(const Decoder&) = delete;

  // Reads up to `size` bytes of content, and waits for no more of the file than the first of them needs.
  // Returns 0 at the end. Throws UserError if the data is damaged or truncated, and for anything behind a
  // member that is neither another member nor, for gzip, zeros up to the file's end (the padding of tapes and
  // block devices); a zlib stream is the only one.
  int64_t Read(char* out, int64_t size);

  // The bytes of the file that the content so far came from.
  int64_t offset() const { return taken_ - static_cast<int64_t>(input_.size()); }

 protected:
  // Goes to the next member. Returns false at the file's end.
  virtual bool BeginMember() = 0;
  // Writes up to `size` bytes of the member's content to `out` and returns their number. Takes at least a
  // byte of the input or gives one of the content. Sets *ended behind the member's last byte.
  virtual int64_t Decode(char* out, int64_t size, bool* ended) = 0;

  // Reads more if fewer than `count` bytes (at most kPackingBytes) are left, after moving these to the front.
  // Returns false at the file's end.
  bool HasInput(size_t count);
  std::string_view input() const { return input_; }
  void Take(size_t count) { input_.remove_prefix(count); }
  [[noreturn]] void ThrowUnreadable(const std::string& why) const;
  const std::string& path() const { return path_; }

 private:
  const std::string path_;
  const Source source_;
  std::vector<char> buffer_;
  std::string_view input_;  // in buffer_
  bool in_member_ = false;
  int64_t taken_ = 0;    // bytes of the file
  int64_t content_ = 0;  // bytes that were returned
};

// Returns the decoder for a file of this packing; null for one that is not packed. Frames of zstd may need a
// window of up to 128 MiB (zstd --long=27), which is allocated.
std::unique_ptr<Decoder> MakeDecoder(Packing packing, const std::string& path, Decoder::Source source);

}  // namespace dtrain
