// WireFields: a message of protobuf, field by field and in their order, read without its schema and without a
// copy. Views point into the bytes. Groups are no message here. Format:
// https://protobuf.dev/programming-guides/encoding. Thread: one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace dtrain {

class WireFields {
 public:
  explicit WireFields(std::string_view message)
      : at_(message.data()), end_(message.data() + message.size()) {}

  bool at_end() const { return at_ == end_; }
  std::string_view rest() const { return {at_, static_cast<size_t>(end_ - at_)}; }
  void Skip(size_t bytes) { at_ += bytes; }
  // Goes to the next field. False: the bytes are no message.
  bool Next() {
    uint64_t tag = 0;
    if (!ReadVarint(&tag) || tag >> 3 == 0 || tag >> 3 > 0x1fffffff) return false;
    number = static_cast<uint32_t>(tag >> 3);
    type = static_cast<Type>(tag & 7);
    if (type == kVarint) return ReadVarint(&varint);
    uint64_t size = type == kFixed64 ? 8 : 4;
    if (type == kBytes ? !ReadVarint(&size) : type != kFixed64 && type != kFixed32) return false;
    if (size > static_cast<uint64_t>(end_ - at_)) return false;
    bytes = std::string_view(at_, size);
    at_ += size;
    return true;
  }
  bool ReadVarint(uint64_t* value) {
    if (at_ != end_ && static_cast<int8_t>(*at_) >= 0) {
      *value = static_cast<uint64_t>(*at_++);
      return true;
    }
    return ReadLongVarint(value);
  }

  enum Type : uint32_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };
  uint32_t number = 0;
  Type type = kVarint;
  uint64_t varint = 0;     // of kVarint
  std::string_view bytes;  // of the others

 private:
  bool ReadLongVarint(uint64_t* value);

  const char* at_;
  const char* end_;
};

// Appends a number as a varint, as ReadVarint() reads it.
void AppendVarint(uint64_t number, std::string* out);

}  // namespace dtrain
