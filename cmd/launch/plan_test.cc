#include "cmd/launch/plan.h"

#include <doctest/doctest.h>
#include <stdio.h>

#include "base/error.h"
#include "base/names.h"

#include "cmd/common/program.h"
#include "cmd/launch/copy.h"

#include "cmd/launch/ssh.h"
#include "trainer/config/config.h"

namespace dtrain {
namespace {

LaunchHost Here() {
  LaunchHost here;
  here.directory = "/srv";
  here.program = "/opt/dtrain";
  return here;
}

Config Spec(const std::string& host) {
  Config config;
  config.cluster.ps = {"127.0.0.1:9001"};
  config.cluster.worker = {host + ":9002"};
  return config;
}

bool Holds(const std::vector<std::string>& words, const std::string& word) {
  for (const std::string& one : words) {
    if (one == word) return true;
  }
  return false;
}

// What /bin/sh makes of a line: its words, a line each.
std::string ShellWords(const std::string& line) {
  FILE* const shell = popen(("for word in " + line + "; do printf '<%s>\n' \"$word\"; done").c_str(), "r");
  std::string text;
  for (int c; (c = fgetc(shell)) != EOF;) text += static_cast<char>(c);
  pclose(shell);
  return text;
}

TEST_CASE("shell quote: a shell gives back each word as it was") {
  const std::vector<std::string> words = {"plain", "",   "a b", "'",   "\"",    "$(touch x)", "`x`",
                                          ";",     "-n", "~",   "*",   "a'b'c", "\\",         "{a,b}",
                                          "#",     "!",  "é",   "a=b", "\t"};
  std::string expected;
  for (const std::string& word : words) expected += "<" + word + ">\n";
  CHECK(ShellWords(ShellLine(words)) == expected);
  CHECK(ShellWords(ShellLine({ShellLine(words)})) == "<" + ShellLine(words) + ">\n");
  CHECK(ShellQuoted("a!") == "'a'\\!''");
  CHECK(ShellQuoted("=a") == "'=a'");
}

TEST_CASE("machine: this one needs no ssh, unless a user or an address of its own is given") {
  const std::set<std::string> own = OwnNames();
  CHECK(own.count(HostName()) == 1);
  CHECK(own.count("127.0.0.1") == 1);
  CHECK(MachineOf("127.0.0.9", {}, own, Here()).here);
  CHECK(MachineOf("localhost", {}, own, Here()).here);
  CHECK(MachineOf("::1", {}, own, Here()).here);
  CHECK(MachineOf(HostName(), {}, own, Here()).here);
  CHECK_FALSE(MachineOf("node1", {}, own, Here()).here);
  CHECK(MachineOf("10.1.2.3", {}, {"10.1.2.3"}, Here()).here);
  LaunchHost user;
  user.user = "ann";
  CHECK_FALSE(MachineOf("127.0.0.1", {{"127.0.0.1", user}}, own, Here()).here);
}

TEST_CASE("machine: ssh asks nothing, shares nothing, checks keys, and cannot take a value for an option") {
  LaunchHost host;
  host.user = "-oProxyCommand=x";
  host.address = "-x";
  LaunchConfig launch;
  launch.ssh_config = "/tmp/a b";
  const std::vector<std::string> words =
      RemoteWords(MachineOf("node1", {{"node1", host}}, {}, Here()), {"a", "b c"}, launch);
  CHECK(Holds(words, "BatchMode=yes"));
  CHECK(Holds(words, "ControlPath=none"));
  REQUIRE(words.size() > 5);
  const std::vector<std::string> last(words.end() - 7, words.end());
  CHECK(last ==
        std::vector<std::string>{"-F", "/tmp/a b", "-l", "-oProxyCommand=x", "--", "-x", "exec a 'b c'"});
  for (const std::string& word : words) CHECK(word.find("StrictHostKeyChecking") == std::string::npos);
}

TEST_CASE("machine: a person gets where launch does by its file, user and address, quoted for a shell") {
  LaunchConfig launch;
  LaunchHost host;
  const auto login = [&](const std::string& name) {
    return SshLogin(MachineOf(name, {{"node1", host}}, {}, Here()), launch);
  };
  CHECK(login("127.0.0.1").empty());
  CHECK(login("node1") == "node1");
  launch.ssh_config = "/tmp/a b";
  host.user = "ann";
  host.address = "gate-7";
  CHECK(login("node1") == "-F '/tmp/a b' ann@gate-7");
  host.user = "-oProxyCommand=x";
  CHECK(login("node1") == "-F '/tmp/a b' -- -oProxyCommand=x@gate-7");
}

TEST_CASE("plan: a task's command has its variables, directory, flags and devices, each as one word") {
  Config config = Spec("node1");
  LaunchHost host = Here();
  host.directory = "/data/a b";
  host.environment = {{"A", "$(x)"}};
  host.device = {{"ids", "[0, 1]"}};
  config.launch.hosts = {{"node1", host}};
  const std::vector<PlannedTask> tasks =
      PlanLaunch({"job.yaml", {"train.steps=5"}, false}, config, {true, true});
  REQUIRE(tasks.size() == 2);
  CHECK(tasks[0].command.front() == OwnProgram());
  CHECK(tasks[1].command.back() ==
        "exec env 'A=$(x)' /opt/dtrain guard '--directory=/data/a b' --config=job.yaml --silence-s=5 "
        "--kept-alive -- --set=train.steps=5 '--set=device.ids=[0, 1]' --set=log.dir=null --role worker "
        "--index 0 --relay-live --set=hooks.log_every_secs=10");
}

TEST_CASE("plan: a program with a slash lies below the directory; without, PATH has it") {
  Config config = Spec("node1");
  LaunchHost host = Here();
  const auto words = [&](const std::string& program) {
    host.program = program;
    config.launch.hosts = {{"node1", host}};
    return PlanLaunch({"job.yaml", {}, false}, config, {})[1].command.back();
  };
  CHECK(words("bin/dtrain").rfind("exec /srv/bin/dtrain guard", 0) == 0);
  CHECK(words("dtrain").rfind("exec dtrain guard", 0) == 0);
  CHECK(words("-x").rfind("exec /srv/-x guard", 0) == 0);
  CHECK(words("/a=b/dtrain").rfind("exec /a=b/dtrain guard", 0) == 0);
  host.environment = {{"A", "x"}};  // of which env must not take the program for one
  CHECK(words("/a=b/dtrain").rfind("exec env A=x /bin/sh -c 'exec \"$0\" \"$@\"' /a=b/dtrain guard", 0) == 0);
}

TEST_CASE("plan: only the guard of ps 0 has a run saved that nobody watches any more") {
  const std::vector<PlannedTask> tasks = PlanLaunch({"job.yaml", {}, false}, Spec("node1"), {});
  REQUIRE(tasks.size() == 2);
  CHECK(Holds(tasks[0].command, "--saves"));
  CHECK_FALSE(Holds(tasks[0].command, "--kept-alive"));
  CHECK(tasks[1].command.back().find("--saves") == std::string::npos);
}

TEST_CASE("plan: a copy of the config lies in the machine's directory; this machine needs none") {
  Config config = Spec("node1");
  config.launch.copy = true;
  const auto path = [&](const std::string& given) {
    const std::vector<PlannedTask> tasks = PlanLaunch({given, {}, false}, config, {});
    CHECK_FALSE(tasks[0].gets_copy);
    CHECK(tasks[0].config == given);
    CHECK(tasks[1].gets_copy);
    CHECK(tasks[1].gets_program);
    CHECK(tasks[1].machine.how.program == CopiedProgram());
    return tasks[1].config;
  };
  CHECK(path("configs/job.yaml") == "configs/job.yaml");
  CHECK(path("../job.yaml") == "job.yaml");
  CHECK(path("/etc/job.yaml") == "job.yaml");
}

TEST_CASE("copied files: each machine gets them once, and a shell takes their text for comments") {
  Config config = Spec("node1");
  config.cluster.worker.push_back("node1:9003");
  config.cluster.worker.push_back("node2:9002");
  config.launch.copy = true;
  LaunchHost here = Here(), own_program;
  here.program.clear();
  own_program.directory = "/data";
  own_program.program = "/opt/dtrain";
  config.launch.hosts = {{"node1", here}, {"node2", own_program}};
  const auto copies = FilesToCopy(PlanLaunch({"../job.yaml", {}, false}, config, {}), "../job.yaml");
  REQUIRE(copies.size() == 2);
  CHECK(copies[0].files.size() == 2);  // a test has no libraries beside it
  CHECK(copies[1].files.size() == 1);
  CHECK(CopyText(copies) ==
        "# launch.copy to node1:/srv, what is not there already:\n"
        "#   ../job.yaml -> job.yaml\n"
        "#   " +
            OwnProgram() + " -> " + CopiedProgram() +
            "\n"
            "# launch.copy to node2:/data, what is not there already:\n"
            "#   ../job.yaml -> job.yaml\n");
  config.launch.copy = false;
  CHECK(CopyText(FilesToCopy(PlanLaunch({"job.yaml", {}, false}, config, {}), "job.yaml")).empty());
}

TEST_CASE("plan: data files must be on the other machines of those workers that read them") {
  Config config = Spec("node1");
  config.cluster.worker = {"node1:9002", "127.0.0.1:9003", "node2:9002", "node2:9003"};
  const auto text = [&] { return DataText(PlanLaunch({"job.yaml", {}, false}, config, {}), config.data); };
  CHECK(text() == "");
  config.data.train.format = DataFormat::kCsv;
  config.data.train.path = {"a b.csv"};
  const std::string file = "#   data.train.path: a b.csv\n";
  CHECK(text() == "# data files, not copied, that must be on node1 and node2:\n" + file);
  config.launch.copy = true;
  config.launch.hosts["node1"].directory = config.launch.hosts["node2"].directory = "/jobs";
  CHECK(text().find(
            "#   a path that the file gives relative to itself is one in node1:/jobs and in node2:/jobs") !=
        std::string::npos);
  config.launch.copy = false;
  config.data.split = Split::kFeed;
  CHECK(text() == "# data files, not copied, that must be on node1:\n" + file);
  config.cluster.worker[0] = "127.0.0.1:9002";
  CHECK(text() == "");
}

TEST_CASE("plan: a line break is refused with the key's name") {
  CHECK_THROWS_WITH_AS(
      PlanLaunch({"job.yaml", {"log.dir=a\nb"}, false}, Spec("node1"), {}),
      "--set log.dir: has a line break, which no command line of another machine can hold. Put it "
      "into the file, or leave it out.",
      UserError);
}

TEST_CASE("ssh trouble: each has its remedy, and dtrain's own words need none") {
  const auto says = [](const std::string& said, const std::string& part) {
    const std::string remedy = WithRemedy(said, "node1", "-F my.ssh ann@n1");
    CAPTURE(remedy);
    CHECK(remedy.find(part) != std::string::npos);
  };
  CHECK(
      WithRemedy("Host key verification failed.", "node1", "-F my.ssh ann@n1") ==
      "Host key verification failed. Its key is not known here, or has changed: compare it while you connect "
      "once by hand: ssh -F my.ssh ann@n1 true");
  CHECK(WithRemedy("ann@n1: Permission denied (publickey).", "node1", "-F my.ssh ann@n1") ==
        "ann@n1: Permission denied (publickey). It takes none of your keys. Set launch.hosts.node1.user, or: "
        "ssh-copy-id -F my.ssh ann@n1");
  says("ssh: Could not resolve hostname node1: Name or service not known", "launch.hosts.node1.address");
  says("ssh: connect to host node1 port 22: Connection refused", "Does sshd run there?");
  says("ssh: connect to host node1 port 22: Connection timed out", "Is it up");
  says(
      "/opt/dtrain: error while loading shared libraries: libzmq.so.5: cannot open shared object file: No "
      "such file or directory",
      "Install the libraries");
  says("env: '/opt/dtrain': No such file or directory", "launch.copy: true");
  says("dtrain: guard: unknown command or argument. See dtrain --help.", "An older dtrain is there");
  says("dtrain: --config: unknown option. See dtrain guard --help.", "An older dtrain is there");
  says("bash: line 1: /opt/dtrain: cannot execute binary file: Exec format error",
       "another kind of processor");
  says("something else", "dtrain launch --dry-run");
  says("", "it ended without a word. See what");
  const std::string own = "dtrain: /x: cannot work there: No such file or directory (2). Make it.";
  CHECK(WithRemedy(own, "node1", "n1") == own);
  CHECK(IsTransient("kex_exchange_identification: read: Connection reset by peer"));
  CHECK(IsTransient("Connection to 10.0.0.2 port 22 timed out"));
  CHECK(IsTransient("Timeout, server node1 not responding."));
  CHECK_FALSE(IsTransient("Host key verification failed."));
  CHECK_FALSE(IsTransient("ssh: connect to host node1 port 22: Connection timed out"));
}

}  // namespace
}  // namespace dtrain
