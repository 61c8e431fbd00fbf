// Checkpoints of TensorFlow: what is read of a tensor lies in it, each value once, and no memory on their
// word.
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "fuzz/input.h"
#include "fuzz/target.h"
#include "trainer/tf/sorted_table.h"
#include "trainer/tf/tf_checkpoint.h"
#include "trainer/tf/tf_names.h"

namespace dtrain::fuzz {
namespace {

constexpr int64_t kMaxValues = 1 << 16;

int FuzzOne(const uint8_t* data, size_t size) {
  Input input(data, size);
  TfPaths paths;
  paths.prefix = ScratchDirectory() + "/bundle";
  const std::string table = paths.prefix + ".index";
  const bool is_v1 = input.Flag();
  if (is_v1) paths.tables = {table};
  if (!is_v1) paths.index = table;
  const bool framed = input.Flag();
  const std::string values = input.Text(255);
  std::string content;
  if (framed) {
    SortedTableBuilder entries;
    while (!input.empty()) {
      const std::string key = input.Text(255);
      entries.Add(key, input.Text(255));
    }
    content = entries.Finish();
  } else {
    content = input.Rest();
  }
  WriteFileAtomically(table, content);
  WriteFileAtomically(paths.prefix + ".data-00000-of-00001", values);
  try {
    const TfCheckpoint checkpoint(paths);
    const std::vector<TfMeaning> meanings = MeaningsOf(checkpoint);
    Require(meanings.size() == checkpoint.tensors().size(), "each tensor has a meaning");
    for (const TfTensor& tensor : checkpoint.tensors()) {
      if (!tensor.unreadable.empty()) continue;
      try {
        checkpoint.Verify(tensor);
        if (tensor.size() == 1) checkpoint.ReadInteger(tensor);
        if (tensor.size() > kMaxValues) continue;
        std::vector<bool> is_read(static_cast<size_t>(tensor.size()));
        checkpoint.Read(tensor, [&](int64_t first, const float* /*values*/, int64_t count) {
          Require(first >= 0 && count > 0 && count <= tensor.size() - first, "a run lies in its tensor");
          for (int64_t i = first; i < first + count; ++i) {
            Require(!is_read[static_cast<size_t>(i)], "a value is read once");
            is_read[static_cast<size_t>(i)] = true;
          }
        });
        for (const bool each : is_read) Require(each, "each value is read");
      } catch (const UserError&) {
      }
    }
  } catch (const UserError&) {
  }
  return 0;
}

const AddTarget added("bundle", FuzzOne);

}  // namespace
}  // namespace dtrain::fuzz
