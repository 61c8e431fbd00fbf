#include "trainer/table/key_list.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <functional>
#include <random>
#include <vector>

#include "trainer/model/table_layout.h"

namespace dtrain {
namespace {

using Bytes = std::vector<std::byte>;

// The keys as they travel, with guards behind what they may take.
Bytes Encoded(const KeyList& keys, RowRange block, bool hashed = false) {
  const TableLayout table(hashed ? TableLayout::kHashed : 100, 1, 1);
  const size_t max = MaxKeyBytes(keys.size(), table);
  Bytes bytes(max + 8, std::byte{0x5a});
  const size_t size = EncodeKeys({keys.data(), static_cast<int64_t>(keys.size())}, block, bytes.data());
  CHECK(size <= max);
  CHECK(std::all_of(bytes.begin() + static_cast<ptrdiff_t>(max), bytes.end(),
                    [](std::byte guard) { return guard == std::byte{0x5a}; }));
  bytes.resize(size);
  return bytes;
}

// In memory of exactly their size.
std::string Decoded(const Bytes& bytes, size_t count, RowRange block, KeyList* keys) {
  const Bytes exact(bytes);
  return DecodeKeys({exact.data(), exact.size()}, count, block, keys);
}

// `count` different rows of a block, in order.
KeyList Drawn(std::mt19937_64* random, size_t count, RowRange block) {
  KeyList keys(2 * count + 8);
  for (uint64_t& key : keys) key = block.begin + (*random)() % block.size();
  std::sort(keys.begin(), keys.end());
  keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
  std::shuffle(keys.begin(), keys.end(), *random);
  keys.resize(std::min(keys.size(), count));
  std::sort(keys.begin(), keys.end());
  return keys;
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

constexpr uint64_t kFar = uint64_t{5} << 32;
const RowRange kBlocks[] = {{0, 1},
                            {7, 300},
                            {kFar, kFar + 1'000'000},
                            {kFar, kFar + (uint64_t{1} << 32)},
                            {0, uint64_t{1} << 59},
                            {uint64_t{1} << 63, UINT64_MAX},
                            {0, UINT64_MAX}};

TEST_CASE("keys: what is encoded is decoded, whatever the block and their number") {
  std::mt19937_64 random(3);
  KeyList decoded;
  for (const RowRange block : kBlocks) {
    for (const size_t count : {0, 1, 2, 5, 63, 64, 65, 200, 1000, 20'000}) {
      CAPTURE(block.size());
      CAPTURE(count);
      KeyList keys = Drawn(&random, count, block);
      const bool hashed = block.size() > uint64_t{1} << 32;
      CHECK(Decoded(Encoded(keys, block, hashed), keys.size(), block, &decoded) == "");
      CHECK(decoded == keys);
      if (count == 0) continue;
      keys.front() = block.begin;  // the ends of the block, and all keys but one in a run
      keys.back() = block.end - 1;
      for (size_t i = 1; i + 1 < keys.size(); ++i) keys[i] = block.begin + i;
      CHECK(Decoded(Encoded(keys, block, hashed), keys.size(), block, &decoded) == "");
      CHECK(decoded == keys);
    }
  }
}

TEST_CASE("keys: the example of docs/wire.md, and one of each width") {
  const RowRange block{1000, 2000};
  CHECK(Encoded({1002, 1003, 1010, 1011}, block) == Bytes{std::byte{3}, std::byte{0x82}, std::byte{0x01}});
  CHECK(Encoded({1000, 1001, 1002}, block) == Bytes{std::byte{0}});
  CHECK(Encoded({}, block).empty());
  for (int width = 0; width <= 64; ++width) {
    CAPTURE(width);
    const uint64_t gap = width == 0 ? 0 : ~uint64_t{0} >> (64 - width);
    const RowRange wide{0, UINT64_MAX};
    const KeyList keys = {std::min(gap, UINT64_MAX - 1)};
    const Bytes bytes = Encoded(keys, wide, true);
    KeyList decoded;
    CHECK(bytes.size() == 1 + static_cast<size_t>(width + 7) / 8);
    CHECK(Decoded(bytes, 1, wide, &decoded) == "");
    CHECK(decoded == keys);
  }
}

TEST_CASE("keys: rows that are drawn evenly take some 3 bits and the logarithm of those that lie between") {
  std::mt19937_64 random(4);
  const auto bits = [&](size_t count, uint64_t rows) {
    const KeyList keys = Drawn(&random, count, {0, rows});
    REQUIRE(keys.size() == count);
    return 8.0 * static_cast<double>(Encoded(keys, {0, rows}, rows >> 32 != 0).size()) /
           static_cast<double>(count);
  };
  CHECK(bits(158'000, 10'000'000) == doctest::Approx(6 + 2.85).epsilon(0.02));
  CHECK(bits(5'000, 10'000'000) == doctest::Approx(11 + 2.85).epsilon(0.02));
  CHECK(bits(158'000, UINT64_MAX) == doctest::Approx(46.7 + 2.85).epsilon(0.02));
}

TEST_CASE("keys: cut or damaged bytes are refused, or are other keys of the block in order") {
  std::mt19937_64 random(5);
  KeyList keys;
  for (const RowRange block : kBlocks) {
    for (const size_t count : {1, 3, 64, 150}) {
      CAPTURE(block.size());
      CAPTURE(count);
      const KeyList good = Drawn(&random, count, block);
      const Bytes bytes = Encoded(good, block, true);
      const auto check = [&](const Bytes& damaged, size_t number) {
        const std::string wrong = Decoded(damaged, number, block, &keys);
        if (!wrong.empty()) return;
        REQUIRE(keys.size() == number);
        CHECK(keys.front() >= block.begin);
        CHECK(keys.back() < block.end);
        CHECK(std::adjacent_find(keys.begin(), keys.end(), std::greater_equal<uint64_t>()) == keys.end());
      };
      for (size_t size = 0; size < bytes.size(); ++size) {
        CHECK(Decoded({bytes.begin(), bytes.begin() + static_cast<ptrdiff_t>(size)}, good.size(), block,
                      &keys) != "");
      }
      for (size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
        Bytes damaged = bytes;
        damaged[bit / 8] ^= std::byte{1} << bit % 8;
        check(damaged, good.size());
      }
      check(bytes, good.size() + 1);
      check(bytes, good.size() - 1 + (good.size() == 1));
    }
  }
}

TEST_CASE("keys: what is wrong with them is told, and many that few bytes announce take no memory") {
  const RowRange block{100, 110};
  KeyList keys;
  const auto decoded = [&](const std::vector<int>& bytes, size_t count, RowRange of) {
    Bytes raw;
    for (const int byte : bytes) raw.push_back(static_cast<std::byte>(byte));
    return Decoded(raw, count, of, &keys);
  };
  CHECK(decoded({4, 0x90}, 2, block) == "keys 0 to 1 of 2 go beyond the last of the 10 rows");
  CHECK(decoded({4, 0x80}, 2, block) == "");
  CHECK(keys == KeyList{100, 109});
  CHECK(decoded({65, 0}, 1, block) == "key 0 of 1 begins a group of 65 bits");
  CHECK(decoded({64, 255, 255, 255, 255, 255, 255, 255, 255}, 1, block) ==
        "keys 0 to 0 of 1 go beyond the last of the 10 rows");
  CHECK(decoded({0}, 11, block) == "11 keys are more than the 10 rows");
  CHECK(decoded({4}, 2, block) == "1 bytes are too few for 2 keys");
  CHECK(decoded({0, 0}, 2, block) == "2 bytes are too many for 2 keys");
  CHECK(decoded({0}, 0, block) == "1 bytes are too many for 0 keys");
  CHECK(decoded({3, 0x82, 0x01}, 4, {1000, 2000}) == "");
  for (const int padding : {0x10, 0x20, 0x40, 0x80}) {  // behind the twelve bits of the keys
    CHECK(decoded({3, 0x82, 0x01 | padding}, 4, {1000, 2000}) ==
          "keys 0 to 3 of 4 end with bits that belong to none");
  }
  KeyList fresh;
  CHECK(DecodeKeys({nullptr, 0}, size_t{1} << 40, {0, UINT64_MAX}, &fresh) ==
        "0 bytes are too few for 1099511627776 keys");
  CHECK(fresh.capacity() == 0);
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
