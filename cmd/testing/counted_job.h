// CountedJob: a job whose weights tell how often each update was applied, for tests that kill tasks. With sgd
// and a rate of 1 each gradient is cut to one unit (clip_value), since targets are far away: each push adds
// one unit to each weight, whatever the weights are and however they are rounded on their way, and to each
// row of a table that it names. Owner: the test. Thread: any.
#pragma once

#include <cstdint>
#include <string>

namespace dtrain::testing {

enum class CountedModel {
  kDense,     // mlp, two blocks on each of 3 ps
  kWideDeep,  // layers, and rows of a range
  kRange,     // linear; feature i is in row i alone
  kHash       // linear; rows come and leave
};

struct CountedJob {
  CountedModel model = CountedModel::kDense;
  std::string mode = "async";
  std::string compress = "none";
  std::string split = "shard";
  int64_t workers = 3;
  int64_t in_flight = 1;
  int64_t length = 1;  // times as many steps as otherwise
  int64_t share = 1;   // and of tables the so many-th part of them
  // Gradients are those of real rows and an optimizer with slots: of sync alone, where the bits tell.
  bool trains = false;
  bool clips_norm = false;  // of one that trains

  std::string Text() const;
  // The sections model, data, train and net. Relative paths are of the directory of the config.
  std::string Sections() const;
  // Data files.
  void WriteFiles(const std::string& directory) const;
  // The checkpoint that the run begins with (checkpoint.start_from); empty: none. The first call makes it.
  std::string Beginning() const;
  // Global steps, those of one worker, and steps between two of its log lines.
  int64_t GlobalSteps() const;
  int64_t LocalSteps() const;
  int64_t LogEvery() const;
  // Whether the final weights are the same for every order of updates.
  bool SameBits() const { return mode == "sync" || model != CountedModel::kHash; }

  // What is wrong with the weights of the newest checkpoint in the directory, after so many global steps;
  // empty: each update was applied once.
  std::string Wrong(const std::string& checkpoints, int64_t steps) const;
};

}  // namespace dtrain::testing
