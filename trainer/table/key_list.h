// KeyList: rows of a table by number, ascending and each once. And how keys are brought into that order, and
// written as bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "gpu/view.h"
#include "net/codec.h"
#include "trainer/model/table_layout.h"

namespace dtrain {

using KeySpan = gpu::Span<const uint64_t>;
using KeyList = std::vector<uint64_t>;

// KeySorter: sorts numbers stably by a part of their bits, with memory that is kept: a radix sort from the
// least significant digit on (Knuth, The Art of Computer Programming, 5.2.5). Thread: one.
class KeySorter {
 public:
  // The memory for `count` numbers, to be filled by the caller before Sort().
  uint64_t* Numbers(size_t count);
  // Sorts them by bits [from, from + bits), above which they have none; valid until the next call.
  const uint64_t* Sort(int from, int bits);
  // Sorts keys of up to 64 bits: returns their places among `keys` in the low BitsBelow(count) bits of
  // numbers, in the order of the keys, of equal ones in that of the places; valid until the next call. It is
  // fast where the first bits of keys tell most of them apart.
  const uint64_t* SortKeys(KeySpan keys);

 private:
  size_t count_ = 0;
  std::vector<uint64_t> numbers_;
  std::vector<uint64_t> sorted_;
  std::vector<uint32_t> places_;
};

// The bits that a number below `count` needs.
int BitsBelow(uint64_t count);

// Bytes of the keys of one block in messages: each key minus the block's first row, little-endian, as uint32
// or, of a hash table, as uint64.
void EncodeKeys(KeySpan keys, RowRange block, std::byte* bytes);
// Reads keys of a message, at any alignment. They are verified: a whole number, ascending, each once, in the
// block. Returns what is wrong with them; empty: `keys` has them.
std::string DecodeKeys(net::TensorView bytes, RowRange block, KeyList* keys);

}  // namespace dtrain
