#include "trainer/tf/tf_entries.h"

#include <fmt/format.h>

#include <iterator>

#include "base/names.h"
#include "base/wire_fields.h"
#include "trainer/export/tensor_file.h"

namespace dtrain {
namespace {

constexpr size_t kMaxRank = 254;  // TensorShape's

// Takes a number of OrderedCode::WriteSignedNumIncreasing off the front: as many leading ones as it has
// bytes, of a negative number all bits inverted.
bool TakeSigned(std::string_view* bytes, int64_t* number) {
  if (bytes->empty()) return false;
  const auto first = static_cast<unsigned char>(bytes->front());
  const unsigned char flip = first < 0x80 ? 0xff : 0;
  size_t size = 0;
  for (unsigned char ones = first ^ flip; (ones & 0x80) != 0; ones = static_cast<unsigned char>(ones << 1))
    ++size;
  if (size == 0 || size > 7 || size > bytes->size()) return false;
  uint64_t value = 0;
  for (size_t i = 0; i < size; ++i)
    value = value << 8 | static_cast<unsigned char>(static_cast<unsigned char>((*bytes)[i]) ^ flip);
  value &= (uint64_t{1} << (7 * size - 1)) - 1;  // behind the ones there is a zero
  *number = static_cast<int64_t>(value);
  if (flip != 0) *number = ~*number;
  bytes->remove_prefix(size);
  return true;
}

// The number of the field of a TensorProto that has values of this type; 0: none that is read.
uint32_t FieldOf(TfType type) {
  switch (type) {
    case TfType::kFloat32:
      return 5;
    case TfType::kFloat64:
      return 6;
    case TfType::kInt32:
      return 7;
    case TfType::kInt64:
      return 10;
    case TfType::kFloat16:
      return 13;
    default:
      return 0;
  }
}

}  // namespace

std::string NameOf(TfType type) {
  static const char* const kNames[] = {"",           "float32", "float64",   "int32",   "uint8",   "int16",
                                       "int8",       "string",  "complex64", "int64",   "bool",    "qint8",
                                       "quint8",     "qint32",  "bfloat16",  "qint16",  "quint16", "uint16",
                                       "complex128", "float16", "resource",  "variant", "uint32",  "uint64"};
  const auto number = static_cast<size_t>(type);
  return number > 0 && number < std::size(kNames) ? kNames[number] : fmt::format("type {}", number);
}

int64_t BytesOf(TfType type) {
  static const int8_t kBytes[] = {0, 4, 8, 4, 1, 2, 1, 0, 8, 8, 1, 1, 1, 4, 2, 2, 2, 2, 16, 2, 0, 0, 4, 8};
  const auto number = static_cast<size_t>(type);
  return number < std::size(kBytes) ? kBytes[number] : 0;
}

bool IsReal(TfType type) {
  return type == TfType::kFloat32 || type == TfType::kFloat64 || type == TfType::kFloat16 ||
         type == TfType::kBfloat16;
}

std::string_view WithoutPart(std::string_view name) {
  const size_t digits = name.find_last_not_of("0123456789") + 1;
  for (const std::string_view mark : {"/part_", "/t_"}) {
    if (digits < name.size() && EndsWith(name.substr(0, digits), mark))
      return name.substr(0, digits - mark.size());
  }
  return name;
}

// TensorShapeProto: dim (2) {size (1)}.
bool ReadShape(std::string_view message, std::vector<int64_t>* shape) {
  for (WireFields fields(message); !fields.at_end();) {
    if (!fields.Next()) return false;
    if (fields.number != 2 || fields.type != WireFields::kBytes) continue;
    int64_t side = 0;
    for (WireFields dim(fields.bytes); !dim.at_end();) {
      if (!dim.Next()) return false;
      if (dim.number == 1 && dim.type == WireFields::kVarint) side = static_cast<int64_t>(dim.varint);
    }
    shape->push_back(side);
  }
  return shape->size() <= kMaxRank && BytesOfShape(*shape, 16).has_value();
}

// TensorSliceProto: extent (1) {start (1), length (2)}.
bool ReadSlice(std::string_view message, std::vector<int64_t>* extents) {
  for (WireFields fields(message); !fields.at_end();) {
    if (!fields.Next()) return false;
    if (fields.number != 1 || fields.type != WireFields::kBytes) continue;
    int64_t start = 0, length = kWholeSide;
    for (WireFields extent(fields.bytes); !extent.at_end();) {
      if (!extent.Next()) return false;
      if (extent.type != WireFields::kVarint) continue;
      if (extent.number == 1) start = static_cast<int64_t>(extent.varint);
      if (extent.number == 2) length = static_cast<int64_t>(extent.varint);
    }
    extents->insert(extents->end(), {start, length});
  }
  return extents->size() <= 2 * kMaxRank;
}

bool ReadSliceKey(std::string_view key, std::string* name, std::vector<int64_t>* extents) {
  key.remove_prefix(1);
  while (true) {
    if (key.size() < 2) return false;
    const char first = key[0], second = key[1];
    if (first == '\0' && second == '\1') break;
    if (first == '\0' && second != '\xff') return false;
    if (first == '\xff' && second != '\0') return false;
    *name += first;
    key.remove_prefix(first == '\0' || first == '\xff' ? 2 : 1);
  }
  key.remove_prefix(2);
  if (key.empty() || key[0] < 0 || key[0] > 1 || key.size() < 1 + static_cast<size_t>(key[0])) return false;
  const size_t rank = key[0] == 0 ? 0 : static_cast<unsigned char>(key[1]);
  key.remove_prefix(1 + static_cast<size_t>(key[0]));
  for (size_t i = 0; i < 2 * rank; ++i) {
    if (!TakeSigned(&key, &extents->emplace_back())) return false;
  }
  return key.empty();
}

// SavedTensorSlices: data 2 {data 3: TensorProto}. Small numbers are varints there, and halves the varints of
// their bits.
std::string ValuesOf(TfType type, std::string_view entry) {
  for (const uint32_t number : {2u, 3u}) {
    WireFields fields(entry);
    do {
      if (fields.at_end() || !fields.Next()) return "";
    } while (fields.number != number || fields.type != WireFields::kBytes);
    entry = fields.bytes;
  }
  std::string values;
  const auto bytes = static_cast<size_t>(BytesOf(type));
  const bool is_fixed = type == TfType::kFloat32 || type == TfType::kFloat64;
  for (WireFields fields(entry); !fields.at_end();) {
    if (!fields.Next()) return "";
    if (fields.number != FieldOf(type)) continue;
    if (is_fixed) {
      values += fields.bytes;
    } else if (fields.type == WireFields::kVarint) {
      values.append(reinterpret_cast<const char*>(&fields.varint), bytes);
    } else {
      WireFields packed(fields.bytes);
      for (uint64_t value = 0; !packed.at_end();) {
        if (!packed.ReadVarint(&value)) return "";
        values.append(reinterpret_cast<const char*>(&value), bytes);
      }
    }
  }
  return values;
}

}  // namespace dtrain
