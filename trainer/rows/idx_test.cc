#include "trainer/rows/idx.h"

#include <doctest/doctest.h>

#include <string>

#include "base/error.h"
#include "trainer/input/data_test_util.h"

namespace dtrain {
namespace {

const LabelRules kTenLabels{10, "model.outputs = 10", "raise model.outputs"};

std::string ImageError(const std::string& path) {
  LargeVector<uint8_t> pixels;
  return UserErrorOf([&] { AppendIdxImages(path, "data.train.images", &pixels); });
}
std::string LabelError(const std::string& path) {
  return UserErrorOf([&] { ReadIdxLabelsOf(path, "data.train.labels", kTenLabels); });
}
std::string SetError(const std::vector<std::string>& images, const std::vector<std::string>& labels) {
  return UserErrorOf(
      [&] { ReadIdxSet(FindIdxFiles(images, labels, "data.train"), "data.train", kTenLabels); });
}
std::string Images(const std::string& name, uint32_t count) {
  return WritePlain(name, IdxImageContent(count, 2, 2));
}
std::string Labels(const std::string& name, const std::vector<uint8_t>& labels) {
  return WritePlain(name, IdxLabelContent(labels));
}
bool Has(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

TEST_CASE("idx: plain and gzip files give the bytes that were written, whatever their names") {
  const std::string content = IdxImageContent(5, 3, 7);
  for (const std::string& path : {WritePlain("plain.gz", content), WriteGzip("zipped", content)}) {
    LargeVector<uint8_t> pixels;
    const IdxShape shape = AppendIdxImages(path, "data.train.images", &pixels);
    CHECK(shape.count == 5);
    CHECK(shape.row_bytes == 21);
    CHECK(std::string(pixels.begin(), pixels.end()) == content.substr(16));
    CHECK(PeekIdxImages(path, "data.train.images").row_bytes == 21);
  }
  CHECK(ReadIdxLabelsOf(WriteGzip("labels", IdxLabelContent({3, 1, 4})), "data.train.labels", kTenLabels) ==
        std::vector<uint8_t>{3, 1, 4});
}

TEST_CASE("idx: every truncation, and damage of packed data, is a user error that names the file") {
  const std::string content = IdxImageContent(4, 3, 3);
  const std::string zipped = ReadBack(WriteGzip("whole.gz", content));
  for (size_t size = 0; size < content.size(); ++size) {
    CAPTURE(size);
    CHECK(Has(ImageError(WritePlain("cut", content.substr(0, size))), "cut: "));
  }
  // The last 8 bytes are gzip's own checksum and length.
  for (size_t size = 0; size < zipped.size(); ++size) {
    CAPTURE(size);
    CHECK(Has(ImageError(WritePlain("cut.gz", zipped.substr(0, size))), "cut.gz: "));
  }
  const std::string good = ReadBack(WriteGzip("good.gz", IdxImageContent(40, 28, 28)));
  for (size_t at = 12; at < good.size(); at += 7) {
    CAPTURE(at);
    std::string damaged = good;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x55);
    CHECK(Has(ImageError(WritePlain("damaged.gz", damaged)), "damaged.gz: "));
  }
  CHECK(Has(ImageError(WritePlain("header", content.substr(0, 10))),
            "header: ends at byte 10; the header of images takes 16 bytes. "));
  CHECK(Has(ImageError(WritePlain("body", content.substr(0, 50))),
            "byte 4: the header promises 4 images of 9 bytes each, more than can be in a file of 50 bytes"));
  CHECK(Has(ImageError(WriteGzip("body.gz", content.substr(0, 50))),
            "ends at byte 50 of its content; 4 images of 9 bytes must end at byte 52"));
}

TEST_CASE("idx: bytes after the last record are refused, with their place") {
  const std::string content = IdxLabelContent({1, 2, 3}) + "x";
  CHECK(Has(LabelError(WritePlain("long", content)),
            "long: byte 11: more bytes follow after the last of 3 labels"));
  CHECK(Has(LabelError(WriteGzip("long.gz", content)), "byte 11: more bytes follow"));
}

TEST_CASE("idx: a wrong magic is shown with the right one") {
  const std::string text = WritePlain("text.csv", "label,pixel0,pixel1\n");
  CHECK(Has(ImageError(text),
            "text.csv: byte 0: magic = 0x6c616265; an IDX file of images begins with 0x00000803"));
  CHECK(Has(ImageError(Labels("labels", {1, 2, 3, 4, 5, 6, 7, 8})),
            "It is a file of labels: are the two exchanged?"));
  CHECK(Has(LabelError(Images("images", 1)), "It is a file of images: are the two exchanged?"));
}

TEST_CASE("idx: an empty file, no records and empty records are refused") {
  CHECK(Has(ImageError(WritePlain("empty", "")), "empty: is empty (0 bytes); data.train.images"));
  CHECK(Has(ImageError(WritePlain("none", IdxImageContent(0, 28, 28))),
            "byte 4: number of images = 0; must be >= 1"));
  CHECK(
      Has(LabelError(WritePlain("none", IdxLabelContent({}))), "byte 4: number of labels = 0; must be >= 1"));
  CHECK(Has(ImageError(WritePlain("flat", IdxImageContent(3, 0, 28))),
            "byte 8: pixels of an image = 0; rows and columns must be >= 1"));
}

TEST_CASE("idx: a header that promises more than the file can hold takes no memory") {
  const std::string huge = IdxImageContent(0, 0, 0).substr(0, 4) + std::string(12, '\xff');
  CHECK(Has(ImageError(WritePlain("huge", huge)), "huge: byte 4: the header promises 4294967295 images"));
  CHECK(Has(ImageError(WriteGzip("huge.gz", huge)), "huge.gz: byte 4: the header promises"));
}

TEST_CASE("idx: a missing file and a directory are user errors that name the key") {
  CHECK(Has(ImageError("/no/such/file"), "/no/such/file: cannot be opened: No such file or directory (2)"));
  CHECK(Has(ImageError("/no/such/file"), "data.train.images"));
  CHECK_FALSE(Has(ImageError("/no/such/file"), "MNIST"));
  const std::string mnist = ImageError("/no/train-images-idx3-ubyte.gz");
  CHECK(Has(mnist, "scripts/fetch_mnist.sh fetches MNIST"));
  CHECK(Has(mnist, "set DTRAIN_DATA"));
  CHECK(Has(ImageError("/tmp"), "/tmp: is not a file; data.train.images"));
}

TEST_CASE("idx: several files are one set, in the order of the list and of the names") {
  const std::string images = IdxImageContent(6, 2, 3).substr(16);
  const auto part = [&](uint32_t count, size_t first) {
    return IdxImageContent(count, 2, 3).substr(0, 16) + images.substr(first * 6, count * 6);
  };
  std::string pattern = WritePlain("part-2-images", part(2, 1));
  pattern[pattern.rfind('2')] = '*';
  WritePlain("part-1-images", part(1, 0));
  const std::string last = WriteGzip("last-images.gz", part(3, 3));
  const std::string labels = WritePlain("part-1-labels", IdxLabelContent({7}));
  const IdxFiles files = FindIdxFiles({pattern, last},
                                      {labels, WriteZstd("part-2-labels.zst", IdxLabelContent({5, 6})),
                                       WritePlain("last-labels", IdxLabelContent({1, 2, 3}))},
                                      "data.train");
  const IdxSet set = ReadIdxSet(files, "data.train", kTenLabels);
  CHECK(set.images.shape.count == 6);
  CHECK(std::string(set.images.bytes.begin(), set.images.bytes.end()) == images);
  CHECK(set.labels == std::vector<uint8_t>{7, 5, 6, 1, 2, 3});
}

TEST_CASE("idx: files that do not belong together are refused by name") {
  const std::string a = Images("a-images", 3), b = Images("b-images", 2), one = Images("one-images", 1);
  const std::string flat = WritePlain("flat-images", IdxImageContent(2, 1, 4));
  const std::string a_labels = Labels("a-labels", {1, 2, 3}), b_labels = Labels("b-labels", {1, 2});
  const std::string c_labels = Labels("c-labels", {1});
  CHECK(Has(
      SetError({a, b}, {a_labels}),
      "b-images: has no file of labels: data.train.images names 2 files and data.train.labels 1. Name one "
      "file of labels for each file of images, in the same order."));
  CHECK(Has(SetError({a}, {a_labels, b_labels, c_labels}), "b-labels: has no file of images: "));
  const std::string counts = SetError({a, b}, {a_labels, c_labels});
  CHECK(Has(counts, "c-labels: byte 4: number of labels = 1; "));
  CHECK(Has(counts, "b-images has 2 images, and each needs one label. Name two files of one set in "));
  CHECK(Has(SetError({one}, {b_labels}), "one-images has 1 image, and each"));
  const std::string shapes = SetError({a, flat}, {a_labels, b_labels});
  CHECK(Has(shapes, "flat-images: byte 8: images of 1 x 4 pixels; "));
  CHECK(Has(shapes,
            "a-images has images of 2 x 2, and all of one set have one shape. Name files of one shape "
            "in data.train.images."));
  // The headers are compared before anything is unpacked.
  const std::string cut = IdxLabelContent(std::vector<uint8_t>(1000)).substr(0, 100);
  CHECK(Has(SetError({a}, {WriteGzip("labels.gz", cut)}), "labels.gz: byte 4: number of labels = 1000; "));
}

TEST_CASE("idx: a label beyond the outputs is refused with file, byte, row and range") {
  CHECK(
      Has(SetError({Images("images", 3)}, {Labels("labels", {9, 10, 1})}),
          "labels: byte 9: label of row 1 = 10; must be a whole number in 0..9 (model.outputs = 10); labels "
          "start at 0. If yours start at 1, subtract 1; otherwise raise model.outputs, or remove the row."));
}

}  // namespace
}  // namespace dtrain
