// IDX files, plain and packed by gzip or zstd: no more memory than the file can fill.
#include <zlib.h>
#include <zstd.h>

#include "base/error.h"
#include "fuzz/input.h"
#include "fuzz/target.h"
#include "trainer/input/input_bytes.h"
#include "trainer/rows/idx.h"

namespace dtrain::fuzz {
namespace {

// The content as one member of a gzip file, so that damage of the content gets through.
std::string Packed(const std::string& content) {
  constexpr int kGzip = 16;
  z_stream stream{};
  Require(deflateInit2(&stream, 1, Z_DEFLATED, MAX_WBITS + kGzip, 8, Z_DEFAULT_STRATEGY) == Z_OK, "zlib");
  std::string out(deflateBound(&stream, content.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(content.data()));
  stream.avail_in = static_cast<uInt>(content.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  Require(deflate(&stream, Z_FINISH) == Z_STREAM_END, "zlib packs");
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

// The same as a frame of zstd.
std::string PackedByZstd(const std::string& content) {
  std::string out(ZSTD_compressBound(content.size()), '\0');
  const size_t size = ZSTD_compress(out.data(), out.size(), content.data(), content.size(), 1);
  Require(ZSTD_isError(size) == 0, "zstd packs");
  out.resize(size);
  return out;
}

void ReadEach(const std::string& path) {
  try {
    LargeVector<uint8_t> pixels;
    const IdxShape shape = AppendIdxImages(path, "data.train", &pixels);
    Require(static_cast<int64_t>(pixels.size()) == shape.count * shape.row_bytes, "sizes agree");
  } catch (const UserError&) {
  }
  try {
    Require(!ReadIdxLabelsOf(path, "data.train", LabelRules{256, "", ""}).empty(), "there is a label");
  } catch (const UserError&) {
  }
}

int FuzzOne(const uint8_t* data, size_t size) {
  Input input(data, size);
  const uint64_t packs = input.Below(3);
  const std::string bytes = input.Rest();
  ReadEach(MemoryFile(packs == 1 ? Packed(bytes) : packs == 2 ? PackedByZstd(bytes) : bytes).path());
  return 0;
}

const AddTarget added("idx", FuzzOne);

}  // namespace
}  // namespace dtrain::fuzz
