// What a replica is made of: all that a ps knows, as records (net/messages.fbs, ReplicaOpen). CopyItems makes
// them of a ps as it is now; RecordReader takes them, and those of later changes, into the parameters and
// tables of a replica, or of a ps that is filled from one. Owner: ReplicaLink, ReplicaHolder. Thread: the ps
// loop.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "net/codec.h"
#include "net/lent_buffer.h"
#include "trainer/config/cluster_config.h"
#include "trainer/model/layout.h"
#include "trainer/ps/gradient_reader.h"
#include "trainer/ps/state_image.h"
#include "trainer/ps/task_table.h"
#include "trainer/ps/update_rule.h"
#include "trainer/shard/shard.h"

namespace dtrain {

// PsState: what answers of a ps depend on.
struct PsState {
  const Config& config;
  TaskId ps;
  const Layout& layout;
  Shard& shard;
  TaskTable& members;
  UpdateRule& rule;
  StateImage* leader = nullptr;  // of ps 0: the leader's state
};

// The record of what the ps knows of a worker; its keys are not forgotten with it, unless `forgets`.
net::Message WorkerRecord(const PsState& state, const Member& member, bool forgets,
                          const net::Envelope& envelope, net::Encoder* encoder);
// The effect of a message on its worker, once the parameters have it.
wire::ReplicaExchange ExchangeOf(const Member& member);

// The checksum of a unit of a copy, which is given back.
uint64_t ChecksumOf(const net::LentBytes& unit);

// CopyItems: the records of a copy, by number: of the leader's state, of each worker, of the keys that it has
// asked for, and of each unit of the shard. Valid until a worker asks for rows or leaves.
class CopyItems {
 public:
  explicit CopyItems(const PsState& state);
  int64_t size() const { return first_unit_ + state_.shard.unit_count(); }
  // Those before it are of the leader's state.
  int64_t first_worker() const { return first_worker_; }
  // The units are the last items, in their order.
  int64_t first_unit() const { return first_unit_; }
  net::Message Make(int64_t item, const net::Envelope& envelope, net::Encoder* encoder);

 private:
  struct Keys {
    int worker = 0;
    int64_t block = 0;
    uint64_t request = 0;
    RowDesk::Keys keys;
  };
  net::Message MakeKeys(const Keys& of, const net::Envelope& envelope, net::Encoder* encoder);

  const PsState state_;
  const std::string leader_;
  const int64_t first_worker_;
  const int64_t first_key_;
  std::vector<Keys> keys_;
  int64_t first_unit_ = 0;
  net::LentBuffers encoded_;
};

class RecordReader {
 public:
  explicit RecordReader(const PsState& state);
  // Takes a record. Returns what is wrong with it, and then the copy must not be used any more; empty:
  // nothing.
  std::string Take(const wire::Envelope& envelope, net::Message* record);

 private:
  std::string TakePush(const wire::Push& push, net::Message* record);
  std::string TakeKeys(const wire::Pull& pull, const net::Message& record);
  std::string TakeRound(const wire::ReplicaRound& round, const net::Message& record);
  std::string TakeWorker(const wire::ReplicaWorker& worker);
  std::string TakeLeader(const wire::ReplicaLeader& leader);
  std::string TakeUnit(const wire::Piece& unit, const net::Message& record);

  const PsState state_;
  GradientReader gradients_;
  KeyList keys_;         // of a round
  std::string changes_;  // of the leader's state, before all of them are here
};

}  // namespace dtrain
