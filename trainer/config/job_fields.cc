// The table's rows of what is trained: cluster, model, data and train.
#include <string>

#include "trainer/config/field_row.h"

namespace dtrain {
namespace {

constexpr Scope kRun = Scope::kRun;
constexpr Scope kTask = Scope::kTask;
constexpr Limits kFromZero = {0};
constexpr Limits kFromOne = {1};
constexpr Limits kFraction = {0, 0.999999};  // below 1 as a float too

std::vector<Field> ClusterFields() {
  return {
      Row(DT_KEY(cluster.ps), FieldType::kAddresses, kRun,
          "Addresses of the parameter servers, in the order of their index. Each binds its own.")
          .Try("[\"localhost:9001\"]")
          .Required(),
      Row(DT_KEY(cluster.worker), FieldType::kAddresses, kRun,
          "Addresses of the workers, in the order of their index; worker 0 is the chief. An address is the "
          "worker's name: its port is not opened, save worker 0's with data.split: feed.")
          .Try("[\"localhost:9002\"]")
          .Required(),
      Number(DT_KEY(cluster.min_workers), kRun, kFromOne,
             "The run starts when every ps, worker 0 and so many workers in all are there; the others may "
             "join at any time.")
          .Unit("workers")
          .Unset("all of cluster.worker"),
  };
}

// Where a member of data.train or of data.test lies.
template <DataSourceConfig DataConfig::*source, auto DataSourceConfig::*member>
auto& SourceMember(Config& config) {
  return (config.data.*source).*member;
}

// The keys of data.train and data.test.
template <DataSourceConfig DataConfig::*source>
std::vector<Field> SourceFields(const std::string& section) {
  const std::string format = section + ".format";
  const bool train = section == "data.train";
  const FieldRow kind = Choice(
      format, &SourceMember<source, &DataSourceConfig::format>, kRun,
      {{"idx", DataFormat::kIdx},
       {"csv", DataFormat::kCsv},
       {"libsvm", DataFormat::kLibsvm},
       {"vw", DataFormat::kVw},
       {"criteo", DataFormat::kCriteo},
       {"synthetic", DataFormat::kSynthetic}},
      train ? "What workers train on. idx: MNIST's form, plain or gzip, bytes / 255; csv: a table with a "
              "label; libsvm: LABEL INDEX:VALUE...; vw: Vowpal Wabbit's text; criteo: its table of clicks; "
              "synthetic: made here."
            : "What is evaluated on; as for data.train.");
  return {
      train ? kind.Required() : kind.Unset("no test set"),
      Row(section + ".path", &SourceMember<source, &DataSourceConfig::path>, FieldType::kInputPaths, kTask,
          "CSV files, plain, .gz or .zst, which are one table in this order: a path, a pattern (part-*.csv, "
          "in the order of names) or a list of them. exec:COMMAND reads what a shell's command prints, and - "
          "standard input.")
          .Try("table.csv")
          .Required()
          .OnlyWith(format, {"csv"}),
      Row(section + ".label", &SourceMember<source, &DataSourceConfig::label>, FieldType::kColumn, kRun,
          "The column of labels: its name in the header, or its number; the first is 0. A name that looks "
          "like a number stands in quotes. All others but data.ignore are features. Labels are numbers, or "
          "for classes names: these count from 0 in their sorted order.")
          .Unit("a column's name, or its number")
          .Try("0")
          .Required()
          .OnlyWith(format, {"csv"}),
      Flag(section + ".header", &SourceMember<source, &DataSourceConfig::header>, kRun,
           "Whether the first line names the columns.")
          .OnlyWith(format, {"csv"}),
      Row(section + ".images", &SourceMember<source, &DataSourceConfig::images>, FieldType::kInputPaths,
          kTask,
          "The IDX files of images, plain, .gz or .zst, which are one set in this order: a path, a pattern "
          "(part-*-images, in the order of names) or a list of them.")
          .Try("train-images-idx3-ubyte.gz")
          .Required()
          .OnlyWith(format, {"idx"}),
      Row(section + ".labels", &SourceMember<source, &DataSourceConfig::labels>, FieldType::kInputPaths,
          kTask, "The IDX files of labels, one for each file of images, in the same order.")
          .Try("train-labels-idx1-ubyte.gz")
          .Required()
          .OnlyWith(format, {"idx"}),
      Choice(section + ".name", &SourceMember<source, &DataSourceConfig::name>, kRun,
             {{"linear", SyntheticName::kLinear}, {"digits", SyntheticName::kDigits}},
             "linear: y = 2 x + 10 and noise; digits: drawn digits of 28 x 28 pixels with noise, 10 classes.")
          .Required()
          .OnlyWith(format, {"synthetic"}),
      Number(section + ".rows", &SourceMember<source, &DataSourceConfig::rows>, kRun, {1, 1e12},
             "How many rows are made.")
          .Unit("rows")
          .Try("10000")
          .Unset(train ? "linear: without end; digits: the drawing's own number"
                       : "digits: the drawing's own number")
          .OnlyWith(format, {"synthetic"}),
  };
}

// A whole number is of rows, and a number below 1 a share of them.
Field HeldOut() {
  FieldRow row = RowOf("data.validation", FieldType::kDouble, kRun,
                       "Training rows that are held out, the first ones or as data.validation_by says: their "
                       "number, or between 0 and 1 their share.");
  row.get = [](const Config& config) {
    const DataConfig& data = config.data;
    return Value(data.validation_share > 0 ? data.validation_share : static_cast<double>(data.validation));
  };
  row.set = [](const Value& value, Config* config) {
    const double number = IsNull(value) ? 0 : std::get<double>(value);
    config->data.validation = number < 1 ? 0 : static_cast<int64_t>(number);
    config->data.validation_share = number < 1 ? number : 0;
  };
  return row.Within({0, 1e15}).Unit("rows held out: their number, or a share below 1").Try("100");
}

std::vector<Field> CommonDataFields() {
  return {
      HeldOut(),
      Choice(
          DT_KEY(data.validation_by), kRun,
          {{"first", HeldOutBy::kFirst}, {"seed", HeldOutBy::kSeed}, {"stratified", HeldOutBy::kStratified}},
          "Which training rows are held out. seed: rows drawn by data.seed; stratified: drawn so that each "
          "class has its share of them. Both need a share in data.validation, and CSV in memory."),
      Choice(DT_KEY(data.split), kRun,
             {{"shard", Split::kShard}, {"full", Split::kFull}, {"feed", Split::kFeed}},
             "shard: each worker trains on its own 1/n of the rows; full: each on all of them; feed: as "
             "shard, but worker 0 alone reads data and sends the others their batches."),
      Flag(DT_KEY(data.shuffle), kRun, "Another order of the rows in each epoch."),
      Number(DT_KEY(data.seed), kRun, kFromZero, "Seed of the order and of synthetic data."),
      Choice(DT_KEY(data.last_batch), kRun, {{"keep", LastBatch::kKeep}, {"drop", LastBatch::kDrop}},
             "What happens to the short batch at the end of an epoch."),
      Choice(DT_KEY(data.scale), kRun,
             {{"none", FeatureScale::kNone},
              {"unit", FeatureScale::kUnit},
              {"standard", FeatureScale::kStandard}},
             "How features are scaled, fitted on the training rows without those held out. unit: least to "
             "greatest become 0 to 1; standard: mean 0, standard deviation 1. Features that stand for a "
             "category or a gap stay 0 and 1.")
          .OnlyWith("data.train.format", {"csv"}),
      Row(DT_KEY(data.ignore), FieldType::kColumns, kRun,
          "Columns that are no features, such as ids and dates: names in the header, or numbers from 0.")
          .Unit("columns by name, or by number")
          .Try("[customer_id]")
          .Unset("none")
          .OnlyWith("data.train.format", {"csv"}),
      Row(DT_KEY(data.categories), FieldType::kColumns, kRun,
          "Columns of texts: each text that the training rows have becomes a feature of its own, 0 or 1.")
          .Unit("columns by name, or by number")
          .Try("[country]")
          .Unset("none")
          .OnlyWith("data.train.format", {"csv"}),
      Number(DT_KEY(data.max_categories), kRun, {1, 100000},
             "The features of one column of data.categories: those of its most frequent texts, and if it has "
             "more texts one for all others together.")
          .Unit("texts of a column")
          .OnlyWith("data.train.format", {"csv"}),
      Choice(
          DT_KEY(data.unseen), kRun, {{"other", UnseenCategory::kOther}, {"error", UnseenCategory::kError}},
          "What becomes of a text in a column of categories that the training rows did not have. other: the "
          "feature of all others, or where there is none no feature at all, and counted; error: the row "
          "cannot be read.")
          .OnlyWith("data.train.format", {"csv"}),
      Row(DT_KEY(data.dates), FieldType::kColumns, kRun,
          "Columns of dates, 2024-01-31 with or without a time: they become days since 1970.")
          .Unit("columns by name, or by number")
          .Try("[signup]")
          .Unset("none")
          .OnlyWith("data.train.format", {"csv"}),
      Row(DT_KEY(data.weight), FieldType::kColumn, kRun,
          "A column that says how much each row counts: its gradient and its loss are multiplied by it. It "
          "is no feature.")
          .Unit("a column's name, or its number")
          .Try("weight")
          .Unset("all rows count 1")
          .OnlyWith("data.train.format", {"csv"}),
      Row(DT_KEY(data.class_weights), FieldType::kTexts, kRun,
          "How much the rows of each class count in training: [balanced], which is rows / (classes x rows of "
          "the class), or NAME=WEIGHT for some classes.")
          .Unit("balanced, or NAME=WEIGHT")
          .Try("[balanced]")
          .Unset("all classes count 1"),
      Row(DT_KEY(data.rename_labels), FieldType::kTexts, kRun,
          "Other spellings of labels: \"<=50K. -> <=50K\" reads the first as the second.")
          .Unit("\"FROM -> TO\"")
          .Try("[\"yes. -> yes\"]")
          .Unset("none")
          .OnlyWith("data.train.format", {"csv"}),
      Choice(DT_KEY(data.label_type), kRun, {{"auto", LabelType::kAuto}, {"names", LabelType::kNames}},
             "What the labels of classes are. auto: whole numbers from 0, or names, as the first one is; "
             "names: each different text is a class, also one that looks like a number, such as 1992.")
          .OnlyWith("data.train.format", {"csv"}),
      Choice(
          DT_KEY(data.missing), kRun,
          {{"error", MissingValues::kError},
           {"mean", MissingValues::kMean},
           {"zero", MissingValues::kZero},
           {"drop", MissingValues::kDrop},
           {"indicator", MissingValues::kIndicator}},
          "What becomes of a missing value: an empty field, ?, NA, N/A, null or nan. mean: of the column, in "
          "the "
          "training rows; drop: the row is left out; indicator: the mean, and one more feature says where it "
          "was missing. In a column of categories it is a category of its own.")
          .OnlyWith("data.train.format", {"csv"}),
      Choice(DT_KEY(data.delimiter), kRun,
             {{"auto", Delimiter::kAuto},
              {"comma", Delimiter::kComma},
              {"tab", Delimiter::kTab},
              {"semicolon", Delimiter::kSemicolon},
              {"bar", Delimiter::kBar}},
             "What separates the fields of CSV files. auto: what gives the first lines equally many fields.")
          .OnlyWith("data.train.format", {"csv"}),
      Choice(DT_KEY(data.decimal), kRun, {{"point", Decimal::kPoint}, {"comma", Decimal::kComma}},
             "What separates the decimals of a number: 3.5 or 3,5. With comma, data.delimiter: auto finds no "
             "commas.")
          .OnlyWith("data.train.format", {"csv"}),
      Number(DT_KEY(data.skip_lines), kRun, {0, 1e6},
             "So many lines at the front of each file are neither header nor rows.")
          .Unit("lines")
          .OnlyWith("data.train.format", {"csv"}),
      Row(DT_KEY(data.comment), FieldType::kText, kRun, "Lines that begin with this text are left out.")
          .Unit("the beginning of a comment")
          .Try("\"#\"")
          .Unset("there are no comments")
          .OnlyWith("data.train.format", {"csv"}),
      Flag(DT_KEY(data.trim), kRun,
           "Whether blanks inside the quotes of a field, at its ends, are left out too, as those outside "
           "always are.")
          .OnlyWith("data.train.format", {"csv"}),
      Choice(DT_KEY(data.bad_rows), kRun, {{"stop", BadRows::kStop}, {"skip", BadRows::kSkip}},
             "What becomes of a row that cannot be read. stop: the run ends with its place; skip: the row is "
             "left out, counted, and the first ones are told with their places.")
          .OnlyWith("data.train.format", {"csv"}),
      Number(DT_KEY(data.bad_rows_limit), kRun, {0, 1e12},
             "The run ends when a file has more rows that cannot be read.")
          .Unit("rows")
          .OnlyWith("data.bad_rows", {"skip"}),
      Choice(DT_KEY(data.cache), kRun,
             {{"memory", DataCache::kMemory},
              {"device", DataCache::kDevice},
              {"none", DataCache::kNone},
              {"file", DataCache::kFile}},
             "Where a worker keeps its training rows. device: in the memory of its GPU too, if they fit; a "
             "step then sends the numbers of its rows and not the rows. Without a GPU it is memory. none: "
             "nowhere, they are read from their files in each epoch, in constant memory; file: parsed, in a "
             "file under data.cache_dir."),
      Row(DT_KEY(data.cache_dir), FieldType::kOutputPath, kTask,
          "The directory of cached rows (data.cache: file). Runs of the same data share one cache; delete it "
          "when you like. With none it keeps where the rows are, so that tasks on one disk pass over all "
          "rows "
          "together, and later runs begin at once.")
          .Unset("dtrain-cache in the working directory; with none nothing is kept")
          .OnlyWith("data.cache", {"file", "none"}),
      Number(
          DT_KEY(data.shuffle_rows), kRun, {1, 1e9},
          "The rows that are shuffled among each other: so many are in memory at a time, and at most 16 MiB "
          "of them. They are of many places of the data.")
          .Unit("rows")
          .OnlyWith("data.cache", {"none", "file"}),
      Number(DT_KEY(data.fit_rows), kRun, {1, 1e12},
             "Categories, means and with data.cache: none or file the scale are those of the first so many "
             "training rows behind data.validation.")
          .Unit("rows")
          .OnlyWith("data.train.format", {"csv"}),
  };
}

std::vector<Field> ModelFields() {
  return {
      Choice(DT_KEY(model.kind), kRun,
             {{"linear", ModelKind::kLinear},
              {"logistic", ModelKind::kLogistic},
              {"softmax", ModelKind::kSoftmax},
              {"mlp", ModelKind::kMlp},
              {"fm", ModelKind::kFm}},
             "linear: mean squared error; logistic: labels 0 and 1; softmax: labels 0 to outputs - 1; mlp: "
             "hidden layers, and behind them one of these as model.head says; fm: a factorization machine "
             "of sparse rows.")
          .Required(),
      Number(DT_KEY(model.inputs), kRun, {1, 1e12}, "Features of one row.")
          .Unit("features of one row")
          .Try("784")
          .Unset("as the data says"),
      Number(DT_KEY(model.outputs), kRun, {1, 1e6}, "Outputs; with a softmax the number of classes.")
          .Unit("outputs")
          .Try("10")
          .Unset("1; with a softmax the classes of data.train for CSV, and else 10"),
      Number(DT_KEY(model.hidden), kRun, {1, 1e6}, "Units of each hidden layer, from the inputs on.")
          .Unit("units")
          .Try("[100]")
          .Required()
          .OnlyWith("model.kind", {"mlp"}),
      Choice(DT_KEY(model.activation), kRun,
             {{"sigmoid", Activation::kSigmoid}, {"tanh", Activation::kTanh}, {"relu", Activation::kRelu}},
             "What hidden layers apply to their outputs.")
          .OnlyWith("model.kind", {"mlp"}),
      Choice(DT_KEY(model.head), kRun,
             {{"softmax", ModelHead::kSoftmax},
              {"logistic", ModelHead::kLogistic},
              {"linear", ModelHead::kLinear}},
             "What is behind the hidden layers. softmax: an output for each class; logistic: one output, "
             "labels 0 and 1; linear: one output, real targets, mean squared error. fm: logistic, its "
             "default, or linear.")
          .OnlyWith("model.kind", {"mlp", "fm"}),
      Number(DT_KEY(model.factors), kRun, {1, 1024},
             "Factors of each feature: the product of those of two features is the weight of their pair.")
          .OnlyWith("model.kind", {"fm"}),
      Choice(DT_KEY(model.table), kRun,
             {{"auto", TableKind::kAuto}, {"none", TableKind::kNone}, {"range", TableKind::kRange}},
             "Where the weights of features lie. range: in a table of rows over all ps, of which a step moves "
             "those of its batch; none: in a tensor that travels whole; auto: range where rows are sparse "
             "(libsvm, vw, criteo, data.hash), else none."),
      Choice(DT_KEY(model.init.kind), kRun,
             {{"zeros", InitKind::kZeros},
              {"constant", InitKind::kConstant},
              {"normal", InitKind::kNormal},
              {"glorot", InitKind::kGlorot}},
             "Initial weights. normal: mean 0; glorot: uniform, by the numbers of inputs and outputs.")
          .Unset("zeros; glorot for mlp"),
      Number(DT_KEY(model.init.value), kRun, {-1e30, 1e30}, "The initial weight of constant.")
          .Try("0.5")
          .Required()
          .OnlyWith("model.init.kind", {"constant"}),
      Number(DT_KEY(model.init.stddev), kRun, {0, 1e30, true}, "Standard deviation of normal.")
          .OnlyWith("model.init.kind", {"normal"}),
      Number(DT_KEY(model.init.seed), kRun, kFromZero,
             "Seed of the initial weights: the same seed gives the same weights, however they are placed."),
      Choice(DT_KEY(model.init.bias), kRun, {{"same", BiasInit::kSame}, {"zeros", BiasInit::kZeros}},
             "Initial biases. same: drawn as the weights are."),
      Number(DT_KEY(model.init.output_bias), kRun, {-1e30, 1e30},
             "The initial biases of the last layer. For a linear head: about the mean of the labels, so that "
             "training need not find it.")
          .OnlyWith("model.init.bias", {"zeros"}),
  };
}

std::vector<Field> DataFields() {
  return Joined({SourceFields<&DataConfig::train>("data.train"), SourceFields<&DataConfig::test>("data.test"),
                 CommonDataFields()});
}

std::vector<Field> RuleFields() {
  const std::string kind = "train.optimizer.kind";
  return {
      Choice(kind, DT_AT(train.optimizer.kind), kRun,
             {{"sgd", OptimizerKind::kSgd},
              {"momentum", OptimizerKind::kMomentum},
              {"adagrad", OptimizerKind::kAdagrad},
              {"rmsprop", OptimizerKind::kRmsprop},
              {"adam", OptimizerKind::kAdam},
              {"adamw", OptimizerKind::kAdamw},
              {"ftrl", OptimizerKind::kFtrl}},
             "How gradients become new weights; docs/optimizers.md has the formulas."),
      Number(DT_KEY(train.optimizer.learning_rate), kRun, {0, 1e30, true},
             "Learning rate; 0.001 where it is left out with adam or adamw."),
      Number(DT_KEY(train.optimizer.momentum), kRun, kFraction, "Share of the velocity that stays.")
          .OnlyWith(kind, {"momentum"}),
      Flag(DT_KEY(train.optimizer.nesterov), kRun, "Look ahead by one step of the velocity.")
          .OnlyWith(kind, {"momentum"}),
      Number(DT_KEY(train.optimizer.beta1), kRun, kFraction, "Share of the mean of gradients that stays.")
          .OnlyWith(kind, {"adam", "adamw"}),
      Number(DT_KEY(train.optimizer.beta2), kRun, kFraction, "Share of the mean of squares that stays.")
          .OnlyWith(kind, {"adam", "adamw"}),
      Number(DT_KEY(train.optimizer.rho), kRun, kFraction, "Share of the mean of squares that stays.")
          .OnlyWith(kind, {"rmsprop"}),
      Number(DT_KEY(train.optimizer.epsilon), kRun, {1e-30, 1e30},
             "Added to the root that divides, against division by nothing.")
          .OnlyWith(kind, {"adagrad", "rmsprop", "adam", "adamw"}),
      Number(DT_KEY(train.optimizer.initial_accumulator), kRun, {0, 1e30}, "Where the sum of squares starts.")
          .OnlyWith(kind, {"adagrad", "ftrl"}),
      Number(DT_KEY(train.optimizer.beta), kRun, {0, 1e30}, "Added to the root of the sum of squares.")
          .OnlyWith(kind, {"ftrl"}),
      Number(DT_KEY(train.optimizer.l1), kRun, {0, 1e30},
             "l1 * sign(weight) is added to the gradient; with ftrl the l1 of its paper: exact zeros."),
      Number(DT_KEY(train.optimizer.l2), kRun, {0, 1e30},
             "l2 * weight is added to the gradient, known as weight decay; with ftrl the l2 of its paper."),
      Number(DT_KEY(train.optimizer.weight_decay), kRun, {0, 1e30},
             "Decoupled weight decay: each update first takes learning rate * weight_decay * weight off the "
             "weight.")
          .OnlyWith(kind, {"adamw"}),
      Flag(DT_KEY(train.optimizer.decay_biases), kRun,
           "Whether l1, l2 and weight_decay act on biases too. false: on weights alone."),
      Number(DT_KEY(train.optimizer.clip_value), kRun, {0, 1e30, true},
             "Each element of a gradient is cut to -clip_value to clip_value, before l1 and l2.")
          .Try("1")
          .Unset("not cut"),
      Number(DT_KEY(train.optimizer.clip_norm), kRun, {0, 1e30, true},
             "A gradient whose norm over the whole model is larger is scaled down to this norm, before "
             "clip_value.")
          .Try("1")
          .Unset("not scaled"),
  };
}

std::vector<Field> ScheduleFields() {
  const std::string kind = "train.optimizer.schedule.kind";
  return {
      Choice(
          kind, DT_AT(train.optimizer.schedule.kind), kRun,
          {{"constant", ScheduleKind::kConstant},
           {"step", ScheduleKind::kStep},
           {"exponential", ScheduleKind::kExponential},
           {"inverse_time", ScheduleKind::kInverseTime},
           {"cosine", ScheduleKind::kCosine}},
          "The learning rate after n updates, beginning after the warm-up. step: rate * decay_rate^floor(n / "
          "decay_steps); exponential: the same without floor; inverse_time: rate / (1 + decay_rate * n / "
          "decay_steps); cosine: down to end_learning_rate along half a wave of decay_steps."),
      Number(DT_KEY(train.optimizer.schedule.decay_steps), kRun, {1, 1e15},
             "Updates from one change to the next; with cosine: until the end.")
          .Unit("updates")
          .Try("10000")
          .Required()
          .OnlyWith(kind, {"step", "exponential", "inverse_time", "cosine"}),
      Number(DT_KEY(train.optimizer.schedule.decay_rate), kRun, {0, 1e30, true},
             "What becomes of the learning rate in decay_steps.")
          .Try("0.5")
          .Required()
          .OnlyWith(kind, {"step", "exponential", "inverse_time"}),
      Number(DT_KEY(train.optimizer.schedule.end_learning_rate), kRun, {0, 1e30},
             "The learning rate from the end of the wave on.")
          .OnlyWith(kind, {"cosine"}),
      Number(DT_KEY(train.optimizer.schedule.warmup_steps), kRun, {0, 1e15},
             "In the first so many updates the learning rate grows linearly up to its full value; the "
             "schedule begins after them.")
          .Unit("updates"),
  };
}

std::vector<Field> LoopFields() {
  return {
      Choice(
          DT_KEY(train.mode), kRun,
          {{"async", TrainMode::kAsync}, {"sync", TrainMode::kSync}, {"ssp", TrainMode::kSsp}},
          "async: a gradient is applied when it arrives; sync: the mean of a round of gradients is applied "
          "at once; ssp: as async, but nobody gets further ahead of the slowest worker than train.staleness.")
          .OtherNames({{"synchronous", "sync"}, {"asynchronous", "async"}}),
      Number(DT_KEY(train.staleness), kRun, {0, 1e6},
             "How many steps the fastest worker may be ahead of the slowest; 0: lockstep.")
          .Unit("steps")
          .OnlyWith("train.mode", {"ssp"}),
      Number(DT_KEY(train.aggregate), kRun, {1, 1e6},
             "Gradients that a round waits for. Below the number of workers the others are backups: what "
             "comes too late for its round is dropped.")
          .Unit("gradients per update")
          .Try("2")
          .Unset("the number of workers")
          .OnlyWith("train.mode", {"sync"}),
      Number(DT_KEY(train.batch_size), kRun, {1, 1e9},
             "Examples in one step of a worker, on each of its devices.")
          .Unit("examples per step")
          .Try("64"),
      Number(DT_KEY(train.epochs), kRun, {1, 1e9},
             "Passes of each worker over its rows. The first reached of epochs, steps and max_secs ends the "
             "run.")
          .Unit("passes over the data")
          .Try("5")
          .Unset("no limit"),
      Number(DT_KEY(train.steps), kRun, {1}, "Global steps: gradients applied, of all workers together.")
          .Unit("global steps")
          .Try("1000")
          .Unset("no limit"),
      Number(DT_KEY(train.max_secs), kRun, {0, 1e9, true},
             "The run is saved, evaluated and done after so many seconds of training. A run that is resumed "
             "counts from its own start.")
          .Unit("seconds")
          .Try("3600")
          .Unset("no limit"),
      Choice(DT_KEY(train.reduce), kRun, {{"mean", Reduce::kMean}, {"sum", Reduce::kSum}},
             "What a gradient is of the rows of its update: their mean, or their sum. The sum is the mean "
             "times the rows, so it needs a learning rate that is so many times smaller."),
      Number(DT_KEY(train.in_flight), kRun, {1, 64}, "Exchanges with the ps that a worker may have open.")
          .Unit("open exchanges"),
  };
}

}  // namespace

std::vector<Field> JobFields() {
  return Joined({ClusterFields(), ModelFields(), DataFields(), LoopFields(), RuleFields(), ScheduleFields()});
}

}  // namespace dtrain
