// MetricsPort: an HTTP port with one page, /metrics. It has one thread, at most kMaxReaders connections, and
// a deadline for each, so that readers who say nothing, without end, or very slowly cost the run nothing. If
// all connections are taken, the oldest whose request is not whole makes room for the next reader. It is no
// prometheus::Exposer: its threads have stacks of 100 KiB, and OpenBLAS takes 61 of them for memory of the
// thread, so they overflow. Owner: RunMonitor. Thread: any.
#pragma once

#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"

namespace dtrain {

class MetricsPort {
 public:
  static constexpr size_t kMaxReaders = 32;
  static constexpr size_t kMaxRequest = 8192;
  static constexpr milliseconds kPatience{2000};

  // Takes over `listener`, a socket that listens. `password`: of the user dtrain; empty: readers need none.
  // `text()` makes the page, on the port's thread. `patience`: with a request and its answer.
  MetricsPort(int listener, const std::string& password, std::function<std::string()> text,
              milliseconds patience = kPatience);
  ~MetricsPort();
  MetricsPort(const MetricsPort&) = delete;
  MetricsPort& operator=(const MetricsPort&) = delete;

  const std::string& address() const { return address_; }

 private:
  struct Reader {
    int fd = -1;
    TimePoint deadline;
    std::string request;
    std::string answer;  // empty: the request is not whole yet
    size_t sent = 0;
  };

  void Run();
  // The oldest whose request is not whole; the end: each is being answered.
  std::vector<Reader>::iterator OldestAsker();
  void Accept();
  // Goes on with a reader whose socket is ready. Returns false when it is served, or gone.
  bool Serve(Reader* reader) const;
  std::string Answer(const std::string& request) const;

  const std::string authorization_;  // what the header must say; empty: anything
  const std::function<std::string()> text_;
  const milliseconds patience_;
  const int listener_;
  const std::string address_;
  const int stop_;
  std::vector<Reader> readers_;  // of the thread
  std::thread thread_;
};

}  // namespace dtrain
