// Runs every command of README.md and docs/*.md: each block that is fenced as ```sh, in order, in one
// directory for each document, by bash -e. The directory has configs/ and shared data where a checkout has
// them; `dtrain` and bazel-bin/cmd/dtrain are the program under test. A block must end with 0. Comments right
// above its fence, one a line, change that:
//   <!-- test: skip: REASON -->        it is left out, and the reason is printed
//   <!-- test: args: --set a.b=c -->   what every command that trains gets in addition, to end soon
//   <!-- test: before: COMMAND -->     is run first, for what the reader has by then and the test has not
//   <!-- test: exit: 2 -->             how it has to end
//   <!-- test: needs: mnist -->        left out where the files of MNIST are not there
// A command of ours in a block of another kind is an error: nobody would notice when it stops working.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "cmd/testing/job.h"

namespace dtrain::testing {
namespace {

namespace fs = std::filesystem;

struct Block {
  std::string where;  // "docs/tutorial.md:12"
  std::string commands;
  std::string args;
  std::string skip;
  std::string needs;
  int exit_code = 0;
};

bool StartsWith(const std::string& text, const std::string& start) {
  return text.compare(0, start.size(), start) == 0;
}

// Takes one comment of those above; false where it is none that is known.
bool TakeMarker(const std::string& line, Block* block) {
  static const std::string begin = "<!-- test: ", end = " -->";
  const size_t colon = line.find(": ", begin.size()), stop = line.rfind(end);
  if (colon == std::string::npos || stop == std::string::npos || stop < colon) return false;
  const std::string name = line.substr(begin.size(), colon - begin.size());
  const std::string value = line.substr(colon + 2, stop - colon - 2);
  if (name == "before") {
    block->commands += value + "\n";
  } else if (name == "exit") {
    block->exit_code = std::atoi(value.c_str());
  } else if (name == "args" || name == "skip" || name == "needs") {
    (name == "args" ? block->args : name == "skip" ? block->skip : block->needs) = value;
  } else {
    return false;
  }
  return true;
}

bool IsOurCommand(const std::string& line) {
  for (const char* start : {"dtrain ", "bazel-bin/", "bazel ", "scripts/"}) {
    if (StartsWith(line, start)) return true;
  }
  return false;
}

// The blocks of a document that are to run; `faults` gets what is wrong with the others.
std::vector<Block> BlocksOf(const std::string& name, std::istream& text, std::vector<std::string>* faults) {
  std::vector<Block> blocks;
  Block next;
  bool in_block = false, runs = false;
  int number = 0;
  for (std::string line; std::getline(text, line);) {
    const std::string where = fmt::format("{}:{}", name, ++number);
    const std::string inner = line.substr(std::min(line.find_first_not_of(' '), line.size()));
    if (StartsWith(inner, "```")) {
      runs = !in_block ? inner == "```sh" : runs;
      if (!in_block) next.where = where;
      if (in_block && runs) blocks.push_back(next);
      if (in_block) next = Block();
      in_block = !in_block;
    } else if (in_block) {
      if (runs) next.commands += line + "\n";
      if (!runs && IsOurCommand(inner)) faults->push_back(where + ": a command in a block that is not sh");
    } else if (StartsWith(line, "    ") && IsOurCommand(line.substr(4))) {
      faults->push_back(where + ": a command in a block that is not sh");
    } else if (StartsWith(inner, "<!-- test: ")) {
      if (!TakeMarker(inner, &next)) faults->push_back(where + ": no such marker: " + inner);
    } else {
      next = Block();
    }
  }
  if (in_block) faults->push_back(name + ": a block is not closed");
  return blocks;
}

// What a reader of a document has: a checkout that is built, and beside it the shared data.
class Checkout {
 public:
  Checkout() : main_(NewDirectory() + "/main") {
    fs::create_directories(main_ + "/bazel-bin/cmd");
    fs::copy("configs", main_ + "/configs", fs::copy_options::recursive);
    fs::copy("testdata", main_ + "/testdata", fs::copy_options::recursive);
    const char* data = std::getenv("DTRAIN_SHARED_DATA");
    has_mnist_ = data != nullptr && fs::is_directory(std::string(data) + "/mnist");
    fs::create_directories(main_ + "/../shared");
    if (has_mnist_) fs::create_directory_symlink(data, main_ + "/../shared/data");
    const std::string program = main_ + "/bazel-bin/cmd/dtrain";
    WriteFile(program,
              fmt::format("#!/bin/bash\n"
                          "eval \"more=($DOCS_ARGS)\"\n"
                          "case \" $* \" in\n"
                          "  ' local '* | ' launch '* | *' --role '*) set -- \"$@\" \"${{more[@]}}\" ;;\n"
                          "esac\n"
                          "exec {} \"$@\"\n",
                          fs::absolute("cmd/dtrain").string()));
    fs::permissions(program, fs::perms::owner_all);
  }

  bool has_mnist() const { return has_mnist_; }

  // The exit code; what it said, to `said`.
  int Run(const Block& block, std::string* said) const {
    const std::string begin = fmt::format("cd {0}\nPATH={0}/bazel-bin/cmd:$PATH\n", main_);
    Process run({"-euo", "pipefail", "-c", begin + block.commands},
                Program{"/bin/bash", {"DOCS_ARGS=" + block.args}});
    const int code = RunToEnd(run);
    *said = run.standard_output() + run.standard_error();
    return code;
  }

 private:
  const std::string main_;
  bool has_mnist_ = false;
};

std::string WhyNot(const Block& block, const Checkout& checkout) {
  if (!block.skip.empty()) return block.skip;
  return block.needs == "mnist" && !checkout.has_mnist() ? "the files of MNIST are not there" : "";
}

int RunDocument(const std::string& path) {
  std::ifstream text(path);
  REQUIRE(text.good());
  std::vector<std::string> faults;
  const Checkout checkout;
  int runs = 0;
  for (const Block& block : BlocksOf(path, text, &faults)) {
    const std::string why_not = WhyNot(block, checkout);
    if (!why_not.empty()) {
      fmt::print("left out: {}: {}\n", block.where, why_not);
      continue;
    }
    const TimePoint begun = Clock::now();
    std::string said;
    const int code = checkout.Run(block, &said);
    fmt::print("{}: {:.1f} s\n", block.where, SecondsBetween(begun, Clock::now()));
    CAPTURE(block.where);
    CAPTURE(block.commands);
    CAPTURE(said);
    CHECK(code == block.exit_code);
    ++runs;
  }
  for (const std::string& fault : faults) FAIL_CHECK(fault);
  return runs;
}

TEST_CASE("docs: every command of README.md and docs runs") {
  int runs = RunDocument("README.md");
  std::vector<std::string> paths;
  for (const auto& entry : fs::directory_iterator("docs")) {
    const std::string name = entry.path().filename().string();
    // Pages in Chinese have the same commands: docs/pages_test.cc.
    const bool translated = name.find(".zh.") != std::string::npos;
    if (entry.path().extension() == ".md" && !translated) paths.push_back(entry.path().string());
  }
  std::sort(paths.begin(), paths.end());
  for (const std::string& path : paths) runs += RunDocument(path);
  fmt::print("{} blocks run\n", runs);
  CHECK(runs > 10);
}

TEST_CASE("docs: a block that fails, a marker that is none and a command that nobody runs are found") {
  std::istringstream text(
      "```sh\nfalse\n```\n"
      "<!-- test: exit: 3 -->\n```sh\n(exit 3)\n```\n"
      "<!-- test: exist: 3 -->\n"
      "<!-- test: skip: no reason -->\n\n```sh\ntrue\n```\n"
      "```yaml\na: b\n```\n"
      "```\ndtrain local\n```\n"
      "\n    dtrain check\n");
  std::vector<std::string> faults;
  const std::vector<Block> blocks = BlocksOf("x.md", text, &faults);
  REQUIRE(blocks.size() == 3);
  const Checkout checkout;
  std::string said;
  CHECK(checkout.Run(blocks[0], &said) == 1);
  CHECK(checkout.Run(blocks[1], &said) == blocks[1].exit_code);
  CHECK(blocks[2].skip.empty());  // the comment stands apart
  CHECK(faults == std::vector<std::string>{"x.md:8: no such marker: <!-- test: exist: 3 -->",
                                           "x.md:18: a command in a block that is not sh",
                                           "x.md:21: a command in a block that is not sh"});
}

}  // namespace
}  // namespace dtrain::testing
