// OutputFile: a file that is written piece by piece without a name and gets its name when it is complete.
// Readers find the old file or the whole new one; if writing does not finish, even because the process is
// killed, nothing is left. If the file system has no files without a name (NFS), the file has a temporary
// name beside its own, and a killed process leaves it. A symbolic link stays a link, and a file that is
// replaced passes on its mode. Owner: the writer. Thread: one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace dtrain {

class OutputFile {
 public:
  // Makes missing directories. Throws UserError if no file can be made there. This and all calls below throw
  // IoError if the disk fails.
  explicit OutputFile(const std::string& path);
  ~OutputFile();  // removes what was not finished
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  void Write(const void* data, size_t bytes);
  void Write(std::string_view text) { Write(text.data(), text.size()); }
  // Overwrites bytes that were written before.
  void WriteAt(int64_t offset, const void* data, size_t bytes);
  int64_t size() const { return size_; }
  // Syncs the file and gives it its name.
  void Finish();

 private:
  void Open();
  void Sync() const;
  void Rename() const;
  [[noreturn]] void Fail(int error) const;

  const std::string path_;       // for messages
  const std::string target_;     // the final name, with links resolved
  const std::string temporary_;  // beside target_
  bool has_name_ = false;        // it is at temporary_
  int fd_ = -1;
  int64_t size_ = 0;
};

}  // namespace dtrain
