#include "trainer/table/key_list.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <vector>

#include "trainer/model/table_layout.h"

namespace dtrain {
namespace {

std::vector<std::byte> Encoded(const std::vector<uint32_t>& keys) {
  std::vector<std::byte> bytes(keys.size() * sizeof(uint32_t));
  if (!bytes.empty()) std::memcpy(bytes.data(), keys.data(), bytes.size());
  return bytes;
}

std::string Decoded(const std::vector<std::byte>& bytes, RowRange block, KeyList* keys) {
  return DecodeKeys({bytes.data(), bytes.size()}, block, keys);
}

TEST_CASE("key sorter: sorts stably by a part of the bits, whatever the number of keys") {
  std::mt19937_64 random(1);
  KeySorter sorter;
  for (const size_t count : {0, 1, 2, 100, 4095, 4096, 20000}) {
    for (const int bits : {0, 1, 7, 24, 40}) {
      CAPTURE(count);
      CAPTURE(bits);
      constexpr int kFrom = 15;
      uint64_t* const numbers = sorter.Numbers(count);
      const uint64_t mask = (uint64_t{1} << (kFrom + bits)) - 1;
      for (size_t i = 0; i < count; ++i) numbers[i] = random() & mask;
      std::vector<uint64_t> expected(numbers, numbers + count);
      std::stable_sort(expected.begin(), expected.end(),
                       [](uint64_t a, uint64_t b) { return a >> kFrom < b >> kFrom; });
      const uint64_t* const sorted = sorter.Sort(kFrom, bits);
      CHECK(std::vector<uint64_t>(sorted, sorted + count) == expected);
    }
  }
}

TEST_CASE(
    "key sorter: whole keys come in order, equal ones in that of their places, whatever they have in "
    "common") {
  std::mt19937_64 random(2);
  KeySorter sorter;
  for (const size_t count : {0, 1, 2, 100, 2047, 5000, 70000}) {
    for (const int kind : {0, 1, 2}) {
      CAPTURE(count);
      CAPTURE(kind);
      KeyList keys(count);
      for (uint64_t& key : keys) {
        const uint64_t number = random() % (count + 1);
        // Spread as hashes are; with the first bits in common; of few first bits.
        key = kind == 0 ? number * 0x9e3779b97f4a7c15 : kind == 1 ? number : number << 58 | random() % 4;
      }
      std::vector<uint64_t> expected(count);
      for (size_t i = 0; i < count; ++i) expected[i] = i;
      std::stable_sort(expected.begin(), expected.end(),
                       [&](uint64_t a, uint64_t b) { return keys[a] < keys[b]; });
      const uint64_t* const sorted = sorter.SortKeys({keys.data(), static_cast<int64_t>(count)});
      const uint64_t place_mask = (uint64_t{1} << BitsBelow(count)) - 1;
      std::vector<uint64_t> places(count);
      for (size_t i = 0; i < count; ++i) places[i] = sorted[i] & place_mask;
      CHECK(places == expected);
    }
  }
}

TEST_CASE("bits below: as many as the largest number needs") {
  CHECK(BitsBelow(0) == 0);
  CHECK(BitsBelow(1) == 0);
  CHECK(BitsBelow(2) == 1);
  CHECK(BitsBelow(3) == 2);
  CHECK(BitsBelow(1 << 20) == 20);
  CHECK(BitsBelow((1 << 20) + 1) == 21);
}

TEST_CASE("keys: what is encoded is decoded, at any alignment") {
  const RowRange block{uint64_t{5} << 32, (uint64_t{5} << 32) + 1000};
  const KeyList keys = {block.begin, block.begin + 3, block.begin + 999};
  std::vector<std::byte> bytes(1 + keys.size() * sizeof(uint32_t));
  EncodeKeys(keys, block, bytes.data() + 1);
  KeyList decoded;
  CHECK(DecodeKeys({bytes.data() + 1, bytes.size() - 1}, block, &decoded) == "");
  CHECK(decoded == keys);
  CHECK(DecodeKeys({nullptr, 0}, block, &decoded) == "");
  CHECK(decoded.empty());
}

TEST_CASE("keys: those of a hash table have 64 bits, and are verified as the others are") {
  const TableLayout table(TableLayout::kHashed, 1, 3);
  const RowRange block = table.PartOf(2);
  const KeyList keys = {block.begin, block.begin + 7, block.end - 1};
  std::vector<std::byte> bytes(keys.size() * table.key_bytes());
  EncodeKeys(keys, block, bytes.data());
  KeyList decoded;
  CHECK(Decoded(bytes, block, &decoded) == "");
  CHECK(decoded == keys);
  bytes[8] = std::byte{0};  // the first again
  CHECK(Decoded(bytes, block, &decoded).find("key 1 of 3 is 0; must be from 1 to") == 0);
  bytes.back() = std::byte{0xff};
  bytes[8] = std::byte{7};
  CHECK(Decoded(bytes, block, &decoded).find("key 2 of 3 is") == 0);
  bytes.pop_back();
  CHECK(Decoded(bytes, block, &decoded) == "23 bytes are no whole number of keys");
}

TEST_CASE("keys: an order that is none, a key twice or beyond the block, and cut bytes are refused") {
  const RowRange block{100, 110};
  KeyList keys;
  CHECK(Decoded(Encoded({0, 9}), block, &keys) == "");
  CHECK(Decoded(Encoded({3, 2}), block, &keys) == "key 1 of 2 is 2; must be from 4 to 9");
  CHECK(Decoded(Encoded({3, 3}), block, &keys) == "key 1 of 2 is 3; must be from 4 to 9");
  CHECK(Decoded(Encoded({10}), block, &keys) == "key 0 of 1 is 10; must be from 0 to 9");
  CHECK(Decoded(Encoded({0xffffffff}), block, &keys) == "key 0 of 1 is 4294967295; must be from 0 to 9");
  CHECK(Decoded(Encoded(std::vector<uint32_t>(11)), block, &keys) == "11 keys are more than the 10 rows");
  CHECK(Decoded(std::vector<std::byte>(6), block, &keys) == "6 bytes are no whole number of keys");
}

TEST_CASE("table layout: each feature and the bias has a row of its own, and the way back is known") {
  for (const int64_t features : {1, 2, 8, 123, 1000, 5000, 40'000, 1 << 16}) {
    const TableLayout table(features, 1, 3);
    std::vector<bool> taken(table.rows());
    for (int64_t feature = 0; feature <= features; ++feature) {
      const uint64_t row = table.RowOf(static_cast<uint64_t>(feature));
      REQUIRE(row < table.rows());
      CHECK_FALSE(taken[row]);
      taken[row] = true;
      CHECK(table.FeatureOf(row) == static_cast<uint64_t>(feature));
      CHECK(table.IsUsed(row));
    }
    CHECK(table.RowOf(static_cast<uint64_t>(features)) == table.bias_row());
    CHECK(std::count(taken.begin(), taken.end(), true) == features + 1);
    for (uint64_t row = 0; row < table.rows(); ++row) CHECK(table.IsUsed(row) == taken[row]);
  }
}

TEST_CASE(
    "table layout: few rows belong to no feature, and none but the bias where features are a power of two") {
  for (const int64_t features : {int64_t{100}, int64_t{3000}, int64_t{100'000}, int64_t{10'000'000}}) {
    CHECK(TableLayout(features, 1, 1).rows() < static_cast<uint64_t>(features + features / 6));
  }
  for (const int bits : {5, 10, 20, 32}) {
    CHECK(TableLayout(int64_t{1} << bits, 1, 1).rows() == (uint64_t{1} << bits) + 1);
  }
}

TEST_CASE("table layout: blocks follow each other, and their rows can be numbered by 32 bits") {
  for (const int64_t features : {int64_t{100}, int64_t{1} << 20, (int64_t{1} << 36) + 1}) {
    for (const int64_t ps : {1, 2, 3, 7}) {
      const TableLayout table(features, 2, ps);
      uint64_t next = 0;
      for (int64_t block = 0; block < table.block_count(); ++block) {
        CHECK(table.RangeOf(block).begin == next);
        CHECK(table.RangeOf(block).size() <= uint64_t{1} << 32);
        next = table.RangeOf(block).end;
      }
      CHECK(next == table.rows());
      CHECK(table.PartOf(ps - 1).end == table.rows());
    }
  }
}

TEST_CASE("table layout: the first features, which are the most frequent ones, are spread over all ps") {
  constexpr int kPs = 7;
  const TableLayout table(1 << 20, 1, kPs);
  std::vector<int> counts(kPs);
  constexpr int kFirst = 4000;
  for (uint64_t feature = 0; feature < kFirst; ++feature) {
    for (int ps = 0; ps < kPs; ++ps) {
      const RowRange part = table.PartOf(ps);
      const uint64_t row = table.RowOf(feature);
      if (row >= part.begin && row < part.end) ++counts[static_cast<size_t>(ps)];
    }
  }
  const auto [least, most] = std::minmax_element(counts.begin(), counts.end());
  CHECK(5 * *most <= 6 * *least);
}

}  // namespace
}  // namespace dtrain
