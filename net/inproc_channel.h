// InprocChannel: a Channel between threads of one process; see inproc_transport.h.
// Signals do not end Receive() early: a caller that looks at flags passes near deadlines.
// Owner: whoever called InprocTransport::NewChannel. Thread: the one that uses it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "net/channel.h"
#include "net/inproc_hub.h"

namespace dtrain::net {

class InprocChannel final : public Channel {
 public:
  explicit InprocChannel(InprocHub& hub);
  // What was sent can still be received at the other ends; what was not received here is released.
  ~InprocChannel() override;
  InprocChannel(const InprocChannel&) = delete;
  InprocChannel& operator=(const InprocChannel&) = delete;

  std::string Bind(const std::string& address) override;
  // Never: there are no descriptors here.
  std::string BindDescriptor(int listening_fd) override;
  void Connect(NodeId id, const std::string& address) override;
  void Disconnect(NodeId id) override;
  SendResult Send(NodeId peer, Message& message) override;
  ReceiveResult Receive(TimePoint deadline, NodeId* from, Message* message) override;
  ChannelStats stats() const override { return stats_; }

 private:
  struct Conversation {
    NodeId id = 0;
    std::string address;
    std::shared_ptr<InprocLink> link;  // null until somebody is bound there
  };

  Conversation* FindConversation(NodeId id);
  SendResult SendToBinder(Conversation& conversation, Message& message);
  SendResult SendToConnector(NodeId peer, Message& message);
  void CloseLink(Conversation& conversation);
  bool Take(TimePoint deadline, InprocEntry* entry);

  InprocHub& hub_;
  const std::shared_ptr<InprocInbox> inbox_;  // shared with the links, which may outlive the channel
  std::string bound_name_;                    // empty: not bound
  std::vector<Conversation> conversations_;
  ChannelStats stats_;
};

}  // namespace dtrain::net
