#include "trainer/sets/memory_rows.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "base/check.h"
#include "gpu/ops.h"
#include "trainer/sets/cache_file.h"

namespace dtrain {
namespace {

// The checksum of rows that lie one after the other.
template <typename Value>
uint64_t SumOf(FeatureForm form, gpu::MatrixView<const Value> rows, const HeldOutView* view) {
  if (view == nullptr) return FeatureChecksum(form, {BytesOf(rows.data, static_cast<size_t>(rows.size()))});
  FeatureSum sum;
  for (int64_t row = 0; row < rows.rows; ++row) {
    sum.Add(BytesOf(rows.row(view->FileRow(row)), static_cast<size_t>(rows.cols)));
  }
  return sum.Value(form);
}

class ByteRows : public Fetch {
 public:
  ByteRows(LargeVector<uint8_t> bytes, int64_t rows, int64_t inputs)
      : bytes_(std::move(bytes)), rows_(bytes_.data(), rows, inputs) {
    DT_CHECK(bytes_.size() == static_cast<size_t>(rows * inputs), bytes_.size(), rows, inputs);
  }
  void Read(gpu::Span<const int64_t> rows, const RowsOut& out) const override {
    gpu::Stream stream;
    gpu::GatherBytes(stream, {rows_, rows}, {out.inputs, rows.size, rows_.cols});
  }
  gpu::MatrixView<const uint8_t> bytes() const override { return rows_; }
  uint64_t Checksum(const HeldOutView* view) const override {
    return SumOf(FeatureForm::kBytes, rows_, view);
  }

 private:
  const LargeVector<uint8_t> bytes_;
  const gpu::MatrixView<const uint8_t> rows_;
};

class FloatRows : public Fetch {
 public:
  FloatRows(std::vector<float> features, int64_t rows, int64_t inputs)
      : features_(std::move(features)), rows_(features_.data(), rows, inputs) {
    DT_CHECK(features_.size() == static_cast<size_t>(rows * inputs), features_.size(), rows, inputs);
  }
  void Read(gpu::Span<const int64_t> rows, const RowsOut& out) const override {
    for (int64_t i = 0; i < rows.size; ++i) {
      std::copy_n(rows_.row(rows[i]), rows_.cols, out.inputs + i * rows_.cols);
    }
  }
  gpu::MatrixView<const float> floats() const override { return rows_; }
  uint64_t Checksum(const HeldOutView* view) const override {
    return SumOf<float>(FeatureForm::kFloats, rows_, view);
  }
  bool Scale(const FittedScale& scale) override {
    ApplyScale(scale, rows_);
    return true;
  }

 private:
  std::vector<float> features_;
  const gpu::MatrixView<float> rows_;
};

}  // namespace

DataSet BytesInMemory(LargeVector<uint8_t> bytes, std::vector<uint8_t> labels, int64_t inputs,
                      int64_t classes) {
  const auto rows = static_cast<int64_t>(labels.size());
  SetForm form{inputs, classes, rows};
  return {form, std::make_shared<ByteRows>(std::move(bytes), rows, inputs), Keep({std::move(labels)})};
}

std::shared_ptr<Fetch> FetchOf(std::vector<float> features, int64_t rows, int64_t inputs) {
  return std::make_shared<FloatRows>(std::move(features), rows, inputs);
}

DataSet TableInMemory(CsvTable table, std::optional<int64_t> classes) {
  SetForm form{table.inputs, classes, table.Rows().rows};
  form.facts = FactsOf(table.labels.names(), std::move(table.skipped));
  return {form, FetchOf(std::move(table.parsed.features), *form.rows, table.inputs),
          Keep({{},
                std::move(table.labels.classes()),
                std::move(table.labels.targets()),
                std::move(table.parsed.weights)})};
}

}  // namespace dtrain
