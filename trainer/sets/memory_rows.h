// Rows in memory that are not sparse: bytes of images, and floats of tables. Thread: any; free functions.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "base/large_vector.h"
#include "trainer/rows/read_table.h"
#include "trainer/sets/data_set.h"

namespace dtrain {

// Labelled rows of bytes, read as floats in [0, 1] (byte / 255). `bytes` is [rows, inputs] row-major, with
// one label per row, each in [0, classes).
DataSet BytesInMemory(LargeVector<uint8_t> bytes, std::vector<uint8_t> labels, int64_t inputs,
                      int64_t classes);

// Rows of floats, `features` [rows, inputs] row-major, which are scaled where they lie.
std::shared_ptr<Fetch> FetchOf(std::vector<float> features, int64_t rows, int64_t inputs);
// The rows of a table, with the names of its classes and what was left out of it as facts.
DataSet TableInMemory(CsvTable table, std::optional<int64_t> classes);

}  // namespace dtrain
