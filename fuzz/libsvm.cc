// Lines of libsvm's format: a row, or a fault within the line; and the same text as a file whose bad rows are
// left out.
#include <algorithm>

#include "base/error.h"
#include "fuzz/input.h"
#include "fuzz/sparse_line.h"
#include "trainer/config/config.h"
#include "trainer/input/input_bytes.h"
#include "trainer/rows/sparse_file.h"

namespace dtrain::fuzz {
namespace {

void ReadFile(const DataConfig& config, const std::string& text, int64_t inputs) {
  const MemoryFile file(text);
  try {
    SkippedRows skipped;
    RowContext context;
    context.inputs = inputs;
    SparseFile rows(config, context, std::make_unique<InputBytes>(file.path(), "data.train.path"), &skipped);
    RowLabels labels(LabelRules(), file.path(), "the label");
    ParsedRows parsed;
    int64_t read = 0;
    while (rows.Next(&parsed, &labels)) ++read;
    Require(parsed.sparse.count() == read && labels.size() == static_cast<size_t>(read),
            "what is left out of a row that cannot be read is all of it");
    Require(read + skipped.bad <= std::count(text.begin(), text.end(), '\n') + 1, "a row is a line");
  } catch (const UserError&) {
  }
}

int FuzzOne(const uint8_t* data, size_t size) {
  Input input(data, size);
  DataConfig config;
  config.train.format = DataFormat::kLibsvm;
  config.bad_rows = BadRows::kSkip;
  config.index_base = input.Flag() ? 0 : 1;
  const uint64_t inputs = input.Flag() ? uint64_t{1} << 40 : 1 + input.Short();
  const std::string text = input.Rest();
  ParseLines(MakeLineParser(config, {static_cast<int64_t>(inputs)}).get(), text, inputs, /*zeros=*/true);
  ReadFile(config, text, static_cast<int64_t>(inputs));
  return 0;
}

const AddTarget added("libsvm", FuzzOne);

}  // namespace
}  // namespace dtrain::fuzz
