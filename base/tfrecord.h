// TFRecord's framing, which TensorBoard's event files have too. A record is
//   length u64le, masked CRC-32C of those 8 bytes u32le, the data, masked CRC-32C of the data u32le
// and a file is one record behind the other, without a head of its own. Thread: any; free functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace dtrain {

constexpr size_t kTfrecordHead = 12, kTfrecordTail = 4;  // bytes in front of the data, and behind it

// Returns the CRC-32C of bytes, masked as the format requires, since a checksum over data that contains
// checksums would be weak.
uint32_t MaskedCrc(std::string_view bytes);
// The same of a CRC-32C.
uint32_t MaskCrc(uint32_t crc);

// Whether bytes begin with a record's length and the checksum of it: kTfrecordHead of them decide.
bool BeginsTfrecord(std::string_view bytes);

enum class TfrecordState { kWhole, kCut, kWrongLength, kWrongData, kTooLong };

// Tfrecord: a record at the begin of some bytes. Plain data.
struct Tfrecord {
  TfrecordState state = TfrecordState::kCut;  // kCut: the bytes end before the record does
  std::string_view data;                      // if it is whole; points into the bytes
  size_t size() const { return kTfrecordHead + data.size() + kTfrecordTail; }
};

// Returns the record that the bytes begin with. One with more than `max_data` bytes of data is too long.
// `checks_data`: else the checksum of the data is not looked at.
Tfrecord TfrecordAt(std::string_view bytes, uint64_t max_data, bool checks_data = true);

// Appends `data` as a record.
void AppendTfrecord(std::string_view data, std::string* out);

}  // namespace dtrain
