#include "trainer/config/config.h"

#include <fmt/core.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <limits>
#include <map>

#include "base/error.h"
#include "base/names.h"
#include "net/address.h"

namespace dtrain {

NamedOptimizer OptimizerOf(const TrainConfig& train, ModelHalf half) {
  for (const PartKey& part : kPartKeys) {
    const PartOptimizer& its = train.*part.at;
    if (part.half == half && !its.own.empty())
      return {std::string("train.optimizer.") + part.name, its.values};
  }
  return {"train.optimizer", train.optimizer};
}

std::vector<NamedOptimizer> OptimizersOf(const TrainConfig& train) {
  const NamedOptimizer linear = OptimizerOf(train, ModelHalf::kLinear),
                       other = OptimizerOf(train, ModelHalf::kOther);
  if (&linear.values == &other.values) return {other};
  return {linear, other};
}

const char* KindName(ModelKind kind) {
  switch (kind) {
    case ModelKind::kLinear:
      return "linear";
    case ModelKind::kLogistic:
      return "logistic";
    case ModelKind::kSoftmax:
      return "softmax";
    case ModelKind::kFm:
      return "fm";
    case ModelKind::kMlp:
      return "mlp";
    case ModelKind::kWideDeep:
      return "wide_deep";
  }
  return "";
}

gpu::PointLoss LossOf(const ModelConfig& model) {
  const gpu::LossKind kind = model.loss.value_or(gpu::LossKind::kSquared);
  return {kind, kind == gpu::LossKind::kHuber      ? model.loss_delta
                : kind == gpu::LossKind::kQuantile ? model.loss_level
                : kind == gpu::LossKind::kTweedie  ? model.loss_power
                                                   : 0};
}

std::string HeadText(const ModelConfig& model) {
  if (!HasHeadKey(model)) return fmt::format("model.kind = {}", KindName(model.kind));
  switch (model.head) {
    case ModelHead::kLinear:
      return "model.head = linear";
    case ModelHead::kLogistic:
      return "model.head = logistic";
    case ModelHead::kSoftmax:
      break;
  }
  return "model.head = softmax";
}

const char* MetricName(EvalMetric metric) {
  switch (metric) {
    case EvalMetric::kLoss:
      return "loss";
    case EvalMetric::kAuc:
      return "auc";
    case EvalMetric::kAccuracy:
      return "accuracy";
    case EvalMetric::kRmse:
      return "rmse";
    case EvalMetric::kDeviance:
      break;
  }
  return "deviance";
}

std::optional<int64_t> ColumnNumber(const std::string& column) {
  if (column.empty() || column.find_first_not_of("0123456789") != std::string::npos) return std::nullopt;
  int64_t number = 0;
  const auto result = std::from_chars(column.data(), column.data() + column.size(), number);
  return result.ec == std::errc() ? number : std::numeric_limits<int64_t>::max();
}

std::string ColumnNameIn(const std::string& column) {
  if (column.size() < 3 || column.front() != '"' || column.back() != '"') return column;
  const std::string inside = column.substr(1, column.size() - 2);
  return ColumnNumber(inside) ? inside : column;
}

bool RoundsWaitForLost(const Config& config) {
  const auto workers = static_cast<int64_t>(config.cluster.worker.size());
  return config.train.mode == TrainMode::kSync && config.failure.worker_lost == WorkerLost::kWait &&
         config.train.aggregate.value_or(workers) >= workers;
}

std::optional<int> HeldReplica(const Config& config, int ps) {
  if (!HasReplica(config)) return std::nullopt;
  const int count = static_cast<int>(config.cluster.ps.size());
  return (ps + count - 1) % count;
}

std::string ReplicaHostWarning(const Config& config) {
  const std::vector<std::string>& addresses = config.cluster.ps;
  const int count = static_cast<int>(addresses.size());
  std::map<std::string, int> ps_of_host;
  for (const std::string& address : addresses) ++ps_of_host[HostOf(address)];
  int largest = 0;
  for (const auto& [host, ps] : ps_of_host) largest = std::max(largest, ps);
  const auto host_of = [&](int ps) { return HostOf(addresses[static_cast<size_t>(ps)]); };
  std::vector<int> together;
  for (int ps = 0; ps < count && HasReplica(config); ++ps) {
    if (host_of(ps) == host_of((ps + 1) % count)) together.push_back(ps);
  }
  // They are a ring: between two of one host there is room for one of another.
  const int unavoidable = std::max(0, 2 * largest - count);
  if (static_cast<int>(together.size()) <= unavoidable) return "";
  const int ps = together.front();
  return fmt::format(
      "failure.replicas = 1: ps {} and ps {}, which holds its replica, are both on {}: a host that is lost "
      "takes both{}. Order cluster.ps so that those of one host do not follow each other.",
      ps, (ps + 1) % count, host_of(ps),
      together.size() > 1
          ? fmt::format(" (and {} more)", Plural(static_cast<int64_t>(together.size()) - 1, "pair"))
          : "");
}

std::string FirstNondeterministicKey(const Config& config) {
  const TrainConfig& train = config.train;
  if (train.mode == TrainMode::kAsync) return "train.mode: async";
  if (train.mode == TrainMode::kSsp) return "train.mode: ssp";
  const auto workers = static_cast<int64_t>(config.cluster.worker.size());
  if (train.aggregate.value_or(workers) < workers)
    return fmt::format("train.aggregate: {}", *train.aggregate);
  if (config.cluster.min_workers.value_or(workers) < workers)
    return fmt::format("cluster.min_workers: {}", *config.cluster.min_workers);
  if (config.data.split == Split::kDynamic && workers > 1) return "data.split: dynamic";
  if (config.failure.on_sigterm == OnSigterm::kLeave) return "failure.on_sigterm: leave";
  if (ReadsPipe(config.data.train) && config.data.cache == DataCache::kNone) return "data.train.path: a pipe";
  if (train.max_secs) return fmt::format("train.max_secs: {}", *train.max_secs);
  // What a gradient left out is in the worker's memory alone.
  if (config.net.compress.push != net::Compression::kNone) {
    return fmt::format("net.compress.push: {}", net::CompressionName(config.net.compress.push));
  }
  // Rows are rounded by the number of a request, which repeats and new starts change.
  if (UsesTable(config) && config.net.compress.pull != net::Compression::kNone) {
    return fmt::format("net.compress.pull: {}", net::CompressionName(config.net.compress.pull));
  }
  return "";
}

bool HasSparseRows(const DataConfig& data) {
  switch (data.train.format) {
    case DataFormat::kLibsvm:
    case DataFormat::kVw:
    case DataFormat::kCriteo:
      return true;
    default:
      return HashesColumns(data);
  }
}

bool UsesTable(const Config& config) {
  const bool can = config.model.kind != ModelKind::kMlp && HasSparseRows(config.data);
  return can && config.model.table != TableKind::kNone;
}

TableKind TableOf(const Config& config) {
  if (!UsesTable(config)) return TableKind::kNone;
  return config.model.table == TableKind::kHash ? TableKind::kHash : TableKind::kRange;
}

namespace {

// Keys that tell their column have it in their first bits, and are below 2^63 with those of numbers.
int64_t KeyBits(const DataConfig& data) {
  if (!data.by_column) return 64;
  int64_t bits = 63;
  for (int64_t columns = CategoryColumns(data); columns > 0; columns /= 2) --bits;
  return bits;
}

}  // namespace

std::optional<int64_t> HashBits(const DataConfig& data) {
  constexpr int64_t kDefaultBits = 18;  // Vowpal Wabbit's
  const bool hashes = data.train.format == DataFormat::kVw || data.train.format == DataFormat::kCriteo;
  const int64_t bits = data.whole_keys ? KeyBits(data) : data.hash_bits.value_or(kDefaultBits);
  return hashes || HashesColumns(data) ? bits : data.hash_bits;
}

std::optional<size_t> CriteoColumn(const std::string& column) {
  constexpr int64_t kColumns = kCriteoNumbers + kCriteoCategories;
  const std::string name = ColumnNameIn(column);
  std::optional<int64_t> place = ColumnNumber(column);
  if (!place && name.size() > 1 && (name[0] == 'I' || name[0] == 'C')) {
    place = ColumnNumber(name.substr(1));
    const int64_t count = name[0] == 'I' ? kCriteoNumbers : kCriteoCategories;
    if (place) place = *place > count || *place < 1 ? 0 : *place + (name[0] == 'C' ? kCriteoNumbers : 0);
  }
  if (!place || *place < 1 || *place > kColumns) return std::nullopt;
  return static_cast<size_t>(*place - 1);
}

int64_t CategoryColumns(const DataConfig& data) {
  return data.train.format == DataFormat::kCriteo ? kCriteoCategories
                                                  : static_cast<int64_t>(data.hash.size() + data.bags.size());
}

bool TakesPixels(const Config& config) {
  const DataSourceConfig& train = config.data.train;
  return train.format == DataFormat::kIdx ||
         (train.format == DataFormat::kSynthetic && train.name == SyntheticName::kDigits);
}

std::string PathText(const DataSourceConfig& source) {
  const std::vector<std::string>& paths = source.format == DataFormat::kIdx ? source.images : source.path;
  if (paths.empty()) return "";
  if (paths.size() == 1) return paths[0];
  return fmt::format("{} and {}", paths[0], Plural(static_cast<int64_t>(paths.size()) - 1, "other"));
}

std::vector<DataFile> DataFiles(const DataConfig& data) {
  std::vector<DataFile> files;
  const auto add = [&](const DataSourceConfig& source, const std::string& section) {
    if (source.format == DataFormat::kIdx) {
      for (const std::string& path : source.images) files.push_back({section + ".images", path});
      for (const std::string& path : source.labels) files.push_back({section + ".labels", path});
    }
    if (!IsText(source.format)) return;
    for (const std::string& path : source.path) {
      if (!IsPipe(path)) files.push_back({section + ".path", path});
    }
  };
  add(data.train, "data.train");
  add(data.test, "data.test");
  return files;
}

std::string TaskName(TaskId task) {
  return fmt::format("{} {}", task.role == Role::kPs ? "ps" : "worker", task.index);
}

std::string TaskNameAndAddress(const ClusterConfig& cluster, TaskId task) {
  const auto& addresses = task.role == Role::kPs ? cluster.ps : cluster.worker;
  if (task.index < 0 || task.index >= static_cast<int>(addresses.size())) return TaskName(task);
  const std::string address = KnownAddress(cluster, task);
  return address.empty() ? TaskName(task) : fmt::format("{} ({})", TaskName(task), address);
}

std::string KnownAddress(const ClusterConfig& cluster, TaskId task) {
  const auto& addresses = task.role == Role::kPs ? cluster.ps : cluster.worker;
  const std::string& address = addresses.at(static_cast<size_t>(task.index));
  if (!AddressIdentity(address).empty()) return address;
  const std::string host = HostOf(address);
  return IsLoopbackHost(host) ? "" : host;
}

std::string WorkersText(const ClusterConfig& cluster) {
  std::string text = Plural(static_cast<int64_t>(cluster.worker.size()), "worker"), addresses;
  bool any = false;
  for (size_t i = 0; i < cluster.worker.size(); ++i) {
    const std::string address = KnownAddress(cluster, {Role::kWorker, static_cast<int>(i)});
    any = any || !address.empty();
    addresses += " " + (address.empty() ? "-" : address);
  }
  return any ? text + addresses : text;
}

std::string AddressProblem(const std::string& text) {
  try {
    net::ParseAddress(text);
    return "";
  } catch (const UserError& error) {
    // It begins with the quoted text, which our messages have said already.
    const std::string message = error.what();
    const std::string said = "\"" + text + "\": ";
    return message.compare(0, said.size(), said) == 0 ? message.substr(said.size()) : message;
  }
}

std::string HostOf(const std::string& address) { return net::ParseAddress(address).host; }

bool IsLoopbackHost(const std::string& host) { return net::IsLoopback(host); }

bool CanConnect(const std::string& address) { return !net::IsWildcard(net::ParseAddress(address).host); }

std::string AddressIdentity(const std::string& address) {
  const net::Address parsed = net::ParseAddress(address);
  if (!parsed.path.empty()) return address;
  if (parsed.port == 0) return "";
  std::string text = net::AddressText(parsed);
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::tolower(c); });
  return text;
}

}  // namespace dtrain
