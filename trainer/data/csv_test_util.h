// Help for tests that read CSV files as a run does.
#pragma once

#include <string>

#include "trainer/config/config.h"
#include "trainer/data/idx_test_util.h"

namespace dtrain {

// A file of this name and content, with a header, in the test's temporary directory.
inline DataSourceConfig CsvSource(const std::string& name, const std::string& content,
                                  const std::string& label) {
  DataSourceConfig source;
  source.format = DataFormat::kCsv;
  source.path = WritePlain(name, content);
  source.label = label;
  return source;
}

// A job on train.csv; softmax has 3 outputs.
inline Config CsvConfig(ModelKind kind, const std::string& content, const std::string& label) {
  Config config;
  config.model.kind = kind;
  if (kind == ModelKind::kSoftmax) config.model.outputs = 3;
  config.data.train = CsvSource("train.csv", content, label);
  return config;
}

}  // namespace dtrain
