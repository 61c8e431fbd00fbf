#include "trainer/sets/memory_rows.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "base/check.h"
#include "gpu/ops.h"
#include "trainer/rows/pass.h"
#include "trainer/sets/cache_file.h"

namespace dtrain {
namespace {

// The checksum of rows that lie one after the other.
template <typename Value>
uint64_t SumOf(FeatureForm form, gpu::MatrixView<const Value> rows, const HeldOutView* view) {
  if (view == nullptr) return FeatureChecksum(form, {BytesOf(rows.data, static_cast<size_t>(rows.size()))});
  FeatureSum sum;
  RowRun run;  // rows that follow each other are added together
  const auto add = [&] {
    sum.Add(BytesOf(rows.row(run.begin), static_cast<size_t>((run.end - run.begin) * rows.cols)));
  };
  view->ForEachRow(0, [&](int64_t row) {
    if (row != run.end) {
      add();
      run.begin = row;
    }
    run.end = row + 1;
  });
  add();
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

// Always inline, because GCC takes a function that only prefetches for one without effects and leaves out its
// call.
template <typename T>
[[gnu::always_inline]] inline void Prefetch(const std::vector<T>& values, int64_t begin, int64_t end) {
  constexpr int64_t kInLine = 64 / sizeof(T);
  for (int64_t i = begin; i < end; i += kInLine) __builtin_prefetch(values.data() + i);
}

// The columns of a text's rows.
RowColumns ColumnsOf(RowLabels* labels, ParsedRows* rows) {
  return Keep({{},
               std::move(labels->classes()),
               std::move(labels->targets()),
               std::move(rows->weights),
               std::move(rows->row_offsets)});
}

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

void CsrRows::Append(const SparseBuffer& rows) {
  const int64_t before = features();
  for (size_t i = 1; i < rows.offsets.size(); ++i) offsets_.push_back(before + rows.offsets[i]);
  if (wide_) {
    wide_ids_.insert(wide_ids_.end(), rows.ids.begin(), rows.ids.end());
  } else {
    narrow_ids_.resize(narrow_ids_.size() + rows.ids.size());
    std::transform(rows.ids.begin(), rows.ids.end(), narrow_ids_.begin() + before,
                   [](uint64_t id) { return static_cast<uint32_t>(id); });
  }
  if (values_.empty() && rows.values.empty()) return;
  if (values_.empty()) values_.reserve(std::max(narrow_ids_.capacity(), wide_ids_.capacity()));
  values_.resize(static_cast<size_t>(before), 1.0f);  // those before are 1
  values_.insert(values_.end(), rows.values.begin(), rows.values.end());
  values_.resize(static_cast<size_t>(features()), 1.0f);
}

void CsrRows::Reserve(size_t features) {
  wide_ ? wide_ids_.reserve(features) : narrow_ids_.reserve(features);
  if (!values_.empty()) values_.reserve(features);
}

// Brings a row near to the processor.
[[gnu::always_inline]] inline void CsrRows::WillCopy(int64_t row) const {
  constexpr int64_t kMaxFeatures = 64;  // longer rows are read in order, which the processor sees itself
  const int64_t begin = offsets_[static_cast<size_t>(row)];
  const int64_t end = std::min(offsets_[static_cast<size_t>(row) + 1], begin + kMaxFeatures);
  wide_ ? Prefetch(wide_ids_, begin, end) : Prefetch(narrow_ids_, begin, end);
  if (!values_.empty()) Prefetch(values_, begin, end);
}

// Appends a row to `to`.
void CsrRows::CopyRow(int64_t row, SparseBuffer* to) const {
  const auto begin = static_cast<size_t>(offsets_[static_cast<size_t>(row)]);
  const size_t size = static_cast<size_t>(offsets_[static_cast<size_t>(row) + 1]) - begin;
  const float* const values = values_.empty() ? nullptr : values_.data() + begin;
  if (wide_) {
    to->Add(wide_ids_.data() + begin, values, size);
  } else {
    to->Add(narrow_ids_.data() + begin, values, size);
  }
}

void CsrRows::Read(gpu::Span<const int64_t> rows, const RowsOut& out) const {
  out.sparse->Clear();
  ForEachAhead(
      rows, [&](int64_t row) __attribute__((always_inline)) { __builtin_prefetch(offsets_.data() + row); },
      [&](int64_t row) __attribute__((always_inline)) { WillCopy(row); },
      [&](int64_t row) { CopyRow(row, out.sparse); });
}

uint64_t CsrRows::Checksum(const HeldOutView* view) const {
  if (view == nullptr) {
    return FeatureChecksum(FeatureForm::kSparse,
                           {BytesOf(offsets_), BytesOf(narrow_ids_), BytesOf(wide_ids_), BytesOf(values_)});
  }
  FeatureSum sum;
  int64_t offset = 0;
  sum.Add(BytesOf(&offset, 1));
  const auto visit = [&](auto&& add) {
    view->ForEachRow(0, [&](int64_t row) {
      const auto at = static_cast<size_t>(row);
      add(offsets_[at], static_cast<size_t>(offsets_[at + 1] - offsets_[at]));
    });
  };
  visit([&](int64_t, size_t size) {
    offset += static_cast<int64_t>(size);
    sum.Add(BytesOf(&offset, 1));
  });
  visit([&](int64_t begin, size_t size) {
    sum.Add(wide_ ? BytesOf(wide_ids_.data() + begin, size) : BytesOf(narrow_ids_.data() + begin, size));
  });
  if (values_.empty()) return sum.Value(FeatureForm::kSparse);
  visit([&](int64_t begin, size_t size) { sum.Add(BytesOf(values_.data() + begin, size)); });
  return sum.Value(FeatureForm::kSparse);
}

DataSet TableInMemory(CsvTable table, std::optional<int64_t> classes) {
  SetForm form{table.inputs, classes, table.Rows().rows};
  form.facts = FactsOf(table.labels.names(), std::move(table.skipped));
  return {form, FetchOf(std::move(table.parsed.features), *form.rows, table.inputs),
          ColumnsOf(&table.labels, &table.parsed)};
}

DataSet SparseInMemory(SparseTable table, std::optional<int64_t> classes) {
  SetForm form{table.rows.inputs(), classes, table.rows.count()};
  form.sparse = true;
  form.facts = FactsOf(table.labels.names(), std::move(table.skipped));
  return {form, std::make_shared<CsrRows>(std::move(table.rows)), ColumnsOf(&table.labels, &table.numbers)};
}

SparseTable ReadSparseTable(const DataConfig& data, const LabelRules& rules, int64_t width,
                            SourceInputs* inputs, const CsvColumns* train_columns,
                            const std::vector<std::string>* train_names) {
  RowContext context;
  context.inputs = width;
  context.train = train_columns;
  Pass pass(data, context, inputs);
  SparseTable table{CsrRows(width), pass.NewLabels(rules, train_names), {}, {}, pass.columns()};
  CsvReserve reserve;
  int64_t reserved = 0;  // features
  ReadAllRows(&pass, &table.labels, [&](const ParsedRows& part) {
    const int64_t features = table.rows.features() + static_cast<int64_t>(part.sparse.ids.size());
    if (features > reserved) {
      reserved = reserve.NextRows(features, pass.read_bytes(), pass.expected_bytes());
      table.rows.Reserve(static_cast<size_t>(reserved));
    }
    table.rows.Append(part.sparse);
    table.numbers.AddNumbers(part);
  });
  pass.Finish(&table.labels);
  table.skipped = pass.skipped();
  const auto counts_one = [](float weight) { return weight == 1; };
  std::vector<float>& weights = table.numbers.weights;
  if (std::all_of(weights.begin(), weights.end(), counts_one)) weights.clear();
  return table;
}

}  // namespace dtrain
