#include "base/tfrecord.h"

#include <cstring>

#include "base/crc32c.h"

namespace dtrain {
namespace {

constexpr size_t kLengthBytes = 8;

// This processor's order of bytes is the format's.
template <typename Number>
Number NumberAt(const char* bytes) {
  Number number = 0;
  std::memcpy(&number, bytes, sizeof number);
  return number;
}

template <typename Number>
void AppendNumber(Number number, std::string* out) {
  out->append(reinterpret_cast<const char*>(&number), sizeof number);
}

}  // namespace

uint32_t MaskCrc(uint32_t crc) { return ((crc >> 15) | (crc << 17)) + 0xa282ead8u; }

uint32_t MaskedCrc(std::string_view bytes) { return MaskCrc(Crc32cExtend(0, bytes.data(), bytes.size())); }

bool BeginsTfrecord(std::string_view bytes) {
  return bytes.size() >= kTfrecordHead &&
         NumberAt<uint32_t>(bytes.data() + kLengthBytes) == MaskedCrc(bytes.substr(0, kLengthBytes));
}

Tfrecord TfrecordAt(std::string_view bytes, uint64_t max_data, bool checks_data) {
  if (bytes.size() < kTfrecordHead) return {};
  if (!BeginsTfrecord(bytes)) return {TfrecordState::kWrongLength, {}};
  const auto length = NumberAt<uint64_t>(bytes.data());
  if (length > max_data) return {TfrecordState::kTooLong, {}};
  const std::string_view data = bytes.substr(kTfrecordHead, length);
  if (bytes.size() < kTfrecordHead + length + kTfrecordTail) return {};
  const bool is_right = !checks_data || NumberAt<uint32_t>(data.data() + length) == MaskedCrc(data);
  return {is_right ? TfrecordState::kWhole : TfrecordState::kWrongData, data};
}

void AppendTfrecord(std::string_view data, std::string* out) {
  const size_t begin = out->size();
  AppendNumber(static_cast<uint64_t>(data.size()), out);
  AppendNumber(MaskedCrc(std::string_view(*out).substr(begin)), out);
  out->append(data);
  AppendNumber(MaskedCrc(data), out);
}

}  // namespace dtrain
