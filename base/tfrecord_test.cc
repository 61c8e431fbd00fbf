#include "base/tfrecord.h"

#include <doctest/doctest.h>

#include <string>

namespace dtrain {
namespace {

using namespace std::string_literals;

// As TensorFlow's TFRecordWriter writes them.
const std::string kX = "\x01\0\0\0\0\0\0\0\x01\x75\xde\x41x\x50\x3d\xaa\x61"s;

TEST_CASE("tfrecord: masked checksums are those of TensorFlow") {
  CHECK(MaskedCrc("") == 0xa282ead8);
  CHECK(MaskedCrc("\0\0\0\0\0\0\0\0"s) == 0x07980329);
  CHECK(MaskedCrc("\x01\0\0\0\0\0\0\0"s) == 0x41de7501);
  CHECK(MaskedCrc("\0\0\x80\x3f\0\0\0\x40"s) == 0x35e53c59);
  CHECK(MaskedCrc("abc") == 0x21f1576e);
}

TEST_CASE("tfrecord: records are the bytes that TensorFlow writes, and an empty one has 16") {
  std::string one, empty, three;
  AppendTfrecord("x", &one);
  CHECK(one == kX);
  AppendTfrecord("", &empty);
  CHECK(empty == "\0\0\0\0\0\0\0\0\x29\x03\x98\x07\xd8\xea\x82\xa2"s);
  CHECK(TfrecordAt(empty, 100).state == TfrecordState::kWhole);
  for (int i = 0; i < 3; ++i) AppendTfrecord("abc", &three);
  CHECK(three.size() == 57);
  const Tfrecord last = TfrecordAt(std::string_view(three).substr(38), 3);
  CHECK((last.state == TfrecordState::kWhole && last.data == "abc" && last.size() == 19));
}

TEST_CASE("tfrecord: a record that is cut, longer than allowed or changed at any byte is told") {
  for (size_t size = 0; size < kX.size(); ++size) {
    CHECK(TfrecordAt(std::string_view(kX).substr(0, size), 100).state == TfrecordState::kCut);
  }
  CHECK(TfrecordAt(kX, 0).state == TfrecordState::kTooLong);
  for (size_t byte = 0; byte < kX.size(); ++byte) {
    std::string changed = kX;
    changed[byte] ^= 0x10;
    const bool in_head = byte < kTfrecordHead;
    CHECK(TfrecordAt(changed, 100).state ==
          (in_head ? TfrecordState::kWrongLength : TfrecordState::kWrongData));
    CHECK(BeginsTfrecord(changed) == !in_head);
    if (!in_head) CHECK(TfrecordAt(changed, 100, false).state == TfrecordState::kWhole);
  }
}

}  // namespace
}  // namespace dtrain
