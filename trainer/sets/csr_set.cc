#include "trainer/sets/csr_set.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "base/check.h"
#include "base/error.h"
#include "trainer/rows/pass.h"
#include "trainer/rows/read_table.h"
#include "trainer/sets/cache_file.h"

namespace dtrain {

void CsrRows::Append(const SparseBuffer& rows) {
  const int64_t before = features();
  for (size_t i = 1; i < rows.offsets.size(); ++i) offsets_.push_back(before + rows.offsets[i]);
  if (wide_) {
    wide_ids_.insert(wide_ids_.end(), rows.ids.begin(), rows.ids.end());
  } else {
    for (const uint64_t id : rows.ids) narrow_ids_.push_back(static_cast<uint32_t>(id));
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

uint64_t CsrRows::Checksum(const HeldOutView* view) const {
  if (view == nullptr) {
    return FeatureChecksum(FeatureForm::kSparse,
                           {BytesOf(offsets_), BytesOf(narrow_ids_), BytesOf(wide_ids_), BytesOf(values_)});
  }
  FeatureSum sum;
  int64_t offset = 0;
  sum.Add(BytesOf(&offset, 1));
  const auto visit = [&](auto&& add) {
    for (int64_t row = 0; row < count(); ++row) {
      const auto at = static_cast<size_t>(view->FileRow(row));
      add(offsets_[at], static_cast<size_t>(offsets_[at + 1] - offsets_[at]));
    }
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

namespace {

class CsrFetch : public Fetch {
 public:
  explicit CsrFetch(CsrRows rows) : rows_(std::move(rows)) {}

  void Read(gpu::Span<const int64_t> rows, const RowsOut& out) const override {
    out.sparse->Clear();
    ForEachAhead(
        rows, [&](int64_t row) __attribute__((always_inline)) { rows_.WillFind(row); },
        [&](int64_t row) __attribute__((always_inline)) { rows_.WillCopy(row); },
        [&](int64_t row) { rows_.CopyRow(row, out.sparse); });
  }
  uint64_t Checksum(const HeldOutView* view) const override { return rows_.Checksum(view); }

 private:
  const CsrRows rows_;
};

}  // namespace

std::shared_ptr<Fetch> FetchOf(CsrRows rows) { return std::make_shared<CsrFetch>(std::move(rows)); }

DataSet SparseInMemory(SparseTable table, std::optional<int64_t> classes) {
  SetForm form{table.rows.inputs(), classes, table.rows.count()};
  form.sparse = true;
  form.facts = FactsOf(table.labels.names(), std::move(table.skipped));
  return {form, FetchOf(std::move(table.rows)),
          Keep({{},
                std::move(table.labels.classes()),
                std::move(table.labels.targets()),
                std::move(table.weights)})};
}

SparseTable ReadSparseTable(const DataConfig& data, const LabelRules& rules, int64_t width,
                            SourceInputs* inputs, const CsvColumns* train_columns,
                            const std::vector<std::string>* train_names) {
  // Ids are narrowed part by part, so that no second copy of all of them is in memory.
  constexpr int64_t kPartBytes = 1 << 20;
  RowContext context;
  context.inputs = width;
  context.train = train_columns;
  Pass pass(data, context, inputs);
  SparseTable table{CsrRows(width), pass.NewLabels(rules, train_names), {}, {}, pass.columns()};
  ParsedRows part;
  CsvReserve reserve;
  int64_t reserved = 0;  // features
  const auto append = [&] {
    const int64_t features = table.rows.features() + static_cast<int64_t>(part.sparse.ids.size());
    if (features > reserved) {
      reserved = reserve.NextRows(features, pass.read_bytes(), pass.expected_bytes());
      table.rows.Reserve(static_cast<size_t>(reserved));
    }
    table.rows.Append(part.sparse);
    table.weights.insert(table.weights.end(), part.weights.begin(), part.weights.end());
    part.Clear();
  };
  while (pass.Next(&part, &table.labels)) {
    if (part.feature_bytes() >= kPartBytes) append();
  }
  append();
  pass.Finish(&table.labels);
  table.skipped = pass.skipped();
  const auto counts_one = [](float weight) { return weight == 1; };
  if (std::all_of(table.weights.begin(), table.weights.end(), counts_one)) table.weights.clear();
  return table;
}

}  // namespace dtrain
