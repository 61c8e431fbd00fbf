#include "trainer/rows/open_rows.h"

#include <array>
#include <string_view>

#include "base/error.h"
#include "base/names.h"
#include "trainer/input/sources.h"
#include "trainer/rows/idx.h"
#include "trainer/rows/row_formats.h"

namespace dtrain {
namespace {

constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";

// Whether, behind `blanks` blanks, the name of a column begins and not a JSON row: both may begin with a
// bracket.
bool BeginsWithColumn(InputBytes* file, size_t blanks, const RowSpec& spec) {
  std::vector<std::string> names = ColumnNames(spec.form);
  names.push_back(spec.label);
  for (const std::string& name : names) {
    if (name.empty() || !file->ContinuesWith(name, blanks)) continue;
    for (const char* end : {",", ";", "|", "\n", "\r", " ", "\t"}) {
      if (file->ContinuesWith(name + end, blanks)) return true;
    }
  }
  return false;
}

// Throws for text that looks like JSON: in CSV, quotes stand around whole fields, so no CSV file begins this
// way.
void RefuseJson(InputBytes* file, const std::string& key) {
  if (!file->ContinuesWith("{\"")) return;
  throw UserError(
      "{}: is JSON lines ({}); rows with labels are read of CSV and IDX files only. Save it as CSV, or use "
      "dtrain predict.",
      file->path(), key);
}

RowFormat FormatOf(InputBytes* file, const RowSpec& spec) {
  if (spec.sparse) {
    if (!file->ContinuesWith("{\"")) return RowFormat::kSparse;
    throw UserError("{}: is JSON lines ({}); sparse models have none. Give rows in the form of data.train.",
                    file->path(), spec.key);
  }
  if (spec.format == RowFormat::kCsv) RefuseJson(file, spec.key);
  if (spec.format) return *spec.format;
  if (file->ContinuesWith(std::string_view("\0", 1))) return RowFormat::kIdx;
  const size_t blanks = file->CountBlanks(" \t\r\n");
  const bool bracket = file->ContinuesWith("{", blanks) || file->ContinuesWith("[", blanks);
  const bool json = bracket && !BeginsWithColumn(file, blanks, spec);
  return json ? RowFormat::kJsonLines : RowFormat::kCsv;
}

class IdxRows : public RowReader {
 public:
  IdxRows(std::unique_ptr<InputBytes> file, const RowSpec& spec, const std::string& labels);

  RowFormat format() const override { return RowFormat::kIdx; }
  bool Next(RowBlock* block) override;
  bool HasMore() const override { return row_ < shape_.count && !file_->is_pipe(); }

 private:
  void ReadLabels(const std::string& path);

  const RowSpec spec_;
  std::unique_ptr<InputBytes> file_;
  IdxShape shape_;
  std::vector<uint8_t> labels_;
  int64_t row_ = 0;
};

IdxRows::IdxRows(std::unique_ptr<InputBytes> file, const RowSpec& spec, const std::string& labels)
    : spec_(spec), file_(std::move(file)), shape_(ReadIdxHeader(file_.get())) {
  if (shape_.row_bytes != spec_.inputs) {
    throw UserError("{}: byte 8: images of {}; the model has {}. Is it the right file?", file_->path(),
                    Plural(shape_.row_bytes, "pixel"), Plural(spec_.inputs, "feature"));
  }
  if (!spec_.pixels) {
    throw UserError(
        "{}: IDX images; the model was not trained on images. Give its rows as CSV or JSON lines.",
        file_->path());
  }
  if (spec_.labels) ReadLabels(labels);
}

void IdxRows::ReadLabels(const std::string& path) {
  labels_ = ReadIdxLabelsOf(path, spec_.key, *spec_.labels);
  const auto count = static_cast<int64_t>(labels_.size());
  if (count == shape_.count) return;
  throw UserError(
      "{}: byte 4: number of labels = {}; {} has {}, and each needs one label. Name two files of one set.",
      path, count, file_->path(), Plural(shape_.count, "image"));
}

bool IdxRows::Next(RowBlock* block) {
  if (row_ == shape_.count) {
    uint8_t beyond = 0;
    if (file_->Read(&beyond, 1) == 0) return false;
    throw UserError(
        "{}: more bytes follow after the last of {}; the header must count them all. The file is damaged: "
        "fetch it anew.",
        file_->path(), Plural(shape_.count, "image"));
  }
  const size_t begin = block->bytes.size();
  block->bytes.resize(begin + static_cast<size_t>(shape_.row_bytes));
  const int64_t got = file_->Read(block->bytes.data() + begin, shape_.row_bytes);
  if (got < shape_.row_bytes) {
    throw UserError("{}: ends in image {} of {}. The file is cut off: fetch it anew.", file_->path(), row_,
                    shape_.count);
  }
  if (spec_.labels) block->labels.push_back(labels_[static_cast<size_t>(row_)]);
  block->ids.emplace_back();
  ++block->rows;
  ++row_;
  return true;
}

}  // namespace

std::unique_ptr<RowReader> OpenIdxRows(std::unique_ptr<InputBytes> file, const RowSpec& spec,
                                       const std::string& labels) {
  return std::make_unique<IdxRows>(std::move(file), spec, labels);
}

std::unique_ptr<RowReader> OpenRows(const std::string& path, const RowSpec& spec,
                                    const std::string& idx_labels) {
  std::unique_ptr<InputBytes> file = OpenInput(path, spec.key);
  std::array<char, kByteOrderMark.size()> mark{};
  if (file->ContinuesWith(kByteOrderMark)) file->Read(mark.data(), kByteOrderMark.size());
  switch (FormatOf(file.get(), spec)) {
    case RowFormat::kIdx:
      if (!spec.keep.empty()) {
        throw UserError("--keep {}: {} has images and no columns. Leave it out.", spec.keep[0], file->path());
      }
      return OpenIdxRows(std::move(file), spec, idx_labels);
    case RowFormat::kJsonLines:
      return OpenJsonRows(std::move(file), spec);
    case RowFormat::kSparse:
      return OpenSparseRows(std::move(file), spec);
    case RowFormat::kCsv:
      break;
  }
  return OpenCsvRows(std::move(file), spec);
}

}  // namespace dtrain
