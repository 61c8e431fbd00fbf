#include <fmt/format.h>

#include <cstdint>
#include <optional>
#include <string>

#include "trainer/config/config.h"
#include "trainer/config/rules.h"

namespace dtrain {
namespace {

constexpr int64_t kMaxHashPs = 4096;  // the ranges of a hash table (model/table_layout.h)

class SparseRules : private DraftRules {
 public:
  explicit SparseRules(Draft* draft) : DraftRules(draft) {}

  void CheckSparse();

 private:
  void CheckTable();
  void CheckRates(const std::string& section, const OptimizerConfig& optimizer);
  void CheckFactors();
  void CheckColumns();
};

void SparseRules::CheckTable() {
  RefuseIf(config_.device.towers() > 1, "device.ids",
           "must be one device where weights are rows of a table. Start more workers in their place.");
  const bool all_rows = config_.model.kind != ModelKind::kWideDeep;
  RefuseIf(all_rows && config_.placement.policy == PlacementPolicy::kPin, "placement.policy",
           "is for tensors, and all weights are rows of a table, which are spread evenly. Try bytes.");
  RefuseIf(all_rows && config_.net.compress.push == net::Compression::kTopk, "net.compress.push",
           "must be none, bf16 or int8: topk is for tensors, and all weights are rows of a table. Try int8.");
  for (const auto& [section, optimizer] : OptimizersOf(config_.train)) CheckRates(section, optimizer);
}

void SparseRules::CheckRates(const std::string& section, const OptimizerConfig& optimizer) {
  const bool constant =
      optimizer.schedule.kind == ScheduleKind::kConstant && optimizer.schedule.warmup_steps == 0;
  const std::string name = optimizer.schedule.warmup_steps == 0 ? ".schedule.kind" : ".schedule.warmup_steps";
  const bool is_own = Find(section + name) != nullptr;
  RefuseIf(optimizer.kind == OptimizerKind::kFtrl && !constant, (is_own ? section : "train.optimizer") + name,
           "is not for ftrl on rows of a table: a row that comes seldom would not know the rates that it has "
           "missed. Try adagrad.");
}

void SparseRules::CheckSparse() {
  const DataConfig& data = config_.data;
  const ModelConfig& model = config_.model;
  const bool sparse = HasSparseRows(data);
  const bool factors = model.kind == ModelKind::kFm || model.kind == ModelKind::kWideDeep;
  const bool hash = model.table == TableKind::kHash;
  const bool table = hash || model.table == TableKind::kRange;
  if ((factors || table) && !sparse && IsGood("data.train.format") && !IsBad("data.hash")) {
    Refuse(factors ? "model.kind" : "model.table",
           fmt::format("needs sparse rows: data.train.format libsvm, vw or criteo, or a table with data.hash "
                       "or data.bags. Try "
                       "{}.",
                       model.kind == ModelKind::kWideDeep ? "mlp"
                       : factors                          ? "logistic"
                                                          : "auto"));
  }
  if (factors) CheckFactors();
  if (model.kind == ModelKind::kWideDeep) CheckColumns();
  RefuseIf(table && sparse && model.kind == ModelKind::kMlp, "model.table",
           "is not for mlp, whose first layer takes all features of a row. Try auto.");
  if (UsesTable(config_)) CheckTable();
  RefuseIf(config_.checkpoint.delta > 0 && !UsesTable(config_) && IsGood("model.kind"), "checkpoint.delta",
           "is for models whose weights are rows of a table (model.table), and this one's change in every "
           "step. Try 0.");
  RefuseIf(IsTable(data.train.format) && !HashesColumns(data) && IsGood("data.hash_bits"), "data.hash_bits",
           "has no effect without data.hash and data.bags. Leave it out, or name columns in data.hash.");
  RefuseIf(data.bags.empty() && data.bag_separator.has_value(), "data.bag_separator",
           "has no effect without data.bags. Leave it out, or name columns there.");
  if (HashesColumns(data) && !IsBad("data.hash") && !IsBad("data.bags")) {
    const char* const key = data.hash.empty() ? "data.bags" : "data.hash";
    RefuseIf(!data.categories.empty(), "data.categories",
             fmt::format("is not read with {}. Name all columns of texts in data.hash.", key));
    RefuseIf(data.missing == MissingValues::kMean || data.missing == MissingValues::kIndicator,
             "data.missing", fmt::format("is for tables without {}. Try zero.", key));
  }
  RefuseIf(sparse && data.scale != FeatureScale::kNone && !data.by_column && IsGood("model.kind"),
           "data.scale",
           "is for dense rows, and of sparse ones for the numbers of wide_deep alone. Try none.");
  RefuseIf(hash && data.hash_bits.has_value(), "data.hash_bits",
           "has no effect with model.table: hash, whose keys have all 64 bits. Leave it out, or null it: "
           "--set data.hash_bits=null.");
  RefuseIf(hash && model.init.kind == InitKind::kGlorot, "model.init.kind",
           "must be another one: glorot needs the number of features, and model.table: hash has none. Try "
           "zeros.");
  RefuseIf(hash && config_.cluster.ps.size() > static_cast<size_t>(kMaxHashPs), "cluster.ps",
           fmt::format("must be at most {} for model.table: hash. Use fewer.", kMaxHashPs));
  const std::optional<int64_t> bits = HashBits(data);
  if (hash || !bits || data.by_column || !model.inputs || *model.inputs == int64_t{1} << *bits ||
      IsBad("data.hash_bits")) {
    return;
  }
  Refuse("model.inputs", fmt::format("must be {}, which data.hash_bits = {} says. Leave it out.",
                                     int64_t{1} << *bits, *bits));
}

void SparseRules::CheckFactors() {
  const ModelConfig& model = config_.model;
  const bool fm = model.kind == ModelKind::kFm;
  const std::string who = fm ? "a factorization machine" : "wide_deep";
  RefuseIf(model.head == ModelHead::kSoftmax, "model.head",
           fmt::format("must be logistic or linear: {} has one output. Try logistic.", who));
  RefuseIf(model.init.kind != InitKind::kNormal && IsGood("model.init.kind"), "model.init.kind",
           fmt::format("must be normal: {} that begin alike stay alike, and what is learnt must be small at "
                       "first. Try normal, with model.init.stddev: 0.01.",
                       fm ? "factors" : "embeddings"));
  RefuseIf(model.table == TableKind::kNone, "model.table",
           fm ? "must be range, hash or auto: a factorization machine is a table of rows. Try auto."
              : "must be range, hash or auto: wide_deep has a table of rows. Try auto.");
}

void SparseRules::CheckColumns() {
  const ModelConfig& model = config_.model;
  const DataConfig& data = config_.data;
  RefuseIf(
      model.combine == Combine::kJoin && !data.by_column && IsGood("model.combine"), "model.combine",
      "needs rows with columns: data.train.format criteo, or a table with data.hash or data.bags. Try sum.");
  if (!data.by_column || data.whole_keys || IsBad("data.hash") || IsBad("data.hash_bits")) return;
  constexpr int kMaxBits = 39;  // of all features of a table
  int bits_of_columns = 0;
  while (int64_t{1} << bits_of_columns < model.columns) ++bits_of_columns;
  if (model.column_bits + bits_of_columns > kMaxBits) {
    Refuse("data.hash_bits",
           fmt::format("must be at most {} with {} columns of so many features each. Try 20.",
                       kMaxBits - bits_of_columns, model.columns));
    return;
  }
  const bool criteo = data.train.format == DataFormat::kCriteo;
  const int64_t categories = model.columns << model.column_bits;
  const int64_t inputs = categories + (criteo ? kCriteoNumbers : 0);
  const bool fits = criteo ? model.inputs == inputs : model.inputs >= inputs;
  RefuseIf(model.inputs && !fits, "model.inputs",
           fmt::format("must be {}{}: {} columns of 2^{} features, and the numbers of a row. Leave it out.",
                       criteo ? "" : "at least ", inputs, model.columns, model.column_bits));
}

}  // namespace

void CheckSparseRules(Draft* draft) { SparseRules(draft).CheckSparse(); }

}  // namespace dtrain
