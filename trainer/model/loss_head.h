// LossHead: what stands behind the outputs of a model of any kind: the loss, its gradient for the outputs,
// and the count of rows that are classified right. Owner: a model. Thread: one.
#pragma once

#include <cstdint>

#include "gpu/ops.h"
#include "trainer/config/model_config.h"
#include "trainer/model/model.h"

namespace dtrain {

// What the loss needs to know of rows.
struct LabelledRows {
  int64_t rows = 0;
  const int32_t* labels = nullptr;     // [rows]; null where targets are real
  const float* targets = nullptr;      // [rows]; null for classes
  const float* weights = nullptr;      // [rows]; null: all 1. Not on a device
  const float* row_offsets = nullptr;  // [rows], of one output each; null: all 0. Not on a device
  double weight = 0;                   // see Batch
  // What the mean over the rows divides by.
  double divisor() const { return weights != nullptr ? weight : static_cast<double>(rows); }
};

// NetResults: where the results of a batch are written; see gpu/ops.h. Null: not wanted; the loss always is.
struct NetResults {
  float* loss = nullptr;
  int64_t* correct = nullptr;        // stays as it is where the model does not classify
  float* outputs = nullptr;          // [rows, outputs] of the last layer before the loss
  double* correct_weight = nullptr;  // with weights: of the rows that are correct
};

class LossHead {
 public:
  LossHead(const ModelConfig& config, Reduce reduce, gpu::Stream& stream)
      : head_(HeadOf(config)),
        scores_(HasScores(config)),
        loss_(LossOf(config)),
        reduce_(reduce),
        stream_(stream) {}

  bool classifies() const { return head_ != ModelHead::kLinear; }
  // Adds the offsets to `outputs` [rows, outputs]; computes the mean loss and the other results that are
  // wanted of these. Replaces `outputs` by the gradient of the mean loss for them or, with Reduce::kSum and
  // where `slopes` are wanted, of the sum.
  void Compute(const LabelledRows& rows, gpu::MatrixView<float> outputs, const NetResults& results,
               bool slopes);

 private:
  void Loss(const LabelledRows& rows, gpu::MatrixView<float> outputs, float* loss);
  void WeightedLoss(const LabelledRows& rows, gpu::MatrixView<float> outputs, float* loss);
  double CorrectWeight(const LabelledRows& rows, gpu::MatrixView<float> outputs);
  void CountCorrect(const LabelledRows& rows, gpu::MatrixView<const float> outputs, int64_t* correct);
  void AddOffsets(const float* row_offsets, gpu::MatrixView<float> outputs);
  void CopyOut(gpu::MatrixView<const float> from, float* to);

  const ModelHead head_;
  const bool scores_;          // a logistic head has loss_
  const gpu::PointLoss loss_;  // of a linear head
  const Reduce reduce_;
  gpu::Stream& stream_;
};

LabelledRows LabelsOf(const Batch& batch);
// The evaluation of a batch with these results.
Evaluation EvaluationOf(const LabelledRows& rows, bool classifies, float loss, int64_t correct,
                        double correct_weight);

}  // namespace dtrain
