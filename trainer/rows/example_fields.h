// tf.train.Example on the wire, read without protobuf and without a copy:
//   Example.features (1) -> Features.feature (1), an entry for each: key (1), value (2) = Feature, which has
//   one of bytes_list (1), float_list (2), int64_list (3); each has value (1): bytes; float32; int64 as
//   varint
// Numbers may be packed or not, or both: all values of a list count. Unknown fields are skipped. What
// protobuf and TensorFlow read as different values is a fault: two lists in a Feature, two Features in an
// entry. So is a SequenceExample. ExampleWriter makes Examples. Views point into the bytes. Owner: a reader
// of records. Thread: one.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "base/wire_fields.h"

namespace dtrain {

enum class ListKind : uint8_t { kNone, kBytes, kFloat, kInt64 };  // kNone: the Feature has no list

// How a message calls it: "a bytes_list".
const char* ListKindName(ListKind kind);

// ExampleFeature: one entry of the map.
struct ExampleFeature {
  std::string_view key;
  ListKind kind = ListKind::kNone;
  std::string_view list;  // the bytes of its list, for the functions below
};

// ExampleFeatures: the entries of an Example's map, in the order in which they stand. A key may come twice;
// the last entry counts.
class ExampleFeatures {
 public:
  explicit ExampleFeatures(std::string_view example) : example_(example), map_({}) {
    WireFields fields(example);
    if (!fields.Next() || fields.number != 1 || fields.type != WireFields::kBytes) return;  // told by Next()
    example_ = fields;
    map_ = WireFields(fields.bytes);
  }

  // The bytes of the entries to come, of this field of the Example; the caller may skip whole ones.
  std::string_view rest() const { return map_.rest(); }
  void Skip(size_t bytes) { map_.Skip(bytes); }
  // Goes to the next entry. False: there is none, or what is wrong is in fault().
  bool Next(ExampleFeature* feature) { return NextShort(feature) || NextAny(feature); }
  // What is wrong with the bytes; null: nothing.
  const char* fault() const { return fault_; }

 private:
  bool Fail(const char* fault) {
    fault_ = fault;
    return false;
  }
  bool NextShort(ExampleFeature* feature);
  bool NextAny(ExampleFeature* feature);
  bool ReadFeature(std::string_view message, ExampleFeature* feature);

  WireFields example_;
  WireFields map_;
  const char* fault_ = nullptr;
};

// As TensorFlow writes most entries: key, value and in it one list, all shorter than 128 bytes. False: it is
// another one.
inline bool ExampleFeatures::NextShort(ExampleFeature* feature) {
  const std::string_view rest = map_.rest();
  if (rest.size() < 8) return false;
  const auto* const entry = reinterpret_cast<const unsigned char*>(rest.data());
  const size_t size = entry[1], key = entry[3];
  if (entry[0] != 0x0a || entry[2] != 0x0a || size >= 128 || size + 2 > rest.size() || key + 6 > size)
    return false;
  const unsigned char* const value = entry + 4 + key;
  const size_t kind = value[2] >> 3, list = value[3];
  if (value[0] != 0x12 || key + 4 + value[1] != size || list + 2 != value[1]) return false;
  if ((value[2] & 7) != WireFields::kBytes || kind == 0 || kind > 3) return false;
  feature->key = rest.substr(4, key);
  feature->kind = static_cast<ListKind>(kind);
  feature->list = rest.substr(8 + key, list);
  map_.Skip(2 + size);
  return true;
}

// ExampleWriter: makes Examples, feature by feature, as TensorFlow writes them: numbers are packed.
class ExampleWriter {
 public:
  void AddInts(std::string_view key, const std::vector<int64_t>& values);
  void AddFloats(std::string_view key, const std::vector<float>& values);
  void AddTexts(std::string_view key, const std::vector<std::string_view>& values);
  // Returns the Example of the features so far, and begins the next.
  std::string Take();

 private:
  void Add(std::string_view key, ListKind kind, std::string_view list);

  std::string map_;
};

// Calls on_value(value) for each value of a list, in order; Value: std::string_view of a bytes_list, float or
// int64_t. Returns false if the bytes are no such list, or when on_value does.
template <ListKind kind, typename OnValue>
bool ForEachValue(std::string_view list, OnValue&& on_value) {
  WireFields fields(list);
  while (!fields.at_end()) {
    if (!fields.Next()) return false;
    if (fields.number != 1) continue;
    if constexpr (kind == ListKind::kBytes) {
      if (fields.type != WireFields::kBytes || !on_value(fields.bytes)) return false;
    } else if constexpr (kind == ListKind::kFloat) {
      const bool packed = fields.type == WireFields::kBytes;
      if ((!packed && fields.type != WireFields::kFixed32) || fields.bytes.size() % sizeof(float) != 0)
        return false;
      for (size_t at = 0; at < fields.bytes.size(); at += sizeof(float)) {
        float value = 0;
        std::memcpy(&value, fields.bytes.data() + at, sizeof value);
        if (!on_value(value)) return false;
      }
    } else {
      if (fields.type == WireFields::kVarint) {
        if (!on_value(static_cast<int64_t>(fields.varint))) return false;
        continue;
      }
      if (fields.type != WireFields::kBytes) return false;
      WireFields values(fields.bytes);
      for (uint64_t value = 0; !values.at_end();) {
        if (!values.ReadVarint(&value) || !on_value(static_cast<int64_t>(value))) return false;
      }
    }
  }
  return true;
}

}  // namespace dtrain
