// What a model's outputs say of one row.
#pragma once

#include <cstdint>

namespace dtrain {

// Of class models: the class that a row is taken for. `outputs` is 1 (the logit of class 1, taken for it
// where above 0) or the number of classes (the first of the largest).
int32_t PredictedClass(const float* logits, int64_t outputs);

// How many classes so many outputs tell apart.
inline int64_t ClassCount(int64_t outputs) { return outputs == 1 ? 2 : outputs; }

// The probabilities of the classes, float32 from sums in double: those of a sigmoid where there is one
// output, of a softmax else.
void Probabilities(const float* logits, int64_t outputs, float* probabilities);

}  // namespace dtrain
