// LoadData: the data sets that a config names, from files or generators.
// Errors of the files are UserErrors that name file, place, value and rule. Thread: any.
#pragma once

#include <memory>

#include "trainer/config/config.h"
#include "trainer/data/files/input_form.h"
#include "trainer/data/source.h"

namespace dtrain {

// The training and test sets that the config names, loaded and checked (counts, magic, label range
// 0..outputs-1). `test` is null without data.test.
struct LoadedData {
  std::shared_ptr<const DataSet> train;
  std::shared_ptr<const DataSet> test;
  InputForm form;
};
// `scale`: what features are scaled by where data.scale is set, of as many features; null: what the training
// rows give.
LoadedData LoadData(const Config& config, const FittedScale* scale = nullptr);

}  // namespace dtrain
