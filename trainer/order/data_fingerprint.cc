#define XXH_INLINE_ALL

#include "trainer/order/data_fingerprint.h"

#include <fmt/format.h>
#include <xxhash.h>
#include <zlib.h>

#include "base/names.h"

namespace dtrain {

namespace {

uint64_t ValueOf(const XXH3_state_t& state, FeatureForm form) {
  constexpr uint64_t kBits = 0x7fffffffffffff00;  // a whole number in JSON
  return (XXH3_64bits_digest(&state) & kBits) | static_cast<uint64_t>(form);
}

}  // namespace

uint64_t FeatureChecksum(FeatureForm form, std::initializer_list<std::string_view> parts) {
  XXH3_state_t state;
  XXH3_64bits_reset(&state);
  for (const std::string_view part : parts) XXH3_64bits_update(&state, part.data(), part.size());
  return ValueOf(state, form);
}

struct FeatureSum::State {
  XXH3_state_t xxh;
};

FeatureSum::FeatureSum() : state_(std::make_unique<State>()) { XXH3_64bits_reset(&state_->xxh); }

FeatureSum::~FeatureSum() = default;

void FeatureSum::Add(std::string_view part) { XXH3_64bits_update(&state_->xxh, part.data(), part.size()); }

uint64_t FeatureSum::Value(FeatureForm form) const { return ValueOf(state_->xxh, form); }
uint32_t ColumnCrc(uint32_t crc, const void* numbers, size_t count) {
  return static_cast<uint32_t>(crc32_z(crc, static_cast<const Bytef*>(numbers), count * sizeof(uint32_t)));
}

bool HasOtherFeatures(uint64_t a, uint64_t b) {
  return a != 0 && b != 0 && a != b && (a & 0xff) == (b & 0xff);
}

std::string DataDifference(const DataFingerprint& now, const DataFingerprint& other, const char* whose) {
  if (now.rows == 0 || other.rows == 0 || now == other) return "";
  if (now.rows != other.rows) {
    return fmt::format("{}, and {} {}", Plural(now.rows, "row"), other.rows, whose);
  }
  return fmt::format("other {} than {}, or in another order",
                     HasOtherLabels(now.labels, other.labels) ? "labels" : "features", whose);
}

std::string OtherRowsText(const DataFingerprint& here, const DataFingerprint& chief) {
  const std::string differ = DataDifference(here, chief, "at the chief");
  if (differ.empty()) return "";
  return fmt::format(
      "data.train: {}. A worker trains on its share of one file: of different ones some rows count twice and "
      "others never. Copy one file to all machines.",
      differ);
}

}  // namespace dtrain
