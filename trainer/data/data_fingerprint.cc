#include "trainer/data/data_fingerprint.h"

#include <fmt/format.h>
#include <zlib.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "base/names.h"

namespace dtrain {
namespace {

constexpr int64_t kRowsAtOnce = 4096;

template <typename Value>
uint32_t Add(uint32_t crc, const std::vector<Value>& values, int64_t count) {
  const auto* bytes = reinterpret_cast<const Bytef*>(values.data());
  return static_cast<uint32_t>(crc32_z(crc, bytes, static_cast<size_t>(count) * sizeof(Value)));
}

}  // namespace

DataFingerprint FingerprintOf(const DataSet& train) {
  DataFingerprint print;
  if (!train.rows()) return print;
  print.rows = *train.rows();
  std::vector<int64_t> rows(static_cast<size_t>(kRowsAtOnce));
  std::vector<int32_t> labels(train.classes() ? rows.size() : 0);
  std::vector<float> targets(train.classes() ? 0 : rows.size());
  for (int64_t first = 0; first < print.rows; first += kRowsAtOnce) {
    const int64_t count = std::min(kRowsAtOnce, print.rows - first);
    std::iota(rows.begin(), rows.begin() + count, first);
    train.Gather(rows.data(), count, nullptr, labels.data(), targets.data());
    print.labels = train.classes() ? Add(print.labels, labels, count) : Add(print.labels, targets, count);
  }
  return print;
}

std::string OtherRowsText(const DataFingerprint& here, const DataFingerprint& chief) {
  if (here.rows == 0 || chief.rows == 0 || here == chief) return "";
  const std::string differ =
      here.rows != chief.rows
          ? fmt::format("{} here and {} at the chief", Plural(here.rows, "row"), chief.rows)
          : "the labels here are others than at the chief, or in another order";
  return fmt::format(
      "data.train: {}. A worker trains on its share of one file: of different ones some rows count twice and "
      "others never. Copy one file to all machines.",
      differ);
}

}  // namespace dtrain
