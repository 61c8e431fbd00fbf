#include "trainer/order/positions.h"

#include <doctest/doctest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <set>

#include "base/error.h"
#include "base/random.h"
#include "trainer/config/config.h"
#include "trainer/order/order.h"

namespace dtrain {
namespace {

Config Workers(int64_t workers, Split split = Split::kShard, int64_t devices = 1) {
  Config config;
  config.cluster.worker.assign(static_cast<size_t>(workers), "");
  config.data.split = split;
  config.device.ids.assign(static_cast<size_t>(devices), 0);
  config.train.batch_size = 10;
  return config;
}

Positions At(const Config& config, std::optional<int64_t> rows, std::vector<int64_t> local_steps) {
  Positions positions = StartOfData(config, rows);
  for (size_t i = 0; i < local_steps.size(); ++i) positions.examples[i] = 10 * local_steps[i];
  positions.local_steps = std::move(local_steps);
  return positions;
}

TEST_CASE("positions: with as many workers of as many devices all go on where they were") {
  for (const Split split : {Split::kShard, Split::kFull}) {
    const Positions saved = At(Workers(3, split, 2), 1000, {7, 5, 6});
    const Resumption resumption = Resume(saved, Workers(3, split, 2), 1000);
    CHECK(ToJson(resumption.positions) == ToJson(saved));
    CHECK(resumption.said.empty());
  }
  const Positions fed = At(Workers(3, Split::kFeed), 1000, {7, 5, 6});
  CHECK(Resume(fed, Workers(3), 1000).positions.local_steps == fed.local_steps);
}

TEST_CASE("positions: all epochs are taken when every worker has taken its share of each") {
  Config config = Workers(3);
  config.train.epochs = 2;  // of 100 batches: 34, 33 and 33
  CHECK(AllEpochsTaken(At(config, 1000, {68, 66, 66}), config));
  CHECK_FALSE(AllEpochsTaken(At(config, 1000, {67, 66, 66}), config));
  CHECK_FALSE(AllEpochsTaken(At(config, 1000, {68, 66, 0}), config));
  CHECK_FALSE(AllEpochsTaken(At(config, std::nullopt, {68, 66, 66}), config));
  const Positions plan =
      Resume(At(config, 1000, {40, 38, 37}), Workers(2), 1000).positions;  // 85 batches left
  Config two = Workers(2);
  two.train.epochs = 2;
  Positions later = plan;
  later.local_steps = {43, 42};
  CHECK(AllEpochsTaken(later, two));
  later.local_steps = {43, 41};
  CHECK_FALSE(AllEpochsTaken(later, two));
  config.train.epochs.reset();
  CHECK_FALSE(AllEpochsTaken(At(config, 1000, {68, 66, 66}), config));
}

TEST_CASE("positions: with another number of workers the rest is dealt anew, and totals stay") {
  const Positions saved = At(Workers(3), 1000, {40, 38, 37});  // 33 and a third batches each epoch
  const Resumption resumption = Resume(saved, Workers(2), 1000);
  CHECK(resumption.said ==
        "the checkpoint has 3 workers, this run 2 workers: the 85 batches left of epoch 2 are dealt anew");
  CHECK(resumption.positions.local_steps == std::vector<int64_t>{0, 0});
  CHECK(resumption.positions.examples == std::vector<int64_t>{400, 380});
  CHECK(resumption.positions.other_examples == 370);
  CHECK(resumption.positions.plan.earlier_steps == 115);
  CHECK(resumption.positions.plan.epoch == 1);
  CHECK(Resume(saved, Workers(3, Split::kShard, 2), 1000).said ==
        "the checkpoint has 3 workers of 1 device, this run 3 workers of 2 devices: the 85 batches left of "
        "epoch 2 are dealt anew");
  CHECK(Resume(At(Workers(1), 1000, {99}), Workers(2), 1000).said ==
        "the checkpoint has 1 worker, this run 2 workers: the 1 batch left of epoch 1 is dealt anew");
  CHECK(Resume(At(Workers(2), 1000, {0, 60}), Workers(1), 1000).said ==
        "the checkpoint has 2 workers, this run 1 worker: the 140 batches left of epochs 1 to 2 are dealt "
        "anew");
  CHECK(Resume(At(Workers(2), 1000, {50, 50}), Workers(1), 1000).said ==
        "the checkpoint has 2 workers, this run 1 worker: the data go on with epoch 2");
}

TEST_CASE("positions: windows that an earlier build drew from anywhere are not gone on with") {
  Config config = Workers(2);
  config.data.cache = DataCache::kNone;
  config.data.shuffle_rows = 100;
  Positions saved = At(config, 1000, {7, 5});
  CHECK(Resume(saved, config, 1000).said.empty());
  for (auto& [key, text] : saved.order) {
    if (key == "data.shuffle_rows") text = "100";
  }
  CHECK(Resume(saved, config, 1000).said ==
        "data.shuffle_rows = 100 of all stretches of the data here and 100 in the checkpoint: the workers "
        "begin "
        "anew with the first epoch of the data");
  // A window that has all rows is shuffled as ever.
  const Positions few = At(config, 100, {3, 2});
  CHECK(ToJson(few).find("stretches") == std::string::npos);
}

TEST_CASE("positions: many epochs that a worker left in the middle are skipped, and that is said") {
  const int64_t many = int64_t{1} << 26;
  const Resumption resumption = Resume(At(Workers(2), 20, {many, 0}), Workers(1), 20);
  CHECK(resumption.positions.plan.epoch == many);
  CHECK(resumption.positions.plan.taken.empty());
  CHECK(resumption.said.find("too many epochs") != std::string::npos);
}

TEST_CASE("positions: full goes on worker by worker, and new ones begin with the earliest epoch") {
  const Positions saved = At(Workers(2, Split::kFull), 95, {37, 25});  // 10 batches an epoch
  const Resumption more = Resume(saved, Workers(3, Split::kFull), 95);
  CHECK(more.positions.local_steps == std::vector<int64_t>{37, 25, 20});
  CHECK(more.positions.examples == std::vector<int64_t>{370, 250, 0});
  CHECK(more.said ==
        "the checkpoint has 2 workers, this run 3 workers: who was there goes on in its data, the new ones "
        "begin with epoch 3");
  Config fewer = Workers(1, Split::kFull);
  fewer.train.epochs = 5;
  const Resumption less = Resume(saved, fewer, 95);
  CHECK(less.positions.local_steps == std::vector<int64_t>{37});
  CHECK(less.positions.other_examples == 250);
  // 62 steps were taken, and 13 are to come.
  CHECK(TotalSteps(fewer, 95, 1, less.positions.plan) == 75);
  fewer.device.ids = {0, 1, 2};
  CHECK(Resume(saved, fewer, 95).positions.local_steps == std::vector<int64_t>{3 * 4 + 2});
}

TEST_CASE("positions: with split dynamic workers count on, and what they took is part of the plan") {
  Positions saved = At(Workers(2, Split::kDynamic), 1000, {40, 20});
  saved.runs = {{0, 0, 55}, {0, 60, 5}};
  const auto left = [&](const Config& config) {
    const Resumption resumption = ResumeAt(60, saved, config, 1000);
    CHECK(resumption.positions.runs.empty());
    CHECK(RemainingData::Of(resumption.positions.plan, 100)->begun()[0].count() == 40);
    Config until = config;
    until.train.epochs = 2;
    CHECK(StepsOfRun(until, 1000, resumption.positions.plan) == 60 + 140);
    return resumption;
  };
  const Resumption same = left(Workers(2, Split::kDynamic));
  CHECK(same.said.empty());
  CHECK(same.positions.local_steps == saved.local_steps);
  CHECK(same.positions.examples == saved.examples);
  const Resumption more = left(Workers(3, Split::kDynamic));
  CHECK(more.positions.local_steps == std::vector<int64_t>{0, 0, 0});
  CHECK(more.said ==
        "the checkpoint has 2 workers, this run 3 workers: the 40 batches left of epoch 1 are dealt anew");
  const Resumption shard = left(Workers(2));
  CHECK(shard.positions.local_steps == std::vector<int64_t>{0, 0});
  CHECK(
      shard.said ==
      "data.split = shard here and dynamic in the checkpoint: the 40 batches left of epoch 1 are dealt anew");
  saved = same.positions;  // and on once more
  saved.local_steps = {50, 30};
  saved.runs = {{0, 0, 20}};
  const Positions again = ResumeAt(80, saved, Workers(2, Split::kDynamic), 1000).positions;
  CHECK(again.local_steps == saved.local_steps);
  CHECK(RemainingData::Of(again.plan, 100)->begun()[0].count() == 20);
  // The steps of a checkpoint of shard are part of the plan too.
  saved = At(Workers(2), 1000, {40, 20});
  const Positions leased = ResumeAt(60, saved, Workers(2, Split::kDynamic), 1000).positions;
  CHECK(leased.local_steps == std::vector<int64_t>{0, 0});
  CHECK(RemainingData::Of(leased.plan, 100)->begun()[0].count() == 40);
}

TEST_CASE("positions: with split dynamic all epochs are taken when the runs have all batches") {
  Config config = Workers(2, Split::kDynamic);
  config.train.epochs = 2;
  Positions saved = At(config, 1000, {150, 50});
  saved.runs = {{0, 0, 200}};
  CHECK(AllEpochsTaken(saved, config));
  CHECK(AllEpochsTaken(saved, Workers(2)) == false);  // without end
  saved.runs = {{0, 0, 150}, {1, 51, 49}};
  CHECK_FALSE(AllEpochsTaken(saved, config));
  CHECK(AllEpochsTaken(At(Workers(2), 1000, {100, 100}), config));  // a checkpoint of shard
}

TEST_CASE("positions: of data without end no batch is given out twice") {
  const CounterRandom random(11);
  uint64_t drawn = 0;
  const auto draw = [&](uint64_t bound) { return static_cast<int64_t>(random.Below(drawn++, bound)); };
  std::set<int64_t> read;
  std::optional<Positions> positions;
  for (int run = 0; run < 20; ++run) {
    const Config config = Workers(1 + draw(4), Split::kShard, 1 + draw(3));
    Positions now =
        positions ? Resume(*positions, config, std::nullopt).positions : StartOfData(config, std::nullopt);
    const auto workers = static_cast<int>(now.local_steps.size());
    for (int worker = 0; worker < workers; ++worker) {
      StepRows rows(config, std::nullopt, worker, workers);
      rows.Follow(rows.RemainingOf(now.plan));
      int64_t& step = now.local_steps[static_cast<size_t>(worker)];
      gpu::Span<const int64_t> batch;
      for (int64_t left = draw(10); left > 0 && rows.Read(step, &batch); --left, ++step) {
        for (const int64_t row : batch) CHECK(read.insert(row).second);
      }
    }
    positions = now;
  }
  CHECK(read.size() > 1000);
}

TEST_CASE("positions: another order of the data begins anew, and names the key with both values") {
  const Positions saved = At(Workers(2), 1000, {10, 12});
  const auto said = [&](const std::function<void(Config*)>& change) {
    Config config = Workers(2);
    change(&config);
    const Resumption resumption = Resume(saved, config, 1000);
    CHECK(resumption.positions.local_steps == std::vector<int64_t>{0, 0});
    CHECK(resumption.positions.examples == std::vector<int64_t>{100, 120});
    CHECK(resumption.positions.plan.earlier_steps == 22);
    return resumption.said;
  };
  CHECK(
      said([](Config* config) { config->data.seed = 2; }) ==
      "data.seed = 2 here and 1 in the checkpoint: the workers begin anew with the first epoch of the data");
  const auto stratified = [](Config* config) {
    config->data.validation_share = 0.2;
    config->data.validation_by = HeldOutBy::kStratified;
  };
  const std::pair<std::function<void(Config*)>, const char*> cases[] = {
      {[](Config* config) { config->train.batch_size = 20; }, "train.batch_size = 20 here and 10"},
      {[](Config* config) { config->data.split = Split::kFull; }, "data.split = full here and shard"},
      {[](Config* config) { config->data.shuffle = false; }, "data.shuffle = false here"},
      {[](Config* config) { config->data.validation = 5; }, "data.validation = 5 here and 0"},
      {stratified, "data.validation = 0.2 stratified here and 0 in the checkpoint"},
      {[](Config* config) { config->data.last_batch = LastBatch::kDrop; }, "data.last_batch = drop"},
      {[](Config* config) { config->data.cache = DataCache::kNone; },
       "data.cache = none here and memory in the checkpoint"}};
  for (const auto& [change, text] : cases) CHECK(said(change).find(text) == 0);
  Config windows = Workers(2);
  windows.data.cache = DataCache::kFile;
  const Resumption in_memory = Resume(At(windows, 1000, {10, 12}), Workers(2), 1000);
  CHECK(in_memory.said.find("data.cache = memory here and file in the checkpoint") == 0);
  CHECK(Resume(saved, Workers(2), 1001).said.find("rows of data.train = 1001 here and 1000 in") == 0);
  CHECK(Resume(saved, Workers(2), std::nullopt).said.find("rows of data.train = without end here and") == 0);
}

Config Sync(int64_t workers) {
  Config config = Workers(workers);
  config.train.mode = TrainMode::kSync;
  return config;
}

TEST_CASE("positions: in step with another number of workers the rest is dealt anew, each batch once") {
  const Positions saved = At(Sync(2), 101, {8, 8});  // of 11 batches: 6 steps an epoch for both
  CHECK(saved.in_step);
  CHECK(Resume(saved, Sync(2), 101).said.empty());
  CHECK(Resume(saved, Sync(3), 101).said ==
        "the checkpoint has 2 workers, this run 3 workers: the 7 batches left of epoch 2 are dealt anew");
  Config two = Sync(2);
  two.train.epochs = 2;
  CHECK(AllEpochsTaken(At(two, 101, {12, 12}), two));
  CHECK_FALSE(AllEpochsTaken(At(two, 101, {12, 11}), two));
}

TEST_CASE(
    "positions: what was not in step goes on where that means the same rows, and is dealt anew elsewhere") {
  Positions saved = At(Sync(2), 101, {7, 6});
  saved.in_step = false;  // as a program before this rule has it
  Positions read;
  REQUIRE(FromJson(ToJson(saved), &read));
  CHECK_FALSE(read.in_step);
  const Resumption dealt = Resume(saved, Sync(2), 101);
  CHECK(
      dealt.said ==
      "the workers end each epoch in step here, and did not in the checkpoint: the 9 batches left of epoch 2 "
      "are dealt anew");
  CHECK(dealt.positions.in_step);
  CHECK(dealt.positions.local_steps == std::vector<int64_t>{0, 0});
  saved = At(Sync(2), 100, {7, 7});
  saved.in_step = false;
  const Resumption same = Resume(saved, Sync(2), 100);
  CHECK(same.said.empty());
  CHECK(same.positions.in_step);
  CHECK(same.positions.local_steps == std::vector<int64_t>{7, 7});
  CHECK(Resume(At(Sync(2), 101, {8, 8}), Workers(2), 101).said.find("ended each epoch in step in the") !=
        std::string::npos);
}

TEST_CASE(
    "positions: what is left comes behind the steps of the checkpoint, in whatever mode they were made") {
  const auto end = [](const Positions& saved, int64_t step, Config config, int64_t epochs = 6) {
    config.train.epochs = epochs;
    return StepsOfRun(config, 1000, ResumeAt(step, saved, config, 1000).positions.plan);
  };
  Config half = Sync(2);
  half.train.batch_size = 5;
  const Positions sync = At(Sync(2), 1000, {150, 150}), async = At(Workers(2), 1000, {150, 150});  // 3 epochs
  CHECK(end(sync, 150, Sync(2)) == 300);
  CHECK(end(sync, 150, Sync(3)) == 150 + 3 * 34);
  CHECK(end(sync, 150, Workers(2)) == 450);
  CHECK(end(sync, 150, half) == 150 + 6 * 100);  // the first epoch begins again
  CHECK(end(async, 300, Workers(3)) == 600);
  CHECK(end(async, 300, Sync(2)) == 450);
  const Positions uneven = At(Workers(2), 1000, {250, 50});  // of 300 each
  CHECK(end(uneven, 300, Workers(2)) == 600);
  CHECK(end(uneven, 300, Sync(2)) == 300 + 250);
  CHECK(end(uneven, 300, Workers(2), 4) == 300 + 150);  // the first one is there already
  CHECK(end(uneven, 300, Sync(2), 4) == 300 + 150);
  CHECK(end(uneven, 300, Sync(3)) == 300 + 4 * 17 + 34);                 // half of four epochs is left
  const Positions full = At(Workers(2, Split::kFull), 1000, {250, 50});  // of 600 each
  Config rounds = Workers(2, Split::kFull);
  rounds.train.mode = TrainMode::kSync;
  CHECK(end(full, 300, rounds) == 300 + 550);
  CHECK(end(full, 300, Workers(2, Split::kFull), 2) == 300 + 150);
  CHECK(end(async, std::numeric_limits<int64_t>::max(), Sync(2)).has_value());  // read from a damaged file
}

Positions Rich() {
  Positions positions = At(Workers(3), 1000, {40, 38, 37});
  positions = Resume(positions, Workers(2), 1000).positions;
  positions.local_steps = {3, 0};
  positions = Resume(positions, Workers(4, Split::kShard, 2), 1000).positions;
  positions.local_steps = {3, 1, 4, 1};
  positions.in_step = positions.plan.taken[1].in_step = true;
  positions.plan.taken.push_back({2, {}, false, 1, {{0, 7, 3}, {1, 0, 12}}});
  positions.runs = {{0, 2, 9}};
  positions.evaluations = CountedEvaluations{EvalMetric::kAuc, 0.25, 40, 2};
  for (const float loss : {0.1f, 2.5f}) positions.losses[3].Add(loss);
  positions.progress[2] = {100, 50.5, 0.1 + 0.2};
  positions.other_progress = {7, 7, std::numeric_limits<double>::quiet_NaN()};
  return positions;
}

TEST_CASE("recent losses: any loss is kept bit for bit, and of very many workers only so many") {
  Positions positions = StartOfData(Workers(1000), 100000);
  for (RecentLosses& losses : positions.losses) {
    for (int i = 0; i < 99; ++i) losses.Add(1.0f / 3);
    losses.Add(std::numeric_limits<float>::quiet_NaN());
  }
  const std::string text = ToJson(positions);
  CHECK(text.size() < 200000);
  Positions read;
  REQUIRE(FromJson(text, &read));
  const std::vector<float> losses = read.losses[999].Latest(100);
  REQUIRE(losses.size() == 10);
  CHECK(losses[0] == 1.0f / 3);
  CHECK(std::isnan(losses[9]));
}

TEST_CASE("recent losses: who was there goes on with them, also with other workers beside it") {
  Positions saved = StartOfData(Workers(2), 1000);
  saved.local_steps = {7, 7};
  saved.losses[1].Add(0.5f);
  CHECK(Resume(saved, Workers(2), 1000).positions.losses[1].Mean() == 0.5);
  const Positions more = Resume(saved, Workers(3), 1000).positions;
  REQUIRE(more.losses.size() == 3);
  CHECK(more.losses[1].Mean() == 0.5);
  CHECK(more.losses[2].empty());
  CHECK(Resume(saved, Workers(1), 1000).positions.losses.size() == 1);
}

TEST_CASE("progressive loss: who was there goes on with its sums, and those of the others are kept") {
  Positions saved = StartOfData(Workers(2), 1000);
  saved.local_steps = {7, 7};
  saved.progress = {{10, 10, 1}, {20, 20, 4}};
  saved.other_progress = {1, 1, 0.5};
  const Positions same = Resume(saved, Workers(2), 1000).positions;
  CHECK(same.progress[1].loss == 4);
  CHECK(same.other_progress.loss == 0.5);
  const Positions less = Resume(saved, Workers(1), 1000).positions;
  REQUIRE(less.progress.size() == 1);
  CHECK(less.progress[0].rows == 10);
  CHECK(less.other_progress.rows == 21);
  CHECK(less.other_progress.loss == 4.5);
  CHECK(ToJson(StartOfData(Workers(2), 1000)).find("progressive") == std::string::npos);
}

TEST_CASE("positions: as JSON and back they are the same") {
  const Positions positions = Rich();
  Positions read;
  REQUIRE(FromJson(ToJson(positions), &read));
  CHECK(ToJson(read) == ToJson(positions));
  CHECK(read.local_steps == positions.local_steps);
  CHECK(read.plan == positions.plan);
  CHECK(read.plan.taken.size() == 3);
  CHECK(read.runs == positions.runs);
  CHECK(read.order == positions.order);
  CHECK(read.evaluations.value().metric == EvalMetric::kAuc);
  CHECK(read.evaluations->best == 0.25);
  CHECK(read.evaluations->best_step == 40);
  CHECK(read.evaluations->in_vain == 2);
  CHECK(read.losses[0].empty());
  CHECK(read.losses[3].Latest(100) == std::vector<float>{0.1f, 2.5f});
  CHECK(read.progress[2].rows == 100);
  CHECK(read.progress[2].weight == 50.5);
  CHECK(read.progress[2].loss == 0.1 + 0.2);
  CHECK(read.other_progress.rows == 7);
  CHECK(std::isnan(read.other_progress.loss));
  DataPlan plan;
  REQUIRE(FromJson(ToJson(positions.plan), &plan));
  CHECK(plan == positions.plan);
}

TEST_CASE("positions: other data are known by the number of rows, or by their labels") {
  Config config;
  config.cluster.worker = {"a:1"};
  Positions saved = StartOfData(config, 40), now = StartOfData(config, 50);
  CHECK(OtherData(saved, now) == "data.train has 50 rows here and had 40 there");
  now = StartOfData(config, 40);
  CHECK(OtherData(saved, now) == "");
  now.labels = 7;
  CHECK(OtherData(saved, now) == "");  // of an older checkpoint
  saved.labels = 4294967295;
  CHECK(OtherData(saved, now) == "the rows of data.train have other labels here than there");
  Positions read;
  REQUIRE(FromJson(ToJson(saved), &read));
  CHECK(read.labels == saved.labels);
  CHECK(OtherData(read, saved) == "");
  saved.features = 0x7fffffffffffff01;
  saved.disturbed = true;
  CHECK(OtherData(read, saved) == "");
  REQUIRE(FromJson(ToJson(saved), &read));
  CHECK(read.disturbed);
  CHECK(FingerprintIn(read, 1) == FingerprintIn(saved, 1));
  CHECK(FingerprintIn(read, 1).rows == 40);
  CHECK(FingerprintIn(read, 1).features == saved.features);
  saved.of_workers = {FingerprintIn(saved, 0)};
  saved.of_workers[0].features = 5;
  REQUIRE(FromJson(ToJson(saved), &read));
  CHECK(FingerprintIn(read, 0).features == 5);
  CHECK(FingerprintIn(read, 0).rows == 40);
  CHECK(FingerprintIn(read, 1).rows == 0);  // not known
  saved.of_workers.push_back({});           // more than workers
  CHECK_FALSE(FromJson(ToJson(saved), &read));
  saved.of_workers.clear();
  REQUIRE(FromJson(ToJson(saved), &read));
  saved.features = 0x7fffffffffffef01;
  CHECK(OtherData(read, saved) == "the rows of data.train have other features here than there");
}

TEST_CASE("positions: checksums say nothing where other rows are held out, anywhere in the files") {
  for (const HeldOutBy by : {HeldOutBy::kFirst, HeldOutBy::kSeed, HeldOutBy::kStratified}) {
    Config config = Workers(1), seed = config, count = config, first = config;
    for (Config* each : {&config, &seed, &count, &first}) {
      each->data.validation_share = 0.2;
      each->data.validation_by = by;
    }
    seed.data.seed = 2;
    count.data.validation_share = 0.1;
    first.data.validation_by = HeldOutBy::kFirst;
    const bool anywhere = by != HeldOutBy::kFirst;
    const Positions saved = StartOfData(config, 1000);
    CHECK_FALSE(HasOtherHoldOut(saved, saved));
    for (const Config* other : {&seed, &count, &first}) {
      CHECK(HasOtherHoldOut(saved, StartOfData(*other, 1000)) == anywhere);
    }
  }
}

TEST_CASE("positions: text that is none is refused and changes nothing") {
  Positions positions = Rich();
  const std::string text = ToJson(positions);
  const auto refused = [&](const std::string& hostile) {
    CAPTURE(hostile.substr(0, 200));
    DataPlan plan;
    CHECK_FALSE(FromJson(hostile, &positions));
    CHECK_FALSE(FromJson(hostile, &plan));
    CHECK(ToJson(positions) == text);
  };
  for (size_t size = 0; size < text.size(); ++size) refused(text.substr(0, size));
  for (const char* hostile : {"null", "[]", "{}", "3", "\"\"", "{\"local_steps\": 1}", "nonsense"})
    refused(hostile);
  refused(std::string(1 << 20, '['));
  refused(std::string(5 << 20, ' ') + text);
  refused(text.substr(0, text.size() - 1) + ",\"recent_losses\":[[-1],[],[],[]]}");
  refused(text.substr(0, text.size() - 1) + ",\"progressive_losses\":[[1,1,1]]}");
  const auto replaced = [&](const std::string& what, const std::string& by) {
    std::string other = text;
    const size_t at = other.find(what);
    REQUIRE(at != std::string::npos);
    return other.replace(at, what.size(), by);
  };
  for (const char* number :
       {"-1", "1.5", "1e3", "9223372036854775807", "99999999999999999999", "null", "\"3\""}) {
    refused(replaced("\"local_steps\":[3", std::string("\"local_steps\":[") + number));
    refused(replaced("\"devices\":2", std::string("\"devices\":") + number));
  }
  for (const char* sums :
       {"[-100,50.5,1]", "[100,-1,1]", "[100,50.5]", "[100,\"x\",1]", "100", "[1.5,1,1]"}) {
    refused(replaced("[100,50.5,0.30000000000000004]", sums));
  }
  for (const char* run : {"[0,7]", "[0,7,0]", "[0,7,-3]", "[0,7,1.5]", "[0,7,9223372036854775807]",
                          "[0,7,3,1]", "3", "[\"0\",7,3]"}) {
    refused(replaced("[0,7,3]", run));
    refused(replaced("[0,2,9]", run));
  }
  refused(replaced("[[0,2,9]]", "[]"));
  refused(replaced("\"devices\":2", "\"devices\":0"));
  refused(replaced("\"in_step\":true", "\"in_step\":1"));
  refused(replaced("\"examples\":[", "\"examples\":[1,"));
}

TEST_CASE("positions: damaged text is refused, or gives positions that a run can begin with") {
  const std::string text = ToJson(Rich());
  const CounterRandom random(5);
  int read = 0;
  for (uint64_t i = 0; i < 20000; ++i) {
    std::string damaged = text;
    damaged[random.Stream(i).Below(0, damaged.size())] = static_cast<char>(random.Stream(i).Bits(1));
    Positions positions;
    if (!FromJson(damaged, &positions)) continue;
    ++read;
    const Config config = Workers(2);
    const Resumption resumption = Resume(positions, config, 1000);
    StepRows rows(config, 1000, 1, 2);
    try {
      rows.Follow(rows.RemainingOf(resumption.positions.plan));
    } catch (const Failure&) {
      continue;
    }
    gpu::Span<const int64_t> batch;
    CHECK(rows.Read(0, &batch));
  }
  CHECK(read > 100);
}

TEST_CASE("positions: what is beyond all data is a failure of the task, not of the process") {
  const StepRows rows(Workers(1), std::nullopt, 0, 1);
  DataPlan plan;
  plan.first_batch = INT64_MAX;
  CHECK_THROWS_AS(rows.RemainingOf(plan), Failure);
}

}  // namespace
}  // namespace dtrain
