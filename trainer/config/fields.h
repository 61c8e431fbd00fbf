// Fields: the one table of config keys. A row gives name, type, limits, scope, help and where the value lies
// in Config; loader, dump, handshake and docs/config.md all read it. The default is what a fresh Config
// holds. To add a key: one member in the header of its section (data_config.h, ...) and one row in
// job_fields.cc, data_fields.cc or task_fields.cc.
// Thread: any; the table is immutable.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "trainer/config/launch_config.h"

namespace dtrain {

// What a key holds, whatever its C++ type: null (unset), a scalar (a choice by its name), a list, or
// a map of machines.
using Value = std::variant<std::monostate, bool, int64_t, double, std::string, std::vector<std::string>,
                           std::vector<int64_t>, LaunchHosts>;

inline bool IsNull(const Value& value) { return std::holds_alternative<std::monostate>(value); }

enum class FieldType {
  kBool,
  kInt,
  kDouble,
  kChoice,
  kAddress,
  kInputPath,
  kOutputPath,
  kText,
  kColumn,  // ColumnNumber()
  kHosts,   // a map of maps (host_map.h)
  // Lists.
  kInts,
  kAddresses,
  kPins,  // "VARIABLE=PS"
  kTexts,
  kColumns,
  kInputPaths,  // one path stands for a list of one
};

inline bool IsList(FieldType type) { return type >= FieldType::kInts; }

// run: equal in every task, compared when a task joins. task: its own affair (paths, threads, log).
enum class Scope { kRun, kTask };

// The values that a number may have. `above`: `min` itself is not allowed.
struct Limits {
  double min = 0;
  double max = std::numeric_limits<double>::infinity();
  bool above = false;
};

struct Field {
  std::string key;  // "train.batch_size"
  FieldType type = FieldType::kBool;
  Scope scope = Scope::kRun;
  Limits limits;
  std::string unit;                  // "examples per step", said after a limit
  std::string example;               // "64": a value that works, offered in messages; may be empty
  std::vector<std::string> choices;  // of a path: words that are no path
  // What others call a choice, in small letters, and the choice: not taken, but understood in messages.
  std::map<std::string, std::string> other_names;
  std::string unset;      // what null means, for the documentation
  bool required = false;  // where it applies
  // Has an effect only where another key has one of these values; both empty: always.
  std::string only_key;
  std::vector<std::string> only_values;
  std::string alias_of;  // another name of this key; not dumped
  // A key of one part's optimizer (train.optimizer.wide.kind) has these: the key of train.optimizer that it is
  // given in place of, and the model.kind that has the part. If it is null, that key's value holds, and it is
  // not dumped.
  std::string common_key;
  std::string only_model;
  std::string help;
  std::function<Value(const Config&)> get;
  std::function<void(const Value&, Config*)>
      set;  // of the field's type, within its limits; null: the default

  // The key that an alias stands for; of any other field its own.
  const std::string& Name() const { return alias_of.empty() ? key : alias_of; }
};

// In the order of the documentation; the keys of a section are neighbours.
const std::vector<Field>& Fields();
// A config in which no key is set.
const Config& Defaults();
// Its rows: those of job_fields.cc and of task_fields.cc, which follow each other in the documentation.
// Those of data_fields.cc are among the first.
std::vector<Field> JobFields();
std::vector<Field> DataFields();
std::vector<Field> TaskFields();

// Null when there is no such key.
const Field* FindField(const std::string& key);

// The row of a key, or all rows of a section; none where there is neither. The empty name is the whole file.
std::vector<const Field*> FieldsIn(const std::string& name);

// The names directly under a section: "mode", "batch_size", ..., "optimizer"; none where it is no section.
std::vector<std::string> NamesIn(const std::string& section);

// "train" + "mode" = "train.mode"; "" + "train" = "train".
std::string JoinKey(const std::string& section, const std::string& name);

// Whether the key has an effect in this config (only_key, only_values, only_model). One of train.optimizer
// has it for all parts that do not have it themselves.
bool Applies(const Field& field, const Config& config);

// The value of a key, or, where it is the key of a part and null, of the common one.
Value ValueOrCommon(const Field& field, const Config& config);

// The first key of which `config` has another value than `saved`, the config of the run that has trained the
// weights, although they are of no use with another: "model.activation = tanh; must be relu". Unset: none.
std::optional<std::string> OtherMeaning(const Config& saved, const Config& config);

// What an unknown name may mean.
struct Meant {
  std::vector<std::string> names;  // of keys and sections, in full; empty: nothing is close
  std::string question;            // `did you mean "learning_rate"?`, `dtrain has no dropout.`, or empty
};
// What `name` in `section` may mean, whatever its case: words of other tools first, then what is close in the
// section, then what is close anywhere.
Meant DidYouMean(const std::string& section, const std::string& name);

// As YAML: 0.01, "text" (quoted; choices are not), null, ["a:1", "b:2"], [300, 100].
std::string ValueText(const Field& field, const Value& value);

// The values that a number or a choice may have: ">= 1", "> 0", "1 to 64", "linear, softmax". Empty for other
// types.
std::string LimitsText(const Field& field);

}  // namespace dtrain
