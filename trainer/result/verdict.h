// The lines that let a reader say whether a model is of any use: the figures of an evaluation, each beside
// what an answer without a model gives. Thread: any; free functions.
#pragma once

#include <string>
#include <vector>

#include "trainer/config/config.h"
#include "trainer/result/run_summary.h"

namespace dtrain {

// Returns up to four lines about a set, `name`, without their ends; none if nothing was evaluated on it:
//   test: accuracy 0.9210; always "no" gives 0.9200
//     log loss 0.251, 10 % below the 0.279 of the shares of the classes alone
//     AUC 0.7400 (chance: 0.5), average precision 0.3100 (chance: 0.0800), calibration 1.020
// or, of a regression:
//   test: RMSE 42.7; always the mean gives 63.5: 55 % of the variance is explained (R2 0.5472)
//     MAE 25; always the mean gives 36
std::vector<std::string> VerdictLines(const std::string& name, const EvaluationFigures& figures);

// Returns which figures data.class_weights makes wrong, and which stay right; empty without it.
std::string ClassWeightsLine(const DataConfig& data);

}  // namespace dtrain
