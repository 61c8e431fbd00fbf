// IDX files, the format of MNIST: a big-endian header (magic, sizes), then unsigned bytes. Plain or gzip.
//   images  magic 0x00000803, count, rows, columns, then count * rows * columns bytes
//   labels  magic 0x00000801, count, then count bytes
// A header is checked against the file's size. Errors are UserErrors: file, byte offset in the (uncompressed)
// content, value, rule, remedy. `key` is the config key that named the file.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "trainer/data/files/input_bytes.h"
#include "trainer/data/files/label_rules.h"

namespace dtrain {

struct IdxShape {
  int64_t count = 0;
  int64_t row_bytes = 1;  // pixels of one image
};

// Reads and checks the header only.
IdxShape PeekIdxImages(const std::string& path, const std::string& key);

// Reads and checks the header of images; the pixels follow.
IdxShape ReadIdxHeader(InputBytes* file);

struct IdxBytes {
  IdxShape shape;
  std::vector<uint8_t> bytes;  // [count, row_bytes]
};
IdxBytes ReadIdxImages(const std::string& path, const std::string& key);
IdxBytes ReadIdxLabels(const std::string& path, const std::string& key);

// Reads labels, each in [0, classes). `rules.classes` must be set.
std::vector<uint8_t> ReadIdxLabelsOf(const std::string& path, const std::string& key,
                                     const LabelRules& rules);

// IdxSet: images and labels of one set, with equal counts and labels in [0, classes).
struct IdxSet {
  IdxBytes images;
  std::vector<uint8_t> labels;
};
// `section` is "data.train" or "data.test". `rules.classes` must be set.
IdxSet ReadIdxSet(const std::string& images, const std::string& labels, const std::string& section,
                  const LabelRules& rules);

}  // namespace dtrain
