// Scratch: a directory of its own for each report, gone when that is. Owner: the program.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <string>

namespace dtrain::bench {

class Scratch {
 public:
  Scratch() : path_(std::filesystem::temp_directory_path() / "dtrain-bench-XXXXXX") {
    if (mkdtemp(path_.data()) == nullptr) throw std::runtime_error(path_ + " cannot be made");
  }
  ~Scratch() { std::filesystem::remove_all(path_); }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

}  // namespace dtrain::bench
