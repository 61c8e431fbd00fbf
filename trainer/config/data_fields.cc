// The table's rows of the section data.
#include <string>

#include "trainer/config/config.h"
#include "trainer/config/field_row.h"
#include "trainer/config/item_text.h"
#include "trainer/config/user_text.h"

namespace dtrain {
namespace {

constexpr Scope kRun = Scope::kRun;
constexpr Scope kTask = Scope::kTask;
constexpr Limits kFromZero = {0};

// Formats of which each row is a line of text, or a record.
constexpr std::initializer_list<const char*> kTables = {"csv", "tfrecord"};
constexpr std::initializer_list<const char*> kTexts = {"csv", "tfrecord", "libsvm", "vw", "criteo"};

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
  FieldRow kind = Choice(
      format, &SourceMember<source, &DataSourceConfig::format>, kRun,
      {{"idx", DataFormat::kIdx},
       {"csv", DataFormat::kCsv},
       {"tfrecord", DataFormat::kTfrecord},
       {"libsvm", DataFormat::kLibsvm},
       {"vw", DataFormat::kVw},
       {"criteo", DataFormat::kCriteo},
       {"synthetic", DataFormat::kSynthetic}},
      train ? "What workers train on. idx: MNIST's form, plain or gzip, bytes / 255; csv: a table with a "
              "label; tfrecord: TensorFlow's records, each a tf.train.Example; libsvm: LABEL INDEX:VALUE...; "
              "vw: Vowpal Wabbit's text; criteo: its table of clicks; "
              "synthetic: made here."
            : "What is evaluated on; as for data.train.");
  return {
      train ? std::move(kind).Required() : std::move(kind).Unset("no test set"),
      Row(section + ".path", &SourceMember<source, &DataSourceConfig::path>, FieldType::kInputPaths, kTask,
          "Files of rows, plain, .gz or .zst, which are one table in this order: a path, a pattern "
          "(part-*.csv, in the order of names) or a list of them. exec:COMMAND reads what a shell's command "
          "prints, and - standard input.")
          .Try("table.csv")
          .Required()
          .OnlyWith(format, kTexts),
      Row(section + ".label", &SourceMember<source, &DataSourceConfig::label>, FieldType::kColumn, kRun,
          "The column of labels: its name in the header, or its number; the first is 0. A name that looks "
          "like a number stands in quotes. All others but data.ignore are features. Labels are numbers, or "
          "for classes names: these count from 0 in their order, by value where all are numbers.")
          .Unit("a column's name, or its number")
          .Try("0")
          .Required()
          .OnlyWith(format, kTables),
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
  return std::move(row).Within({0, 1e15}).Unit("rows held out: their number, or a share below 1").Try("100");
}

std::vector<Field> CommonDataFields() {
  return {
      HeldOut(),
      Choice(
          DT_KEY(data.validation_by), kRun,
          {{"first", HeldOutBy::kFirst}, {"seed", HeldOutBy::kSeed}, {"stratified", HeldOutBy::kStratified}},
          "Which training rows are held out. seed: rows drawn by data.seed; stratified: drawn so that each "
          "class has its share of them. Both need a share in data.validation."),
      Choice(DT_KEY(data.split), kRun,
             {{"shard", Split::kShard},
              {"full", Split::kFull},
              {"feed", Split::kFeed},
              {"dynamic", Split::kDynamic}},
             "shard: each worker trains on its own 1/n of the rows; full: each on all of them; feed: as "
             "shard, but worker 0 alone reads data and sends the others their batches; dynamic: ps 0 gives "
             "each worker rows as it gets on, so a slow one trains on fewer, and those of a lost one go on."),
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
             "category or a gap stay 0 and 1. Of wide_deep it is for the numbers of a row, as data.numbers "
             "has them.")
          .OnlyWith("data.train.format", {"csv", "tfrecord", "criteo"}),
      Choice(DT_KEY(data.numbers), kRun, {{"log", NumberScale::kLog}, {"plain", NumberScale::kPlain}},
             "What becomes of a number x of a row before layers take it. log: ln(1 + x), and of one below 0 "
             "-ln(1 - x); plain: x itself. A missing one is 0.")
          .OnlyWith("model.kind", {"wide_deep"}),
      Row(DT_KEY(data.ignore), FieldType::kColumns, kRun,
          "Columns that are no features, such as ids and dates: names in the header, or numbers from 0.")
          .Unit("columns by name, or by number")
          .Try("[customer_id]")
          .Unset("none")
          .OnlyWith("data.train.format", kTables),
      Row(DT_KEY(data.categories), FieldType::kColumns, kRun,
          "Columns of texts: each text that the training rows have becomes a feature of its own, 0 or 1.")
          .Unit("columns by name, or by number")
          .Try("[country]")
          .Unset("none")
          .OnlyWith("data.train.format", kTables),
      Number(DT_KEY(data.max_categories), kRun, {1, 100000},
             "The features of one column of data.categories: those of its most frequent texts, and if it has "
             "more texts one for all others together.")
          .Unit("texts of a column")
          .OnlyWith("data.train.format", kTables),
      Choice(
          DT_KEY(data.unseen), kRun, {{"other", UnseenCategory::kOther}, {"error", UnseenCategory::kError}},
          "What becomes of a text in a column of categories that the training rows did not have. other: the "
          "feature of all others, or where there is none no feature at all, and counted; error: the row "
          "cannot be read.")
          .OnlyWith("data.train.format", kTables),
      Row(DT_KEY(data.dates), FieldType::kColumns, kRun,
          "Columns of dates, with or without a time: they become days since 1970. Dates are as 2024-01-31, "
          "or "
          "as COLUMN=FORM says, of these forms: " +
              ListText(DateForms(), "and") +
              "; MON is a month's name, and seconds, milliseconds and microseconds count from 1970.")
          .Unit("columns by name, or by number, each perhaps with =FORM")
          .Try("[signup, \"seen=MM/DD/YYYY\"]")
          .Unset("none")
          .OnlyWith("data.train.format", kTables),
      Row(DT_KEY(data.weight), FieldType::kColumn, kRun,
          "A column that says how much each row counts: a row of weight 2 is as good as two rows. It is no "
          "feature. Of criteo I1 to I13 or C1 to C26; of libsvm label: it stands behind the label, as in "
          "1:0.5.")
          .Unit("a column's name, or its number")
          .Try("weight")
          .Unset("all rows count 1")
          .OnlyWith("data.train.format", {"csv", "tfrecord", "libsvm", "criteo"}),
      Row(DT_KEY(data.offset), FieldType::kColumn, kRun,
          "A column of numbers that are added to the output of their rows, before any link, wherever the "
          "model is trained, evaluated or asked; a row without one cannot be read. It is no feature. For "
          "counts or "
          "sums over different exposures give the logarithm of the exposure. Of vw initial: the initial "
          "prediction behind label and weight, as in 1 1 0.5 |, and 0 where there is none.")
          .Unit("a column's name, or its number")
          .Try("log_exposure")
          .Unset("nothing is added")
          .OnlyWith("data.train.format", {"csv", "tfrecord", "vw"}),
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
          .OnlyWith("data.train.format", kTexts),
      Choice(
          DT_KEY(data.label_type), kRun, {{"auto", LabelType::kAuto}, {"names", LabelType::kNames}},
          "What the labels of classes are. auto: whole numbers from 0, or names, as the first one is; whole "
          "numbers that do not count from 0 are names, unless model.outputs is set. names: each different "
          "text is a class, also a number, such as 1992.")
          .OnlyWith("data.train.format", kTexts),
      Row(DT_KEY(data.classes), FieldType::kTexts, kRun,
          "The names of the classes, which have the numbers 0, 1 and so on in this order: labels are these "
          "texts. Nothing is then read to find them.")
          .Unit("names")
          .Try("[no, yes]")
          .Unset("those that come, as data.label_type says")
          .OnlyWith("data.train.format", kTexts),
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
          .OnlyWith("data.train.format", kTables),
      Row(DT_KEY(data.missing_values), FieldType::kTexts, kRun,
          "Other texts, or numbers, that stand for a missing value (data.missing): in all columns, or as "
          "COLUMN=MARKER in one of them. Of a number all spellings are meant: -999 and -999.0.")
          .Unit("MARKER, or COLUMN=MARKER")
          .Try("[unknown, \"age=-999\"]")
          .Unset("none")
          .OnlyWith("data.train.format", kTables),
      Row(DT_KEY(data.number_format), FieldType::kTexts, kRun,
          "How numbers are written, by an example: in all columns of numbers, or as COLUMN=EXAMPLE in one of "
          "them. The example has the marks of decimals and thousands, and a currency, a unit or % if there "
          "is one, which is left out: 12.5% is 12.5. Brackets round a number, and any minus, make it "
          "negative; 0x1F is hexadecimal.")
          .Unit("EXAMPLE, or COLUMN=EXAMPLE")
          .Try("[\"price=$1,234.50\"]")
          .Unset("plain numbers")
          .OnlyWith("data.train.format", {"csv"}),
      Choice(DT_KEY(data.delimiter), kRun,
             {{"auto", Delimiter::kAuto},
              {"comma", Delimiter::kComma},
              {"tab", Delimiter::kTab},
              {"semicolon", Delimiter::kSemicolon},
              {"bar", Delimiter::kBar},
              {"control_a", Delimiter::kControlA},
              {"blanks", Delimiter::kBlanks},
              {"caret", Delimiter::kCaret},
              {"tilde", Delimiter::kTilde},
              {"colon", Delimiter::kColon}},
             "What separates the fields of CSV files. control_a: byte 1; blanks: any number of blanks and "
             "tabs; auto: of comma, tab, semicolon, bar and byte 1 what gives the first lines equally many "
             "fields.")
          .OnlyWith("data.train.format", {"csv"}),
      Choice(
          DT_KEY(data.quotes), kRun,
          {{"double", Quotes::kDouble},
           {"backslash", Quotes::kBackslash},
           {"single", Quotes::kSingle},
           {"none", Quotes::kNone}},
          "What stands round a field of a CSV file that has delimiters inside. double: \"..\", with quotes "
          "inside doubled; backslash: the same, and a backslash stands before a quote or a delimiter that "
          "is a character; single: '..'; none: quotes are characters.")
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
          .OnlyWith("data.train.format", kTexts),
      Number(DT_KEY(data.bad_rows_limit), kRun, {0, 1e12},
             "The run ends when data.train or data.test has more rows that cannot be read, in all its files "
             "together. Each counts once, however often it is read.")
          .Unit("rows")
          .OnlyWith("data.bad_rows", {"skip"}),
      Choice(DT_KEY(data.cache), kRun,
             {{"memory", DataCache::kMemory},
              {"device", DataCache::kDevice},
              {"none", DataCache::kNone},
              {"file", DataCache::kFile}},
             "Where a worker keeps its training rows. device: in the memory of its GPU too, if they fit; a "
             "step then sends the numbers of its rows and not the rows. Without a GPU it is memory. none: "
             "nowhere, they are read from their files in each epoch, in constant memory; file: parsed, and "
             "images unpacked, in a file under data.cache_dir."),
      NumberOr(
          "auto", kAutoThreads, DT_KEY(data.threads), kTask, {1, 64},
          "Threads of one task that parse plain files of text into memory; the rows are the same for any "
          "number. auto: the processors of the machine, shared among its workers. Packed files and pipes "
          "are parsed by one.")
          .Unit("threads")
          .Try("4")
          .OnlyWith("data.cache", {"memory", "device"}),
      Row(DT_KEY(data.cache_dir), FieldType::kOutputPath, kTask,
          "The directory of cached rows (data.cache: file). Runs of the same data share one cache; delete it "
          "when you like. With none it keeps where the rows are, so that tasks on one disk pass over all "
          "rows "
          "together, and later runs begin at once.")
          .Unset("dtrain-cache in the working directory; with none nothing is kept")
          .OnlyWith("data.cache", {"file", "none"}),
      Number(DT_KEY(data.cache_wait_s), kTask, {0, 1e6, true},
             "How many seconds a task waits for another one that makes the file in data.cache_dir which both "
             "need, such as one of another run; then it ends with an error.")
          .Unit("seconds")
          .OnlyWith("data.cache", {"file", "none"}),
      Number(
          DT_KEY(data.shuffle_rows), kRun, {1, 1e9},
          "The rows that are shuffled among each other: so many are in memory at a time, and unless they are "
          "sparse at most 16 MiB of them. They are of many places of the data.")
          .Unit("rows")
          .OnlyWith("data.cache", {"none", "file"}),
      Number(DT_KEY(data.fit_rows), kRun, {1, 1e12},
             "Categories, means and with data.cache: none or file the scale are those of the first so many "
             "training rows behind data.validation.")
          .Unit("rows")
          .OnlyWith("data.train.format", {"csv", "tfrecord", "criteo"}),
      Number(
          DT_KEY(data.index_base), kRun, {0, 1},
          "The index of the first feature. scikit-learn's dump_svmlight_file begins at 0 unless it is told "
          "otherwise.")
          .OnlyWith("data.train.format", {"libsvm"}),
      Number(
          DT_KEY(data.hash_bits), kRun, {1, 39},
          "Features are numbered by so many bits of a hash of their names: 2^hash_bits features, and those "
          "of one number are one feature.")
          .Unit("bits")
          .Try("20")
          .Unset(
              "18, as Vowpal Wabbit has it; a table without data.hash and data.bags: features are not hashed")
          .OnlyWith("data.train.format", {"csv", "tfrecord", "vw", "criteo"}),
      Row(DT_KEY(data.hash), FieldType::kColumns, kRun,
          "Columns with more texts than data.categories is for: each text is a feature, whose "
          "number is a hash of column and text. Rows are then sparse, and all other columns are numbers.")
          .Unit("columns by name, or by number")
          .Try("[url]")
          .Unset("none")
          .OnlyWith("data.train.format", kTables),
      Row(DT_KEY(data.bags), FieldType::kColumns, kRun,
          "Columns of several texts, each of which is a feature as of data.hash: lists of any length in "
          "TFRecord, a;b;c in CSV, or a:0.5;b:2 with weights. COLUMN=WEIGHTS names a column that has the "
          "weights, one for each text; COLUMN=none takes colons for a part of the text.")
          .Unit("columns by name, or by number, each perhaps with =WEIGHTS")
          .Try("[tags]")
          .Unset("none")
          .OnlyWith("data.train.format", kTables),
      Choice(DT_KEY(data.bag_separator), kRun,
             {{"semicolon", Delimiter::kSemicolon},
              {"comma", Delimiter::kComma},
              {"bar", Delimiter::kBar},
              {"blanks", Delimiter::kBlanks}},
             "What separates the texts of data.bags in CSV. blanks: any number of them.")
          .Unset("semicolon")
          .OnlyWith("data.train.format", kTables),
      Row(DT_KEY(data.crosses), FieldType::kTexts, kRun,
          "Pairs of namespaces, each by its first letter, or : for any: a pair of their features is a "
          "feature, too, as with Vowpal Wabbit's -q.")
          .Unit("two letters each")
          .Try("[\"ab\"]")
          .Unset("none")
          .OnlyWith("data.train.format", {"vw"}),
  };
}

}  // namespace

std::vector<Field> DataFields() {
  return Joined({SourceFields<&DataConfig::train>("data.train"), SourceFields<&DataConfig::test>("data.test"),
                 CommonDataFields()});
}

}  // namespace dtrain
