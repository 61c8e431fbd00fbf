#include "net/address.h"

#include <doctest/doctest.h>

#include "base/error.h"

namespace dtrain::net {

TEST_CASE("address: names and numeric addresses are parsed and printed as they were") {
  for (const char* text : {"10.0.0.1:9001", "[::1]:9001", "[fe80::1%eth0]:1", "ps-0.example:65535",
                           "node_1:0", "localhost:80", "1a:2"}) {
    CAPTURE(text);
    CHECK(AddressText(ParseAddress(text)) == text);
    CHECK(ZmqEndpoint(ParseAddress(text)) == std::string("tcp://") + text);
  }
  const Address v6 = ParseAddress("[::1]:9001");
  CHECK(v6.host == "::1");
  CHECK(v6.port == 9001);
  CHECK(v6.is_ipv6);
  CHECK_FALSE(v6.is_name);
  CHECK(ParseAddress("ps:1").is_name);
  CHECK_FALSE(ParseAddress("10.0.0.1:1").is_name);
}

TEST_CASE("address: on one machine it may be the path of a Unix socket") {
  const Address address = ParseAddress("unix:/run/dtrain/ps-0");
  CHECK(address.path == "/run/dtrain/ps-0");
  CHECK(AddressText(address) == "unix:/run/dtrain/ps-0");
  CHECK(ZmqEndpoint(address) == "ipc:///run/dtrain/ps-0");
  CHECK(IsLoopback(address.host));
  for (const std::string& path : {std::string(), std::string("relative"), std::string("/a b"),
                                  "/" + std::string(107, 'x'), std::string("/a\n")}) {
    CAPTURE(path);
    CHECK_THROWS_WITH_AS(ParseAddress("unix:" + path), doctest::Contains("absolute path of at most 107"),
                         UserError);
  }
}

TEST_CASE("address: what is none is refused with the text, the rule and an example") {
  for (const char* text : {"",
                           ":",
                           "host",
                           "host:",
                           ":9001",
                           "host:port",
                           "host:65536",
                           "host:-1",
                           "host: 1",
                           "host:1 ",
                           "10.0.0.1.2:1",
                           "10.0.0:1",
                           "300.0.0.1:1",
                           "::1:9001",
                           "[::1]",
                           "[::1:9001",
                           "[host]:1",
                           "ho st:1",
                           "-host:1",
                           "host/x:1",
                           "tcp://host:1",
                           "[fe80::1%]:1",
                           "a;b:1",
                           "*:1"}) {
    CAPTURE(text);
    std::string message;
    try {
      ParseAddress(text);
    } catch (const UserError& error) {
      message = error.what();
    }
    CHECK(message.find(std::string("\"") + text + "\": ") == 0);
    CHECK(message.find("such as 10.0.0.1:9001") != std::string::npos);
  }
}

TEST_CASE("address: only hosts that cannot be reached from elsewhere are loopback") {
  for (const char* host : {"127.0.0.1", "127.255.1.2", "::1", "localhost", "LocalHost"})
    CHECK(IsLoopback(host));
  for (const char* host : {"10.0.0.1", "0.0.0.0", "::", "128.0.0.1", "example", "localhost.example", "::2"}) {
    CHECK_FALSE(IsLoopback(host));
  }
}

TEST_CASE("address: wildcards are known in every spelling") {
  for (const char* host : {"0.0.0.0", "::", "0:0::0"}) CHECK(IsWildcard(host));
  for (const char* host : {"127.0.0.1", "0.0.0.1", "::1", "localhost", "0"}) CHECK_FALSE(IsWildcard(host));
}

}  // namespace dtrain::net
