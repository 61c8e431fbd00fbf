// Configs for tests: small clusters that learn something within a second.
#pragma once

#include <string>

#include "trainer/config/config.h"

namespace dtrain {

// Returns linear regression on endless synthetic data: `steps` global steps, batch 1.
inline Config LinearCluster(int ps, int workers, int64_t steps) {
  Config config;
  for (int i = 0; i < ps; ++i) config.cluster.ps.push_back("127.0.0.1:" + std::to_string(10001 + i));
  for (int i = 0; i < workers; ++i) config.cluster.worker.push_back("127.0.0.1:" + std::to_string(11001 + i));
  config.model.kind = ModelKind::kLinear;
  config.model.inputs = 1;
  config.model.outputs = 1;
  config.data.train.format = DataFormat::kSynthetic;
  config.data.train.name = SyntheticName::kLinear;
  config.train.batch_size = 1;
  config.train.steps = steps;
  config.hooks.log_every_secs = 0;
  config.placement.log = false;
  config.failure.detect_s = 2;
  config.failure.startup_timeout_s = 20;
  config.net.checksum = true;
  return config;
}

// Returns softmax on the drawn digits: `epochs` per worker.
inline Config DigitsCluster(int ps, int workers, int64_t epochs) {
  Config config = LinearCluster(ps, workers, 0);
  config.model.kind = ModelKind::kSoftmax;
  config.model.inputs = 784;
  config.model.outputs = 10;
  config.data.train.name = SyntheticName::kDigits;
  config.data.train.rows = 4000;
  config.data.test = config.data.train;
  config.data.test.rows = 1000;
  config.train.steps.reset();
  config.train.epochs = epochs;
  config.train.batch_size = 50;
  config.train.optimizer.learning_rate = 0.2;
  return config;
}

}  // namespace dtrain
