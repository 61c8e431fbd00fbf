// The program of bench/run.sh as it is called: rows of tasks over TCP, and another dtrain in the place of the
// limits.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "bench/report/process.h"

namespace dtrain::bench {
namespace {

// Reports: runs of the program, as short as can be, and what they have left.
class Reports {
 public:
  // Throws std::runtime_error if the program fails.
  void Run(std::vector<std::string> flags) {
    flags.insert(flags.begin(), {"bench/report/report", "--rounds", "1", "--seconds", "0.02", "--directory",
                                 scratch_.path(), "--json", "rows.json"});
    OutputOf(flags, path("report"));
  }
  std::string path(const std::string& name) const { return scratch_.path() + "/" + name; }
  std::string out() const { return ReadFile(path("report.out")); }
  std::string err() const { return ReadFile(path("report.err")); }
  nlohmann::json rows() const { return nlohmann::json::parse(ReadFile(path("rows.json"))).at("rows"); }

  // Writes the program "other", which runs dtrain as `body` says.
  void PutOther(const std::string& body) const {
    std::ofstream(path("other")) << "#!/bin/sh\n" << body << "\n";
    chmod(path("other").c_str(), S_IRWXU);
  }

 private:
  Scratch scratch_;
};

bool Contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST_CASE("report: tasks over TCP run beside a limit that moves as many bytes, with keys beside without") {
  Reports reports;
  reports.Run({"--only", "tcp_linear_in", "--only", "tcp_softmax"});
  const nlohmann::json rows = reports.rows();
  REQUIRE(rows.size() == 3);
  for (const auto& row : rows) CHECK(row.at("ratio").at("median") > 0);
  CHECK(rows[0].at("name") == "tcp_softmax");
  CHECK(rows[1].at("name") == "tcp_linear_in_flight_16");
  CHECK(rows[1].at("what") == "linear_regression.yaml, 1 ps + 2 workers, in_flight 16, TCP");
  CHECK(rows[2].at("what") == "mnist_softmax.yaml, 1 ps + 3 workers, TCP with keys, beside without");
  const nlohmann::json bytes = rows[0].at("bytes_per_exchange");
  CHECK(bytes.at("dtrain").get<double>() == doctest::Approx(bytes.at("limit").get<double>()).epsilon(0.03));
}

TEST_CASE(
    "report: --beside runs a program that has no --run in place of limits, and says which rows it leaves") {
  Reports reports;
  reports.PutOther(fmt::format(
      "echo \"$@\" >> {0}/calls\ncase \"$*\" in *--help) exit;; *--run*) exit 2;; esac\nexec {1} \"$@\"",
      reports.path("."), std::filesystem::absolute("cmd/dtrain").string()));
  reports.Run(
      {"--only", "tcp_linear_in", "--only", "linear_in", "--only", "stream_pull", "--beside", "other"});
  const nlohmann::json rows = reports.rows();
  REQUIRE(rows.size() == 2);
  for (const auto& row : rows) CHECK(row.at("ratio").at("median") > 0);
  CHECK(Contains(reports.out(), "; beside " + reports.path("other") + " in place of the limits\n"));
  CHECK(Contains(reports.err(), "left out, as --beside takes whole runs of dtrain alone: stream_pull\n"));
  const std::string calls = ReadFile(reports.path("calls"));
  for (const char* task : {"--role ps --index 0", "--role worker --index 0", "--role worker --index 1"}) {
    CHECK(Contains(calls, task));
  }
}

TEST_CASE("report: a job that the program of --beside does not do is told, and the others are measured") {
  Reports reports;
  reports.PutOther(
      fmt::format("case \"$*\" in *in_flight=16*) echo no such thing >&2; exit 2;; esac\nexec {} \"$@\"",
                  std::filesystem::absolute("cmd/dtrain").string()));
  reports.Run({"--only", "linear", "--beside", "other"});
  CHECK(Contains(reports.err(),
                 "linear_in_flight_16 is left out: " + reports.path("other") + " does not do it: "));
  CHECK(Contains(reports.err(), "no such thing"));
  REQUIRE(reports.rows().size() == 1);
  CHECK(reports.rows()[0].at("name") == "linear");
  CHECK_THROWS(reports.Run({"--only", "linear_in", "--beside", "other"}));  // nothing is left
}

}  // namespace
}  // namespace dtrain::bench
