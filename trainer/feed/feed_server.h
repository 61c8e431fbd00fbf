// FeedServer: worker 0's side of data.split: feed: answers each request for a batch with the rows that
// split: shard would have given the worker that asks, whoever asks in which order and how often.
// A worker's answers on their way are bounded in number: one more is not made, and is asked for again.
// Owner and thread: a Feeder.
#pragma once

#include <atomic>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/log.h"
#include "net/channel.h"
#include "net/codec.h"
#include "net/lent_buffer.h"
#include "trainer/config/config.h"
#include "trainer/data/order.h"
#include "trainer/data/source.h"

namespace dtrain {

class FeedServer {
 public:
  // `channel` is bound already. UserError where a worker would have no batch, or a batch is too large to
  // send.
  FeedServer(const Config& config, std::shared_ptr<const DataSet> train, net::Channel& channel, Logger& log);

  // Requests of other runs are refused. Thread: any.
  void set_run_id(uint64_t run_id) { run_id_ = run_id; }
  // Requests that arrive from here on get what `plan` has left. Failure where it is not of these data.
  // Thread: any one.
  void Follow(const DataPlan& plan);
  // The same rows, otherwise scaled: requests that arrive from here on get those. Thread: any one.
  void UseRows(std::shared_ptr<const DataSet> train);
  // Worker 0 has its Start, and has said Follow() and UseRows() as that has it. Until then only those get
  // batches who have not started: the others' would have been scaled or dealt in another way. Thread: any.
  void Start() { started_ = true; }
  // Takes in what has arrived, waiting until `deadline` where nothing is to be done, and answers one request.
  void Serve(TimePoint deadline);

 private:
  struct Request {
    net::NodeId from = 0;
    net::Envelope envelope;
    int worker = 0;
    int64_t local_step = 0;
    bool started = false;
  };
  // A batch on its way, while `values` is lent.
  struct Outgoing {
    net::LentBuffer values;
    Request request;
  };
  // A worker that is fed.
  struct Client {
    StepRows rows;
    std::vector<Outgoing> outgoing;
  };

  void TakeArrived(TimePoint deadline);
  // The first request that may be answered now.
  std::deque<Request>::iterator NextRequest();
  void Keep(const Request& request);
  void ChangeAsAsked();
  void Handle(net::NodeId from, const net::Message& message);
  void OnNeedBatch(net::NodeId from, const wire::Envelope& envelope, const wire::NeedBatch& need);
  void Refuse(const Request& request, wire::Reason reason, const std::string& text);
  void Drop(net::NodeId from, const char* why);
  void Answer(const Request& request);
  // Of one asker, for one step.
  static bool IsSame(const Request& a, const Request& b);
  static bool OnItsWay(const Client& client, const Request& request);
  Outgoing* FreeSlot(Client& client) const;
  net::BatchHead Fill(Client& client, const Request& request, Outgoing& slot, net::LentBytes* values);

  const Config& config_;
  std::shared_ptr<const DataSet> train_;
  net::Channel& channel_;
  Logger& log_;
  net::Encoder encoder_;
  std::atomic<uint64_t> run_id_{0};
  std::atomic<bool> started_{false};
  int64_t max_rows_ = 0;
  int64_t max_steps_ = 0;
  int64_t max_bytes_ = 0;
  std::vector<Client> clients_;  // that of worker i is i - 1
  DataPlan plan_;                // of the thread that calls Follow()
  std::mutex mutex_;
  std::shared_ptr<const RemainingData>
      asked_rest_;                              // under mutex_: to be dealt from, since Follow(); else null
  std::shared_ptr<const DataSet> asked_train_;  // under mutex_: since UseRows(); else null
  std::deque<Request> requests_;
  uint64_t dropped_ = 0;
};

// Feeder: the thread of worker 0 that has the FeedServer, so that worker 0's own long steps do not delay the
// others. Owner: worker 0. It serves until it is destroyed.
class Feeder {
 public:
  // As for FeedServer. It serves at once, and workers that were faster have asked already: `run_id` is the
  // run that worker 0 has joined.
  Feeder(const Config& config, std::shared_ptr<const DataSet> train, std::unique_ptr<net::Channel> channel,
         uint64_t run_id, Logger& log);
  ~Feeder();
  Feeder(const Feeder&) = delete;
  Feeder& operator=(const Feeder&) = delete;

  void set_run_id(uint64_t run_id) { server_.set_run_id(run_id); }
  // As FeedServer's.
  void Follow(const DataPlan& plan) { server_.Follow(plan); }
  void UseRows(std::shared_ptr<const DataSet> train) { server_.UseRows(std::move(train)); }
  void Start() { server_.Start(); }
  // Throws where the thread has ended by an error: the others get no batches any more.
  void CheckAlive() const;
  // What has gone through the channel up to the last answer.
  net::ChannelStats stats() const;

 private:
  void Run();

  const std::unique_ptr<net::Channel> channel_;
  Logger& log_;
  FeedServer server_;
  std::atomic<bool> stop_{false};
  std::atomic<bool> dead_{false};
  std::atomic<uint64_t> bytes_sent_{0};
  std::atomic<uint64_t> bytes_received_{0};
  std::thread thread_;
};

}  // namespace dtrain
