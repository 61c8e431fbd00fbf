// Helpers for tests of data: IDX and CSV files in the test's temporary directory, and configs that use them.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "trainer/config/data_config.h"

namespace dtrain {

// Returns the content of an IDX file of images whose bytes count 0, 1, ... 255, 0, ...
std::string IdxImageContent(uint32_t count, uint32_t rows, uint32_t cols);
std::string IdxLabelContent(const std::vector<uint8_t>& labels);

// These write `content` as `name` in the temporary directory and return the path.
std::string WritePlain(const std::string& name, const std::string& content);
std::string WriteGzip(const std::string& name, const std::string& content);
std::string WriteZstd(const std::string& name, const std::string& content);
std::string ReadBack(const std::string& path);

// Returns a source that is a CSV file with this name and content, with a header.
DataSourceConfig CsvSource(const std::string& name, const std::string& content, const std::string& label);

// Returns a config that trains on train.csv; softmax has 3 outputs.
Config CsvConfig(ModelKind kind, const std::string& content, const std::string& label);

// Returns how many bytes this process has read from files so far.
int64_t BytesRead();

// Returns the text of the UserError that `action` throws; empty if it throws none.
std::string UserErrorOf(const std::function<void()>& action);

}  // namespace dtrain
