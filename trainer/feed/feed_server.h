// FeedServer: worker 0's side of data.split: feed. It answers each request for a batch with the rows that
// split: shard would give the worker that asks, in any order and any number of times. It bounds the answers
// on their way to a worker: it makes none beyond that, and the worker asks again.
// Owner and thread: Feeder.
#pragma once

#include <atomic>
#include <deque>
#include <exception>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/log.h"
#include "base/peer_log.h"
#include "net/channel.h"
#include "net/codec.h"
#include "net/lent_buffer.h"
#include "trainer/config/choices.h"
#include "trainer/feed/feed_batch.h"
#include "trainer/order/order.h"
#include "trainer/peer/stranger_budget.h"
#include "trainer/sets/source.h"

namespace dtrain {

class FeedServer {
 public:
  // `channel` is bound. Throws UserError when a worker would get no batch or a batch is too large to send.
  FeedServer(const Config& config, std::shared_ptr<const DataSet> train, net::Channel& channel, Logger& log);

  // Thread: any. Requests of other runs, or without the token that ps 0 gives to the workers of this one, are
  // refused, and the answer tells nothing.
  void set_run(uint64_t run_id, uint64_t token) {
    run_id_ = run_id;
    token_ = token;
  }
  // Thread: any one. Deals what `plan` has left to all further requests. Throws Failure when it does not fit
  // the data.
  void Follow(const DataPlan& plan);
  // Thread: any one. Gives all further requests these rows, which are the same with another scale.
  void UseRows(std::shared_ptr<const DataSet> train);
  // Thread: any. Worker 0 has its Start and has called Follow() and UseRows() accordingly. Before that only
  // workers without a Start get batches: for the others they would have another scale or order.
  void Start() { started_ = true; }
  // Takes what has arrived, waiting until `deadline` if there is nothing to do, and answers one request.
  void Serve(TimePoint deadline);

 private:
  struct Request {
    net::NodeId from = 0;
    net::Envelope envelope;
    int worker = 0;
    int64_t local_step = 0;
    bool started = false;
  };
  // A batch on its way while `values` is lent.
  struct Outgoing {
    net::LentBuffer values;
    Request request;
  };
  // A jump to another epoch costs a permutation of all rows. A worker makes few: when it joins, starts or
  // comes back. So many at once are answered to each worker, and so many in a second.
  static constexpr double kMaxJumps = 8;
  static constexpr double kJumpsPerSecond = 2;
  // A worker that is fed.
  struct Client {
    StepRows rows;
    std::vector<Outgoing> outgoing;
    std::vector<RowRun> needed;  // of rows that are read from files: those of its window and the next
    net::NodeId node = 0;        // its latest conversation; 0: none yet
    int64_t last_step = 0;       // the latest that was answered
    double jumps = kMaxJumps;    // how many more jumps to other epochs may be answered now
    TimePoint jumps_counted{};
  };

  void TakeArrived(TimePoint deadline);
  // The first request that may be answered now; end(): none.
  std::deque<Request>::iterator NextRequest();
  void Keep(const Request& request);
  void Announce(size_t client, const std::vector<RowRun>& runs);
  void ChangeAsAsked();
  bool IsClient(net::NodeId from) const;
  void Handle(net::NodeId from, const net::Message& message);
  void OnNeedBatch(net::NodeId from, uint32_t key, const wire::Envelope& envelope,
                   const wire::NeedBatch& need);
  void Know(Client& client, net::NodeId from);
  void Refuse(const Request& request, wire::Reason reason, const char* why, const std::string& text);
  void Drop(net::NodeId from, const char* why);
  void Answer(const Request& request);
  bool MayJump(Client& client, int64_t local_step);
  // Whether the same peer asks for the same step.
  static bool IsSame(const Request& a, const Request& b);
  static bool OnItsWay(const Client& client, const Request& request);
  Outgoing* FreeSlot(Client& client) const;
  net::BatchHead Fill(Client& client, const Request& request, Outgoing& slot, net::LentBytes* values);

  const Config& config_;
  FedRows rows_;
  net::Channel& channel_;
  Logger& log_;
  net::Encoder encoder_;
  std::atomic<uint64_t> run_id_{0};
  std::atomic<uint64_t> token_{0};  // 0: none, and nobody is answered
  std::atomic<bool> started_{false};
  int64_t max_steps_ = 0;
  std::vector<Client> clients_;  // of worker i at i - 1
  DataPlan plan_;                // used by the thread that calls Follow()
  std::mutex mutex_;
  std::shared_ptr<const RemainingData> asked_rest_;  // under mutex_, from Follow(); null: none
  std::shared_ptr<const DataSet> asked_train_;       // under mutex_, from UseRows(); null: none
  std::deque<Request> requests_;
  StrangerBudget strangers_;
  PeerLog dropped_;
};

// Feeder: the thread of worker 0 that runs the FeedServer, so that long steps of worker 0 do not delay the
// others. Owner: worker 0. It serves until it is destroyed.
class Feeder {
 public:
  // Serves at once, since faster workers have asked already. `run_id`, `token`: of the run that worker 0 has
  // joined. Otherwise like FeedServer.
  Feeder(const Config& config, std::shared_ptr<const DataSet> train, std::unique_ptr<net::Channel> channel,
         uint64_t run_id, uint64_t token, Logger& log);
  ~Feeder();
  Feeder(const Feeder&) = delete;
  Feeder& operator=(const Feeder&) = delete;

  void set_run(uint64_t run_id, uint64_t token) { server_.set_run(run_id, token); }
  // See FeedServer.
  void Follow(const DataPlan& plan) { server_.Follow(plan); }
  void UseRows(std::shared_ptr<const DataSet> train) { server_.UseRows(std::move(train)); }
  void Start() { server_.Start(); }
  // Throws when the thread has ended with an error, after which the others get no batches: a UserError as it
  // is, as of a file that has changed.
  void CheckAlive() const;
  // The traffic of the channel up to the last answer.
  net::ChannelStats stats() const;

 private:
  void Run();

  const std::unique_ptr<net::Channel> channel_;
  Logger& log_;
  FeedServer server_;
  std::atomic<bool> stop_{false};
  std::atomic<bool> dead_{false};
  std::exception_ptr fault_;  // written before dead_
  std::atomic<uint64_t> bytes_sent_{0};
  std::atomic<uint64_t> bytes_received_{0};
  std::thread thread_;
};

}  // namespace dtrain
