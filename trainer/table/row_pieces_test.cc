#include "trainer/table/row_pieces.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <random>
#include <string>
#include <vector>

namespace dtrain {
namespace {

constexpr int64_t kWidth = 2;
constexpr int64_t kValues = 3 * kWidth;  // with two slots

using Rows = std::map<uint64_t, std::vector<float>>;

std::vector<std::byte> Written(const Rows& rows, RowRange range) {
  RowPieceWriter writer(kWidth, kValues);
  for (const auto& [row, values] : rows) writer.Add(row, values.data());
  std::vector<std::byte> bytes(kMaxRowPieceBytes);
  const size_t max = writer.MaxBytes();
  bytes.resize(writer.Finish(range, bytes.data()));
  CHECK(bytes.size() <= max);
  return bytes;
}

std::string Read(const std::vector<std::byte>& bytes, RowRange piece, RowRange range, Rows* rows) {
  return ReadRowPiece({bytes.data(), bytes.size()}, piece, kWidth, kValues, range,
                      [&](uint64_t row, const float* values) {
                        rows->emplace(row, std::vector<float>(values, values + kValues));
                      });
}

Rows SomeRows(RowRange range, int one_in, uint32_t seed) {
  std::mt19937 random(seed);
  Rows rows;
  for (uint64_t row = range.begin; row < range.end; ++row) {
    if (random() % static_cast<uint32_t>(one_in) != 0) continue;
    for (int64_t i = 0; i < kValues; ++i) rows[row].push_back(static_cast<float>(random() % 1000));
  }
  return rows;
}

TEST_CASE("row pieces: ranges follow each other, and all rows of one fit into a piece") {
  for (const int64_t values : {1, 2, 6, 100, 5000}) {
    const RowPieces pieces({1000, 1000 + 300000}, values);
    uint64_t next = 1000;
    for (int64_t piece = 0; piece < pieces.count(); ++piece) {
      const RowRange range = pieces.At(piece);
      CHECK(range.begin == next);
      CHECK(pieces.Of(range.begin) == piece);
      CHECK(pieces.Of(range.end - 1) == piece);
      next = range.end;
    }
    CHECK(next == 301000);
    CHECK(pieces.rows() * static_cast<uint64_t>(values) * sizeof(float) <= kMaxRowPieceBytes);
    CHECK(2 * pieces.rows() * (static_cast<uint64_t>(values) * sizeof(float) + 1) + 12 > kMaxRowPieceBytes);
  }
}

TEST_CASE("row pieces: what is written is read, in the shorter form, whole or in part") {
  const RowRange range{5000, 5000 + 4096};
  for (const int one_in : {1, 2, 31, 33, 1000}) {
    const Rows rows = SomeRows(range, one_in, 1);
    const std::vector<std::byte> bytes = Written(rows, range);
    CHECK(bytes.size() % sizeof(float) == 0);
    Rows all;
    CHECK(Read(bytes, range, range, &all) == "");
    CHECK(all == rows);
    const RowRange part{5100, 6000};
    Rows some;
    CHECK(Read(bytes, range, part, &some) == "");
    CHECK(some == Rows(rows.lower_bound(part.begin), rows.lower_bound(part.end)));
    const size_t values = rows.size() * kValues * sizeof(float);
    CHECK(bytes.size() == 8 + std::min(rows.size() * 4, size_t{512}) + values);
  }
  CHECK(Written({}, range).empty());
  Rows none;
  CHECK(Read({}, range, range, &none) == "");
}

TEST_CASE("row pieces: a full piece is at most as large as a piece may be") {
  const RowPieces pieces({0, 1 << 20}, kValues);
  const RowRange range = pieces.At(0);
  CHECK(Written(SomeRows(range, 1, 3), range).size() <= kMaxRowPieceBytes);
}

TEST_CASE("row pieces: bytes that are no piece are refused, and none of their rows is visited") {
  const RowRange range{0, 100};
  for (const int one_in : {2, 40}) {
    const std::vector<std::byte> good = Written(SomeRows(range, one_in, 5), range);
    std::mt19937 random(7);
    int refused = 0;
    for (int i = 0; i < 2000; ++i) {
      std::vector<std::byte> bad = good;
      const size_t head = one_in == 2 ? 8 + 16 : 8 + 4;
      bad[random() % head] ^= static_cast<std::byte>(1 + random() % 255);
      if (i % 10 == 0) bad.resize(random() % bad.size());
      Rows rows;
      const std::string wrong = Read(bad, range, range, &rows);
      if (wrong.empty()) {
        for (const auto& [row, values] : rows) CHECK(row < range.end);
      } else {
        ++refused;
        CHECK(rows.empty());
      }
    }
    CHECK(refused > 500);
  }
}

constexpr int64_t kGroupRows = 16;

// The bytes of a delta that covers the groups of these numbers.
std::vector<std::byte> WrittenDelta(const Rows& rows, const std::vector<uint64_t>& groups, RowRange range) {
  RowPieceWriter writer(kWidth, kValues, kGroupRows);
  for (const uint64_t group : groups) writer.Cover(range.begin + group * kGroupRows);
  for (const auto& [row, values] : rows) writer.Add(row, values.data());
  std::vector<std::byte> bytes(kMaxRowPieceBytes);
  bytes.resize(writer.Finish(range, bytes.data()));
  return bytes;
}

std::string ReadBoth(const std::vector<std::byte>& delta, const std::vector<std::byte>& base, RowRange piece,
                     RowRange range, std::vector<uint64_t>* order, Rows* rows) {
  return ReadDeltaPiece({delta.data(), delta.size()}, {base.data(), base.size()}, piece, kWidth, kValues,
                        range, [&](uint64_t row, const float* values) {
                          order->push_back(row);
                          rows->emplace(row, std::vector<float>(values, values + kValues));
                        });
}

TEST_CASE("row pieces: the rows of a delta replace the groups of its base that it covers, and only these") {
  const RowRange piece{3200, 3200 + 1600};
  for (const uint32_t seed : {1, 2, 3, 4}) {
    const Rows base = SomeRows(piece, 3, seed);
    std::vector<uint64_t> groups;
    Rows delta, expected = base;
    for (uint64_t group = seed; group < 100; group += 7) {
      groups.push_back(group);
      const RowRange of_group{piece.begin + group * kGroupRows, piece.begin + (group + 1) * kGroupRows};
      expected.erase(expected.lower_bound(of_group.begin), expected.lower_bound(of_group.end));
      delta.merge(SomeRows(of_group, 2, seed + 100));
    }
    expected.insert(delta.begin(), delta.end());
    const std::vector<std::byte> of_delta = WrittenDelta(delta, groups, piece),
                                 of_base = Written(base, piece);
    for (const RowRange range : {piece, RowRange{3300, 4000}}) {
      std::vector<uint64_t> order;
      Rows rows;
      CHECK(ReadBoth(of_delta, of_base, piece, range, &order, &rows) == "");
      CHECK(rows == Rows(expected.lower_bound(range.begin), expected.lower_bound(range.end)));
      CHECK(order.size() == rows.size());
      CHECK(std::is_sorted(order.begin(), order.end()));
    }
  }
}

TEST_CASE("row pieces: a row that is as it was in the beginning again is not that of the base") {
  const RowRange piece{0, 64};
  const Rows base = SomeRows(piece, 1, 9);
  const std::vector<std::byte> emptied = WrittenDelta({}, {1}, piece), of_base = Written(base, piece);
  CHECK(emptied.size() == 8 + 4 + 4);
  std::vector<uint64_t> order;
  Rows rows;
  CHECK(ReadBoth(emptied, of_base, piece, piece, &order, &rows) == "");
  CHECK(rows.size() == 48);
  CHECK(rows.count(15) == 1);
  CHECK(rows.count(16) == 0);
  CHECK(rows.count(32) == 1);

  CHECK(WrittenDelta({}, {}, piece).empty());
  rows.clear();
  CHECK(ReadBoth({}, of_base, piece, piece, &order, &rows) == "");
  CHECK(rows == base);
}

TEST_CASE("row pieces: a full piece of a delta is at most as large as a piece may be") {
  for (const int64_t values : {1, 3, 16, 4096, 49152}) {
    const RowPieces pieces({0, 1 << 20}, values);
    const RowRange range = pieces.At(0);
    RowPieceWriter writer(1, values, 1);
    const std::vector<float> row(static_cast<size_t>(values));
    for (uint64_t i = range.begin; i < range.end; ++i) {
      writer.Cover(i);
      writer.Add(i, row.data());
    }
    std::vector<std::byte> bytes(kMaxRowPieceBytes);
    CHECK(writer.Finish(range, bytes.data()) <= kMaxRowPieceBytes);
  }
}

TEST_CASE("row pieces: a piece of a delta is none of a full checkpoint, and the other way round") {
  const RowRange piece{0, 64};
  const std::vector<std::byte> full = Written(SomeRows(piece, 2, 1), piece);
  const std::vector<std::byte> delta = WrittenDelta(SomeRows({16, 32}, 2, 1), {1}, piece);
  std::vector<uint64_t> order;
  Rows rows;
  CHECK(Read(delta, piece, piece, &rows) == "its form is unknown");
  CHECK(ReadBoth(full, full, piece, piece, &order, &rows) == "its form is unknown");
  CHECK(ReadBoth(delta, delta, piece, piece, &order, &rows) == "in its base its form is unknown");
  CHECK(ReadBoth(WrittenDelta(SomeRows({16, 32}, 1, 1), {2}, piece), full, piece, piece, &order, &rows) ==
        "row 16 is in no group that it covers");
  CHECK(rows.empty());
}

TEST_CASE("row pieces: damaged bytes of a delta are refused, and none of their rows is visited") {
  const RowRange piece{0, 640};
  const std::vector<std::byte> base = Written(SomeRows(piece, 2, 1), piece);
  const std::vector<std::byte> good = WrittenDelta(SomeRows({160, 176}, 2, 1), {10, 11}, piece);
  std::mt19937 random(11);
  int refused = 0;
  for (int i = 0; i < 2000; ++i) {
    std::vector<std::byte> bad = good;
    bad[random() % 28] ^= static_cast<std::byte>(1 + random() % 255);
    if (i % 10 == 0) bad.resize(random() % bad.size());
    std::vector<uint64_t> order;
    Rows rows;
    if (!ReadBoth(bad, base, piece, piece, &order, &rows).empty()) ++refused;
    CHECK(order.size() == rows.size());
    if (!rows.empty()) CHECK(rows.rbegin()->first < piece.end);
  }
  CHECK(refused > 500);
}

}  // namespace
}  // namespace dtrain
