// Tables of which columns are hashed (data.hash), as a run reads them.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cmath>
#include <string>
#include <vector>

#include "trainer/config/config.h"
#include "trainer/rows/hashed_feature.h"
#include "trainer/sets/sets_test_util.h"
#include "trainer/survey/data_shape.h"

namespace dtrain {
namespace {

constexpr int64_t kBits = 20;

Config Hashed(const std::string& content, const std::vector<std::string>& hash) {
  Config config = SparseConfig(DataFormat::kCsv, ModelKind::kLogistic, content);
  config.data.train.label = "y";
  config.data.hash = hash;
  config.data.hash_bits = kBits;
  return config;
}

std::string Id(const std::string& column, const std::string& text = "") {
  return fmt::format("{}", HashedColumn(column, kBits).NumberOf(text));
}

// The same for a model that has the hashed columns apart.
Config Apart(const std::string& content, const std::vector<std::string>& hash) {
  Config config = Hashed(content, hash);
  config.model.kind = ModelKind::kWideDeep;
  config.model.head = ModelHead::kLogistic;
  config.model.columns = static_cast<int64_t>(hash.size());
  config.model.column_bits = kBits;
  config.data.by_column = true;
  return config;
}

const char kTable[] = "url,age,y,plan\na.org,7,1,pro\nb.org,0,0,\n";

std::vector<std::string> RowsOfTable() {
  return {"1: " + Id("age") + "=7 " + Id("url", "a.org") + "=1 " + Id("plan", "pro") + "=1",
          "0: " + Id("url", "b.org") + "=1 " + Id("plan") + "=1", ""};
}

TEST_CASE("hashed csv: a text is a feature of its column, and so are a missing one and a number") {
  const Config config = Hashed(kTable, {"url", "plan"});
  CHECK(PeekShape(config).inputs == 1 << kBits);
  CHECK(EpochOf(config) == RowsOfTable());
  CHECK(LoadAsRun(config).train->sparse());
}

TEST_CASE("hashed csv: rows from files, from a cache and through a pipe are those of memory") {
  Config config = Hashed(kTable, {"url", "3"});
  config.data.cache_dir = NewCacheDirectory();
  for (const DataCache cache : {DataCache::kNone, DataCache::kFile, DataCache::kFile}) {
    config.data.cache = cache;
    CHECK(EpochOf(config) == RowsOfTable());
  }
  config.data.train.path = {"exec:cat " + config.data.train.path[0]};
  for (const DataCache cache : {DataCache::kNone, DataCache::kMemory}) {
    config.data.cache = cache;
    CHECK(EpochOf(config) == RowsOfTable());
  }
}

TEST_CASE("hashed csv: files of a list have the same header, and a test file may have another order") {
  Config config = Hashed(kTable, {"url", "plan"});
  config.data.train.path.push_back(WritePlain("b.csv", kTable));
  TestOn("plan,y,extra,url,age\npro,1,9,a.org,7\n", &config);
  config.data.test.label = "y";
  const LoadedData data = LoadAsRun(config);
  CHECK(data.train->rows() == 4);
  const std::vector<int64_t> first = {0};
  SparseBuffer train, test;
  data.train->Read(first, {nullptr, &train});
  data.test->Read(first, {nullptr, &test});
  CHECK(train.ids == test.ids);
  CHECK(train.values == test.values);
  config.data.train.path[1] = WritePlain("b.csv", "url,age,plan,y\na.org,7,pro,1\n");
  CHECK(Has(LoadError(config), "the files of a list are one table"));
}

TEST_CASE("hashed csv: without a header columns are named by their numbers") {
  Config config = Hashed("a.org,7,1\nb.org,2,0\n", {"0"});
  config.data.train.header = false;
  config.data.train.label = "2";
  CHECK(EpochOf(config) == std::vector<std::string>{"1: " + Id("1") + "=7 " + Id("0", "a.org") + "=1",
                                                    "0: " + Id("1") + "=2 " + Id("0", "b.org") + "=1", ""});
}

TEST_CASE("hashed csv: gaps of numbers are as data.missing says, and dates are days") {
  Config config = Hashed("url,age,day,y\na,,1970-01-03,1\n,5,1970-01-02,0\n", {"url"});
  config.data.dates = {"day"};
  CHECK(Has(LoadError(config), ":2:3: age is empty; must be a number."));
  config.data.missing = MissingValues::kZero;
  CHECK(EpochOf(config) ==
        std::vector<std::string>{"1: " + Id("day") + "=2 " + Id("url", "a") + "=1",
                                 "0: " + Id("age") + "=5 " + Id("day") + "=1 " + Id("url") + "=1", ""});
  config.data.missing = MissingValues::kDrop;
  CHECK(Has(LoadError(config), "no row is left"));
}

TEST_CASE("hashed csv: weights are those of their column, and a bad row leaves nothing behind") {
  Config config = Hashed("url,w,x,y\na,2,1,1\nb,1,x,0\nc,3,1,0\n", {"url"});
  config.data.weight = "w";
  config.data.bad_rows = BadRows::kSkip;
  CHECK(EpochOf(config) == std::vector<std::string>{"1: " + Id("x") + "=1 " + Id("url", "a") + "=1 *2",
                                                    "0: " + Id("x") + "=1 " + Id("url", "c") + "=1 *3", ""});
  CHECK(LoadAsRun(config).skipped.bad == 1);
}

TEST_CASE("hashed csv: the label and columns that are left out are no hashed columns") {
  Config config = Hashed(kTable, {"y"});
  const auto error = [&] { return LoadError(config); };
  CHECK(Has(error(), "y is in data.hash and the label; it is one of them. Take it out."));
  config.data.hash = {"url"};
  config.data.ignore = {"url"};
  CHECK(Has(error(), "url is in data.hash and data.ignore; it is one of them."));
  config.data.ignore = {};
  config.data.dates = {"url"};
  CHECK(Has(error(), "url is in data.hash and data.dates; it is one of them."));
  config.data.hash = {"no such"};
  CHECK(Has(LoadError(config), "no column \"no such\" (data.hash)"));
}

TEST_CASE("hashed csv: with columns apart each has its own features, and behind them are the numbers") {
  Config config = Apart(kTable, {"url", "plan"});
  CHECK(PeekShape(config).inputs == (2 << kBits) + 1);
  const std::string age = fmt::format("{}", 2 << kBits);
  const auto plan = [](const std::string& text) {
    return fmt::format("{}", (1 << kBits) + HashedColumn("plan", kBits).NumberOf(text));
  };
  CHECK(EpochOf(config) == std::vector<std::string>{"1: " + age + "=" + fmt::format("{}", std::log1p(7.0f)) +
                                                        " " + Id("url", "a.org") + "=1 " + plan("pro") + "=1",
                                                    "0: " + Id("url", "b.org") + "=1 " + plan("") + "=1",
                                                    ""});
  config.data.numbers = NumberScale::kPlain;
  CHECK(Has(EpochOf(config)[0], age + "=7 "));
}

TEST_CASE("hashed csv: the scale of numbers is that of the training rows, and the same wherever they lie") {
  Config config = Apart("url,y,age,size\na,1,0,5\nb,0,6,5\nc,0,3,5\nd,1,1000,1000\n", {"url"});
  config.data.numbers = NumberScale::kPlain;
  config.data.scale = FeatureScale::kStandard;
  config.data.fit_rows = 3;
  config.data.cache_dir = NewCacheDirectory();
  config.model.inputs = PeekShape(config).inputs;
  for (const DataCache cache : {DataCache::kNone, DataCache::kFile, DataCache::kFile}) {
    config.data.cache = cache;
    const FittedScale scale = LoadAsRun(config).form.scale;
    CHECK(scale.shift == std::vector<double>{3, 5});
    REQUIRE(scale.factor.size() == 2);
    CHECK(scale.factor[0] == doctest::Approx(1 / std::sqrt(6.0)));
    CHECK(scale.factor[1] == 0);  // it is constant
  }
  InputForm fitted;
  fitted.scale = {{1, 2}, {3, 4}};
  CHECK(LoadAsRun(config, &fitted).form.scale == fitted.scale);
  config.data.cache = DataCache::kMemory;
  config.data.validation = 3;
  CHECK(LoadAsRun(config).form.scale.shift == std::vector<double>{1000, 1000});  // without those held out
  config.data.validation = 1;
  config.data.train.path = {"exec:cat " + config.data.train.path[0]};
  config.data.cache = DataCache::kNone;
  config.train.batch_size = 2;
  config.data.shuffle = false;
  CHECK(LoadAsRun(config).form.scale.shift == std::vector<double>{4.5, 5});  // of the first window
  CHECK(LoadAsRun(config, &fitted).form.scale == fitted.scale);
}

}  // namespace
}  // namespace dtrain
