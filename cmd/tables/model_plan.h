// LabelChoice, ModelPlan and RunPlan: which column of a table is the label, the model for it, and how long it
// trains: the last two are the same for sparse rows. Thread: any; plain data and free functions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/survey/table_profile.h"

namespace dtrain {

// LabelChoice: the column that the model predicts.
struct LabelChoice {
  size_t column = 0;
  std::string reason;  // "its name says so"; empty: the user has chosen it
};

// Returns the column that is named `wanted` or has this number. If `wanted` is empty, returns a column whose
// name says that it is a label, else the last that can be one. Throws UserError if there is none.
LabelChoice ChooseLabel(const TableProfile& table, const std::string& wanted);

// ModelPlan: the model for a label. `problem` says why there is none.
struct ModelPlan {
  const char* kind = "linear";
  int64_t outputs = 1;
  bool names = false;     // numbers are names of classes: data.label_type
  std::string loss;       // keys of `model` beside the kind: "loss: poisson"; empty: squared, or of classes
  bool log_link = false;  // its predictions are e^output
  std::string comment, problem;

  bool IsLinear() const { return std::string_view(kind) == "linear"; }
  // As a config has it: "model: {kind: softmax, outputs: 3}    # species: 3 classes". `more`: other keys.
  std::string Yaml(const std::string& label, const std::string& more) const;
};
ModelPlan PlanModel(const ColumnProfile& label);

// Returns what a person should know of a label: the model, the share of its rarest class and what always
// naming the most frequent one is right in, or that a quantity is skewed.
std::string LabelNote(const ColumnProfile& label, const ModelPlan& plan, const std::string& name);

// Throws UserError for a quantity whose values, or their differences, are too large or small for a run.
void CheckScale(const std::string& path, const std::string& name, const ColumnProfile& label,
                const ModelPlan& plan);

// Returns where a linear model begins, as a key of `model`: at the label's mean, or with a log link at its
// logarithm; of others empty.
std::string BiasText(const ColumnProfile& label, const ModelPlan& plan);

// Compares the labels of the table at `path` with those of the table to test on. Adds the rows whose class a
// run refuses to *bad_rows, with a note. Throws UserError if most have such a class, or none has a label.
void CompareLabels(const std::string& path, const ColumnProfile& label, const ModelPlan& plan,
                   const std::string& test_path, const ColumnProfile& test, int64_t* bad_rows,
                   std::vector<std::string>* notes);

// RunPlan: the rows that are trained on, batches, epochs, and which other rows are evaluated when.
struct RunPlan {
  bool holds_out = false, has_test = false;
  int64_t rows = 1, batch = 1, epochs = 1, eval_every = 1;

  // The keys of data for `bad` rows that cannot be read, and for rows that are held out.
  std::string RowsYaml(int64_t bad, const ModelPlan& model) const;
  std::string EvalYaml() const;
  // Adds that no row is left to evaluate on, if that is so.
  void AddNote(std::vector<std::string>* notes) const;
};
// The plan for so many rows, in epochs up to `max_epochs`. With rows of another file to test on none are held
// out.
RunPlan PlanRun(int64_t rows, bool has_test, int64_t max_epochs = 400);

// Returns the learning rate: of a linear model `rate` times the label's deviation, in two digits, since a
// step of adam or adagrad is about the rate; else `rate`.
double LearningRate(double rate, const ColumnProfile& label, const ModelPlan& plan);

// Returns a name or a path as YAML: in quotes, unless nobody could take it for anything but a text.
std::string YamlText(const std::string& text);

}  // namespace dtrain
