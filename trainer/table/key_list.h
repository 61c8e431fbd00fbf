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
#include "net/channel.h"
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

// The keys of one block in messages (docs/wire.md, Tables): the numbers of rows that lie between each and the
// one before, in groups of 64, of which each number has as many bits as the largest needs (binary packing:
// Lemire and Boytsov, Decoding billions of integers per second through vectorization, 2015).
// The memory that EncodeKeys() needs for `count` keys.
size_t MaxKeyBytes(size_t count, const TableLayout& table);
// Returns how many bytes the keys take.
size_t EncodeKeys(KeySpan keys, RowRange block, std::byte* bytes);
// Reads `count` keys of a message, at any alignment. They are verified: they take all of the bytes, with
// zeros in the bits behind the last, and are in the block; by their form they ascend. Returns what is wrong
// with them; empty: `keys` has them.
std::string DecodeKeys(net::TensorView bytes, size_t count, RowRange block, KeyList* keys);

}  // namespace dtrain
