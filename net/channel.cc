#include "net/channel.h"

#include <sys/random.h>

#include <cerrno>

#include "base/check.h"

namespace dtrain::net {

NodeId NewNodeId() {
  constexpr NodeId kFirstByte = NodeId{0xff} << 56;
  NodeId id = 0;
  while ((id & kFirstByte) == 0) {
    const ssize_t got = getrandom(&id, sizeof(id), 0);
    DT_CHECK(got == sizeof(id) || (got < 0 && errno == EINTR), got, errno);
    if (got < 0) id = 0;
  }
  return id & ~NodeId{1};
}

}  // namespace dtrain::net
