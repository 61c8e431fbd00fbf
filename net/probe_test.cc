#include "net/probe.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include "base/error.h"
#include "net/listener.h"

namespace dtrain::net {

TEST_CASE("probe: an address where something listens is open") {
  const int descriptor = Listen("127.0.0.1:0");
  const ProbeResult result = Probe(ListeningAddress(descriptor), milliseconds(5000));
  CHECK(result.status == ProbeStatus::kOpen);
  CHECK(result.text.empty());
  close(descriptor);
}

TEST_CASE("probe: a port where nothing listens refuses, with the system's words") {
  const int descriptor = Listen("127.0.0.1:0");
  const std::string address = ListeningAddress(descriptor);
  close(descriptor);
  const ProbeResult result = Probe(address, milliseconds(5000));
  CHECK(result.status == ProbeStatus::kRefused);
  CHECK(result.text == "Connection refused (111)");
}

TEST_CASE("probe: a name that nobody knows is not found") {
  // RFC 6761 keeps .invalid free.
  const ProbeResult result = Probe("no-such-host.invalid:9001", milliseconds(100));
  CHECK(result.status == ProbeStatus::kNameNotFound);
  CHECK_FALSE(result.text.empty());
}

TEST_CASE("probe: what is no address is an error of the caller's user") {
  CHECK_THROWS_AS(Probe("nowhere", milliseconds(1)), UserError);
}

}  // namespace dtrain::net
