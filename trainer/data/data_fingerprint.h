// DataFingerprint: by what two workers find out that they do not read the same training rows, in one order.
// Thread: any; plain values and free functions.
#pragma once

#include <cstdint>
#include <string>

#include "trainer/data/source.h"

namespace dtrain {

struct DataFingerprint {
  int64_t rows = 0;     // before the hold-out; 0: they have no end, or are not known
  uint32_t labels = 0;  // CRC-32 of all labels or targets in the rows' order

  bool operator==(const DataFingerprint& other) const { return rows == other.rows && labels == other.labels; }
  bool operator!=(const DataFingerprint& other) const { return !(*this == other); }
};

// Looks at every label once.
DataFingerprint FingerprintOf(const DataSet& train);

// What workers whose shares are of different rows train on, for a warning; empty: they are the same, or one
// of both is not known.
std::string OtherRowsText(const DataFingerprint& here, const DataFingerprint& chief);

}  // namespace dtrain
