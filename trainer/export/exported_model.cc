// Metadata of exported files: written from an ExportedModel, read as a FileMeaning.
#include "trainer/export/exported_model.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/error.h"
#include "base/json.h"
#include "base/names.h"
#include "trainer/batch/class_names.h"
#include "trainer/checkpoint/check_meaning.h"
#include "trainer/config/config.h"
#include "trainer/config/fields.h"
#include "trainer/config/item_text.h"
#include "trainer/config/parse.h"
#include "trainer/config/user_text.h"
#include "trainer/version.h"

namespace dtrain {
namespace {

constexpr size_t kMaxDepth = 3;   // of the JSON that we write
constexpr double kDivisor = 255;  // for pixels

constexpr MeaningWords kWords = {"file",
                                 "take the weights alone, from an npz file without its metadata (zip -d "
                                 "FILE.npz metadata.npy), where they are to mean another thing"};

// The keys that say what a row means to the model, beside what is fitted on the data. Those of kTableKeys,
// for tables of text, are also held against the config that a file is imported for.
constexpr const char* kRowKeys[] = {
    "model.activation", "model.combine",    "model.embedding",  "model.factors",      "model.loss",
    "model.loss_delta", "model.loss_level", "model.loss_power", "data.train.format",  "data.index_base",
    "data.crosses",     "data.numbers",     "data.scale",       "data.bag_separator", "data.offset"};
constexpr const char* kTableKeys[] = {
    "data.ignore",         "data.categories",    "data.dates",  "data.hash", "data.bags",   "data.missing",
    "data.missing_values", "data.number_format", "data.unseen", "data.trim", "data.decimal"};

[[noreturn]] void RefuseDamaged(const std::string& path, const std::string& what) {
  throw UserError("{}: __metadata__: {}. It is damaged: export it anew.", path, what);
}

bool IsListOf(const Json& list, bool (Json::*is)() const) {
  return list.is_array() &&
         std::all_of(list.begin(), list.end(), [&](const Json& item) { return (item.*is)(); });
}

class Reader {
 public:
  Reader(const std::map<std::string, std::string>& metadata, const std::string& path)
      : metadata_(metadata), path_(path) {}

  FileMeaning Read() {
    TakeKey("model.kind");
    if (meaning_.config.model.kind == ModelKind::kMlp) {
      TakeKey("model.activation");
      if (Find("model.head") != nullptr) TakeKey("model.head");  // not in files of a softmax
    }
    for (const char* key : {"model.loss", "model.loss_delta", "model.loss_level", "model.loss_power"}) {
      if (Find(key) != nullptr) TakeKey(key);
    }
    meaning_.config.data.train.format = DataFormat::kCsv;  // the format for which data.scale applies
    for (const char* key : kTableKeys) {
      if (Find(key) != nullptr) TakeKey(key);
    }
    if (HashesColumns(meaning_.config.data) && Find("data.hash_bits") != nullptr) TakeKey("data.hash_bits");
    meaning_.form.features = Names("features");
    meaning_.form.classes = Names("classes");
    if (const std::string* text = Find("label_column")) TakeLabelColumn(*text);
    if (const std::string* text = Find("table_columns")) TakeColumns(*text);
    if (const std::string* text = Find("scale")) TakeScale(*text);
    TakeKindOfScale();
    if (const auto problem = FormProblem(meaning_.form)) RefuseDamaged(path_, *problem);
    return std::move(meaning_);
  }

 private:
  const std::string* Find(const char* name) const {
    const auto found = metadata_.find(name);
    return found == metadata_.end() ? nullptr : &found->second;
  }

  [[noreturn]] void Refuse(const char* name, const std::string& text, const char* rule) const {
    RefuseDamaged(path_, fmt::format("{} = {}; must be {}", name, Shown(text), rule));
  }

  void TakeKey(const char* key) {
    const std::string* const text = Find(key);
    if (text == nullptr) RefuseDamaged(path_, fmt::format("there is no {}", key));
    const Field& field = *FindField(key);
    const auto parse = [&](const std::string& item, bool quoted) {
      const Parsed parsed = ParseScalar(field, item, quoted);
      if (!parsed.problem.empty()) Refuse(key, *text, LimitsText(field).c_str());
      return parsed.value;
    };
    const bool is_list = field.type == FieldType::kColumns || field.type == FieldType::kTexts;
    if (!is_list) return field.set(parse(*text, /*quoted=*/false), &meaning_.config);
    const Json list = ParseText(*text);
    if (!list.is_array()) Refuse(key, *text, "a list");
    std::vector<std::string> items;
    for (const Json& item : list) {
      const bool quoted = item.is_string();
      const Value value = parse(quoted ? item.get<std::string>() : item.dump(), quoted);
      if (const auto* one = std::get_if<std::string>(&value)) items.push_back(*one);
    }
    field.set(items, &meaning_.config);
  }

  // Limits the nesting to that of our own texts, so that a foreign text costs no more than its length.
  Json ParseText(const std::string& text) const {
    Json::Problem problem;
    return Json::ParseStrictly(text, kMaxDepth, &problem);
  }

  std::vector<std::string> Names(const char* name) const {
    const std::string* const text = Find(name);
    if (text == nullptr) return {};
    const Json list = ParseText(*text);
    if (!IsListOf(list, &Json::is_string)) Refuse(name, *text, "a list of names");
    return list.get<std::vector<std::string>>();
  }

  void TakeLabelColumn(const std::string& text) {
    const Json column = ParseText(text);
    if (!column.is_number_unsigned() || column.get<int64_t>() < 0) {
      Refuse("label_column", text, "a number from 0");
    }
    meaning_.form.label_column = column.get<int64_t>();
  }

  void TakeColumns(const std::string& text) {
    const auto refuse = [&] { Refuse("table_columns", text, "a list of columns"); };
    const Json list = ParseText(text);
    if (!list.is_array()) refuse();
    for (const Json& json : list) {
      const Json *const place = json.Find("column"), *const name = json.Find("name"),
                        *const texts = json.Find("texts");
      if (json.is_object() && place == nullptr) return;  // numbers without gaps, as `features` has them
      if (place == nullptr || !place->is_number_unsigned() || name == nullptr || !name->is_string() ||
          (texts != nullptr && !IsListOf(*texts, &Json::is_string))) {
        refuse();
      }
      InputColumn column;
      column.column = place->get<int64_t>();
      // Columns without names are called by their places.
      if (*name != InputName(column)) column.name = name->get<std::string>();
      meaning_.form.table_columns = std::max(meaning_.form.table_columns, column.column + 1);
      if (!meaning_.form.features.empty()) {  // else it has hashed columns, and places and names alone
        column.is_category = texts != nullptr;
        if (column.is_category) column.categories = texts->get<std::vector<std::string>>();
        column.has_other = json.contains("other");
        column.fill = NumberIn(json, "missing");
        column.has_indicator = json.contains("indicator");
        column.is_date = TextIn(json, "kind") == "date";
      }
      meaning_.form.columns.push_back(std::move(column));
    }
  }

  void TakeScale(const std::string& text) {
    const Json scale = ParseText(text);
    if (NumberIn(scale, "divide_by") == kDivisor) {
      meaning_.config.data.train.format = DataFormat::kIdx;
      return;
    }
    const Json *const shift = scale.Find("shift"), *const factor = scale.Find("factor");
    if (shift == nullptr || factor == nullptr || !IsListOf(*shift, &Json::is_number) ||
        !IsListOf(*factor, &Json::is_number)) {
      Refuse("scale", text, "the lists shift and factor, or to divide_by 255");
    }
    meaning_.form.scale = {shift->get<std::vector<double>>(), factor->get<std::vector<double>>()};
  }

  void TakeKindOfScale() {
    const bool scaled = !meaning_.form.scale.shift.empty();
    FeatureScale& kind = meaning_.config.data.scale;
    if (Find("data.scale") != nullptr) {
      TakeKey("data.scale");
      if ((kind != FeatureScale::kNone) != scaled) {
        RefuseDamaged(path_, fmt::format("data.scale = {}, and {} scale of features", *Find("data.scale"),
                                         scaled ? "there is a" : "there is no"));
      }
    } else if (scaled) {
      meaning_.any_scale = true;
      kind = FeatureScale::kStandard;
    }
  }

  const std::map<std::string, std::string>& metadata_;
  const std::string& path_;
  FileMeaning meaning_;
};

// Returns names as JSON can hold them.
std::vector<std::string> ReadableNames(const std::vector<std::string>& names) {
  return Json::Parse(NamesText(names)).get<std::vector<std::string>>();
}

void CheckCount(const std::string& path, size_t count, const char* what, int64_t inputs) {
  if (count == 0 || count == static_cast<size_t>(inputs)) return;
  RefuseDamaged(path, fmt::format("{} of {}, and its tensors are of {}", what,
                                  Plural(static_cast<int64_t>(count), "feature"), Plural(inputs, "feature")));
}

bool IsColumn(const std::string& listed, const InputColumn& column) {
  return ColumnNameIn(listed) == column.name || ColumnNumber(listed) == column.column;
}

bool IsIn(const std::vector<std::string>& list, const InputColumn& column) {
  return std::any_of(list.begin(), list.end(),
                     [&](const std::string& listed) { return IsColumn(listed, column); });
}

// What a column is of a table with hashed ones.
std::string HashedKind(const InputColumn& column, const DataConfig& data) {
  if (IsIn(data.hash, column)) return "hashed";
  for (const std::string& item : data.bags) {
    const BagItem bag = ParseBag(item);
    if (IsColumn(bag.column, column)) return "bag";
    if (!bag.weights.empty() && IsColumn(bag.weights, column)) return "weights";
  }
  return "number";
}

// Adds how the texts of a bag have their weights.
void AddWeights(const InputColumn& column, const InputForm& form, const DataConfig& data, Json* json) {
  for (const std::string& item : data.bags) {
    const BagItem bag = ParseBag(item);
    if (!IsColumn(bag.column, column)) continue;
    if (bag.has_colons) (*json)["colons"] = true;
    for (const InputColumn& other : form.columns) {
      if (bag.weights.empty() || !IsColumn(bag.weights, other)) continue;
      (*json)["weights"] = {{"column", other.column}, {"name", InputName(other)}};
    }
  }
}

// Returns what becomes of a column, as JSON with the members that it has. A form with hashed columns has
// their places and names alone, and the config says the rest.
Json ColumnJson(const InputColumn& column, const InputForm& form, const DataConfig& data) {
  const bool with_hashed = HasHashedColumns(form);
  Json json = {{"column", column.column}, {"name", InputName(column)}};
  const std::string kind = with_hashed ? HashedKind(column, data) : "number";
  const std::string date_form = DateFormOf(column, data);
  const bool date = column.is_date || !date_form.empty();
  json["kind"] = column.is_category ? "category" : date ? "date" : kind;
  if (date) json["form"] = date_form;
  if (column.is_category) json["texts"] = column.categories;
  if (column.has_other) json["other"] = true;
  if (column.fill) json["missing"] = *column.fill;
  if (column.has_indicator) json["indicator"] = true;
  if (const auto markers = MarkersOf(column, data); !markers.empty()) json["missing_values"] = markers;
  if (!with_hashed) return json;
  json["seed"] = column.name.empty() ? fmt::format("{}", column.column) : column.name;
  if (kind == "bag") AddWeights(column, form, data, &json);
  if (kind == "number" && data.missing == MissingValues::kZero) json["missing"] = 0;
  return json;
}

void AddKey(const char* key, const Config& config, std::vector<std::pair<std::string, std::string>>* all) {
  const Field& field = *FindField(key);
  const std::string text = ValueText(field, field.get(config));
  if (Applies(field, config) && text != "null" && text != "[]") all->emplace_back(key, text);
}

}  // namespace

std::string NamesText(const std::vector<std::string>& names) { return Json(names).dump(); }

std::string InputName(const InputColumn& column) {
  return column.name.empty() ? fmt::format("column {}", column.column + 1) : column.name;
}

std::string DateFormOf(const InputColumn& column, const DataConfig& data) {
  for (const std::string& listed : data.dates) {
    const ColumnItem date = ParseDateColumn(listed);
    if (IsColumn(date.column, column)) return date.value.empty() ? DateForms().front() : date.value;
  }
  return std::string();
}

std::vector<std::string> MarkersOf(const InputColumn& column, const DataConfig& data) {
  std::vector<std::string> markers;
  for (const std::string& listed : data.missing_values) {
    const ColumnItem marker = ParseColumnItem(listed);
    if (marker.column.empty() || IsColumn(marker.column, column)) markers.push_back(marker.value);
  }
  return markers;
}

std::vector<int64_t> ExportedModel::ShapeOf(const Variable& variable) {
  if (variable.bias) return {variable.rows};
  return {variable.rows, variable.cols};
}

int64_t ExportedModel::bytes() const {
  int64_t values = 0;
  for (const Variable& variable : variables) values += variable.size();
  return values * static_cast<int64_t>(sizeof(float));
}

std::string ExportedModel::EncodingsText() const {
  std::vector<std::string> parts;
  const auto add = [&](bool (*is_so)(const InputColumn&), const char* what) {
    std::vector<std::string> names;
    for (const InputColumn& column : form.columns) {
      if (is_so(column)) names.push_back(InputName(column));
    }
    if (!names.empty()) parts.push_back(fmt::format("{}: {}", ListNames(names, "and"), what));
  };
  add([](const InputColumn& c) { return c.is_category; },
      "a feature for each text, 0 or 1 (data.categories)");
  add([](const InputColumn& c) { return c.is_date; }, "days since 1970 (data.dates)");
  add([](const InputColumn& c) { return c.fill.has_value(); }, "a number for a missing value (data.missing)");
  add([](const InputColumn& c) { return c.has_indicator; },
      "a feature that says where values were missing (data.missing)");
  return fmt::format("{}", fmt::join(parts, "; "));
}

std::vector<std::pair<std::string, std::string>> ExportedModel::Metadata() const {
  std::vector<std::pair<std::string, std::string>> all = {
      {"producer", std::string(kProducer) + kVersion},
      {"model.kind", KindName(config.model.kind)},
      {"global_step", fmt::format("{}", checkpoint.manifest().step)}};
  if (since != nullptr) all.emplace_back("since_step", fmt::format("{}", since->manifest().step));
  Config effective = config;
  effective.model.head = HeadOf(config.model);
  const Field& head = *FindField("model.head");
  all.emplace_back("model.head", ValueText(head, head.get(effective)));
  for (const char* key : kRowKeys) AddKey(key, config, &all);
  for (const char* key : kTableKeys) AddKey(key, config, &all);
  if (const std::optional<int64_t> bits = HashBits(config.data)) {
    all.emplace_back("data.hash_bits", fmt::format("{}", *bits));
  }
  if (config.data.by_column) all.emplace_back("columns", fmt::format("{}", CategoryColumns(config.data)));
  if (!form.classes.empty()) all.emplace_back("classes", NamesText(form.classes));
  if (!form.features.empty()) all.emplace_back("features", NamesText(form.features));
  Json columns = Json::array();
  for (const InputColumn& column : form.columns) {
    columns.push_back(ColumnJson(column, form, config.data));
  }
  if (form.columns.empty()) {  // their places are not known
    for (const std::string& name : form.features) {
      const Json column = {{"name", name}, {"kind", "number"}};
      columns.push_back(column);
    }
  }
  if (columns.size() > 0) all.emplace_back("table_columns", columns.dump());
  // For columns without names, it tells which columns are features.
  if (ColumnNames(form).empty() && form.label_column >= 0) {
    all.emplace_back("label_column", fmt::format("{}", form.label_column));
  }
  if (pixels) all.emplace_back("scale", "{\"divide_by\":255}");
  if (!form.scale.shift.empty()) {
    const Json scale = {{"factor", form.scale.factor}, {"shift", form.scale.shift}};
    all.emplace_back("scale", scale.dump());
  }
  return all;
}

std::optional<FileMeaning> MeaningOf(const TensorFile& file, const std::string& path) {
  const auto producer = file.metadata().find("producer");
  const bool ours = producer != file.metadata().end() && producer->second.rfind(kProducer, 0) == 0;
  if (!ours) return std::nullopt;
  return Reader(file.metadata(), path).Read();
}

void CheckMeaning(const std::string& path, const FileMeaning& saved, const Config& config,
                  const InputForm& form) {
  CheckCount(path, saved.form.features.size(), "names", *config.model.inputs);
  CheckCount(path, saved.form.scale.shift.size(), "a scale", *config.model.inputs);
  Config trained = saved.config;
  trained.model.table = config.model.table;  // the shapes fit
  if (saved.any_scale && config.data.scale != FeatureScale::kNone) trained.data.scale = config.data.scale;
  CheckKeys(path, trained, config, kWords);
  if (TakesPixels(trained) != TakesPixels(config)) {
    RefuseMeaning(path,
                  TakesPixels(trained)
                      ? "its features are bytes divided by 255, and those of data.train are not"
                      : "its features are not bytes divided by 255, as those of data.train are",
                  "Give the data that it was trained with", kWords);
  }
  InputForm here = form;
  here.features = ReadableNames(form.features);
  here.classes = ReadableNames(form.classes);
  CheckForm(path, saved.form, here, kWords);
}

std::vector<std::string> ClassesOf(const FileMeaning& saved, const std::vector<std::string>& here) {
  std::vector<std::string> classes = saved.form.classes;
  const std::vector<std::string> readable = ReadableNames(here);
  if (classes.empty() || readable == classes) return here;
  for (size_t i = 0; i < here.size(); ++i) {
    const std::optional<int32_t> found = FindClass(saved.form.classes, readable[i]);
    if (!found) return here;
    std::string& name = classes[static_cast<size_t>(*found)];
    if (name == readable[i]) name = here[i];  // the file has no name that is not UTF-8
  }
  return classes;
}

}  // namespace dtrain
