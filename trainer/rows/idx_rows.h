// IdxRows: images of an IDX file, one after the other; with their labels where these are asked for.
#pragma once

#include "trainer/data/idx.h"
#include "trainer/rows/row_reader.h"

namespace dtrain {

class IdxRows : public RowReader {
 public:
  // `labels`: the file of labels, where the spec asks for them.
  // `piped`: the file is standard input, of which only Next() knows whether there is more.
  IdxRows(std::unique_ptr<InputBytes> file, const RowSpec& spec, const std::string& labels, bool piped);

  RowFormat format() const override { return RowFormat::kIdx; }
  bool Next(RowBlock* block) override;
  bool HasMore() const override { return row_ < shape_.count && !piped_; }

 private:
  void ReadLabels(const std::string& path);

  const RowSpec spec_;
  std::unique_ptr<InputBytes> file_;
  IdxShape shape_;
  std::vector<uint8_t> labels_;
  int64_t row_ = 0;
  const bool piped_;
};

}  // namespace dtrain
