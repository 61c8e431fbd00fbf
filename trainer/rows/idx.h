// IDX files, the format of MNIST: a big-endian header (magic, sizes), then unsigned bytes. Plain or gzip.
//   images  magic 0x00000803, count, rows, columns, then count * rows * columns bytes
//   labels  magic 0x00000801, count, then count bytes
// A header is checked against the file's size. Errors are UserErrors: file, byte offset in the (uncompressed)
// content, value, rule, remedy. `key` is the config key that named the file.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/large_vector.h"
#include "trainer/input/input_bytes.h"
#include "trainer/rows/label_rules.h"
#include "trainer/rows/row_file.h"

namespace dtrain {

struct IdxShape {
  int64_t count = 0;
  int64_t row_bytes = 1;  // pixels of one image
  int64_t columns = 1;    // pixels of one line of an image
};

// Reads and checks the header only.
IdxShape PeekIdxImages(const std::string& path, const std::string& key);

// Reads and checks the headers of files of images, at least one. Returns the shape of all: the sum of their
// counts. Throws UserError if images of two files have different shapes.
IdxShape PeekIdxSet(const std::vector<std::string>& files, const std::string& key);

// Appends the pixels to `bytes`, and returns the shape of these images.
IdxShape AppendIdxImages(const std::string& path, const std::string& key, LargeVector<uint8_t>* bytes);

// Gives the bytes of the plain file of these images to `write`, part by part: the header, then the pixels.
// What was written before an error is no whole file.
void UnpackIdxImages(const std::string& path, const std::string& key,
                     const std::function<void(std::string_view)>& write);

// Reads labels, each in [0, classes). `rules.classes` must be set.
std::vector<uint8_t> ReadIdxLabelsOf(const std::string& path, const std::string& key,
                                     const LabelRules& rules);

// IdxFiles: the files of one set. labels[i] has the labels of images[i].
struct IdxFiles {
  std::vector<std::string> images;
  std::vector<std::string> labels;
};
// Returns the files that two lists of paths and patterns name. `section` is "data.train" or "data.test".
// Throws UserError if the lists do not name equally many.
IdxFiles FindIdxFiles(const std::vector<std::string>& images, const std::vector<std::string>& labels,
                      const std::string& section);
// Reads the headers, and returns the shape of all images. Throws UserError if the counts of two files that
// belong together differ, and what PeekIdxSet() throws.
IdxShape CheckIdxFiles(const IdxFiles& files, const std::string& section);

struct IdxImages {
  IdxShape shape;
  LargeVector<uint8_t> bytes;  // [count, row_bytes]
};

// IdxSet: images and labels of one set, with equal counts and labels in [0, classes).
struct IdxSet {
  IdxImages images;
  std::vector<uint8_t> labels;
};
// Reads the rows of all files, in their order. `rules.classes` must be set.
IdxSet ReadIdxSet(const IdxFiles& files, const std::string& section, const LabelRules& rules);

// Opens images one by one, for a trained model, with their labels from the file `labels` if the spec asks for
// them. `spec` must outlive the file.
std::unique_ptr<RowFile> OpenIdxFile(const RowSpec& spec, std::unique_ptr<InputBytes> file,
                                     const std::string& labels, SkippedRows* skipped);

}  // namespace dtrain
