#include "trainer/rows/sparse_scan.h"

#include <algorithm>
#include <limits>

#include "trainer/rows/pass.h"
#include "trainer/rows/row_labels.h"

namespace dtrain {

SparseFacts ScanSparseRows(const DataConfig& data, bool counts_classes) {
  SourceInputs inputs(data.train.path, "data.train.path");
  Pass pass(data, RowContext(), &inputs);
  ClassCounter counter(data);
  SparseFacts facts;
  for (ParsedRows row; pass.Next(&row, nullptr); row.Clear()) {
    if (counts_classes) counter.Count(pass.rows().path(), pass.rows().label());
    for (const uint64_t id : row.sparse.ids) {
      facts.inputs = std::max(facts.inputs, static_cast<int64_t>(id) + 1);
    }
  }
  facts.classes = counter.classes();
  facts.named_numbers = counter.NamedNumbers();
  return facts;
}

SparseSize EstimateSparseSize(const DataConfig& data, SourceInputs* inputs) {
  constexpr int64_t kSampleBytes = 1 << 20;
  DataConfig lenient = data;  // what is wrong with a row is told when it is read
  lenient.bad_rows = BadRows::kSkip;
  lenient.bad_rows_limit = std::numeric_limits<int64_t>::max();
  Pass pass(lenient, RowContext(), inputs);
  double features = 0;
  for (ParsedRows row; pass.read_bytes() < kSampleBytes && pass.Next(&row, nullptr); row.Clear()) {
    features += static_cast<double>(row.sparse.ids.size());
  }
  const auto rows = static_cast<double>(pass.count());
  const auto read = static_cast<double>(std::max<int64_t>(1, pass.read_bytes()));
  return {static_cast<int64_t>(static_cast<double>(pass.expected_bytes()) / read * rows),
          features / std::max(1.0, rows)};
}

}  // namespace dtrain
