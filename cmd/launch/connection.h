// Connection: one run of the command that leads to a guard. Owner: the relay. Thread: the relay's.
#pragma once

#include <poll.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "cmd/child_process.h"
#include "cmd/launch/pending_writer.h"

namespace dtrain {

// How a task ended, as its guard tells.
struct TaskEnd {
  int exit_code = 0;
  int signal = 0;  // 0: none
};

class Connection {
 public:
  // Starts the command. Throws IoError.
  Connection(const std::string& task, const std::vector<std::string>& command);
  ~Connection();  // kills what still runs
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // What poll() has to wait for; of the lines of the other side only where they can be passed on.
  void AddTo(std::vector<pollfd>* waiting, bool take_lines) const;
  // Says now and then that somebody is here; when it has to again.
  TimePoint StayAlive();
  void Send(const char* line);
  // Lines of standard error go to `line`, words of the report that are not about the task's start and end to
  // `report`, with what follows.
  void Read(const std::function<void(const std::string&)>& line,
            const std::function<void(const std::string&, const std::string&)>& report, bool take_lines);
  void Kill();
  // True once the command has ended; what it said last is then to be read.
  bool HasEnded() { return process_->HasEnded(); }

  bool started() const { return started_; }
  const std::optional<TaskEnd>& end() const { return end_; }
  // What ssh or the shell there said last, not the task; may be empty.
  const std::string& last_words() const { return last_words_; }

 private:
  void TakeReport(const std::string& line,
                  const std::function<void(const std::string&, const std::string&)>& report);

  std::unique_ptr<ChildProcess> process_;
  std::unique_ptr<PipeLines> report_;
  int orders_fd_ = -1;
  std::unique_ptr<PendingWriter> orders_;
  TimePoint next_alive_;
  bool started_ = false;
  std::optional<TaskEnd> end_;
  std::string last_words_;
};

}  // namespace dtrain
