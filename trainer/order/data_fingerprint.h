// A fingerprint of the training rows, which shows whether two workers, or a run and the checkpoint that it
// resumes from, read the same ones. Thread: any; plain values and free functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace dtrain {

// How a data set keeps its features. Checksums of different forms are not compared.
// kRecords: the texts of all rows, labels included.
enum class FeatureForm : uint8_t { kBytes = 1, kFloats, kSparse, kMapped, kText, kCache, kRecords };
// The memory of some values.
template <typename Value>
std::string_view BytesOf(const Value* values, size_t count) {
  return {reinterpret_cast<const char*>(values), count * sizeof(Value)};
}
template <typename Values>
std::string_view BytesOf(const Values& values) {
  return BytesOf(values.data(), values.size());
}
// 55 bits of the XXH3-64 of the parts, and the form as the lowest byte. Never 0.
uint64_t FeatureChecksum(FeatureForm form, std::initializer_list<std::string_view> parts);
// FeatureSum: FeatureChecksum() of parts that come one after the other. Owner: who adds them. Thread: one.
class FeatureSum {
 public:
  FeatureSum();
  ~FeatureSum();
  FeatureSum(const FeatureSum&) = delete;
  FeatureSum& operator=(const FeatureSum&) = delete;

  void Add(std::string_view part);
  uint64_t Value(FeatureForm form) const;

 private:
  struct State;
  const std::unique_ptr<State> state_;
};
// CRC-32 of a column of numbers of 4 bytes, such as labels or targets, behind those of `crc`; of none it is
// 0.
uint32_t ColumnCrc(uint32_t crc, const void* numbers, size_t count);
template <typename Number>
uint32_t ColumnCrc(uint32_t crc, const std::vector<Number>& numbers) {
  static_assert(sizeof(Number) == sizeof(uint32_t));
  return ColumnCrc(crc, numbers.data(), numbers.size());
}
// Whether both are known, of one form, and differ.
bool HasOtherFeatures(uint64_t a, uint64_t b);
// Whether both are known and differ.
inline bool HasOtherLabels(uint32_t a, uint32_t b) { return a != 0 && b != 0 && a != b; }

// DataFingerprint: shows whether two workers read the same training rows in the same order.
struct DataFingerprint {
  int64_t rows = 0;       // before the hold-out; 0: without end, or unknown
  uint32_t labels = 0;    // CRC-32 of all labels or targets in row order; 0: not known
  uint64_t features = 0;  // FeatureChecksum() of the rows and their weights; 0: not known

  template <typename Archive>
  void State(Archive& archive) {
    archive(rows, labels, features);
  }
  bool operator==(const DataFingerprint& other) const {
    return rows == other.rows && !HasOtherLabels(labels, other.labels) &&
           !HasOtherFeatures(features, other.features);
  }
  bool operator!=(const DataFingerprint& other) const { return !(*this == other); }
};

// How rows that a worker reads now differ from others: "90 rows, and 100 before"; empty: not, as far as
// known.
std::string DataDifference(const DataFingerprint& now, const DataFingerprint& other,
                           const char* whose = "before");
// Returns a warning that two workers with shares of the data read different rows; empty if they read the
// same, or if one fingerprint is unknown.
std::string OtherRowsText(const DataFingerprint& here, const DataFingerprint& chief);

}  // namespace dtrain
