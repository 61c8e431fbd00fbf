// The lines that let a reader say whether a model is of any use: the figures of an evaluation, each beside
// what an answer without a model gives. Thread: any; free functions.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "trainer/config/choices.h"
#include "trainer/result/run_summary.h"

namespace dtrain {

// Returns up to four lines about a set, `name`, without their ends; none if nothing was evaluated on it.
// `threshold`: as for PredictedClass(), if accuracy was counted with it.
//   test (2000 rows): accuracy 0.9210, better than always "no" (0.9200)
//     log loss 0.251, 10 % below that of always the class shares (0.279)
//     AUC 0.7400 (chance: 0.5), of class "yes": average precision 0.3100 (chance: 0.0800),
//     calibration 1.020 (predicted / observed; 1 is right)
// or, of a regression:
//   test (900 rows): RMSE 42.7, 33 % below that of always the mean (63.5); R2 0.5472: 55 % of the variance
//   is explained
//     MAE 25, 31 % below that of always the mean (36)
std::vector<std::string> VerdictLines(const std::string& name, const EvaluationFigures& figures,
                                      std::optional<double> threshold = {});

// Where one class has more than this share of the rows, accuracy says little.
constexpr double kUnevenShare = 0.6;
// Returns what says more than accuracy; empty unless there are two classes, and they are uneven.
std::string ThresholdLine(const EvaluationFigures& figures);

// Returns which figures data.class_weights makes wrong, and which stay right; empty without it.
std::string ClassWeightsLine(const DataConfig& data);

}  // namespace dtrain
