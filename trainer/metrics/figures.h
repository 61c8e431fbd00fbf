// Figures: all that an evaluation tells of a model on a set, from the outputs of its rows.
// Owner: who evaluates. Thread: one.
#pragma once

#include <cstdint>

#include "trainer/data/batch.h"
#include "trainer/metrics/auc.h"
#include "trainer/metrics/confusion.h"
#include "trainer/metrics/regression.h"
#include "trainer/metrics/scores.h"

namespace dtrain {

struct Figures {
  // Of a model with so many outputs; `classifies`: else it is linear. `most_scores`: see ScoreTable.
  Figures(int64_t model_outputs, bool model_classifies, int64_t most_scores = ScoreTable::kMostScores)
      : outputs(model_outputs),
        classifies(model_classifies),
        scores(model_outputs, most_scores),
        confusion(model_classifies ? ClassCount(model_outputs) : 0) {}

  // `values`: [batch.rows, outputs], as Model::Evaluate() gives them.
  void Add(const Batch& batch, const float* values) {
    if (classifies) scores.Add({values, batch.rows, outputs}, {batch.labels, batch.rows});
    for (int64_t row = 0; row < batch.rows; ++row) {
      const float* const own = values + row * outputs;
      classifies ? confusion.Add(batch.labels[row], PredictedClass(own, outputs))
                 : regression.Add(*own, batch.targets[row]);
    }
  }

  const int64_t outputs;
  const bool classifies;
  ScoreTable scores;
  Confusion confusion;    // of classes
  Regression regression;  // of linear
};

}  // namespace dtrain
