// Config: everything that the YAML file and the flags decide, as plain structs whose initial values are the
// defaults. Filled by load.h through the one table of keys, fields.h, where names, ranges and explanations
// stand; docs/config.md lists them. A key is in here only when something acts on it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "net/compress.h"

namespace dtrain {

enum class Role { kPs, kWorker };
enum class ModelKind { kLinear, kLogistic, kSoftmax, kMlp, kFm, kWideDeep };
// How the embeddings of a row become inputs of the layers: all added up, or one sum for each column.
enum class Combine { kSum, kJoin };
// Where the weights of features lie: one tensor that travels whole, or a table of rows of which a step moves
// those of its batch.
enum class TableKind { kAuto, kNone, kRange, kHash };
// How the rows of a range lie in a ps's memory (trainer/table/row_store.h).
enum class TablePages { kAuto, kHuge };
enum class Activation { kSigmoid, kTanh, kRelu };
enum class InitKind { kZeros, kConstant, kNormal, kGlorot };
enum class BiasInit { kSame, kZeros };
enum class LabelType { kAuto, kNames };
enum class DataFormat { kNone, kIdx, kCsv, kLibsvm, kVw, kCriteo, kSynthetic };
enum class SyntheticName { kLinear, kDigits };
enum class Split { kShard, kFull, kFeed };
enum class DataCache { kMemory, kDevice, kNone, kFile };
enum class LastBatch { kKeep, kDrop };
enum class MissingValues { kError, kMean, kZero, kDrop, kIndicator };
enum class Delimiter { kAuto, kComma, kTab, kSemicolon, kBar, kControlA, kBlanks, kCaret, kTilde, kColon };
// Which quotes stand round a field: "..", with doubled ones inside; the same, where a backslash makes a
// character of a quote or delimiter; '..'; or none: each quote is a character.
enum class Quotes { kDouble, kBackslash, kSingle, kNone };
enum class BadRows { kStop, kSkip };
enum class UnseenCategory { kOther, kError };
enum class Decimal { kPoint, kComma };
// Which training rows are held out: the first ones, or rows drawn by data.seed, equally of each class.
enum class HeldOutBy { kFirst, kSeed, kStratified };
enum class FeatureScale { kNone, kUnit, kStandard };
// What becomes of the numbers of a row that are inputs of layers: sign(x) ln(1 + |x|), or themselves.
enum class NumberScale { kLog, kPlain };
// What the outputs of a model are: classes under a softmax, two classes by one logit, or one real value.
enum class ModelHead { kSoftmax, kLogistic, kLinear };
// How the gradients of the rows of an update become one.
enum class Reduce { kMean, kSum };
enum class TrainMode { kAsync, kSync, kSsp };
enum class OptimizerKind { kSgd, kMomentum, kAdagrad, kRmsprop, kAdam, kAdamw, kFtrl };
enum class ScheduleKind { kConstant, kStep, kExponential, kInverseTime, kCosine };
enum class PlacementPolicy { kBytes, kRoundRobin, kPin };
enum class DeviceKind { kAuto, kCpu, kCuda };
enum class EvalOn { kTest, kValidation };
enum class EvalBy { kChief, kAll };
enum class WorkerLost { kContinue, kWait, kFail };
enum class PsLost { kWait, kFail };
enum class OnSigterm { kSaveAndEnd, kLeave };

struct ClusterConfig {
  std::vector<std::string> ps;         // addresses, "host:port"
  std::vector<std::string> worker;     // worker 0 is the chief
  std::optional<int64_t> min_workers;  // unset: all
};

struct InitConfig {
  // Unset: glorot for mlp, else zeros; loading a file: normal for fm and wide_deep
  std::optional<InitKind> kind;
  double value = 0;   // of constant
  double stddev = 1;  // loading a file: 0.01 for fm and wide_deep
  uint64_t seed = 1;
  BiasInit bias = BiasInit::kZeros;
  double output_bias = 0;  // of the last layer, where biases are zeros
};

// model.inputs of a model whose features are keys, any numbers below 2^64 - 1 (model.table: hash).
constexpr int64_t kKeyInputs = -1;
// Whether the numbers of features need more than 32 bits.
inline bool HasWideNumbers(int64_t inputs) { return static_cast<uint64_t>(inputs) > uint64_t{1} << 32; }

struct ModelConfig {
  ModelKind kind = ModelKind::kLinear;
  std::optional<int64_t> inputs;   // unset: as the data says
  std::optional<int64_t> outputs;  // unset: 1, or with a softmax the 10 classes of digits
  std::vector<int64_t> hidden;     // mlp, wide_deep: units of each hidden layer
  Activation activation = Activation::kSigmoid;
  // mlp; fm, wide_deep: logistic or linear, and loading a file sets logistic. HeadOf() is that of any kind
  ModelHead head = ModelHead::kSoftmax;
  int64_t factors = 8;              // fm: of each feature
  int64_t embedding = 8;            // wide_deep: values of each feature's
  Combine combine = Combine::kSum;  // wide_deep; loading a file: join where rows have columns
  // wide_deep: the columns of categories that the data has, each of 2^column_bits features, before all other
  // inputs, which are numbers. Loading a file sets both; 0: rows have no columns
  int64_t columns = 0;
  int column_bits = 0;
  TableKind table = TableKind::kAuto;
  TablePages table_pages = TablePages::kAuto;  // table: range
  // table: hash
  int64_t admit_after = 1;  // updates that name a key before it has a row, with the one that makes it
  std::optional<int64_t> evict_after;  // updates without it after which a row leaves; unset: never
  std::optional<int64_t> max_rows;     // over all ps, with candidates; unset: without end
  InitConfig init;
};

// The head of a model of any kind. It decides the loss, the labels and the results.
inline ModelHead HeadOf(const ModelConfig& model) {
  switch (model.kind) {
    case ModelKind::kLinear:
      return ModelHead::kLinear;
    case ModelKind::kLogistic:
      return ModelHead::kLogistic;
    case ModelKind::kSoftmax:
      return ModelHead::kSoftmax;
    case ModelKind::kMlp:
    case ModelKind::kFm:
    case ModelKind::kWideDeep:
      break;
  }
  return model.head;
}
// Whether it has hidden layers.
inline bool HasLayers(const ModelConfig& model) {
  return model.kind == ModelKind::kMlp || model.kind == ModelKind::kWideDeep;
}
// Whether model.head names the head; else the kind does.
inline bool HasHeadKey(const ModelConfig& model) { return HasLayers(model) || model.kind == ModelKind::kFm; }
// The features that have a row of a model's table. All other inputs are numbers.
inline int64_t TableFeatures(const ModelConfig& model) {
  return model.columns == 0 ? *model.inputs : model.columns << model.column_bits;
}
// Whether the model tells classes; else its targets are real numbers.
inline bool HasClasses(const ModelConfig& model) { return HeadOf(model) != ModelHead::kLinear; }
// Whether it has an output for each class; else it has one output.
inline bool HasOutputPerClass(const ModelConfig& model) { return HeadOf(model) == ModelHead::kSoftmax; }
// The key that decides the head, with its value: "model.kind = logistic", "model.head = linear".
std::string HeadText(const ModelConfig& model);

struct DataSourceConfig {
  DataFormat format = DataFormat::kNone;
  // csv, libsvm, vw, criteo: files, patterns of names, "-" or "exec:COMMAND"; never empty there
  std::vector<std::string> path;
  std::string label;  // a column's name, or its number (ColumnNumber)
  bool header = true;
  std::vector<std::string> images;  // idx: files and patterns of names, in the order of their `labels`
  std::vector<std::string> labels;
  SyntheticName name = SyntheticName::kLinear;
  std::optional<int64_t> rows;  // synthetic; unset: without end for linear
};

// As many as there are processors for each worker of the machine.
constexpr int64_t kAutoThreads = 0;

struct DataConfig {
  DataSourceConfig train;
  DataSourceConfig test;
  int64_t validation = 0;       // rows held out; data.validation, where that is a whole number
  double validation_share = 0;  // of the rows; data.validation, where that is below 1
  HeldOutBy validation_by = HeldOutBy::kFirst;
  Split split = Split::kShard;
  bool shuffle = true;
  uint64_t seed = 1;
  LastBatch last_batch = LastBatch::kKeep;
  FeatureScale scale = FeatureScale::kNone;
  NumberScale numbers = NumberScale::kLog;  // where by_column is set
  // Hashed features are numbered column by column, and numbers are features of their own behind those of
  // categories. Loading a file sets it for wide_deep.
  bool by_column = false;
  // csv: columns by name or number (ColumnNumber)
  std::vector<std::string> ignore;
  std::vector<std::string> categories;
  int64_t max_categories = 100;  // of one column; rarer ones are one
  UnseenCategory unseen = UnseenCategory::kOther;
  std::vector<std::string> dates;  // columns of dates, which become days; "COLUMN=FORM" (ParseDateColumn)
  std::string weight;              // a column's name or number; empty: all rows weigh 1
  std::vector<std::string> class_weights;  // "balanced", or "NAME=3" for each class; empty: all weigh 1
  std::vector<std::string> rename_labels;  // "FROM -> TO"
  LabelType label_type = LabelType::kAuto;
  std::vector<std::string> classes;  // names by number, sorted; empty: those that come
  MissingValues missing = MissingValues::kError;
  std::vector<std::string> missing_values;  // "MARKER", or "COLUMN=MARKER" (ParseColumnItem)
  std::vector<std::string> number_format;   // "EXAMPLE", or "COLUMN=EXAMPLE" (ParseNumberFormat)
  Delimiter delimiter = Delimiter::kAuto;
  Quotes quotes = Quotes::kDouble;
  Decimal decimal = Decimal::kPoint;
  int64_t skip_lines = 0;  // at the front of each file
  std::string comment;     // lines that begin with it are no rows; empty: there are none
  bool trim = false;       // blanks round a field
  BadRows bad_rows = BadRows::kStop;
  int64_t bad_rows_limit = 1000;
  DataCache cache = DataCache::kMemory;
  int64_t threads = kAutoThreads;  // that parse rows for memory
  std::string cache_dir;           // of cache: file; empty: "dtrain-cache" in the working directory
  int64_t shuffle_rows = 65536;    // of cache: none and file
  int64_t fit_rows = 1'000'000;    // behind those held out
  int64_t index_base = 1;          // libsvm: the index of the first feature, 0 or 1
  // Features are numbered by a hash of so many bits of their names; unset: libsvm and csv number them as they
  // stand, vw and criteo have a default (HashBits).
  std::optional<int64_t> hash_bits;
  // Set by loading a file: features are keys of 64 bits (model.table: hash), with by_column of 63, and
  // hash_bits is not read.
  bool whole_keys = false;
  std::vector<std::string> hash;     // csv: columns whose texts are hashed, by name or number
  std::vector<std::string> crosses;  // vw: pairs of namespaces, by their first letters: "ab"
};

// The learning rate as a function of the update's number.
struct ScheduleConfig {
  ScheduleKind kind = ScheduleKind::kConstant;
  int64_t decay_steps = 1;       // all but constant
  double decay_rate = 1;         // step, exponential, inverse_time
  double end_learning_rate = 0;  // cosine
  int64_t warmup_steps = 0;
};

struct OptimizerConfig {
  OptimizerKind kind = OptimizerKind::kSgd;
  double learning_rate = 0.01;  // loading a file: 0.001 for adam and adamw
  double momentum = 0.9;
  bool nesterov = false;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double rho = 0.9;
  double epsilon = 1e-8;
  double initial_accumulator = 0.1;
  double beta = 0;  // ftrl
  double l1 = 0;
  double l2 = 0;
  bool decay_biases = true;    // whether l1, l2 and weight_decay are for biases too
  double weight_decay = 0.01;  // adamw
  std::optional<double> clip_value;
  std::optional<double> clip_norm;
  ScheduleConfig schedule;
};

struct TrainConfig {
  TrainMode mode = TrainMode::kAsync;
  int64_t staleness = 4;             // ssp
  std::optional<int64_t> aggregate;  // sync; unset: as many as there are workers
  int64_t batch_size = 100;
  std::optional<int64_t> epochs;
  std::optional<int64_t> steps;
  int64_t in_flight = 1;
  Reduce reduce = Reduce::kMean;
  std::optional<double> max_secs;  // unset: no limit
  OptimizerConfig optimizer;
};

// In sync clip_norm is of a round's mean, and the ps find its norm together; else of each worker's gradient.
inline bool NormOfRounds(const TrainConfig& train) {
  return train.mode == TrainMode::kSync && train.optimizer.clip_norm.has_value();
}

struct PlacementConfig {
  PlacementPolicy policy = PlacementPolicy::kBytes;
  std::vector<std::string> pin;  // "weights/W1=0", "biases/*=1"
  bool log = true;
};

struct DeviceConfig {
  DeviceKind kind = DeviceKind::kAuto;
  std::vector<int64_t> ids{0};   // of a worker, a tower each; never empty
  bool soft_placement = true;    // the processor in place of a GPU that is not there
  double memory_fraction = 0.5;  // of each GPU's memory, at most
  bool tf32 = false;             // products on GPUs
  int64_t threads = 1;           // of each tower on a processor

  int64_t towers() const { return static_cast<int64_t>(ids.size()); }
};

// The value of run.dir with which a run has no directory.
constexpr char kNoRunDirectory[] = "none";

// The directory of a run (cmd/common/run_directory.h).
struct RunConfig {
  std::string dir;              // empty: dtrain makes one; kNoRunDirectory: there is none
  std::optional<int64_t> keep;  // how many of a config, of those that dtrain has named, stay; unset: all
  std::string on_end;           // a command for /bin/sh; empty: none
  double on_end_timeout_s = 30;

  bool has_directory() const { return !dir.empty() && dir != kNoRunDirectory; }
};

struct CheckpointConfig {
  std::string dir;              // empty: none are written; loading a file: in run.dir, if there is one
  double every_secs = 600;      // 0: not by time
  int64_t every_steps = 0;      // global steps; 0: not by steps
  double timeout_s = 1800;      // for one of them, from its cut to its name
  int64_t keep = 5;             // the newest ones
  int64_t delta = 0;            // after one of all rows, so many of those that have changed since; 0: none
  std::string resume = "auto";  // auto, never, or the path of a checkpoint or of a directory of them
  std::string start_from;       // a checkpoint, or a directory of them; empty: initial values
};

struct EvalConfig {
  EvalOn on = EvalOn::kTest;
  int64_t every_steps = 0;  // local steps of the chief; 0: none
  bool at_end = true;
  EvalBy by = EvalBy::kChief;
  int64_t patience = 0;    // evaluations without a better loss, after which the run ends; 0: never
  bool keep_best = false;  // the checkpoint of the smallest loss
};

constexpr double kLogEverySecs = 10;

struct HooksConfig {
  bool stop_on_nan = true;
  std::optional<double> log_every_secs;  // 0: none; unset: LogEverySecs()
  int64_t log_every_steps = 0;           // local steps; 0: none
  int64_t log_every_epochs = 0;
  int64_t count_every_steps = 0;  // local steps; 0: none
  bool progressive = false;       // loading a file: true for sparse rows

  // Whether the user has not said when rows are logged.
  bool HasDefaultRows() const { return !log_every_secs && log_every_steps == 0 && log_every_epochs == 0; }
  // Seconds between rows; 0: none by time.
  double LogEverySecs() const { return HasDefaultRows() ? kLogEverySecs : log_every_secs.value_or(0); }
};

struct SummaryConfig {
  std::string dir;            // empty: no event files
  int64_t every_steps = 100;  // local steps of the task that writes; 0: not by steps
  double every_secs = 0;      // 0: not by time
};

// The longest of the growing pauses before a task is started again.
constexpr int64_t kMaxRestartPauseS = 16;

struct FailureConfig {
  double detect_s = 10;
  double startup_timeout_s = 120;
  WorkerLost worker_lost = WorkerLost::kContinue;
  PsLost ps_lost = PsLost::kWait;
  double wait_s = 300;
  int64_t restarts = 0;  // of one child of `dtrain local`
  OnSigterm on_sigterm = OnSigterm::kSaveAndEnd;
  double grace_s = 30;
  int64_t peer_lost_exit = 4;
};

// In which form the values of tensors travel. `pull` is never kTopk.
struct CompressConfig {
  net::Compression push = net::Compression::kNone;  // of gradients
  net::Compression pull = net::Compression::kNone;  // of the weights that steps are taken with
};

struct NetConfig {
  std::string bind;  // empty: the spec's address
  int64_t timeout_ms = 30000;
  int64_t max_message_mb = 1024;
  bool checksum = false;
  CompressConfig compress;
};

struct LogConfig {
  std::string dir;
  bool json = false;
  int level = 1;  // LogLevel
};

// The value of security.keys with which the parent of the tasks makes their keys.
constexpr char kAutoKeys[] = "auto";

// What ps 0 tells Prometheus (docs/watching.md).
struct MetricsConfig {
  std::optional<int64_t> port;     // unset: none is opened; 0: a free one
  std::string bind = "127.0.0.1";  // the address that the port is opened at
  std::string password;            // a file with the password that readers must have; empty: they need none
  std::string file;                // for the textfile collector of node_exporter; empty: none
};

struct SecurityConfig {
  bool insecure = false;
  std::string keys;  // the directory of key files, or "auto"; empty: no keys
};

// How the tasks of one machine are started; what is empty has its default.
struct LaunchHost {
  std::string user;       // for ssh
  std::string address;    // for ssh, where it is not the name that the cluster's addresses have
  std::string directory;  // where the tasks work
  std::string program;    // dtrain there
  std::map<std::string, std::string> environment;
  std::map<std::string, std::string> device;  // of the keys of `device` those that differ there, as YAML

  bool operator==(const LaunchHost& other) const {
    return user == other.user && address == other.address && directory == other.directory &&
           program == other.program && environment == other.environment && device == other.device;
  }
};
using LaunchHosts = std::map<std::string, LaunchHost>;  // by the name in the cluster's addresses

struct LaunchConfig {
  LaunchHosts hosts;
  bool copy = false;
  std::string ssh_config;  // a file; empty: the user's own
  double silence_s = 5;
};

struct Config {
  ClusterConfig cluster;
  ModelConfig model;
  DataConfig data;
  TrainConfig train;
  PlacementConfig placement;
  DeviceConfig device;
  RunConfig run;
  CheckpointConfig checkpoint;
  EvalConfig eval;
  HooksConfig hooks;
  SummaryConfig summary;
  FailureConfig failure;
  NetConfig net;
  LogConfig log;
  MetricsConfig metrics;
  SecurityConfig security;
  LaunchConfig launch;
};

// Whether rows of data.train have few features that are not 0, and are read as these.
bool HasSparseRows(const DataConfig& data);
// Whether rows have weights of their own, beside those of their classes.
inline bool HasRowWeights(const DataConfig& data) {
  return !data.weight.empty() || data.train.format == DataFormat::kVw;
}
// Whether the weights are rows of a table (TableKind).
bool UsesTable(const Config& config);
// The kind of that table: none, range or hash.
TableKind TableOf(const Config& config);
// The bits of the numbers of hashed features; unset: features are not hashed.
std::optional<int64_t> HashBits(const DataConfig& data);
// The columns and numbers of a line of Criteo's logs.
constexpr int64_t kCriteoNumbers = 13, kCriteoCategories = 26;
// Where data.by_column is set: the columns of categories of a row.
int64_t CategoryColumns(const DataConfig& data);

// Whether the run goes on after a ps was lost: all go back to the newest checkpoint.
inline bool RecoversPs(const Config& config) {
  return !config.checkpoint.dir.empty() && config.failure.ps_lost == PsLost::kWait;
}

// A column as the config keeps it is a text: 3 is the column of this number, where the first column is 0, and
// "3" with its quotes the column of this name. Any other text is a name.
// Returns the number; unset: `column` is a name.
std::optional<int64_t> ColumnNumber(const std::string& column);
// Returns the column's name; of a number its digits.
std::string ColumnNameIn(const std::string& column);

// Which task of the cluster this process is.
struct TaskId {
  Role role = Role::kWorker;
  int index = 0;
};

// Whether worker 0 sends the other workers their batches, at its address: data.split: feed.
inline bool FeedsOthers(const Config& config) {
  return config.data.split == Split::kFeed && config.cluster.worker.size() > 1;
}
// Whether the run goes on without this worker when it is lost.
inline bool WorkerMayBeLost(const Config& config, int worker) {
  const bool feeds = worker == 0 && FeedsOthers(config);
  return config.failure.worker_lost == WorkerLost::kContinue && config.cluster.worker.size() > 1 && !feeds;
}
// Whether this worker gets its batches from worker 0 and needs no data of its own.
inline bool IsFed(const Config& config, int worker) {
  return config.data.split == Split::kFeed && worker != 0;
}

// Whether each round of a synchronous run has a gradient of every worker, also of one that is lost meanwhile:
// the round waits until it is back and has sent it again. `cluster` is set.
bool RoundsWaitForLost(const Config& config);

// The first key that keeps two runs of this config from ending with the same bits, whatever the timing, the
// number of ps and the placement, and its value; empty when none does. `cluster` is set.
std::string FirstNondeterministicKey(const Config& config);

// Whether the features of data.train are bytes, 0 to 255, which the model takes as 0 to 1: those of images.
bool TakesPixels(const Config& config);

// What data.train and data.test may read beside files: standard input, and a command's output. Both end, and
// cannot be read again.
inline bool IsStandardInput(const std::string& path) { return path == "-"; }
inline bool IsCommand(const std::string& path) { return path.compare(0, 5, "exec:") == 0; }
inline bool IsPipe(const std::string& path) { return IsStandardInput(path) || IsCommand(path); }
// Whether rows are lines of a text, which `path` names.
inline bool IsText(DataFormat format) {
  return format == DataFormat::kCsv || format == DataFormat::kLibsvm || format == DataFormat::kVw ||
         format == DataFormat::kCriteo;
}
inline bool ReadsPipe(const DataSourceConfig& source) {
  return IsText(source.format) && source.path.size() == 1 && IsPipe(source.path[0]);
}
// The files of rows: "a.csv", or "a.csv and 3 others".
std::string PathText(const DataSourceConfig& source);

struct DataFile {
  std::string key;  // "data.train.path"
  std::string path;
};
// The files of data.train, then of data.test; none for data that are made.
std::vector<DataFile> DataFiles(const DataConfig& data);

// "softmax".
const char* KindName(ModelKind kind);
// "worker 1".
std::string TaskName(TaskId task);
// "worker 1 (10.0.0.4:9002)", from the spec.
std::string TaskNameAndAddress(const ClusterConfig& cluster, TaskId task);
// "10.0.0.3:9002"; "10.0.0.3" where the port is 0, since nobody connects there; empty where that leaves only
// this machine itself, as for the workers of `dtrain local`. The task is one of the cluster.
std::string KnownAddress(const ClusterConfig& cluster, TaskId task);
// "2 workers 10.0.0.3:9002 10.0.0.4:9002" of cluster.worker; "-" stands for a worker without a known address,
// and the addresses are left out where no worker has one.
std::string WorkersText(const ClusterConfig& cluster);

// What the config demands of an address, on top of net/address.h.

// Empty for a good "host:port"; otherwise rule and remedy: "an address needs a port. Write ...".
std::string AddressProblem(const std::string& text);

// The same text for two spellings of one address; empty where the system chooses the port, since two such
// are never one. The address is a good one.
std::string AddressIdentity(const std::string& address);

// "10.0.0.1" of "10.0.0.1:9001"; IPv6 without brackets. The address is a good one.
std::string HostOf(const std::string& address);

// Whether a host, as HostOf() gives it, means every machine itself: 127.0.0.0/8, ::1, localhost.
bool IsLoopbackHost(const std::string& host);

// Whether others can connect to it: 0.0.0.0 and [::] are for listening only. The address is a good one.
bool CanConnect(const std::string& address);

}  // namespace dtrain
