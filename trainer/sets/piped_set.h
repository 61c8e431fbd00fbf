// PipedSet: rows that come once, through a pipe (data.train.path: "-" or exec:COMMAND, with data.cache:
// none). The first rows are held out as data.validation says and stay in memory; the next ones, a window, fit
// the scale, the names of classes and balanced weights of these, and are trained on like all that follow.
// Owner: LoadedData, shared. Thread: any. Errors are UserErrors with the pipe's name, line and column.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "trainer/batch/input_form.h"
#include "trainer/config/config.h"
#include "trainer/input/sources.h"
#include "trainer/rows/label_rules.h"
#include "trainer/rows/row_file.h"
#include "trainer/sets/source.h"

namespace dtrain {

class Pipe;

class PipedSet : public DataSet {
 public:
  // Reads the first rows. `inputs` is that of data.train, at its begin. `form` has the columns and, where the
  // run has one already, the scale; classes and scale are set here.
  PipedSet(const Config& config, const LabelRules& rules, SourceInputs* inputs, InputForm* form);
  ~PipedSet() override;

  int64_t inputs() const override { return inputs_; }
  std::optional<int64_t> classes() const override { return classes_; }
  std::optional<int64_t> rows() const override { return std::nullopt; }
  // Of rows that are held out.
  void Gather(const int64_t* rows, int64_t count, float* inputs, int32_t* labels,
              float* targets) const override;
  bool sparse() const override { return sparse_; }
  void GatherSparse(const int64_t* rows, int64_t count, SparseBuffer* features) const override;
  bool weighted() const override;
  void Weights(const int64_t* rows, int64_t count, float* weights) const override;
  // The batches of all other rows, in windows that are shuffled. With data.split: shard each worker has a
  // pipe that gives the same rows, and takes windows in turn with the others; with full it takes all. Can be
  // called once.
  std::unique_ptr<BatchSource> Stream(const Config& config, int worker, int workers) const override;

  const CsvColumns& columns() const { return columns_; }
  // What was left out of the rows that the constructor read. The batches' source tells what was left out
  // later.
  const SkippedRows& skipped() const { return skipped_; }

 private:
  int64_t inputs_ = 0;
  std::optional<int64_t> classes_;
  const bool sparse_;
  CsvColumns columns_;
  SkippedRows skipped_;
  std::unique_ptr<DataSet> held_out_;  // null: none
  mutable std::shared_ptr<Pipe> pipe_;
};

}  // namespace dtrain
