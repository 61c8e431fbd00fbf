// Checkpoints of TensorFlow: a tensor has the same values in runs and as one, and no memory is taken on their
// word.
#include <algorithm>
#include <cstring>
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
#include "trainer/tf/tf_stream.h"

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
        // In runs it has the bits that it has as one.
        const auto bytes = static_cast<size_t>(tensor.size()) * sizeof(float);
        std::vector<float> all(static_cast<size_t>(tensor.size()));
        std::vector<float> runs(all.size());
        TfStream(checkpoint, tensor).Read(tensor.size(), all.data());
        TfStream stream(checkpoint, tensor);
        for (int64_t run = 1; stream.next() < tensor.size(); ++run) {
          const int64_t first = stream.next();
          stream.Read(std::min(run, tensor.size() - first), runs.data() + first);
        }
        Require(bytes == 0 || std::memcmp(all.data(), runs.data(), bytes) == 0,
                "runs are the values in their order");
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
