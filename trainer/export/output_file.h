// OutputFile: a file that is written piece by piece without a name and gets it when it is complete: whoever
// reads it finds the old one or the whole new one, and of one that is never finished, however its process
// ends, nothing is left. Where the file system knows no files without a name (NFS) it has one beside, which a
// process that is killed leaves. A link stays one, and what is replaced hands on its mode.
// Owner: who writes. Thread: one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace dtrain {

class OutputFile {
 public:
  // Makes missing directories. Throws UserError where no file can be made there; IoError, as all below, where
  // the disk fails.
  explicit OutputFile(const std::string& path);
  ~OutputFile();  // what was not finished goes
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  void Write(const void* data, size_t bytes);
  void Write(std::string_view text) { Write(text.data(), text.size()); }
  // In place of bytes that were written before.
  void WriteAt(int64_t offset, const void* data, size_t bytes);
  int64_t size() const { return size_; }
  // Syncs, and gives it its name.
  void Finish();

 private:
  void Open();
  void Sync() const;
  void Rename() const;
  [[noreturn]] void Fail(int error) const;

  const std::string path_;       // for messages
  const std::string target_;     // what it names in the end
  const std::string temporary_;  // beside it
  bool has_name_ = false;        // `temporary_`
  int fd_ = -1;
  int64_t size_ = 0;
};

}  // namespace dtrain
