#include "trainer/rows/idx.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/error.h"
#include "base/names.h"
#include "trainer/input/input_bytes.h"
#include "trainer/input/sources.h"

namespace dtrain {
namespace {

struct IdxKind {
  const char* one;   // the word for one record
  const char* name;  // the word for several
  uint32_t magic;
  int sizes;  // in the header, behind the magic
  int64_t header_bytes() const { return 4 + 4 * sizes; }
};
constexpr IdxKind kImages{"image", "images", 0x00000803, 3};
constexpr IdxKind kLabels{"label", "labels", 0x00000801, 1};

uint32_t BigEndian(const uint8_t* bytes) {
  return uint32_t{bytes[0]} << 24 | uint32_t{bytes[1]} << 16 | uint32_t{bytes[2]} << 8 | bytes[3];
}

void CheckMagic(const InputBytes& file, const IdxKind& kind, uint32_t magic) {
  if (magic == kind.magic) return;
  const IdxKind& other = kind.magic == kImages.magic ? kLabels : kImages;
  const std::string remedy = magic == other.magic
                                 ? fmt::format("It is a file of {}: are the two exchanged?", other.name)
                                 : "Is it another kind of file?";
  throw UserError("{}: byte 0: magic = {:#010x}; an IDX file of {} begins with {:#010x}. {}", file.path(),
                  magic, kind.name, kind.magic, remedy);
}

[[noreturn]] void ThrowTruncated(const InputBytes& file, int64_t end, const std::string& needed) {
  throw UserError("{}: ends at byte {}{}; {}. The file is cut off: fetch it anew.", file.path(), end,
                  file.compressed() ? " of its content" : "", needed);
}

// Throws for sizes of 0 and for sizes that the file cannot hold.
void CheckSizes(const InputBytes& file, const IdxKind& kind, uint64_t count, uint64_t row_bytes) {
  if (count == 0) {
    throw UserError("{}: byte 4: number of {} = 0; must be >= 1. Fetch the file anew.", file.path(),
                    kind.name);
  }
  if (row_bytes == 0) {
    throw UserError("{}: byte 8: pixels of an image = 0; rows and columns must be >= 1. Fetch the file anew.",
                    file.path());
  }
  uint64_t total = 0;
  const bool overflow = __builtin_mul_overflow(count, row_bytes, &total) ||
                        __builtin_add_overflow(total, static_cast<uint64_t>(kind.header_bytes()), &total);
  if (overflow || !file.CanHold(total)) {
    throw UserError(
        "{}: byte 4: the header promises {} of {} bytes each, more than can be in a {}file of {} bytes. "
        "The file is cut off or damaged: fetch it anew.",
        file.path(), Plural(static_cast<int64_t>(count), kind.one, kind.name), row_bytes,
        file.compressed() ? "packed " : "", file.file_size());
  }
}

IdxShape ReadHeader(InputBytes* file, const IdxKind& kind) {
  std::array<uint8_t, 16> header{};
  const int64_t got = file->Read(header.data(), kind.header_bytes());
  if (got >= 4) CheckMagic(*file, kind, BigEndian(header.data()));
  if (got < kind.header_bytes()) {
    ThrowTruncated(*file, got,
                   fmt::format("the header of {} takes {} bytes", kind.name, kind.header_bytes()));
  }
  const uint64_t count = BigEndian(header.data() + 4);
  uint64_t row_bytes = 1;  // the product of two sizes below 2^32
  for (int i = 1; i < kind.sizes; ++i) row_bytes *= BigEndian(header.data() + 4 + 4 * i);
  CheckSizes(*file, kind, count, row_bytes);
  const int64_t columns = kind.sizes > 1 ? BigEndian(header.data() + kind.header_bytes() - 4) : 1;
  return {static_cast<int64_t>(count), static_cast<int64_t>(row_bytes), columns};
}

IdxShape PeekIdx(const std::string& path, const std::string& key, const IdxKind& kind) {
  InputBytes file(path, key);
  return ReadHeader(&file, kind);
}

// Throws unless the file has given `got` bytes of records, which are all that its header promises, and ends.
void CheckEnd(const IdxKind& kind, const IdxShape& shape, int64_t got, InputBytes* file) {
  const int64_t size = shape.count * shape.row_bytes;
  if (got < size) {
    ThrowTruncated(*file, kind.header_bytes() + got,
                   fmt::format("{} of {} must end at byte {}", Plural(shape.count, kind.one, kind.name),
                               Plural(shape.row_bytes, "byte"), kind.header_bytes() + size));
  }
  uint8_t beyond = 0;
  if (file->Read(&beyond, 1) == 0) return;
  throw UserError(
      "{}: byte {}: more bytes follow after the last of {}; the header must count them all. "
      "The file is damaged: fetch it anew.",
      file->path(), kind.header_bytes() + size, Plural(shape.count, kind.one, kind.name));
}

// Appends the records to `bytes`.
template <typename Bytes>
IdxShape AppendIdx(const std::string& path, const std::string& key, const IdxKind& kind, Bytes* bytes) {
  InputBytes file(path, key);
  const IdxShape shape = ReadHeader(&file, kind);
  const int64_t size = shape.count * shape.row_bytes;
  const size_t begin = bytes->size();
  bytes->resize(begin + static_cast<size_t>(size));
  CheckEnd(kind, shape, file.Read(bytes->data() + begin, size), &file);
  return shape;
}

std::string ImageText(const IdxShape& shape) {
  return fmt::format("{} x {}", shape.row_bytes / shape.columns, shape.columns);
}

[[noreturn]] void ThrowCounts(const std::string& labels, int64_t label_count, const std::string& images,
                              int64_t image_count, const std::string& where) {
  throw UserError(
      "{}: byte 4: number of labels = {}; {} has {}, and each needs one label. Name two files of one set{}.",
      labels, label_count, images, Plural(image_count, "image"), where);
}

}  // namespace

IdxShape PeekIdxImages(const std::string& path, const std::string& key) {
  return PeekIdx(path, key, kImages);
}

IdxShape PeekIdxSet(const std::vector<std::string>& files, const std::string& key) {
  IdxShape all = PeekIdxImages(files[0], key);
  for (size_t i = 1; i < files.size(); ++i) {
    const IdxShape shape = PeekIdxImages(files[i], key);
    if (shape.row_bytes != all.row_bytes || shape.columns != all.columns) {
      throw UserError(
          "{}: byte 8: images of {} pixels; {} has images of {}, and all of one set have one shape. "
          "Name files of one shape in {}.",
          files[i], ImageText(shape), files[0], ImageText(all), key);
    }
    all.count += shape.count;
  }
  return all;
}

IdxShape AppendIdxImages(const std::string& path, const std::string& key, LargeVector<uint8_t>* bytes) {
  return AppendIdx(path, key, kImages, bytes);
}

std::vector<uint8_t> ReadIdxLabelsOf(const std::string& path, const std::string& key,
                                     const LabelRules& rules) {
  std::vector<uint8_t> labels;
  AppendIdx(path, key, kLabels, &labels);
  for (size_t row = 0; row < labels.size(); ++row) {
    if (labels[row] < *rules.classes) continue;
    throw UserError("{}: byte {}: label of row {} = {}; {}", path,
                    kLabels.header_bytes() + static_cast<int64_t>(row), row, labels[row],
                    LabelRangeRule(rules, std::to_string(labels[row])));
  }
  return labels;
}

void UnpackIdxImages(const std::string& path, const std::string& key,
                     const std::function<void(std::string_view)>& write) {
  InputBytes file(path, key);
  const IdxShape shape = ReadHeader(&file, kImages);
  std::string bytes;
  for (const int64_t number :
       {int64_t{kImages.magic}, shape.count, shape.row_bytes / shape.columns, shape.columns}) {
    for (int shift = 24; shift >= 0; shift -= 8) bytes.push_back(static_cast<char>(number >> shift));
  }
  write(bytes);
  const int64_t size = shape.count * shape.row_bytes;
  bytes.resize(1 << 20);
  int64_t got = 0;
  while (const int64_t more = file.Read(bytes.data(), std::min<int64_t>(size - got, 1 << 20))) {
    write({bytes.data(), static_cast<size_t>(more)});
    got += more;
  }
  CheckEnd(kImages, shape, got, &file);
}

IdxFiles FindIdxFiles(const std::vector<std::string>& images, const std::vector<std::string>& labels,
                      const std::string& section) {
  IdxFiles files{SourceFiles(images, section + ".images"), SourceFiles(labels, section + ".labels")};
  const size_t image_files = files.images.size(), label_files = files.labels.size();
  if (image_files != label_files) {
    const bool more = image_files > label_files;
    throw UserError(
        "{}: has no file of {}: {}.images names {} and {}.labels {}. Name one file of labels for "
        "each file of images, in the same order.",
        more ? files.images[label_files] : files.labels[image_files], more ? "labels" : "images", section,
        Plural(static_cast<int64_t>(image_files), "file"), section, label_files);
  }
  return files;
}

IdxShape CheckIdxFiles(const IdxFiles& files, const std::string& section) {
  for (size_t i = 0; i < files.images.size(); ++i) {
    const int64_t label_count = PeekIdx(files.labels[i], section + ".labels", kLabels).count;
    const int64_t images_count = PeekIdxImages(files.images[i], section + ".images").count;
    if (images_count == label_count) continue;
    ThrowCounts(files.labels[i], label_count, files.images[i], images_count,
                fmt::format(" in {}.images and {}.labels", section, section));
  }
  return PeekIdxSet(files.images, section + ".images");
}

IdxSet ReadIdxSet(const IdxFiles& files, const std::string& section, const LabelRules& rules) {
  IdxSet set;
  set.images.shape = CheckIdxFiles(files, section);
  // Reads the short files first, so that their errors are reported before the long ones are unpacked.
  for (const std::string& path : files.labels) {
    const std::vector<uint8_t> labels = ReadIdxLabelsOf(path, section + ".labels", rules);
    set.labels.insert(set.labels.end(), labels.begin(), labels.end());
  }
  set.images.bytes.reserve(static_cast<size_t>(set.images.shape.count * set.images.shape.row_bytes));
  for (const std::string& path : files.images) AppendIdxImages(path, section + ".images", &set.images.bytes);
  return set;
}

namespace {

// IdxFile: images of an open file. Its mark is where the next image begins.
class IdxFile : public RowFile {
 public:
  IdxFile(const RowSpec& spec, std::unique_ptr<InputBytes> file, const std::string& labels,
          SkippedRows* skipped)
      : RowFile(spec.data, skipped),
        spec_(spec),
        file_(std::move(file)),
        shape_(ReadHeader(file_.get(), kImages)) {
    if (shape_.row_bytes != spec_.inputs) {
      throw UserError("{}: byte 8: images of {}; the model has {}. Is it the right file?", file_->path(),
                      Plural(shape_.row_bytes, "pixel"), Plural(spec_.inputs, "feature"));
    }
    if (!spec_.pixels) {
      throw UserError(
          "{}: IDX images; the model was not trained on images. Give its rows as CSV or JSON lines.",
          file_->path());
    }
    if (!spec_.labels) return;
    labels_ = ReadIdxLabelsOf(labels, spec_.key, *spec_.labels);
    const auto count = static_cast<int64_t>(labels_.size());
    if (count != shape_.count) ThrowCounts(labels, count, file_->path(), shape_.count, "");
  }

  TextMark mark() const override { return {kImages.header_bytes() + row_ * shape_.row_bytes, row_}; }
  void GoTo(TextMark mark, int64_t /*bytes*/) override {
    file_->SkipTo(mark.byte);
    row_ = mark.line;
  }
  bool CanSeek() const override { return file_->CanSeek(); }
  const std::string& path() const override { return file_->path(); }
  int64_t content_bytes() const override { return file_->ExpectedContent(); }
  int64_t inputs() const override { return shape_.row_bytes; }
  bool HasMore() const override { return row_ < shape_.count && !file_->is_pipe(); }
  void SkipFault() override {}
  int64_t FindField(const std::string& name, const char* key) const override {
    throw UserError("{} {}: {} has images and no columns. Leave it out.", key, name, path());
  }
  std::string_view Field(int64_t /*field*/) const override { return {}; }

 private:
  Read ReadRow(ParsedRows* rows, RowLabels* /*labels*/) override {
    if (row_ == shape_.count) {
      uint8_t beyond = 0;
      if (file_->Read(&beyond, 1) == 0) return Read::kEnd;
      throw UserError(
          "{}: more bytes follow after the last of {}; the header must count them all. The file is damaged: "
          "fetch it anew.",
          file_->path(), Plural(shape_.count, "image"));
    }
    const size_t begin = rows->bytes.size();
    rows->bytes.resize(begin + static_cast<size_t>(shape_.row_bytes));
    const int64_t got = file_->Read(rows->bytes.data() + begin, shape_.row_bytes);
    if (got < shape_.row_bytes) {
      throw UserError("{}: ends in image {} of {}. The file is cut off: fetch it anew.", file_->path(), row_,
                      shape_.count);
    }
    if (spec_.labels) rows->classes.push_back(labels_[static_cast<size_t>(row_)]);
    ++row_;
    return Read::kRow;
  }

  const RowSpec& spec_;
  const std::unique_ptr<InputBytes> file_;
  const IdxShape shape_;
  std::vector<uint8_t> labels_;
  int64_t row_ = 0;
};

}  // namespace

std::unique_ptr<RowFile> OpenIdxFile(const RowSpec& spec, std::unique_ptr<InputBytes> file,
                                     const std::string& labels, SkippedRows* skipped) {
  return std::make_unique<IdxFile>(spec, std::move(file), labels, skipped);
}

}  // namespace dtrain
