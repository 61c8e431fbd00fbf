// SteppedChannel: a FakeChannel through which another thread sends. It takes a message only when the test
// allows it. While a message waits, the test may inspect everything and put in what is received next. Owner:
// the test.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>

#include "trainer/testing/fake_channel.h"

namespace dtrain {

class SteppedChannel : public FakeChannel {
 public:
  net::SendResult Send(net::NodeId peer, net::Message& message) override {
    std::unique_lock<std::mutex> hold(mutex_);
    ++asking_;
    changed_.notify_all();
    changed_.wait(hold, [&] { return open_ || asking_ <= allowed_; });
    return FakeChannel::Send(peer, message);
  }
  // Lets `count` messages be taken, and returns when the next one waits.
  void Take(int count) {
    std::unique_lock<std::mutex> hold(mutex_);
    allowed_ += count;
    changed_.notify_all();
    changed_.wait(hold, [&] { return asking_ > allowed_; });
  }
  // Lets all messages be taken from now on, so that the thread can end.
  void Open() {
    const std::lock_guard<std::mutex> hold(mutex_);
    open_ = true;
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int asking_ = 0;
  int allowed_ = 0;
  bool open_ = false;
};

// SteppedTransport: a transport with one SteppedChannel.
class SteppedTransport : public net::Transport {
 public:
  std::unique_ptr<net::Channel> NewChannel() override {
    auto made = std::make_unique<SteppedChannel>();
    channel = made.get();
    return made;
  }
  SteppedChannel* channel = nullptr;
};

}  // namespace dtrain
