// Pieces of rows, from a file or a message: each is refused, or its rows come in order, each once, and can be
// stored.
#include <cstring>
#include <optional>

#include "fuzz/input.h"
#include "fuzz/target.h"
#include "trainer/table/hash_pieces.h"
#include "trainer/table/hash_store.h"
#include "trainer/table/row_pieces.h"

namespace dtrain::fuzz {
namespace {

struct Shape {
  int64_t width = 1;
  int64_t values = 1;  // of a row with its slots
};

net::TensorView ViewOf(const std::string& bytes) {
  return {reinterpret_cast<const std::byte*>(bytes.data()), bytes.size()};
}

// The piece is one of a range table, or of its delta with the base.
void ReadRange(Input& input, const Shape& shape, bool is_delta) {
  const RowRange piece = {1000, 1000 + 1 + input.Short() % 700},
                 range = {1000 + input.Short() % 8, piece.end};
  const std::string delta = is_delta ? input.Text(255) : "", rest = input.Rest();
  std::optional<uint64_t> last;
  const auto visit = [&](uint64_t row, const float* values) {
    Require(row >= range.begin && row < range.end, "rows lie in the range that is asked for");
    Require(!last || *last < row, "rows come in ascending order");
    last = row;
    volatile float sum = values[0] + values[shape.values - 1];
    static_cast<void>(sum);
  };
  const std::string wrong =
      is_delta ? ReadDeltaPiece(ViewOf(delta), ViewOf(rest), piece, shape.width, shape.values, range, visit)
               : ReadRowPiece(ViewOf(rest), piece, shape.width, shape.values, range, visit);
  Require(wrong.empty() || !last, "nothing is visited of a piece that is wrong");
}

// The piece is one range of a hash table; the last range has the bias.
void ReadHashed(Input& input, const Shape& shape) {
  constexpr uint64_t kRows = uint64_t{1} << kHashRangeShift;
  const RowRange rows =
      input.Flag() ? RowRange{~uint64_t{0} << kHashRangeShift, ~uint64_t{0}} : RowRange{0, kRows};
  HashLimits limits;
  limits.admit_after = 1 + static_cast<int64_t>(input.Below(3));
  HashStore store(
      rows, shape.values, [&](uint64_t, float* values) { std::fill_n(values, shape.values, 0.5F); }, limits);
  const std::string bytes = input.Rest();
  const std::string wrong = ReadHashPiece(ViewOf(bytes), rows, shape.width, shape.values, rows,
                                          [&](const HashRow& row) { store.Put(row); });
  if (!wrong.empty()) return Require(store.entries() == 0, "nothing is visited of a piece that is wrong");
  uint32_t count = 0;
  std::memcpy(&count, bytes.data(), sizeof count);
  std::vector<HashRow> found;
  store.VisitRange(rows, [&](const HashRow& row) { found.push_back(row); });
  if (found.size() != count) found.pop_back();  // the row of the bias is always there
  Require(found.size() == count, "each row is stored once");
  std::string again(bytes.size(), '\0');
  WriteHashPiece(found, shape.width, shape.values, reinterpret_cast<std::byte*>(again.data()));
  Require(again == bytes, "rows are stored as they were written");
}

// The piece is one of a delta of a hash table, with its base, in the range that has the bias.
void ReadHashedDelta(Input& input, const Shape& shape) {
  constexpr RowRange kRows{~uint64_t{0} << kHashRangeShift, ~uint64_t{0}};
  const RowRange window = {kRows.begin + input.Short() % 8, kRows.end - input.Byte() % 2};
  const std::string delta = input.Text(255), base = input.Rest();
  std::optional<uint64_t> last;
  const std::string wrong = ReadHashDelta({ViewOf(delta), kRows}, {ViewOf(base), kRows}, shape.width,
                                          shape.values, window, [&](const HashRow& row) {
                                            Require(row.row >= window.begin && row.row < window.end,
                                                    "rows lie in the range that is asked for");
                                            Require(!last || *last < row.row, "rows come in ascending order");
                                            Require(row.count != HashRow::kLeft, "what left is no row");
                                            last = row.row;
                                            if (row.values == nullptr) return;
                                            volatile float sum = row.values[0] + row.values[shape.values - 1];
                                            static_cast<void>(sum);
                                          });
  Require(wrong.empty() || !last, "nothing is visited of a piece that is wrong");
}

int FuzzOne(const uint8_t* data, size_t size) {
  Input input(data, size);
  const uint64_t kind = input.Below(4);
  Shape shape;
  shape.width = 1 + static_cast<int64_t>(input.Below(3));
  shape.values = shape.width * (1 + static_cast<int64_t>(input.Below(3)));
  if (kind == 3) {
    ReadHashedDelta(input, shape);
  } else {
    kind == 2 ? ReadHashed(input, shape) : ReadRange(input, shape, kind == 1);
  }
  return 0;
}

const AddTarget added("pieces", FuzzOne);

}  // namespace
}  // namespace dtrain::fuzz
