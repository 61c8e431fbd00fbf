// LoadData: loads the data sets that a config names, from files or generators. Errors of the files are
// UserErrors with file, place, value and rule. Thread: any.
#pragma once

#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "trainer/batch/input_form.h"
#include "trainer/config/choices.h"
#include "trainer/order/data_fingerprint.h"
#include "trainer/rows/read_table.h"
#include "trainer/sets/source.h"

namespace dtrain {

// LoadedData: the training and test sets, loaded and checked (counts, magic, label range 0..outputs-1).
// `test` is null without data.test.
struct LoadedData {
  std::shared_ptr<const DataSet> train;
  std::shared_ptr<const DataSet> test;
  InputForm form;
  SkippedRows skipped;  // of data.train
  SkippedRows skipped_of_test;
  bool classes_are_fitted = false;  // given as `fitted`, and not as the rows say
};
// Loads the data of a config. If rows are sparse, model.inputs is set (PeekShape() in trainer/survey finds
// it). Columns become features, are scaled, and classes are numbered, as `fitted` says, such as
// DataShape::form; null, or where it has no columns, no scale and no classes: as the training rows say.
// `environment` ("NAME=VALUE") is added to that of a command that writes them. `checks`: all rows of files
// are parsed, also where a run would parse them only when it trains on them.
LoadedData LoadData(const Config& config, const InputForm* fitted = nullptr,
                    const std::vector<std::string>& environment = {}, bool checks = false);

// SharedData: what the tasks of one process have loaded. Rows that each of them would have in memory are read
// once and are there once. Owner: who starts the tasks; it outlives them. Thread: any.
class SharedData {
 public:
  // As LoadData(), or what another task has loaded with the same fit and still holds; waits while one loads.
  // If the first one fails, all throw the same. Rows of files that are read again and of pipes are each
  // task's own.
  std::shared_ptr<const LoadedData> Load(const Config& config, const InputForm& fitted,
                                         const std::vector<std::string>& environment);
  // The fingerprint of the training rows that Load() has given.
  DataFingerprint Fingerprint(const std::shared_ptr<const LoadedData>& loaded);

 private:
  std::mutex mutex_;  // guards what follows
  InputForm fitted_;  // of `loaded_`
  std::weak_ptr<const LoadedData> loaded_;
  std::optional<DataFingerprint> fingerprint_;  // of `loaded_`, once a task has asked for it
  std::exception_ptr fault_;
};

}  // namespace dtrain
