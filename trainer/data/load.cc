// LoadData (source.h): the sets that data.train and data.test name.
#include <memory>
#include <string>

#include "base/error.h"
#include "base/names.h"
#include "trainer/data/csv.h"
#include "trainer/data/data_defaults.h"
#include "trainer/data/idx.h"
#include "trainer/data/source.h"
#include "trainer/data/synthetic_linear.h"

namespace dtrain {
namespace {

// `part` is "train" or "test".
std::shared_ptr<const DataSet> Load(const Config& config, const DataSourceConfig& source,
                                    const std::string& part) {
  if (source.format == DataFormat::kNone) return nullptr;
  if (source.format == DataFormat::kIdx) {
    return std::make_shared<ByteSet>(
        ReadIdxSet(source.images, source.labels, "data." + part, LabelRulesOf(config.model)));
  }
  const uint64_t seed = config.data.seed;
  if (source.name == SyntheticName::kLinear) {
    return std::make_shared<SyntheticLinear>(seed, part, config.model.inputs.value_or(kLinearInputs),
                                             source.rows);
  }
  const int64_t rows = source.rows.value_or(part == "train" ? kDigitTrainRows : kDigitTestRows);
  if (rows > kMostDigitRows) {
    throw UserError("data.{}.rows = {}; must be <= {} for digits, which are kept in memory. Try {}.", part,
                    rows, kMostDigitRows, kDigitTrainRows);
  }
  return std::make_shared<ByteSet>(DrawDigits(seed, part, rows));
}

}  // namespace

LoadedData LoadData(const Config& config, const FittedScale* scale) {
  if (config.data.train.format == DataFormat::kCsv) {
    return LoadCsv(
        config, config.model.kind == ModelKind::kLinear ? LabelRules() : LabelRulesOf(config.model), scale);
  }
  LoadedData data;
  data.train = Load(config, config.data.train, "train");
  data.test = Load(config, config.data.test, "test");
  if (data.test != nullptr && data.test->inputs() != data.train->inputs()) {
    throw UserError("data.test has {} and data.train has {}; they must be equal. Name files of one kind.",
                    Plural(data.test->inputs(), "input"), data.train->inputs());
  }
  return data;
}

}  // namespace dtrain
