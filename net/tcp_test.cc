#include "net/tcp.h"

#include <doctest/doctest.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/error.h"
#include "net/address.h"

namespace dtrain::net {
namespace {

std::string ListenError(const std::string& address) {
  try {
    close(Listen(address));
  } catch (const UserError& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("listener: port 0 becomes the port that the system chose") {
  const int descriptor = Listen("127.0.0.1:0");
  const Address address = ParseAddress(ListeningAddress(descriptor));
  CHECK(address.host == "127.0.0.1");
  CHECK(address.port != 0);
  close(descriptor);
}

TEST_CASE("listener: a name is looked up, as an IPv4 name where it is one") {
  const int descriptor = Listen("localhost:0");
  CHECK(ListeningAddress(descriptor).find("127.0.0.1:") == 0);
  close(descriptor);
}

TEST_CASE("listener: a taken port is an error with address, errno and remedy") {
  const int descriptor = Listen("127.0.0.1:0");
  const std::string address = ListeningAddress(descriptor);
  CHECK(ListenError(address) ==
        address + ": cannot listen: Address already in use (98). Another program (pid " +
            std::to_string(getpid()) + ") has this port; stop it or name another port in cluster.ps.");
  close(descriptor);
}

TEST_CASE("listener: an address of another host is an error that names net.bind") {
  // RFC 5737 keeps 192.0.2.0/24 for documents.
  CHECK(ListenError("192.0.2.1:9001") ==
        "192.0.2.1:9001: cannot listen: Cannot assign requested address (99). This host does not have that "
        "address; run this task on its own host, or name an address of this host in net.bind.");
}

TEST_CASE("listener: a name that nobody knows is an error that says so") {
  const std::string text = ListenError("no-such-host.invalid:9001");
  CHECK(text.find("no-such-host.invalid:9001: cannot listen: ") == 0);
  CHECK(text.find("is not known here") != std::string::npos);
}

TEST_CASE("listener: a descriptor that does not listen is refused") {
  const int descriptor = socket(AF_INET, SOCK_STREAM, 0);
  CHECK_THROWS_AS(ListeningAddress(descriptor), UserError);
  close(descriptor);
  CHECK_THROWS_AS(ListeningAddress(-1), UserError);
}

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
