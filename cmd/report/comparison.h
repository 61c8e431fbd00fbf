// Comparison: several runs in a table, the best one first, with the keys of their configs that differ.
// Thread: any.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "cmd/common/run_files.h"

namespace dtrain {

class Comparison {
 public:
  // `by`: the figure that makes a run the best one, a key of the result; empty: validation_accuracy or, if
  // runs that are done have none, the first of test_accuracy, validation_loss, test_loss, progressive_loss
  // and final_loss that they all have. Throws UserError for a figure that runs cannot be compared by.
  Comparison(std::vector<RunFiles> runs, const std::string& by);

  const std::vector<RunFiles>& runs() const { return runs_; }  // the best one first; those without it last
  const std::string& by() const { return by_; }
  // The figures that some run has, the one that counts first, and the keys that differ: those first that say
  // most about a job, and names of files and addresses last.
  const std::vector<std::string>& figures() const { return figures_; }
  const std::vector<std::string>& keys() const { return keys_; }

  // Each has a row for each run: the figure that counts, the keys, and the other figures. The text has the
  // first keys only, and leaves out the last columns if lines were longer than `width`.
  std::string Text(size_t width) const;
  std::string Csv() const;
  Json ToJson() const;
  // The same as a page, and the curves of all runs together.
  std::string Page() const;

 private:
  struct Column {
    std::string name;
    bool is_figure;  // otherwise a key
  };

  std::vector<Column> Columns(const std::vector<std::string>& keys) const;
  std::vector<std::string> FirstKeys() const;
  std::string AllKeys() const;
  static std::string CellOf(const RunFiles& run, const Column& column);
  bool IsThere(const std::string& figure) const;
  void CheckFigure(const std::string& by) const;
  void ChooseFigure(const std::string& by);
  void FindFigures();
  void FindKeys();
  std::string Curves() const;

  std::vector<RunFiles> runs_;
  std::string by_;
  std::vector<std::string> figures_, keys_;
};

}  // namespace dtrain
