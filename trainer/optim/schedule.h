// The learning rate of each update (train.optimizer.schedule), and small powers of numbers below 1.
// Thread: any; pure functions.
#pragma once

#include <cstdint>

#include "trainer/config/config.h"

namespace dtrain {

// Of update `number`, from 1 on: 0 to 1e30. During the warm-up number / warmup_steps of the full rate.
double LearningRate(const OptimizerConfig& optimizer, int64_t number);

// base^exponent, exponent >= 0, by multiplications: unlike the C library's power the same on every processor.
double WholePower(double base, int64_t exponent);

}  // namespace dtrain
