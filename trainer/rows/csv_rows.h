// CsvRows: rows of a CSV file. With a header columns are found by the model's names; others are not read.
// Without one, or for a model without names, they are the model's features in order, with or without the
// label's column between them, which stands where it stood in the training data, or is called label where
// these were images.
#pragma once

#include "trainer/data/csv_columns.h"
#include "trainer/data/csv_labels.h"
#include "trainer/data/csv_reader.h"
#include "trainer/rows/row_reader.h"

namespace dtrain {

class CsvRows : public RowReader {
 public:
  CsvRows(std::unique_ptr<InputBytes> file, const RowSpec& spec);

  RowFormat format() const override { return RowFormat::kCsv; }
  bool Next(RowBlock* block) override;
  bool HasMore() const override { return first_is_row_ || reader_.HasWholeLine(); }

 private:
  void FindColumns();
  bool LooksLikeHeader() const;
  bool HasFeaturesInOrder(int64_t label) const;
  bool IsLabelName(const std::string& name) const;
  void FindByName();
  void CheckLabel() const;
  void FindByPosition();
  int64_t LabelColumn() const;
  int64_t LabelPosition() const;
  void CheckWhole() const;
  float Feature(int64_t feature) const;
  void AddLabel(RowBlock* block);

  const RowSpec spec_;
  CsvReader reader_;
  CsvColumns columns_;              // label: -1 without one
  std::vector<int64_t> positions_;  // of each feature
  std::optional<CsvLabels> labels_;
  bool first_is_row_ = false;  // the reader's record is a row that nobody has taken yet
};

}  // namespace dtrain
