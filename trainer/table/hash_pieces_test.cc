#include "trainer/table/hash_pieces.h"

#include <doctest/doctest.h>

#include <random>

namespace dtrain {
namespace {

const float kValues[] = {1, 2, 10, 20, 3, 4, 30, 40};  // two rows: two weights and a slot of them

std::vector<HashRow> Rows() {
  return {{5, 7, 0, kValues}, {6, 8, 2, nullptr}, {~uint64_t{0} - 1, 9, 0, kValues + 4}};
}

std::vector<std::byte> Piece() {
  std::vector<std::byte> bytes(HashPieceBytes(3, 2, 4));
  REQUIRE(WriteHashPiece(Rows(), 2, 4, bytes.data()) == bytes.size());
  return bytes;
}

std::string Read(const std::vector<std::byte>& bytes, RowRange piece, RowRange range,
                 std::vector<HashRow>* rows, std::vector<float>* values) {
  return ReadHashPiece({bytes.data(), bytes.size()}, piece, 2, 4, range, [&](const HashRow& row) {
    rows->push_back(row);
    if (row.values != nullptr) values->insert(values->end(), row.values, row.values + 4);
  });
}

constexpr RowRange kAll{0, ~uint64_t{0}};

TEST_CASE("hash pieces: rows and candidates are read as they were written") {
  std::vector<HashRow> rows;
  std::vector<float> values;
  const std::vector<std::byte> bytes = Piece();
  CHECK(BeginOf({bytes.data(), bytes.size()}) == 5);
  CHECK(Read(bytes, {5, kAll.end}, kAll, &rows, &values) == "");
  REQUIRE(rows.size() == 3);
  CHECK(rows[1].row == 6);
  CHECK(rows[1].step == 8);
  CHECK(rows[1].count == 2);
  CHECK(values == std::vector<float>(kValues, kValues + 8));
  rows.clear();
  values.clear();
  CHECK(Read(bytes, kAll, {6, kAll.end}, &rows, &values) == "");
  CHECK(rows.size() == 2);
  CHECK(values == std::vector<float>(kValues + 4, kValues + 8));
}

TEST_CASE("hash pieces: bytes that are no piece are told, and nothing is visited") {
  std::vector<HashRow> rows;
  std::vector<float> values;
  std::vector<std::byte> bytes = Piece();
  CHECK(Read(bytes, {6, kAll.end}, kAll, &rows, &values) ==
        "row 0 of it is 5, not from 6 to 18446744073709551614");
  CHECK(Read(bytes, {0, 7}, kAll, &rows, &values).find("row 2 of it is") == 0);
  bytes.resize(bytes.size() - 4);
  CHECK(Read(bytes, kAll, kAll, &rows, &values) == "it has 96 bytes, not 100");
  bytes = Piece();
  bytes[8 + 8] = std::byte{5};  // the row of the first again
  CHECK(Read(bytes, kAll, kAll, &rows, &values).find("row 1 of it is 5, not from 6") == 0);
  bytes = Piece();
  bytes[8 + 48] = std::byte{1};  // the first becomes a candidate
  CHECK(Read(bytes, kAll, kAll, &rows, &values) == "it has values of 2 rows, not 1");
  bytes = Piece();
  bytes[8 + 24 + 7] = std::byte{1};  // a step of more than 40 bits
  CHECK(Read(bytes, kAll, kAll, &rows, &values) == "row 0 of it has a count or a step that is none");
  bytes = Piece();
  bytes[8 + 48] = std::byte{1};  // the first and the bias become candidates, and the second gets values
  bytes[8 + 48 + 4] = std::byte{0};
  bytes[8 + 48 + 8] = std::byte{1};
  bytes[4] = std::byte{1};
  bytes.resize(HashPieceBytes(3, 1, 4));
  CHECK(Read(bytes, kAll, kAll, &rows, &values) == "it has no values of the bias");
  CHECK(rows.empty());
  std::mt19937 random(1);
  for (int i = 0; i < 20'000; ++i) {  // whatever the bytes are, none outside of them are read
    bytes = Piece();
    for (int k = 0; k < 3; ++k) bytes[random() % bytes.size()] = static_cast<std::byte>(random());
    bytes.resize(random() % 3 == 0 ? random() % bytes.size() : bytes.size());
    Read(bytes, kAll, kAll, &rows, &values);
  }
}

// A piece of a delta about rows [4, 100), with kValues for its rows that have some.
std::vector<std::byte> Delta(const std::vector<HashRow>& rows, size_t with_values, bool whole = false) {
  const HashCover cover{{4, 100}, whole};
  std::vector<std::byte> bytes(HashPieceBytes(rows.size(), with_values, 4, true));
  REQUIRE(WriteHashPiece(rows, 2, 4, bytes.data(), &cover) == bytes.size());
  return bytes;
}

// The rows of a delta and a base in a window: the number of each, and its first value or less its count.
using Found = std::vector<std::pair<uint64_t, float>>;
std::string ReadBoth(const std::vector<std::byte>& delta, const std::vector<std::byte>& base, RowRange window,
                     Found* found) {
  found->clear();
  return ReadHashDelta(
      {{delta.data(), delta.size()}, {4, kAll.end}}, {{base.data(), base.size()}, kAll}, 2, 4, window,
      [&](const HashRow& row) {
        found->push_back({row.row, row.values ? *row.values : -static_cast<float>(row.count)});
      });
}

TEST_CASE(
    "hash pieces: of a delta and its base the rows that were named since and those that stayed are read") {
  Found found;
  const std::vector<HashRow> rows = {
      {4, 9, 0, kValues + 4}, {5, 0, HashRow::kLeft, nullptr}, {6, 9, 0, kValues + 4}, {50, 9, 1, nullptr}};
  const std::vector<std::byte> delta = Delta(rows, 2), whole = Delta({{7, 9, 0, kValues + 4}}, 1, true);
  CHECK(BeginOf({delta.data(), delta.size()}) == 4);
  CHECK(ReadBoth(delta, Piece(), kAll, &found) == "");
  CHECK(found == Found{{4, 3}, {6, 3}, {50, -1}, {kAll.end - 1, 3}});
  CHECK(ReadBoth(delta, Piece(), {5, 60}, &found) == "");
  CHECK(found == Found{{6, 3}, {50, -1}});
  CHECK(ReadBoth(whole, Piece(), kAll, &found) == "");
  CHECK(found == Found{{7, 3}, {kAll.end - 1, 3}});
  CHECK(ReadBoth({}, Piece(), kAll, &found) == "");
  CHECK(found.size() == 3);
  CHECK(ReadBoth(delta, {}, kAll, &found) == "");
  CHECK(found == Found{{4, 3}, {6, 3}, {50, -1}});
  const std::vector<std::byte> nothing = Delta({}, 0), all_left = Delta({}, 0, true);
  CHECK_FALSE(BeginOf({nothing.data(), nothing.size()}));
  CHECK(BeginOf({all_left.data(), all_left.size()}) == 4);
  CHECK(ReadBoth(all_left, Piece(), kAll, &found) == "");
  CHECK(found == Found{{kAll.end - 1, 3}});
}

TEST_CASE("hash pieces: a delta that is none is told, and nothing is visited of it or of its base") {
  Found found;
  const auto wrong = [&](std::vector<std::byte> delta, const std::vector<std::byte>& base = Piece()) {
    const std::string text = ReadBoth(delta, base, kAll, &found);
    CHECK(found.empty());
    return text;
  };
  CHECK(wrong(Piece()) == "its form is unknown");
  const std::vector<std::byte> delta = Delta({{6, 9, 0, kValues}}, 1);
  CHECK(wrong(delta, delta) == "in its base its form is unknown");
  CHECK(wrong({delta.begin(), delta.begin() + 20}) == "it has 20 bytes");
  CHECK(wrong({delta.begin(), delta.end() - 4}) == "it has 56 bytes, not 60");
  CHECK(wrong(Delta({{100, 9, 0, kValues}}, 1)) == "row 0 of it is 100, not from 4 to 99");
  CHECK(wrong(Delta({{6, 0, HashRow::kLeft, nullptr}}, 0, true)) ==
        "row 0 of it has a count or a step that is none");
  std::vector<std::byte> early = delta;
  early[8] = std::byte{3};
  CHECK(wrong(early) ==
        "it is about the rows from 3 to 100, and may be about those from 4 to 18446744073709551615");
  // One that left is none of a piece of all rows.
  std::vector<std::byte> left = Piece();
  for (size_t i = 0; i < 4; ++i) left[8 + 48 + 4 + i] = std::byte{0xff};
  CHECK(wrong({}, left) == "in its base row 1 of it has a count or a step that is none");
  std::mt19937 random(1);
  for (int i = 0; i < 20'000; ++i) {  // whatever the bytes are, none outside of them are read
    std::vector<std::byte> bytes =
        Delta({{4, 9, 0, kValues}, {5, 0, HashRow::kLeft, nullptr}}, 1, i % 2 == 0);
    for (int k = 0; k < 3; ++k) bytes[random() % bytes.size()] = static_cast<std::byte>(random());
    bytes.resize(random() % 3 == 0 ? random() % bytes.size() : bytes.size());
    ReadBoth(bytes, Piece(), kAll, &found);
  }
}

TEST_CASE("hash pieces: what a list of rows takes is told with the room that it has for more") {
  HashRowList list(4);
  const float values[4] = {};
  size_t changes = 0, last = 0;
  for (uint64_t row = 0; row < 1000; ++row) {
    list.Add({row, 1, 0, values});
    changes += list.bytes() != last ? 1 : 0;
    last = list.bytes();
  }
  CHECK(changes < 100);
  CHECK(last >= 1000 * (sizeof(HashRow) + sizeof values));
}

}  // namespace
}  // namespace dtrain
