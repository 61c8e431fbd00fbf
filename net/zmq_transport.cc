#include "net/zmq_transport.h"

#include <zmq.h>

#include <cerrno>

#include "base/check.h"
#include "net/zmq_channel.h"

namespace dtrain::net {

ZmqTransport::ZmqTransport(const ZmqOptions& options) : options_(options), context_(zmq_ctx_new()) {
  DT_CHECK(context_ != nullptr, errno);
  DT_CHECK(zmq_ctx_set(context_, ZMQ_IO_THREADS, options_.io_threads) == 0, options_.io_threads);
}

ZmqTransport::~ZmqTransport() {
  while (zmq_ctx_term(context_) != 0) DT_CHECK(errno == EINTR, errno);
}

std::unique_ptr<Channel> ZmqTransport::NewChannel() {
  return std::make_unique<ZmqChannel>(context_, options_);
}

}  // namespace dtrain::net
