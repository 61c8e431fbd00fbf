// Archive: the state of objects as bytes, and back, for another process of the same program. A type says once
// what its state is, for both ways:
//   template <typename Archive> void State(Archive& archive) { archive(first_, second_); }
// or, where it is a plain struct of another room, by a function State(Archive&, Type&) beside it. Numbers
// have eight bytes each, so that a change moves nothing behind it. Points of time are told by the wall clock.
// Thread: one.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/clock.h"

namespace dtrain {

class Archive {
 public:
  // One that writes.
  Archive() = default;
  // One that reads `bytes`, which may be of a peer: what is not there leaves failed().
  explicit Archive(std::string_view bytes) : reads_(true), unread_(bytes) {}

  bool reads() const { return reads_; }
  // What was written.
  std::string_view bytes() const { return std::string_view(bytes_).substr(0, size_); }
  // Begins anew, in the same memory.
  void Clear() { size_ = 0; }
  // The bytes that were read are not those of this state.
  bool failed() const { return failed_ || (reads_ && !unread_.empty()); }

  template <typename... Fields>
  void operator()(Fields&... fields) {
    (Field(fields), ...);
  }

 private:
  void Raw(void* data, size_t size) {
    if (!reads_) {
      if (bytes_.size() - size_ < size) bytes_.resize(2 * bytes_.size() + size);
      std::memcpy(bytes_.data() + size_, data, size);
      size_ += size;
    } else if (size > unread_.size()) {
      failed_ = true;
      unread_ = {};
    } else {
      std::memcpy(data, unread_.data(), size);
      unread_.remove_prefix(size);
    }
  }
  // How many elements follow. None is smaller than a byte.
  size_t Count(size_t count) {
    uint64_t number = count;
    Field(number);
    if (number > unread_.size() && reads_) failed_ = true;
    return failed_ ? 0 : static_cast<size_t>(number);
  }
  template <typename Value>
  void Number(Value& value) {
    Value word = value;
    Raw(&word, sizeof(word));
    if (reads_ && !failed_) value = word;
  }

  template <typename Type>
  void Field(Type& field) {
    if constexpr (std::is_floating_point_v<Type>) {
      double word = field;
      Number(word);
      field = static_cast<Type>(word);
    } else if constexpr (std::is_enum_v<Type> || std::is_integral_v<Type>) {
      auto word = static_cast<int64_t>(field);
      Number(word);
      field = static_cast<Type>(word);
    } else {
      State(*this, field);
    }
  }
  template <typename List>
  void Elements(List& list) {
    const size_t count = Count(list.size());
    if (reads_) list.resize(count);
    for (auto& element : list) Field(element);
  }

  void Field(std::string& text) {
    const size_t size = Count(text.size());
    if (reads_) text.resize(size);
    Raw(text.data(), size);
  }
  void Field(std::vector<bool>& list) {
    const size_t count = Count(list.size());
    if (reads_) list.resize(count);
    for (size_t i = 0; i < count; ++i) {
      bool bit = list[i];
      Field(bit);
      list[i] = bit;
    }
  }
  template <typename Type>
  void Field(std::vector<Type>& list) {
    Elements(list);
  }
  template <typename Type>
  void Field(std::deque<Type>& list) {
    Elements(list);
  }
  template <typename Type, size_t kSize>
  void Field(std::array<Type, kSize>& list) {
    static_assert(std::is_arithmetic_v<Type>);
    Raw(list.data(), sizeof(list));
  }
  template <typename Key, typename Value>
  void Field(std::map<Key, Value>& map) {
    std::vector<std::pair<Key, Value>> list(map.begin(), map.end());
    Elements(list);
    if (reads_) map = std::map<Key, Value>(list.begin(), list.end());
  }
  template <typename One, typename Other>
  void Field(std::pair<One, Other>& pair) {
    (*this)(pair.first, pair.second);
  }
  template <typename Type>
  void Field(std::optional<Type>& field) {
    bool is_set = field.has_value();
    Field(is_set);
    if (reads_ && is_set) field.emplace();
    if (reads_ && !is_set) field.reset();
    if (field) Field(*field);
  }
  // By a difference that is measured once, so that equal times have equal bytes.
  void Field(TimePoint& time) {
    static const int64_t kOffset =
        WallNanos() -
        std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now().time_since_epoch()).count();
    const TimePoint unset;
    int64_t nanos = time == unset ? 0 : std::chrono::nanoseconds(time - unset).count() + kOffset;
    Number(nanos);
    if (reads_) time = nanos == 0 ? unset : unset + std::chrono::nanoseconds(nanos - kOffset);
  }

  const bool reads_ = false;
  std::string bytes_;  // those that are written, and room for more
  size_t size_ = 0;
  std::string_view unread_;
  bool failed_ = false;
};

template <typename Type>
auto State(Archive& archive, Type& object) -> decltype(object.State(archive)) {
  return object.State(archive);
}

}  // namespace dtrain
