#include "trainer/task/memory_need.h"

#include <doctest/doctest.h>

#include "trainer/model/model.h"
#include "trainer/testing/small_config.h"

namespace dtrain {
namespace {

constexpr double kGiB = 1024.0 * 1024 * 1024;
const MachineMemory kEight{int64_t{8} << 30, "MemTotal of /proc/meminfo"};

Layout LayoutOf(const Config& config) {
  return PlaceVariables(ModelVariables(config.model), static_cast<int>(config.cluster.ps.size()),
                        config.placement);
}

// 784 inputs, one hidden layer, 10 outputs.
Config MlpCluster(int64_t hidden, int ps) {
  Config config = DigitsCluster(ps, 1, 1);
  config.model.kind = ModelKind::kMlp;
  config.model.hidden = {hidden};
  return config;
}

std::string WhyWorker(const Config& config) {
  return WhyTooLarge(WorkerNeed(config, LayoutOf(config), EstimateDataSize(config), 0), kEight);
}

TEST_CASE("memory need: small jobs fit") {
  const Config config = DigitsCluster(1, 2, 1);
  const Layout layout = LayoutOf(config);
  CHECK(WhyWorker(config).empty());
  CHECK(WhyTooLarge(PsNeed(config, layout, 0), kEight).empty());
  const double cluster = ClusterNeed(config, layout, EstimateDataSize(config)).bytes();
  CHECK(cluster > 2 * 5000 * 785);
  CHECK(cluster < 12e6);
}

TEST_CASE("memory need: a large model is refused on a worker, and on a ps whose part of it does not fit") {
  const Config config = MlpCluster(10000000, 10);
  const Layout layout = LayoutOf(config);
  CHECK(WhyTooLarge(PsNeed(config, layout, 3), kEight).empty());
  CHECK(WhyWorker(config) ==
        "worker 0 needs about 92.6 GiB of memory, and this machine has 8.0 GiB (MemTotal of /proc/meminfo); "
        "most of it: gradients (train.in_flight + 1), 59.2 GiB. Use a smaller model, or a machine with more "
        "memory.");
  const Config alone = MlpCluster(10000000, 1);
  CHECK(WhyTooLarge(PsNeed(alone, LayoutOf(alone), 0), kEight).substr(0, 27) ==
        "ps 0 needs about 29.6 GiB o");
  CHECK(ClusterNeed(config, layout, EstimateDataSize(config)).bytes() > 120 * kGiB);
}

TEST_CASE("memory need: an optimizer's slots take as much as the weights, each") {
  Config config = MlpCluster(1000, 1);
  const double plain = PsNeed(config, LayoutOf(config), 0).bytes();
  config.train.optimizer.kind = OptimizerKind::kAdam;
  const Layout layout = LayoutOf(config);
  CHECK(PsNeed(config, layout, 0).bytes() == plain + 2 * 4 * static_cast<double>(layout.size));
}

TEST_CASE("memory need: while a checkpoint is written a ps has its weights and slots twice") {
  Config config = MlpCluster(1000, 1);
  config.train.optimizer.kind = OptimizerKind::kMomentum;
  const Layout layout = LayoutOf(config);
  const double plain = PsNeed(config, layout, 0).bytes();
  config.checkpoint.dir = "checkpoints";
  CHECK(PsNeed(config, layout, 0).bytes() == plain + 2 * 4 * static_cast<double>(layout.size));
  Config large = MlpCluster(2000000, 1);
  large.train.optimizer.kind = OptimizerKind::kMomentum;
  large.checkpoint.dir = "checkpoints";
  CHECK(WhyTooLarge(PsNeed(large, LayoutOf(large), 0), kEight)
            .find("most of it: the weights and slots that a checkpoint keeps while it is written "
                  "(checkpoint.dir), 11.8 GiB. Use more ps,") != std::string::npos);
}

TEST_CASE("memory need: a replica is the weights and slots of the ps before") {
  Config config = MlpCluster(1000, 3);
  config.train.optimizer.kind = OptimizerKind::kAdam;
  const Layout layout = LayoutOf(config);
  const auto bytes = [&](int ps) { return PsNeed(config, layout, ps).bytes(); };
  const double plain[] = {bytes(0), bytes(1), bytes(2)}, records = 64 << 20;
  CHECK(ReplicaBytes(config, layout, 0) == 0);
  config.failure.replicas = 1;
  const auto replica_of = [&](size_t ps) { return 3.0 * 4 * static_cast<double>(layout.ps[ps].size()); };
  CHECK(bytes(0) - plain[0] == records + replica_of(2));
  CHECK(bytes(1) - plain[1] == records + replica_of(0));
  CHECK(bytes(2) - plain[2] == records + replica_of(1));
  CHECK(ReplicaBytes(config, layout, 2) == replica_of(1));
  config.model.table = TableKind::kHash;
  config.model.kind = ModelKind::kLinear;
  config.data.train.format = DataFormat::kLibsvm;
  const Layout table = TableLayoutOf(config.model, 3);
  CHECK(PsNeed(config, table, 0).bytes() == records);  // nobody knows how many rows come
  config.model.max_rows = 1'000'000;
  CHECK(ReplicaBytes(config, table, 0) == MaxTableBytes(config, *table.table, 2));
  CHECK(PsNeed(config, table, 0).bytes() ==
        records + MaxTableBytes(config, *table.table, 0) + MaxTableBytes(config, *table.table, 2));
}

TEST_CASE("memory need: where the norm of rounds is wanted a ps holds their gradients in full") {
  Config config = MlpCluster(1000, 1);
  config.cluster.worker.resize(3, "localhost:1");
  config.train.mode = TrainMode::kSync;
  const Layout layout = LayoutOf(config);
  const double plain = PsNeed(config, layout, 0).bytes(), gradient = 4 * static_cast<double>(layout.size);
  config.train.optimizer.clip_norm = 1;
  CHECK(PsNeed(config, layout, 0).bytes() == plain + 3 * gradient);
  config.train.aggregate = 2;
  CHECK(PsNeed(config, layout, 0).bytes() == plain + 2 * gradient);
  config.train.mode = TrainMode::kAsync;
  CHECK(PsNeed(config, layout, 0).bytes() == plain);
}

TEST_CASE("memory need: a large batch is refused where the data are without end, and only there") {
  Config config = LinearCluster(1, 1, 10);
  config.train.batch_size = 1000000000;
  CHECK(WhyWorker(config).find("Lower train.batch_size, or") != std::string::npos);
  config.data.train.rows = 100;
  CHECK(WhyWorker(config).empty());
}

TEST_CASE("memory need: each device has a gradient and values of its own") {
  Config config = MlpCluster(1000, 1);
  const Layout layout = LayoutOf(config);
  const DataSize data = EstimateDataSize(config);
  const double one = WorkerNeed(config, layout, data, 0).bytes();
  config.device.ids = {0, 1, 2};
  const double each = 4 * (static_cast<double>(layout.size) + 50 * (2 * 1000 + 10 + 784 + 3));
  CHECK(WorkerNeed(config, layout, data, 0).bytes() == one + 2 * each);
}

TEST_CASE("memory need: the order of very many rows counts where they are shuffled") {
  Config config = LinearCluster(1, 1, 10);
  config.data.train.rows = int64_t{4} << 30;
  CHECK(WhyWorker(config).find("the order of the rows, 16.0 GiB. Set data.shuffle: false") !=
        std::string::npos);
  config.data.shuffle = false;
  config.data.train.rows = 1000000000000;
  CHECK(WhyWorker(config).empty());
}

TEST_CASE("memory need: data count as often as there are workers on the machine") {
  Config config = DigitsCluster(1, 3, 1);
  config.data.train.rows = 4000000;
  const DataSize data = EstimateDataSize(config);
  CHECK(WhyTooLarge(DataNeed(data, "this command"), kEight).empty());
  const std::string why = WhyTooLarge(ClusterNeed(config, LayoutOf(config), data), kEight);
  CHECK(why.find("the cluster of 1 ps and 3 workers needs about 8.8 GiB") == 0);
  CHECK(why.find("most of it: data, 8.8 GiB. Use less data,") != std::string::npos);
}

TEST_CASE("memory need: with split: feed only worker 0 needs the data; batches on their way are bounded") {
  Config config = DigitsCluster(1, 3, 1);
  config.data.train.rows = 4000000;
  const DataSize data = EstimateDataSize(config);
  const auto bytes = [&](int worker) { return WorkerNeed(config, LayoutOf(config), data, worker).bytes(); };
  const double shard = bytes(1);
  config.data.split = Split::kFeed;
  const double max_under_way = 2 * 9 * 50 * 788;
  CHECK(bytes(1) < shard - data.bytes);
  CHECK(bytes(0) <= shard + 4.0 * 4000000 + max_under_way);
  CHECK(bytes(0) > shard);
}

TEST_CASE(
    "memory need: a fed worker whose model takes all features of sparse rows writes them as dense ones") {
  Config config = LinearCluster(1, 2, 1);
  config.data.split = Split::kFeed;
  config.data.train.format = DataFormat::kLibsvm;
  config.data.train.rows = 100;
  config.model.inputs = 1 << 20;
  config.train.batch_size = 10;
  DataSize data;
  data.train_rows = 100;
  data.row_features = 20;
  const auto bytes = [&] { return WorkerNeed(config, LayoutOf(config), data, 1).bytes(); };
  config.model.table = TableKind::kNone;
  const double dense = bytes();
  config.model.table = TableKind::kAuto;
  CHECK(dense - bytes() == 4.0 * 10 * (1 << 20));
}

TEST_CASE("memory need: nothing is refused where nobody knows what the machine has") {
  const Config config = MlpCluster(10000000, 1);
  CHECK(WhyTooLarge(PsNeed(config, LayoutOf(config), 0), {}).empty());
}

TEST_CASE("memory need: a table counts as what is touched, which is little, and what it may take is said") {
  Config config = LinearCluster(4, 1, 10);
  config.data.train.format = DataFormat::kLibsvm;
  config.model.inputs = (int64_t{1} << 32) - 1;
  config.train.optimizer.kind = OptimizerKind::kAdam;
  const Layout layout = TableLayoutOf(config.model, 4);
  CHECK(WhyTooLarge(ClusterNeed(config, layout, DataSize()), kEight).empty());
  CHECK(MaxTableBytes(config, *layout.table, 3) == 12.0 * ((1 << 30) + 1));
  CHECK(TableText(config, *layout.table) ==
        "4294967295 features and the bias, 1 value each, 3 with the optimizer's slots; at most 48.0 GiB on "
        "all ps: "
        "rows take memory when they are first written");
}

}  // namespace
}  // namespace dtrain
