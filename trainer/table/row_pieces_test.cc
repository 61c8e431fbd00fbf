#include "trainer/table/row_pieces.h"

#include <doctest/doctest.h>

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
  bytes.resize(writer.Finish(range, bytes.data()));
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

}  // namespace
}  // namespace dtrain
