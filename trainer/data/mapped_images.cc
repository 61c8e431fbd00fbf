#include "trainer/data/mapped_images.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>

#include "base/error.h"
#include "gpu/ops.h"
#include "trainer/data/files/idx.h"
#include "trainer/data/files/input_bytes.h"

namespace dtrain {
namespace {

constexpr const char* kKey = "data.train.images";
constexpr int64_t kHeaderBytes = 16;
constexpr int64_t kBlockRows = 1024;

}  // namespace

MappedImages::MappedImages(const std::string& images, const std::string& labels, const LabelRules& rules)
    : classes_(rules.classes), labels_(ReadIdxLabelsOf(labels, "data.train.labels", rules)) {
  const IdxShape shape = PeekIdxImages(images, kKey);
  const InputBytes file(images, kKey);
  if (file.compressed()) {
    throw UserError(
        "{}: is packed; with data.cache: none it is mapped as it is. Unpack it, or set data.cache: memory.",
        images);
  }
  if (static_cast<int64_t>(labels_.size()) != shape.count) {
    throw UserError("{}: has {} labels, and {} has {} images; each needs one. Name two files of one set.",
                    labels, labels_.size(), images, shape.count);
  }
  inputs_ = shape.row_bytes;
  map_bytes_ = static_cast<size_t>(kHeaderBytes + shape.count * shape.row_bytes);
  if (file.file_size() != map_bytes_) {
    throw UserError("{}: has {} bytes; its header says {}. The file is damaged: fetch it anew.", images,
                    file.file_size(), map_bytes_);
  }
  const int fd = open(images.c_str(), O_RDONLY | O_CLOEXEC);
  void* const map = fd < 0 ? MAP_FAILED : mmap(nullptr, map_bytes_, PROT_READ, MAP_SHARED, fd, 0);
  const int error = errno;
  if (fd >= 0) close(fd);
  if (map == MAP_FAILED) throw UserError("{}: cannot be mapped: {}.", images, ErrnoText(error));
  map_ = map;
  blocks_ = EqualBlocks(shape.count, kBlockRows);
}

MappedImages::~MappedImages() {
  if (map_ != nullptr) munmap(map_, map_bytes_);
}

gpu::MatrixView<const uint8_t> MappedImages::bytes() const {
  return {static_cast<const uint8_t*>(map_) + kHeaderBytes, *rows(), inputs_};
}

void MappedImages::Gather(const int64_t* rows, int64_t count, float* inputs, int32_t* labels, float*) const {
  if (inputs != nullptr) {
    gpu::Stream stream;
    gpu::GatherBytes(stream, {bytes(), {rows, count}}, {inputs, count, inputs_});
  }
  for (int64_t i = 0; i < count; ++i) labels[i] = labels_[static_cast<size_t>(rows[i])];
}

}  // namespace dtrain
