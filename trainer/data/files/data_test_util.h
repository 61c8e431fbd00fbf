// What tests of data share: IDX and CSV files in the test's own temporary directory, and jobs on them.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "trainer/config/config.h"

namespace dtrain {

// The content of an IDX file of images whose bytes count 0, 1, ... 255, 0, ...
std::string IdxImageContent(uint32_t count, uint32_t rows, uint32_t cols);
std::string IdxLabelContent(const std::vector<uint8_t>& labels);

// Write `content` under `name` in the temporary directory; return the path.
std::string WritePlain(const std::string& name, const std::string& content);
std::string WriteGzip(const std::string& name, const std::string& content);
std::string ReadBack(const std::string& path);

// A source that is a CSV file of this name and content, with a header.
DataSourceConfig CsvSource(const std::string& name, const std::string& content, const std::string& label);

// A job on train.csv; softmax has 3 outputs.
Config CsvConfig(ModelKind kind, const std::string& content, const std::string& label);

// The text of the UserError that `action` throws; empty where it throws none.
std::string UserErrorOf(const std::function<void()>& action);

}  // namespace dtrain
