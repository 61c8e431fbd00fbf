// StatusFile: keeps status.json in the directory of a run up to date, for people who look at a run that may
// be dead, and its token, which lets those who can read the directory ask the run itself (dtrain status). A
// thread writes, so that a slow disk does not hold the run. Owner: RunTask of ps 0. Thread: any.
#pragma once

#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

namespace dtrain {

class StatusFile {
 public:
  static constexpr char kName[] = "status.json";
  static constexpr char kToken[] = "status.token";

  // `directory` is there. If it cannot be written, token() is empty and nothing is kept.
  explicit StatusFile(std::string directory);
  ~StatusFile();  // writes what was put last
  StatusFile(const StatusFile&) = delete;
  StatusFile& operator=(const StatusFile&) = delete;

  const std::string& token() const { return token_; }
  // Takes the newest status; never waits.
  void Put(std::string json);

 private:
  void Run();

  const std::string directory_;
  std::string token_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::string next_;  // empty: the file has the newest
  bool over_ = false;
  std::thread thread_;
};

}  // namespace dtrain
