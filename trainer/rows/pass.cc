#include "trainer/rows/pass.h"

#include <utility>

#include "base/error.h"
#include "trainer/rows/row_files.h"

namespace dtrain {

Pass::Pass(const DataConfig& data, RowContext context, SourceInputs* inputs)
    : data_(data),
      context_(std::move(context)),
      inputs_(*inputs),
      key_(inputs->key()),
      files_(inputs->size()) {
  Open();
  columns_ = rows_->columns();
  context_.first = &columns_;
  context_.first_path = rows_->path();
}

void Pass::Open() {
  std::unique_ptr<InputBytes> input = context_.records ? inputs_.OpenHead(file_) : inputs_.Open(file_);
  rows_ = OpenRowFile(data_, context_, std::move(input), &skipped_);
  file_begin_ = rows_->mark();
}

bool Pass::NextFile(RowLabels* labels) {
  if (file_ + 1 == files_) return false;
  bytes_before_ += rows_->mark().byte;
  rows_.reset();  // its buffer is not needed beside that of the next
  ++file_;
  Open();
  first_row_ = count_;
  if (labels != nullptr) labels->NextFile(rows_->path());
  return true;
}

std::unique_ptr<RowFile> Pass::OpenAgain(size_t file, SkippedRows* skipped) const {
  return OpenRowFile(data_, context_, OpenInput(inputs_.files()[file], key_), skipped);
}

void Pass::StepOver(int64_t count, TextMark mark, const SkippedRows& skipped) {
  rows_->GoTo(mark, 0);
  count_ += count;
  skipped_.Add(skipped);
}

RowLabels Pass::NewLabels(const LabelRules& rules, const std::vector<std::string>* train_names) const {
  const std::string title = ColumnTitle(columns_, columns_.label);
  return train_names == nullptr ? RowLabels(rules, rows_->path(), title)
                                : RowLabels(rules, rows_->path(), title, *train_names);
}

void Pass::Finish(RowLabels* labels) const {
  if (count_ == 0 && skipped_.bad + skipped_.with_gaps + skipped_.unlabelled > 0) {
    throw UserError(
        "{}: no row is left of {}: {} cannot be read (data.bad_rows), {} have gaps (data.missing) and {} no "
        "label. Correct them, or read them otherwise.",
        context_.first_path, key_, skipped_.bad, skipped_.with_gaps, skipped_.unlabelled);
  }
  if (count_ == 0) {
    const bool is_train = context_.train == nullptr;
    const DataSourceConfig& source = is_train ? data_.train : data_.test;
    const bool header = source.format == DataFormat::kCsv && source.header;
    throw UserError("{}: no rows{}; {} must name files with data. {}", context_.first_path,
                    header ? " after the header" : "", key_,
                    header ? fmt::format("If the first line is data, set {}.header to false.",
                                         is_train ? "data.train" : "data.test")
                           : "Fetch them anew.");
  }
  labels->Finish();
}

int64_t Pass::expected_bytes() const {
  return bytes_before_ + inputs_.ExpectedContentFrom(file_, rows_->content_bytes());
}

}  // namespace dtrain
