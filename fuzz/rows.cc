// Rows for a trained model, from CSV files, JSON lines, IDX images and texts of sparse rows.
#include "base/error.h"
#include "fuzz/input.h"
#include "fuzz/target.h"
#include "trainer/rows/row_reader.h"

namespace dtrain::fuzz {
namespace {

void MakeSparse(int choice, DataConfig* data) {
  const DataFormat formats[] = {DataFormat::kLibsvm, DataFormat::kVw, DataFormat::kCriteo, DataFormat::kCsv};
  data->train.format = formats[choice & 3];
  data->train.label = "label";
  data->train.header = true;
  data->hash_bits = 1;
  if (data->train.format == DataFormat::kCsv) data->hash = {"x"};
  data->test = data->train;
}

int FuzzOne(const uint8_t* data, size_t size) {
  Input input(data, size);
  RowSpec spec;
  spec.inputs = 3;
  if (input.Flag()) spec.form.features = {"x", "y", "z"};
  spec.pixels = input.Flag();
  const uint64_t format = input.Below(4);
  if (format < 3) spec.format = static_cast<RowFormat>(format);
  if (input.Flag()) spec.header = input.Flag();
  const uint8_t columns = input.Byte();
  if ((columns & 1) != 0) spec.label = "label";
  if ((columns & 8) != 0) MakeSparse(columns >> 4, &spec.data);
  for (int kept = columns >> 1 & 3; kept > 0; --kept) spec.keep.push_back(input.Text(8));
  const bool sparse = HasSparseRows(spec.data);
  const MemoryFile file(input.Rest());
  try {
    RowReader reader(file.path(), spec);
    RowBlock block(spec.inputs, spec.keep.size());
    Require(reader.KeptNames().size() == spec.keep.size(), "each column that is kept has a name");
    while (reader.Next(&block)) {
      if (sparse) {
        Require(block.sparse.count() == block.rows, "a row is one, whatever its features");
        for (const uint64_t id : block.sparse.ids) Require(id < 3, "a feature is one of the model");
      }
      const size_t values = spec.pixels && !block.bytes.empty() ? block.bytes.size() : block.features.size();
      Require(sparse || values == static_cast<size_t>(block.rows * spec.inputs), "a row has all values");
      Require(block.kept.size() == static_cast<size_t>(block.rows) * spec.keep.size(),
              "a row has all that is kept of it");
      if (block.rows > 100) block.Clear();
    }
  } catch (const UserError&) {
  }
  return 0;
}

const AddTarget added("rows", FuzzOne);

}  // namespace
}  // namespace dtrain::fuzz
