// SyntheticLinear: the regression task y = 2 * sum(x) + 10 + 0.33 e with x and e ~ N(0, 1), row by row a
// function of (seed, row). Without end unless `rows` is given.
// Owner: LoadedData, shared. Thread: any, immutable.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/random.h"
#include "trainer/data/source.h"

namespace dtrain {

class SyntheticLinear : public DataSet {
 public:
  // `part`: "train" and "test" are different rows of one seed.
  SyntheticLinear(uint64_t seed, std::string_view part, int64_t inputs, std::optional<int64_t> rows);

  int64_t inputs() const override { return inputs_; }
  std::optional<int64_t> classes() const override { return std::nullopt; }
  std::optional<int64_t> rows() const override { return rows_; }
  void Gather(const int64_t* rows, int64_t count, float* inputs, int32_t* labels,
              float* targets) const override;

 private:
  const CounterRandom random_;
  const int64_t inputs_;
  const std::optional<int64_t> rows_;
};

}  // namespace dtrain
