// Tensors of TensorFlow's checkpoints (testdata/tensorflow/write.py), a run at a time.
#include "trainer/tf/tf_stream.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "base/testing/files.h"

namespace dtrain {
namespace {

TfCheckpoint Open(const std::string& path) {
  const std::optional<TfPaths> paths = FindTfCheckpoint(path);
  REQUIRE(paths);
  return TfCheckpoint(*paths);
}

TEST_CASE("stream: runs of any length are the values in their order, however the tensor is cut") {
  struct Case {
    std::string file, tensor;  // whose values are 0, 1, 2 and so on
  };
  for (const Case& each : {Case{"slices", "w"}, Case{"slices", "b"}, Case{"slices", "c"}, Case{"grid", "w"},
                           Case{"old", "w"}, Case{"old", "d"}, Case{"old", "h"}}) {
    CAPTURE(each.file);
    CAPTURE(each.tensor);
    const TfCheckpoint checkpoint = Open("testdata/tensorflow/" + each.file);
    const TfTensor& tensor = *checkpoint.Find(each.tensor);
    for (int64_t run = 1; run <= tensor.size(); ++run) {
      TfStream stream(checkpoint, tensor);
      bool equal = true;
      while (stream.next() < tensor.size()) {
        const int64_t first = stream.next(), count = std::min(run, tensor.size() - first);
        std::vector<float> values(static_cast<size_t>(count), -1);
        stream.Read(count, values.data());
        for (int64_t i = 0; i < count; ++i)
          equal &= values[static_cast<size_t>(i)] == static_cast<float>(first + i);
      }
      CHECK_MESSAGE(equal, run);
    }
  }
}

TEST_CASE("stream: a damaged slice is refused with its last value, and those before it are read") {
  const std::string directory = testing::NewDirectory(), from = "testdata/tensorflow/slices",
                    data = ".data-00000-of-00001";
  std::string bytes = testing::FileContent(from + data);
  {
    const TfCheckpoint whole = Open(from);
    bytes[whole.Find("w")->pieces[1].offset] ^= 1;  // rows 3 and 4
  }
  WriteFileAtomically(directory + "/x" + data, bytes);
  WriteFileAtomically(directory + "/x.index", testing::FileContent(from + ".index"));
  const TfCheckpoint checkpoint = Open(directory + "/x");
  TfStream stream(checkpoint, *checkpoint.Find("w"));
  std::vector<float> values(15);
  CHECK_NOTHROW(stream.Read(9, values.data()));
  CHECK_NOTHROW(stream.Read(5, values.data()));
  std::string error;
  try {
    stream.Read(1, values.data());
  } catch (const UserError& thrown) {
    error = thrown.what();
  }
  CHECK(error.find("w: its 24 bytes from byte") != std::string::npos);
  CHECK(error.find("the checksum is wrong") != std::string::npos);
}

TEST_CASE("stream: a tensor that is no reals is refused") {
  const TfCheckpoint checkpoint = Open("testdata/tensorflow/types");
  CHECK_THROWS_AS(TfStream(checkpoint, *checkpoint.Find("i")), UserError);
}

}  // namespace
}  // namespace dtrain
