#include "trainer/sets/mapped_images.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "gpu/ops.h"
#include "trainer/input/input_bytes.h"
#include "trainer/sets/cache_file.h"
#include "trainer/sets/class_weights.h"

namespace dtrain {
namespace {

constexpr const char* kKey = "data.train.images";
constexpr int64_t kHeaderBytes = 16;
constexpr int64_t kBlockRows = 1024;

class MappedImages : public Fetch {
 public:
  explicit MappedImages(int64_t inputs) : inputs_(inputs) {}
  // Maps a file behind the others.
  void Map(const std::string& path);

  int64_t rows() const { return files_.empty() ? 0 : files_.back().first_row + files_.back().rows.rows; }
  void Read(gpu::Span<const int64_t> rows, const RowsOut& out) const override;
  // Only the rows of one file lie together.
  gpu::MatrixView<const uint8_t> bytes() const override {
    return files_.size() == 1 ? files_[0].rows : gpu::MatrixView<const uint8_t>();
  }
  // In the order of the files. Above 256 MiB it is of 1,024 rows spread over the files: reading all would
  // hold up the start.
  uint64_t Checksum(const HeldOutView*) const override;

 private:
  struct Unmap {
    size_t bytes = 0;
    void operator()(void* map) const { munmap(map, bytes); }
  };
  struct File {
    int64_t first_row = 0;  // of the set
    gpu::MatrixView<const uint8_t> rows;
    std::unique_ptr<void, Unmap> map;
  };

  const File& FileOf(int64_t row) const;

  const int64_t inputs_;
  std::vector<File> files_;
};

void MappedImages::Map(const std::string& path) {
  const IdxShape shape = PeekIdxImages(path, kKey);
  const InputBytes file(path, kKey);
  if (file.compressed()) {
    throw UserError(
        "{}: is packed; with data.cache: none it is mapped as it is. Set data.cache: file, which unpacks it "
        "once "
        "into data.cache_dir, or memory.",
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
  files_.push_back({rows(),
                    {static_cast<const uint8_t*>(map) + kHeaderBytes, shape.count, inputs_},
                    std::unique_ptr<void, Unmap>(map, Unmap{map_bytes})});
}

uint64_t MappedImages::Checksum(const HeldOutView*) const {
  constexpr int64_t kAllBytes = 256 << 20, kSpread = 1024;
  const int64_t step = rows() * inputs_ <= kAllBytes ? 1 : std::max<int64_t>(rows() / kSpread, 1);
  uint64_t sum = 0;
  for (int64_t row = 0; row < rows(); row += step) {
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

void MappedImages::Read(gpu::Span<const int64_t> rows, const RowsOut& out) const {
  gpu::Stream stream;
  for (int64_t i = 0; i < rows.size; ++i) {
    const File& file = FileOf(rows[i]);
    const int64_t row = rows[i] - file.first_row;
    gpu::GatherBytes(stream, {file.rows, {&row, 1}}, {out.inputs + i * inputs_, 1, inputs_});
  }
}

}  // namespace

DataSet MapImages(const IdxFiles& files, const LabelRules& rules) {
  const IdxShape shape = CheckIdxFiles(files, "data.train");
  auto images = std::make_shared<MappedImages>(shape.row_bytes);
  auto facts = std::make_shared<PassFacts>();
  std::vector<uint8_t> all;
  for (size_t i = 0; i < files.images.size(); ++i) {
    images->Map(files.images[i]);
    const std::vector<uint8_t> labels = ReadIdxLabelsOf(files.labels[i], "data.train.labels", rules);
    all.insert(all.end(), labels.begin(), labels.end());
    if (static_cast<int64_t>(all.size()) != images->rows()) {
      throw UserError("{}: has changed while it was read. Start again when nobody writes to it.",
                      files.labels[i]);
    }
    for (const uint8_t label : labels) CountClass(label, &facts->class_rows);
  }
  SetForm form{shape.row_bytes, rules.classes, images->rows()};
  form.blocks = EqualBlocks(images->rows(), kBlockRows);
  form.facts = std::move(facts);
  return {form, std::move(images), Keep({std::move(all)})};
}

}  // namespace dtrain
