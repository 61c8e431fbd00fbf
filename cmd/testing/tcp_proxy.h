// TcpProxy: a network between two tasks: it forwards what comes in at its own address to another one, and can
// cut all connections, hold their bytes back, or refuse new ones. What is under way when a connection is cut
// is lost, at both ends. Thread: one of its own; all calls may come from any.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <list>
#include <mutex>
#include <string>
#include <thread>

#include "cmd/testing/process.h"

namespace dtrain::testing {

class TcpProxy {
 public:
  // `target`: "127.0.0.1:40001", where somebody need not listen yet.
  explicit TcpProxy(const std::string& target);
  ~TcpProxy();
  TcpProxy(const TcpProxy&) = delete;

  const std::string& address() const { return address_; }

  // Cuts all connections now.
  void Cut();
  // Cuts all connections each time when so many bytes more have gone through, in the middle of whatever that
  // is: once for each of `gaps`, the first counted from now.
  void CutAfter(std::deque<int64_t> gaps);
  // While true, nothing is forwarded and connections stay.
  void Hold(bool hold);
  // While true, new connections are closed as soon as they are made.
  void Refuse(bool refuse);

  int64_t cuts() const;
  // True when so many bytes have gone through, in both directions, by the deadline.
  bool WaitForBytes(int64_t bytes, milliseconds patience = kPatience) const;
  // True when so many new connections were refused by the deadline.
  bool WaitForRefused(int64_t connections, milliseconds patience = kPatience) const;

 private:
  // One direction of a connection.
  struct Flow {
    int from = -1;
    int to = -1;
    std::string waiting;  // read and not yet written
    bool ended = false;   // nothing more comes
  };
  struct Connection {
    Flow flows[2];
  };

  void Run();
  void Forward();
  void Accept();
  static bool Read(Flow& flow);
  bool Write(Flow& flow, bool* cut);
  static void Close(Connection& connection);
  void CloseAll();
  void Wake() const;

  const std::string target_;
  std::string address_;
  int listener_ = -1;
  int wake_ = -1;
  std::list<Connection> connections_;  // the thread's
  mutable std::mutex mutex_;           // for the fields below
  mutable std::condition_variable changed_;
  bool stop_ = false;
  bool cut_ = false;
  bool hold_ = false;
  bool refuse_ = false;
  int64_t cuts_ = 0;
  int64_t bytes_ = 0;
  int64_t refused_ = 0;
  std::deque<int64_t> gaps_;  // the first: what is left of it
  std::thread thread_;
};

}  // namespace dtrain::testing
