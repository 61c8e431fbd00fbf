#include "trainer/config/host_map.h"

#include "trainer/config/fields.h"

#include <doctest/doctest.h>

#include "trainer/config/dump.h"
#include "trainer/config/load_test_util.h"

namespace dtrain {
namespace {

const char* const kSmall = "trainer/config/testdata/small.yaml";  // its addresses are all of localhost

LaunchHosts Load(const std::vector<std::string>& sets) { return LoadConfig(kSmall, sets, {}).launch.hosts; }

std::string ErrorOfHosts(const std::string& map) { return LoadError(kSmall, {"launch.hosts=" + map}); }

bool Says(const std::string& map, const std::string& words) {
  const std::string error = ErrorOfHosts(map);
  CAPTURE(error);
  const bool said = error.find(words) != std::string::npos;
  CHECK(said);
  return said;
}

TEST_CASE("host map: every setting is read, and the dump reads back the same") {
  const std::string map =
      "{10.0.0.1: {user: ann, address: gate.example, directory: /data/a b, program: bin/dtrain,"
      " environment: {A: \"$(touch x) 'q' \\\"d\\\" `b` ; -c\", B: \"\"}, device: {kind: cuda, ids: [0, 3]}},"
      " node2: {}}";
  const LaunchHosts hosts = Load({"launch.hosts=" + map});
  REQUIRE(hosts.size() == 2);
  const LaunchHost& first = hosts.at("10.0.0.1");
  CHECK(first.user == "ann");
  CHECK(first.address == "gate.example");
  CHECK(first.directory == "/data/a b");
  CHECK(first.program == "bin/dtrain");
  CHECK(first.environment.at("A") == "$(touch x) 'q' \"d\" `b` ; -c");
  CHECK(first.environment.at("B").empty());
  CHECK(first.device.at("ids") == "[0, 3]");
  CHECK(first.device.at("kind") == "cuda");
  CHECK(Load({"launch.hosts=" + ValueText(*FindField("launch.hosts"), hosts)}) == hosts);
  const std::string dump = DumpConfig(LoadConfig(kSmall, {"launch.hosts=" + map}, {}));
  CHECK(LoadConfig(WriteTestFile("hosts.yaml", dump), {}, {}).launch.hosts == hosts);
}

TEST_CASE("host map: a flag changes what it names, and null puts the default back") {
  const LaunchHosts hosts = Load({"launch.hosts={a: {user: ann, directory: /d}, b: {user: bob}}",
                                  "launch.hosts.a.user=eve", "launch.hosts.b=null"});
  REQUIRE(hosts.size() == 1);
  CHECK(hosts.at("a").user == "eve");
  CHECK(hosts.at("a").directory == "/d");
  CHECK(Load({"launch.hosts={a: {user: ann}}", "launch.hosts=null"}).empty());
}

TEST_CASE("host map: what is wrong is named with its remedy, all at once") {
  Says("{a: {usr: ann}}", "unknown key \"usr\" in launch.hosts.a; did you mean \"user\"?");
  Says("{a: {colour: red}}", "a machine has user, address, directory, program, environment and device.");
  Says("{a: {directory: data}}", "launch.hosts.a.directory = data; must begin with /");
  Says("{a: {user: \"x\\ny\"}}", "must be on one line");
  Says("{a: {environment: {A: \"x\\ny\"}}}", "launch.hosts.a.environment.A = x\\x0ay; must be on one line");
  Says("{a: {environment: {1A: x}}}", "a variable's name is letters, digits and _");
  Says("{a: {environment: [x]}}", "launch.hosts.a.environment; must be a map");
  Says("{a: {device: {id: 0}}}", "launch.hosts.a.device.id; device has kind, ids");
  Says("{a: {device: {ids: 0}}}", "launch.hosts.a.device.ids; must be a list");
  Says("{a: {device: {kind: gpu}}}", "launch.hosts.a.device.kind = gpu; must be auto, cpu or cuda");
  Says("{a: 5}", "launch.hosts.a; must be a map. Write a: {user: ann}.");
  Says("{a: {user: b, user: c}}", "launch.hosts.a.user is given twice");
  Says("[a]", "must be a map of machines");
  const std::string both = ErrorOfHosts("{a: {usr: ann, directory: data}}");
  CHECK(both.find("usr") != std::string::npos);
  CHECK(both.find("directory") != std::string::npos);
}

TEST_CASE("host map: where the tasks run as the file says, a machine without a task is refused") {
  LoadOptions placed;
  placed.placed = true;
  CHECK(LoadError(kSmall, {"launch.hosts={localhost: {user: ann}}"}, placed) == "");
  const std::string error = LoadError(kSmall, {"launch.hosts={localhst: {user: ann}}"}, placed);
  CHECK(error.find(
            "launch.hosts.localhst; no address of the cluster is on that machine. Did you mean localhost?") !=
        std::string::npos);
  // The children of `dtrain local` have other addresses.
  CHECK(LoadError(kSmall, {"launch.hosts={localhst: {user: ann}}"}) == "");
}

}  // namespace
}  // namespace dtrain
