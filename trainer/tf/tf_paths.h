// TfPaths: which files a path to a checkpoint of TensorFlow means. Thread: any.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace dtrain {

struct TfPaths {
  std::string prefix;               // as TensorFlow calls it: "run/model.ckpt-5"
  std::string said_by;              // what has named it: "run/checkpoint"; empty: the user
  std::string index;                // of V2; empty: it is V1
  std::vector<std::string> tables;  // of V1
};

// Takes a prefix, an .index or .data file, a directory whose file `checkpoint` names one, that has one, or is
// a SavedModel, and a file of V1, where ????? may stand for the numbers of parts. Unset: the path names
// nothing of these. Throws UserError for a directory that does not say which of several, and for one whose
// `checkpoint` names what is not there.
std::optional<TfPaths> FindTfCheckpoint(const std::string& path);

// Returns model_checkpoint_path of the text of a file `checkpoint`; empty: it names none.
std::string LatestCheckpoint(const std::string& text);

}  // namespace dtrain
