#include "cmd/launch/connection.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/console.h"
#include "base/error.h"
#include "cmd/launch/protocol.h"

namespace dtrain {
namespace {

constexpr milliseconds kAliveEvery{1000};

void MakePipe(int* ends) {
  if (pipe2(ends, O_CLOEXEC) != 0) throw NoDescriptor("no pipe", errno);
}

// A line of a task's log, or its live line: in any format it has a mark that ssh's own lines have not.
bool IsOfTask(const std::string& line) {
  return line.find(" | ") != std::string::npos || line.front() == '{' || Console::IsRelayed(line);
}

}  // namespace

Connection::Connection(const std::string& task, const std::vector<std::string>& command) {
  int input[2], output[2];
  MakePipe(input);
  MakePipe(output);
  ChildCommand child;
  child.name = task;
  child.program = command.front();
  child.arguments.assign(command.begin() + 1, command.end());
  child.input = input[0];
  child.output = output[1];
  process_ = std::make_unique<ChildProcess>(child);
  close(input[0]);
  close(output[1]);
  orders_fd_ = input[1];
  orders_ = std::make_unique<PendingWriter>(orders_fd_);
  report_ = std::make_unique<PipeLines>(output[0], kLongestReport);
  next_alive_ = Clock::now();
}

Connection::~Connection() {
  orders_.reset();
  close(orders_fd_);
}

void Connection::AddTo(std::vector<pollfd>* waiting, bool take_lines) const {
  if (report_->fd() >= 0) waiting->push_back({report_->fd(), POLLIN, 0});
  if (orders_->pending()) waiting->push_back({orders_fd_, POLLOUT, 0});
  if (take_lines && process_->output_fd() >= 0) waiting->push_back({process_->output_fd(), POLLIN, 0});
}

TimePoint Connection::StayAlive() {
  orders_->Flush();
  if (Clock::now() >= next_alive_) {
    if (!orders_->pending()) Send(kAliveLine);
    next_alive_ = Clock::now() + kAliveEvery;
  }
  return next_alive_;
}

void Connection::Send(const char* line) { orders_->Add(std::string(line) + "\n"); }

void Connection::Read(const std::function<void(const std::string&)>& line,
                      const std::function<void(const std::string&, const std::string&)>& report,
                      bool take_lines) {
  report_->Read([&](const std::string& text) { TakeReport(text, report); });
  if (!take_lines) return;
  process_->ReadLines([&](const std::string& text) {
    // bash's second line on a program that it cannot run says nothing.
    const bool empty = text.find(": Success") != std::string::npos;
    if (!IsOfTask(text) && !empty) last_words_ = text.substr(0, text.find_first_of("\r\n"));
    line(text);
  });
}

void Connection::TakeReport(const std::string& line,
                            const std::function<void(const std::string&, const std::string&)>& report) {
  const std::string text = line.substr(0, line.find('\n'));
  const size_t space = text.find(' ');
  const std::string word = text.substr(0, space);
  const std::string rest = space == std::string::npos ? "" : text.substr(space + 1);
  if (word == kStartedWord) {
    started_ = true;
    last_words_.clear();
  } else if (word == kExitWord) {
    end_ = TaskEnd{atoi(rest.c_str()), 0};
  } else if (word == kSignalWord) {
    end_ = TaskEnd{0, atoi(rest.c_str())};
  } else if (started_) {
    report(word, rest);
  }
}

void Connection::Kill() { process_->Signal(SIGKILL); }

}  // namespace dtrain
