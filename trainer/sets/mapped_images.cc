#include "trainer/sets/mapped_images.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/error.h"
#include "gpu/ops.h"
#include "trainer/input/input_bytes.h"
#include "trainer/rows/idx.h"
#include "trainer/sets/class_weights.h"

namespace dtrain {
namespace {

constexpr const char* kKey = "data.train.images";
constexpr int64_t kHeaderBytes = 16;
constexpr int64_t kBlockRows = 1024;

}  // namespace

MappedImages::MappedImages(const IdxFiles& files, const LabelRules& rules) : classes_(rules.classes) {
  const IdxShape shape = CheckIdxFiles(files, "data.train");
  inputs_ = shape.row_bytes;
  for (size_t i = 0; i < files.images.size(); ++i) {
    files_.push_back(Map(files.images[i], *rows()));
    const std::vector<uint8_t> labels = ReadIdxLabelsOf(files.labels[i], "data.train.labels", rules);
    if (static_cast<int64_t>(labels.size()) != files_.back().rows.rows) {
      throw UserError("{}: has changed while it was read. Start again when nobody writes to it.",
                      files.labels[i]);
    }
    labels_.insert(labels_.end(), labels.begin(), labels.end());
    for (const uint8_t label : labels) CountClass(label, &class_rows_);
  }
  blocks_ = EqualBlocks(shape.count, kBlockRows);
}

void MappedImages::Unmap::operator()(void* map) const { munmap(map, bytes); }

MappedImages::File MappedImages::Map(const std::string& path, int64_t first_row) const {
  const IdxShape shape = PeekIdxImages(path, kKey);
  const InputBytes file(path, kKey);
  if (file.compressed()) {
    throw UserError(
        "{}: is packed; with data.cache: none it is mapped as it is. Unpack it, or set data.cache: memory.",
        path);
  }
  const auto map_bytes = static_cast<size_t>(kHeaderBytes + shape.count * shape.row_bytes);
  if (file.file_size() != map_bytes) {
    throw UserError("{}: has {} bytes; its header says {}. The file is damaged: fetch it anew.", path,
                    file.file_size(), map_bytes);
  }
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  void* const map = fd < 0 ? MAP_FAILED : mmap(nullptr, map_bytes, PROT_READ, MAP_SHARED, fd, 0);
  const int error = errno;
  if (fd >= 0) close(fd);
  if (map == MAP_FAILED) throw UserError("{}: cannot be mapped: {}.", path, ErrnoText(error));
  return {first_row,
          {static_cast<const uint8_t*>(map) + kHeaderBytes, shape.count, inputs_},
          std::unique_ptr<void, Unmap>(map, Unmap{map_bytes})};
}

uint64_t MappedImages::Checksum() const {
  constexpr int64_t kAllBytes = 256 << 20, kSpread = 1024;
  const int64_t step = *rows() * inputs_ <= kAllBytes ? 1 : std::max<int64_t>(*rows() / kSpread, 1);
  uint64_t sum = 0;
  for (int64_t row = 0; row < *rows(); row += step) {
    const File& file = FileOf(row);
    sum = FeatureChecksum(
        FeatureForm::kMapped,
        {BytesOf(&sum, 1), BytesOf(file.rows.row(row - file.first_row), static_cast<size_t>(inputs_))});
  }
  return sum;
}

const MappedImages::File& MappedImages::FileOf(int64_t row) const {
  const auto next = std::upper_bound(files_.begin(), files_.end(), row, [](int64_t wanted, const File& file) {
    return wanted < file.first_row;
  });
  return *std::prev(next);
}

gpu::MatrixView<const uint8_t> MappedImages::bytes() const {
  return files_.size() == 1 ? files_[0].rows : gpu::MatrixView<const uint8_t>();
}

void MappedImages::Gather(const int64_t* rows, int64_t count, float* inputs, int32_t* labels, float*) const {
  gpu::Stream stream;
  for (int64_t i = 0; i < count; ++i) {
    labels[i] = labels_[static_cast<size_t>(rows[i])];
    if (inputs == nullptr) continue;
    const File& file = FileOf(rows[i]);
    const int64_t row = rows[i] - file.first_row;
    gpu::GatherBytes(stream, {file.rows, {&row, 1}}, {inputs + i * inputs_, 1, inputs_});
  }
}

}  // namespace dtrain
