// What has changed in a table since an older checkpoint: with it the older export becomes the newer one.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <optional>

#include "base/json.h"
#include "base/random.h"
#include "trainer/checkpoint/checkpoint_test_util.h"
#include "trainer/checkpoint/parts_writer.h"
#include "trainer/checkpoint/table_test_util.h"
#include "trainer/export/export_test_util.h"
#include "trainer/export/exported_table.h"
#include "trainer/table/hash_pieces.h"

namespace dtrain::testing {
namespace {

using Rows = std::map<uint64_t, std::vector<float>>;  // by feature

// What a file has of a table.
struct Exported {
  Rows rows;
  std::vector<uint64_t> left;
  std::vector<float> bias;
};

// A range has a weight in each row, a hash table one for each of two classes.
Config TableConfig(int64_t features, InitKind init = InitKind::kZeros) {
  const bool hashed = features == TableLayout::kHashed;
  Config config;
  config.model.kind = hashed ? ModelKind::kSoftmax : ModelKind::kLogistic;
  config.model.inputs = features;
  config.model.outputs = hashed ? 2 : 1;
  config.model.table = hashed ? TableKind::kHash : TableKind::kRange;
  config.model.init.kind = init;
  return config;
}

// Exports the table of a checkpoint, or what has changed in it since another one.
Exported Export(const Config& config, const std::string& path, const std::string& since_path = "",
                int64_t parts = 1, const Config* since_config = nullptr) {
  CheckpointReader checkpoint(path);
  std::optional<CheckpointReader> since;
  if (!since_path.empty()) since.emplace(since_path);
  const InputForm form;
  ExportedModel model{config, form, false, checkpoint, {}};
  if (since) model.since = &*since;
  model.since_config = since_config == nullptr ? &config : since_config;
  Exported exported;
  for (ExportedTable::Part part{0, parts}; part.number < parts; ++part.number) {
    const ExportedTable table(model, part);
    bool is_ascending = std::is_sorted(table.left().begin(), table.left().end());
    for (size_t i = 0; i < table.count(); ++i) {
      is_ascending = is_ascending && (i == 0 || table.feature(i - 1) < table.feature(i));
      exported.rows[table.feature(i)] = {table.weights(i), table.weights(i) + table.width()};
    }
    CHECK(is_ascending);
    exported.left.insert(exported.left.end(), table.left().begin(), table.left().end());
    if (!table.bias().empty()) exported.bias = table.bias();
  }
  return exported;
}

bool SameBits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

// The older export with the changes.
Exported Apply(Exported older, const Exported& changes) {
  for (const uint64_t key : changes.left) older.rows.erase(key);
  for (const auto& [feature, weights] : changes.rows) {
    const bool is_zero = std::all_of(weights.begin(), weights.end(), [](float one) { return one == 0; });
    is_zero ? void(older.rows.erase(feature)) : void(older.rows[feature] = weights);
  }
  if (!changes.bias.empty()) older.bias = changes.bias;
  return older;
}

void CheckSame(const Exported& a, const Exported& b) {
  CHECK(SameBits(a.bias, b.bias));
  CHECK(a.rows.size() == b.rows.size());
  CHECK(std::equal(
      a.rows.begin(), a.rows.end(), b.rows.begin(), b.rows.end(),
      [](const auto& x, const auto& y) { return x.first == y.first && SameBits(x.second, y.second); }));
}

// For every two checkpoints: the older export with the changes since is the newer export.
void CheckEvery(const Config& config, const std::vector<std::string>& paths) {
  for (size_t newer = 0; newer < paths.size(); ++newer) {
    for (size_t older = 0; older <= newer; ++older) {
      CAPTURE(paths[newer]);
      CAPTURE(paths[older]);
      const Exported changes = Export(config, paths[newer], paths[older]);
      CheckSame(Apply(Export(config, paths[older]), changes), Export(config, paths[newer]));
      const Exported of_parts = Export(config, paths[newer], paths[older], 3);
      CheckSame(of_parts, changes);
      std::vector<uint64_t> left = of_parts.left;
      std::sort(left.begin(), left.end());
      CHECK(left == changes.left);
      if (newer == older) CHECK(changes.rows.size() + changes.left.size() + changes.bias.size() == 0);
    }
  }
}

TEST_CASE(
    "changes: those of a range make the newer export of the older one, for full checkpoints and deltas") {
  CheckpointDirectory directory(NewDirectory());
  directory.Prepare();
  SmallTable table(2);
  std::vector<std::string> paths = {table.SaveAll(&directory, 0)};  // no row
  table.SetEach(1, 7, 1);
  table.Set(table.row_count() - 1, 0.25F);
  paths.push_back(table.SaveAll(&directory, 10));
  table.SetEach(1, 70, 2);
  table.SetEach(8, 700, 0);
  paths.push_back(table.SaveDelta(&directory, 20));
  table.SetEach(2, 350, 3);
  table.Set(table.row_count() - 1, 0.5F);
  paths.push_back(table.SaveDelta(&directory, 30));
  SmallTable on_three(3);  // the run went on with another number of ps
  for (const auto& [row, value] : table.rows()) on_three.Set(row, value);
  on_three.SetEach(1, 1000, 4);
  paths.push_back(on_three.SaveAll(&directory, 40));
  const Config config = TableConfig(SmallTable::kFeatures);
  CheckEvery(config, paths);

  const Exported changes = Export(config, paths[2], paths[1]);
  const uint64_t rows = table.row_count();
  CHECK(changes.rows.size() > rows / 80);
  CHECK(changes.rows.size() < rows / 60);
  CHECK(changes.left.empty());
  CHECK(changes.bias.empty());
  CHECK(Export(config, paths[3], paths[2]).bias == std::vector<float>{0.5F});
}

TEST_CASE("changes: a row of a range that is back at its initial values is written with them") {
  CheckpointDirectory directory(NewDirectory());
  directory.Prepare();
  SmallTable table;
  const TableLayout layout(SmallTable::kFeatures, 1, 2);
  table.Set(layout.RowOf(5), 1);
  table.Set(layout.RowOf(6), 1);
  const std::string older = table.SaveAll(&directory, 10);
  table.Set(layout.RowOf(5), 0);  // the checkpoint does not have it
  const std::string newer = table.SaveAll(&directory, 20);
  const auto changed = [&](InitKind init) {
    return Export(TableConfig(SmallTable::kFeatures, init), newer, older).rows;
  };
  CHECK(changed(InitKind::kZeros) == Rows{{5, {0}}});
  const Config config = TableConfig(SmallTable::kFeatures, InitKind::kNormal);
  float initial = 0;
  RowWeights(config.model, layout).Write(5, &initial);
  CHECK(initial != 0);
  CHECK(changed(InitKind::kNormal) == Rows{{5, {initial}}});
}

TEST_CASE("changes: a bias that no update has changed is that with which each run began") {
  CheckpointDirectory directory(NewDirectory());
  directory.Prepare();
  SmallTable table;
  const std::string older = table.SaveAll(&directory, 10), newer = table.SaveAll(&directory, 20);
  table.Set(table.row_count() - 1, 0.5F);
  const std::string with_bias = table.SaveAll(&directory, 30);
  const Config then = TableConfig(SmallTable::kFeatures);
  Config now = then;
  now.model.init.output_bias = 0.5;
  for (const int64_t parts : {1, 3}) {
    const auto bias = [&](const std::string& path, const std::string& since) {
      return Export(now, path, since, parts, &then).bias;
    };
    CHECK(bias(newer, older) == std::vector<float>{0.5F});
    CHECK(bias(with_bias, older) == std::vector<float>{0.5F});
    CHECK(bias(newer, with_bias).empty());
  }
}

// The rows of a hash table of width 2, and candidates.
struct HashTable {
  std::map<uint64_t, std::vector<float>> rows;
  std::vector<uint64_t> candidates;
};

// Saves all of it, of so many ps.
std::string SaveHashed(CheckpointDirectory* directory, const HashTable& table, int ps_count, int64_t step) {
  SmallCheckpoint of;
  of.layout = Layout();
  of.layout.table.emplace(TableLayout::kHashed, 2, ps_count);
  of.layout.ps.resize(static_cast<size_t>(ps_count));
  of.slots = {};
  of.step = step;
  std::map<uint64_t, HashRow> all;
  for (const auto& [row, values] : table.rows) all[row] = {row, 7, 0, values.data()};
  for (const uint64_t row : table.candidates) all[row] = {row, 7, 1, nullptr};
  const std::string temporary = directory->BeginSave(step);
  std::vector<dtrain::WrittenPart> parts;
  std::vector<std::byte> bytes(kMaxRowPieceBytes);
  for (int ps = 0; ps < ps_count; ++ps) {
    const RowRange part = of.layout.table->PartOf(ps);
    PartsWriter writer(of.layout, ps, 0, temporary);
    std::vector<HashRow> piece;
    const auto add_piece = [&] {
      if (!piece.empty()) writer.Add(0, {bytes.data(), WriteHashPiece(piece, 2, 2, bytes.data())});
      piece.clear();
    };
    for (auto row = all.lower_bound(part.begin); row != all.lower_bound(part.end); ++row) {
      if (piece.size() == 9000) add_piece();
      piece.push_back(row->second);
    }
    add_piece();
    parts.push_back(writer.Finish());
  }
  directory->Seal(temporary, ManifestOf(of, parts), "train: {steps: 1}\n");
  return directory->Publish(temporary);
}

TEST_CASE("changes: those of a hash table make the newer export of the older one, with the keys that left") {
  CheckpointDirectory directory(NewDirectory());
  directory.Prepare();
  const TableLayout layout(TableLayout::kHashed, 2, 1);
  const CounterRandom random(5);
  uint64_t next = 0;
  const auto draw = [&] { return random.Uniform(next++); };
  HashTable table;
  std::vector<std::string> paths = {SaveHashed(&directory, table, 1, 0)};
  table.rows[layout.bias_row()] = {0, 0};
  for (int step = 1; step <= 3; ++step) {
    for (uint64_t key = 0; key < 40000; ++key) {
      const uint64_t row = layout.RowOf(key);
      const double what = draw();
      if (what < 0.1) table.rows.erase(row);
      if (what > 0.7) table.rows[row] = {static_cast<float>(draw()), 0.5F};
    }
    for (const uint64_t key : {3, 77, 4000}) {
      table.rows.erase(layout.RowOf(key + static_cast<uint64_t>(step)));
      table.candidates.push_back(layout.RowOf(key + static_cast<uint64_t>(step)));
      table.rows[layout.RowOf(key + static_cast<uint64_t>(step) + 1)] = {1, 2};
    }
    table.rows[layout.bias_row()][0] = step == 2 ? 0.5F : 0.25F;
    paths.push_back(SaveHashed(&directory, table, step, step * 10));
    table.candidates.clear();
  }
  Config config = TableConfig(TableLayout::kHashed);
  CheckEvery(config, paths);
  const Exported changes = Export(config, paths[3], paths[2]);
  CHECK(changes.left.size() > 1000);
  CHECK(std::binary_search(changes.left.begin(), changes.left.end(), 77 + 3));  // a candidate now
  CHECK(Export(config, paths[3], paths[1]).bias.empty());

  // With other initial values a row that an update made is there, though it has them still.
  config.model.init.kind = InitKind::kNormal;
  table.rows.clear();
  const std::string none = SaveHashed(&directory, table, 1, 40);
  std::vector<float>& made = table.rows[layout.RowOf(9)];
  made.resize(2);
  RowWeights(config.model, layout).Write(9, made.data());
  CHECK(Export(config, SaveHashed(&directory, table, 1, 50), none).rows.count(9) == 1);
}

TEST_CASE("changes: a file says since which step they are, and has the keys that left as a tensor") {
  CheckpointDirectory directory(NewDirectory());
  directory.Prepare();
  const TableLayout layout(TableLayout::kHashed, 2, 1);
  HashTable table;
  table.rows[layout.RowOf(4)] = table.rows[layout.RowOf(~uint64_t{1})] = {1, 2};
  const std::string older = SaveHashed(&directory, table, 1, 10);
  table.rows.erase(layout.RowOf(~uint64_t{1}));
  table.rows[layout.RowOf(4)] = {1, 3};
  const std::string newer = SaveHashed(&directory, table, 1, 20);

  const Config config = TableConfig(TableLayout::kHashed);
  CheckpointReader checkpoint(newer), since(older);
  const InputForm form;
  ExportedModel model{config, form, false, checkpoint, {}};
  model.since = &since;
  model.since_config = &config;
  const auto written = [&](const auto& write) {
    OutputFile file(directory.path() + "/file");
    write(ExportedTable(model), &file);
    file.Finish();
    return FileContent(directory.path() + "/file");
  };
  CHECK(written([](const ExportedTable& of, OutputFile* file) { WriteTableText(of, file); }) ==
        "feature\tname\tweight_0\tweight_1\n4\t\t1\t3\n18446744073709551614\t\t\t\n");
  const std::string tensors =
      written([](const ExportedTable& of, OutputFile* file) { WriteTableTensors(of, {}, file); });
  const size_t data = tensors.find('}', tensors.find("table.rows")) + 2;
  const Json header = Json::Parse(tensors.substr(8, data - 8));
  CHECK(header.at("__metadata__").at("global_step") == "20");
  CHECK(header.at("__metadata__").at("since_step") == "10");
  CHECK(header.at("table.keys").at("shape") == Json::Parse("[1]"));
  CHECK(header.at("table.left").at("dtype") == "U64");
  CHECK(header.at("table.left").at("shape") == Json::Parse("[1]"));
  CHECK(!header.contains("bias"));
  uint64_t keys[2];
  float row[2];
  REQUIRE(tensors.size() >= sizeof keys + sizeof row);
  std::memcpy(keys, tensors.data() + tensors.size() - sizeof row - sizeof keys, sizeof keys);
  std::memcpy(row, tensors.data() + tensors.size() - sizeof row, sizeof row);
  CHECK(keys[0] == 4);
  CHECK(keys[1] == ~uint64_t{1});
  CHECK(row[0] == 1);
  CHECK(row[1] == 3);
}

}  // namespace
}  // namespace dtrain::testing
