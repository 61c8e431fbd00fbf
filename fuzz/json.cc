// JSON of peers and checkpoints: positions, results, figures. What is read is written again.
#include "fuzz/input.h"
#include "fuzz/target.h"
#include "trainer/config/config.h"
#include "trainer/order/positions.h"
#include "trainer/ps/worker_result.h"
#include "trainer/result/run_account.h"
#include "trainer/result/run_summary.h"

namespace dtrain::fuzz {
namespace {

void ReadPositions(const std::string& text) {
  Positions positions;
  if (!FromJson(text, &positions)) return;
  Positions again;
  Require(FromJson(ToJson(positions), &again), "positions that were read can be written and read");
  Config config;
  config.train.epochs = 3;
  config.cluster.worker.resize(2);
  AllEpochsTaken(positions, config);
  PositionsDiffer(positions, StartOfData(config, 100));
}

void ReadSummary(const std::string& text) {
  RunSummary summary, again;
  if (!FromWireJson(text, &summary)) return;
  ToJson(summary);
  Require(FromWireJson(ToWireJson(summary), &again), "a summary that was read can be written and read");
}

int FuzzOne(const uint8_t* data, size_t size) {
  Input input(data, size);
  const uint64_t kind = input.Below(2);
  const std::string text = input.Rest();
  kind == 0 ? ReadPositions(text) : ReadSummary(text);
  return 0;
}

const AddTarget added("json", FuzzOne);

}  // namespace
}  // namespace dtrain::fuzz
