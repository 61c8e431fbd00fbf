// OpenSparseRows (row_formats.h).
#include <fmt/core.h>

#include <optional>
#include <utility>

#include "base/json.h"
#include "trainer/rows/row_file.h"
#include "trainer/rows/row_files.h"
#include "trainer/rows/row_formats.h"
#include "trainer/rows/row_labels.h"

namespace dtrain {
namespace {

class SparseRowReader : public RowReader {
 public:
  SparseRowReader(std::unique_ptr<InputBytes> file, const RowSpec& spec);

  RowFormat format() const override { return RowFormat::kSparse; }
  bool Next(RowBlock* block) override;
  void SkipFault() override { rows_->SkipFault(); }
  bool HasMore() const override { return rows_->HasMore(); }
  const SkippedRows& skipped() const override { return skipped_; }
  std::vector<std::string> KeptNames() const override;

 private:
  static RowContext ContextOf(const RowSpec& spec);
  void AddLabel(RowBlock* block);

  const RowSpec spec_;
  SkippedRows skipped_;
  const std::unique_ptr<RowFile> rows_;
  std::optional<RowLabels> labels_;  // of the current row
  std::vector<int64_t> kept_;        // fields
  std::optional<int64_t> tag_;       // a field
  ParsedRows row_;
};

RowContext SparseRowReader::ContextOf(const RowSpec& spec) {
  RowContext context;
  context.inputs = spec.inputs;
  context.labels = spec.labels.has_value();
  if (spec.sparse->train_columns) context.train = &*spec.sparse->train_columns;
  return context;
}

SparseRowReader::SparseRowReader(std::unique_ptr<InputBytes> file, const RowSpec& spec)
    : spec_(spec), rows_(OpenRowFile(spec_.sparse->data, ContextOf(spec_), std::move(file), &skipped_)) {
  for (const std::string& name : spec_.keep) kept_.push_back(rows_->FindField(name));
  if (spec_.sparse->data.train.format == DataFormat::kVw) tag_ = rows_->FindField("tag");
  if (!spec_.labels) return;
  labels_.emplace(*spec_.labels, rows_->path(), ColumnTitle(rows_->columns(), rows_->columns().label),
                  spec_.form.classes);
}

std::vector<std::string> SparseRowReader::KeptNames() const {
  const std::vector<std::string>& names = rows_->columns().names;
  if (names.empty()) return spec_.keep;
  std::vector<std::string> kept;
  for (const int64_t field : kept_) kept.push_back(names[static_cast<size_t>(field)]);
  return kept;
}

bool SparseRowReader::Next(RowBlock* block) {
  row_.Clear();
  if (!rows_->Next(&row_, labels_ ? &*labels_ : nullptr)) return false;
  block->sparse.AddRow(row_.sparse, 0);
  if (labels_) AddLabel(block);
  for (const int64_t field : kept_) block->kept.push_back({std::string(rows_->Field(field))});
  const std::string_view tag = tag_ ? rows_->Field(*tag_) : std::string_view();
  block->ids.push_back(tag.empty() ? std::string() : Json(std::string(tag)).dump());
  ++block->rows;
  return true;
}

void SparseRowReader::AddLabel(RowBlock* block) {
  if (spec_.labels->classes) {
    block->labels.push_back(labels_->classes().back());
  } else {
    block->targets.push_back(labels_->targets().back());
  }
  labels_->Truncate(0);
  if (!row_.weights.empty()) block->weights.push_back(row_.weights[0]);
}

}  // namespace

std::unique_ptr<RowReader> OpenSparseRows(std::unique_ptr<InputBytes> file, const RowSpec& spec) {
  return std::make_unique<SparseRowReader>(std::move(file), spec);
}

}  // namespace dtrain
