#include "trainer/input/sources.h"

#include <glob.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <map>
#include <tuple>
#include <utility>

#include "base/error.h"
#include "trainer/config/data_config.h"
#include "trainer/config/user_text.h"
#include "trainer/input/command_output.h"

namespace dtrain {
namespace {

constexpr std::string_view kCommandMark = "exec:";

bool IsPattern(const std::string& path) {
  std::error_code ignored;  // then it is a pattern
  return path.find_first_of("*?[") != std::string::npos && !std::filesystem::exists(path, ignored);
}

std::vector<std::string> Matches(const std::string& pattern) {
  glob_t found{};
  const int failed = glob(pattern.c_str(), 0, nullptr, &found);
  std::vector<std::string> files(found.gl_pathv, found.gl_pathv + (failed == 0 ? found.gl_pathc : 0));
  globfree(&found);
  std::sort(files.begin(), files.end());
  return files;
}

bool IsEmptyFile(const std::string& path) {
  struct stat about {};
  return stat(path.c_str(), &about) == 0 && S_ISREG(about.st_mode) && about.st_size == 0;
}

// Adds a file, or those in a directory, but none whose name begins with _ or . : Spark and Hive write such
// ones beside the rows.
void AddFiles(const std::string& path, const std::string& key, std::vector<std::string>* files) {
  std::error_code ignored;
  if (!std::filesystem::is_directory(path, ignored)) return files->push_back(path);
  std::vector<std::string> found;
  for (const auto& entry : std::filesystem::directory_iterator(path, ignored)) {
    const char first = entry.path().filename().string()[0];
    if (first != '_' && first != '.' && !entry.is_directory()) found.push_back(entry.path().string());
  }
  if (found.empty()) {
    throw UserError("{}: a directory without files; {} must name files of rows, or a directory of them.",
                    path, key);
  }
  std::sort(found.begin(), found.end());
  files->insert(files->end(), found.begin(), found.end());
}

// Two names of one file are the same file: its rows would count twice.
void RefuseTwice(const std::vector<std::string>& files, const std::string& key) {
  using Identity = std::tuple<dev_t, ino_t, std::string>;
  std::map<Identity, std::string> seen;
  for (const std::string& file : files) {
    struct stat about {};
    const bool exists = stat(file.c_str(), &about) == 0;
    const auto [first, is_new] =
        seen.emplace(exists ? Identity(about.st_dev, about.st_ino, "") : Identity(0, 0, file), file);
    if (is_new) continue;
    throw UserError("{}: named twice in {}{}; each file is read once. Name it once.", file, key,
                    first->second == file ? "" : fmt::format(", first as {}", first->second));
  }
}

}  // namespace

std::vector<std::string> SourceFiles(const std::vector<std::string>& paths, const std::string& key) {
  std::vector<std::string> files;
  for (const std::string& path : paths) {
    if (IsPipe(path) && paths.size() > 1) {
      throw UserError("{}: {} stands alone, and is no part of a list. Try exec:cat FILE...", key,
                      Shown(path));
    }
    if (IsPipe(path)) {
      files.push_back(path);
      continue;
    }
    const std::vector<std::string> matches = IsPattern(path) ? Matches(path) : std::vector<std::string>{path};
    if (matches.empty()) throw UserError("{}: no file fits this pattern. Is {} right?", path, key);
    for (const std::string& match : matches) AddFiles(match, key, &files);
  }
  RefuseTwice(files, key);
  // A program that writes a table in parts writes one of 0 bytes where a share of it has no rows.
  const auto rest = std::remove_if(files.begin(), files.end(), IsEmptyFile);
  if (rest != files.begin()) files.erase(rest, files.end());
  return files;
}

std::string FirstMissing(const std::vector<std::string>& paths) {
  const auto is_missing = [](const std::string& path) {
    if (IsPipe(path)) return false;
    if (IsPattern(path)) return Matches(path).empty();
    struct stat about {};
    return stat(path.c_str(), &about) != 0 && errno == ENOENT;
  };
  const auto found = std::find_if(paths.begin(), paths.end(), is_missing);
  return found == paths.end() ? "" : *found;
}

std::unique_ptr<InputBytes> OpenInput(const std::string& path, const std::string& key,
                                      const std::vector<std::string>& environment) {
  if (!IsCommand(path)) return std::make_unique<InputBytes>(path, key);
  const std::string name = Shown(path);
  return std::make_unique<InputBytes>(StartCommand(name, path.substr(kCommandMark.size()), environment),
                                      name);
}

SourceInputs::SourceInputs(const std::vector<std::string>& paths, std::string key,
                           std::vector<std::string> environment)
    : key_(std::move(key)), environment_(std::move(environment)), files_(SourceFiles(paths, key_)) {}

bool SourceInputs::is_pipe() const { return files_.size() == 1 && IsPipe(files_[0]); }

std::unique_ptr<InputBytes> SourceInputs::Open(size_t index) {
  return pipe_ != nullptr ? std::move(pipe_) : OpenInput(files_[index], key_, environment_);
}

std::unique_ptr<InputBytes> SourceInputs::OpenHead(size_t index) {
  std::unique_ptr<InputBytes> input = Open(index);
  if (input->is_pipe()) input->KeepHead();
  return input;
}

void SourceInputs::GiveBack(std::unique_ptr<InputBytes> input) {
  if (!input->is_pipe()) return;
  input->Rewind();
  pipe_ = std::move(input);
}

int64_t SourceInputs::FileBytesFrom(size_t index) const {
  int64_t bytes = 0;
  for (; index < files_.size(); ++index) {
    struct stat about {};
    if (!IsPipe(files_[index]) && stat(files_[index].c_str(), &about) == 0) bytes += about.st_size;
  }
  return bytes;
}

int64_t SourceInputs::ExpectedContentFrom(size_t index, int64_t content_bytes) const {
  const int64_t all = FileBytesFrom(index), behind = FileBytesFrom(index + 1);
  const double ratio =
      all > behind ? static_cast<double>(content_bytes) / static_cast<double>(all - behind) : 1;
  return content_bytes + static_cast<int64_t>(ratio * static_cast<double>(behind));
}

}  // namespace dtrain
