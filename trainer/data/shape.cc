// PeekShape and ResolveModelShape (source.h): what data and model must agree on.
#include <sys/stat.h>

#include <cerrno>

#include "base/error.h"
#include "trainer/data/csv_columns.h"
#include "trainer/data/data_defaults.h"
#include "trainer/data/idx.h"
#include "trainer/data/source.h"

namespace dtrain {
namespace {

bool Missing(const std::string& path) {
  struct stat about {};
  return stat(path.c_str(), &about) != 0 && errno == ENOENT;
}

// Whether the config has to tell the features of a row, because `path` is not here.
bool GivenByConfig(const Config& config, const std::string& path, const char* key) {
  if (!Missing(path)) return false;
  if (config.model.inputs.has_value()) return true;
  throw UserError(
      "{}: cannot be opened: {}. Is {} right? A task that reads no data (a ps; with data.split: feed a "
      "worker above 0) needs model.inputs in its place.",
      path, ErrnoText(ENOENT), key);
}

DataShape PeekIdx(const Config& config) {
  const std::string& path = config.data.train.images;
  DataShape shape;
  shape.classes = ClassesOf(config.model);
  if (GivenByConfig(config, path, "data.train.images")) {
    shape.inputs = *config.model.inputs;
    return shape;
  }
  const IdxShape images = PeekIdxImages(path, "data.train.images");
  shape.inputs = images.row_bytes;
  shape.rows = images.count;
  return shape;
}

// The number of rows would take reading all of them.
DataShape PeekCsvShape(const Config& config) {
  const DataSourceConfig& train = config.data.train;
  DataShape shape;
  if (config.model.kind != ModelKind::kLinear) shape.classes = ClassesOf(config.model);
  const bool given = GivenByConfig(config, train.path, "data.train.path");
  shape.inputs = given ? *config.model.inputs : PeekCsv(train, "data.train").features();
  return shape;
}

DataShape PeekSynthetic(const Config& config) {
  const DataSourceConfig& train = config.data.train;
  DataShape shape;
  if (train.name == SyntheticName::kDigits) {
    shape.inputs = kDigitInputs;
    shape.classes = kDigitClasses;
    shape.rows = train.rows.value_or(kDigitTrainRows);
  } else {
    shape.inputs = config.model.inputs.value_or(kLinearInputs);
    shape.rows = train.rows;
  }
  return shape;
}

// Outputs of a model of this kind for this data.
int64_t OutputsFor(const DataShape& shape, const ModelConfig& model) {
  if (HasOutputPerClass(model.kind)) return model.outputs.value_or(shape.classes.value_or(0));
  return 1;
}

void CheckKind(const DataShape& shape, const ModelConfig& model) {
  if (model.kind == ModelKind::kLinear && shape.classes.has_value()) {
    throw UserError("model.kind = linear; needs real targets, and data.train has classes. Try softmax.");
  }
  if (model.kind != ModelKind::kLinear && !shape.classes.has_value()) {
    throw UserError("model.kind = {}; needs classes, and data.train has real targets. Try linear.",
                    KindName(model.kind));
  }
  if (model.kind == ModelKind::kLogistic && *shape.classes != 2) {
    throw UserError(
        "model.kind = logistic; needs the labels 0 and 1, and data.train has {} classes. Try softmax.",
        *shape.classes);
  }
  if (HasOutputPerClass(model.kind) && model.outputs.has_value() && *model.outputs < *shape.classes) {
    throw UserError("model.outputs = {}; must be at least {}, the classes of data.train. Leave it out.",
                    *model.outputs, *shape.classes);
  }
}

}  // namespace

DataShape PeekShape(const Config& config) {
  const DataConfig& data = config.data;
  DataShape shape = data.train.format == DataFormat::kIdx   ? PeekIdx(config)
                    : data.train.format == DataFormat::kCsv ? PeekCsvShape(config)
                                                            : PeekSynthetic(config);
  if (!shape.rows.has_value()) return shape;
  if (data.validation >= *shape.rows) {
    throw UserError("data.validation = {}; must be below the number of training rows, {}. Hold out fewer.",
                    data.validation, *shape.rows);
  }
  *shape.rows -= data.validation;
  return shape;
}

void ResolveModelShape(const DataShape& shape, Config* config) {
  ModelConfig& model = config->model;
  CheckKind(shape, model);
  if (model.inputs.has_value() && *model.inputs != shape.inputs) {
    throw UserError("model.inputs = {}; must be {}, as data.train has. Set it so, or leave it out.",
                    *model.inputs, shape.inputs);
  }
  const int64_t outputs = OutputsFor(shape, model);
  if (model.outputs.has_value() && *model.outputs != outputs) {
    throw UserError("model.outputs = {}; must be {} for this kind of model. Leave it out.", *model.outputs,
                    outputs);
  }
  model.inputs = shape.inputs;
  model.outputs = outputs;
}

}  // namespace dtrain
