// IDX files, the form of MNIST: a big-endian header (magic, sizes), then unsigned bytes. Plain or gzip.
//   images  magic 0x00000803, count, rows, columns, then count * rows * columns bytes
//   labels  magic 0x00000801, count, then count bytes
// A header is believed only as far as the file's size allows. What is wrong is a UserError: file, byte
// offset in the (uncompressed) content, value, rule, remedy. `key` is the config key that named the file.
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

// The header alone, checked.
IdxShape PeekIdxImages(const std::string& path, const std::string& key);

// The header of images, checked; the pixels follow.
IdxShape ReadIdxHeader(InputBytes* file);

struct IdxBytes {
  IdxShape shape;
  std::vector<uint8_t> bytes;  // [count, row_bytes]
};
IdxBytes ReadIdxImages(const std::string& path, const std::string& key);
IdxBytes ReadIdxLabels(const std::string& path, const std::string& key);

// Labels, each in [0, classes). `rules.classes` is set.
std::vector<uint8_t> ReadIdxLabelsOf(const std::string& path, const std::string& key,
                                     const LabelRules& rules);

// Images and labels of one set: equal counts, labels in [0, classes).
struct IdxSet {
  IdxBytes images;
  std::vector<uint8_t> labels;
};
// `section` is "data.train" or "data.test". `rules.classes` is set.
IdxSet ReadIdxSet(const std::string& images, const std::string& labels, const std::string& section,
                  const LabelRules& rules);

}  // namespace dtrain
