// Sources: what a data.*.path or --data names: files in a list, patterns of names, or alone standard input or
// a command. Every reader of data finds and opens its files here. Errors are UserErrors that name the key.
// Thread: any; a SourceInputs one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "trainer/input/input_bytes.h"

namespace dtrain {

// Returns the files that `paths` name: each path or, for a pattern, what fits it, in the order of names; the
// order of `paths` is kept. A path that exists is no pattern; a directory stands for its files, but none
// whose name begins with _ or a dot. Files of 0 bytes are left out if others have more. "-" and exec: stand
// for themselves. Throws UserError if no file fits a pattern, if a file is there twice, or if a pipe is not
// alone.
std::vector<std::string> SourceFiles(const std::vector<std::string>& paths, const std::string& key);

// Returns the first of `paths` that is not here: a file that does not exist, or a pattern that nothing fits;
// empty if there is none. Pipes are taken to be here.
std::string FirstMissing(const std::vector<std::string>& paths);

// Opens a file, standard input or a command. `environment` ("NAME=VALUE") is added to that of a command.
// A path of a checkpoint's config must not come here: it could run anything.
std::unique_ptr<InputBytes> OpenInput(const std::string& path, const std::string& key,
                                      const std::vector<std::string>& environment = {});

// SourceInputs: the inputs of one source, opened as often as they are needed. A pipe is opened once; what was
// read of it in a first pass, to fit the columns, is given again. Owner: the loader of the data. Thread: one.
class SourceInputs {
 public:
  // No first pass reads more of a pipe than this, since it is kept in memory.
  static constexpr int64_t kMaxHeadBytes = 64 << 20;

  // Finds the files and opens none.
  SourceInputs(const std::vector<std::string>& paths, std::string key,
               std::vector<std::string> environment = {});

  const std::string& key() const { return key_; }
  const std::vector<std::string>& files() const { return files_; }
  size_t size() const { return files_.size(); }
  bool is_pipe() const;

  // Opens file `index`, at its begin. A pipe can be opened a second time only after GiveBack().
  std::unique_ptr<InputBytes> Open(size_t index);
  // The same for a first pass, which ends with GiveBack() and reads of a pipe kMaxHeadBytes at most
  // (CsvReader::head_bytes()).
  std::unique_ptr<InputBytes> OpenHead(size_t index);
  void GiveBack(std::unique_ptr<InputBytes> input);

  // Returns the bytes of the files from `index` on, as they lie there; 0 for what is not a file.
  int64_t FileBytesFrom(size_t index) const;
  // Returns about how long the content of the files from `index` on is, where that of `index` is so long and
  // the others are packed as it is.
  int64_t ExpectedContentFrom(size_t index, int64_t content_bytes) const;

 private:
  const std::string key_;
  const std::vector<std::string> environment_;
  const std::vector<std::string> files_;
  std::unique_ptr<InputBytes> pipe_;  // given back, at its begin
};

}  // namespace dtrain
