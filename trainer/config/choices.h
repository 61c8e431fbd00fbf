// The values of keys that are names, and the names of the structs that hold keys. A header that takes a
// config by reference includes this one alone: a new key changes one section (model_config.h, data_config.h,
// ...), and what includes that section is compiled again. Plain data.
#pragma once

namespace dtrain {

// The sections of the YAML file, and all of it.
struct ClusterConfig;
struct InitConfig;
struct ModelConfig;
struct DataSourceConfig;
struct DataConfig;
struct ScheduleConfig;
struct OptimizerConfig;
struct TrainConfig;
struct PlacementConfig;
struct DeviceConfig;
struct RunConfig;
struct CheckpointConfig;
struct EvalConfig;
struct HooksConfig;
struct SummaryConfig;
struct FailureConfig;
struct CompressConfig;
struct NetConfig;
struct LogConfig;
struct MetricsConfig;
struct SecurityConfig;
struct LaunchConfig;
struct Config;

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
enum class DataFormat { kNone, kIdx, kCsv, kLibsvm, kVw, kCriteo, kSynthetic, kTfrecord };
enum class SyntheticName { kLinear, kDigits };
enum class Split { kShard, kFull, kFeed, kDynamic };
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
enum class EvalMetric { kLoss, kAuc, kAccuracy, kRmse, kDeviance };
constexpr EvalMetric kEvalMetrics[] = {EvalMetric::kLoss, EvalMetric::kAuc, EvalMetric::kAccuracy,
                                       EvalMetric::kRmse, EvalMetric::kDeviance};
// What becomes of a gradient that is not finite: it is applied, it ends the run, or nothing of it is sent.
enum class NonFinite { kApply, kStop, kSkip };
enum class WorkerLost { kContinue, kWait, kFail };
enum class PsLost { kWait, kFail };
enum class OnSigterm { kSaveAndEnd, kLeave };

}  // namespace dtrain
