#include "cmd/launch/copy.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <filesystem>
#include <string_view>

#include "base/testing/files.h"
#include "cmd/launch/ssh.h"

namespace dtrain {
namespace {

constexpr std::chrono::seconds kPatience{1};
constexpr std::string_view kContent = "what is sent";

// A pipe into the shell that is to receive, and what has been sent through it.
class Receiver {
 public:
  Receiver() {
    REQUIRE(pipe(ends_) == 0);
    REQUIRE(write(ends_[1], kContent.data(), kContent.size()) == static_cast<ssize_t>(kContent.size()));
  }
  ~Receiver() {
    close(ends_[0]);
    CloseInput();
  }
  void CloseInput() {
    if (ends_[1] >= 0) close(ends_[1]);
    ends_[1] = -1;
  }
  std::string Script(const std::string& sum) const {
    const CopiedFile file{"", "below/it's", "750"};
    return ReceiveScript(directory, file, sum, "me", kPatience);
  }
  CommandResult Receive(const std::string& sum) const {
    return RunCommand("there", {"/bin/sh", "-c", Script(sum)}, ends_[0]);
  }
  // As where ssh has gone: nobody reads what the shell says.
  void ReceiveUnheard(const std::string& sum) const {
    RunCommand("there", {"/bin/bash", "-c", "exec 2> >(:); wait $!; exec /bin/sh -c \"$0\"", Script(sum)},
               ends_[0]);
  }
  // Names of what is there now.
  std::string Left() const {
    std::string names;
    for (const auto& entry : std::filesystem::directory_iterator(directory + "/below"))
      names += entry.path().filename().string() + "\n";
    return names;
  }

  const std::string directory = testing::NewDirectory() + "/a new one";

 private:
  int ends_[2];
};

std::string SumOfContent() {
  const std::string path = testing::NewDirectory() + "/content";
  std::ofstream(path) << kContent;
  return ChecksumLine(path);
}

TEST_CASE("copy script: what comes in whole becomes the file, with its mode") {
  Receiver there;
  there.CloseInput();
  const CommandResult ran = there.Receive(SumOfContent());
  CAPTURE(ran.last_error);
  CHECK(ran.exit_code == 0);
  CHECK(there.Left() == "it's\n");
  const std::string path = there.directory + "/below/it's";
  CHECK(testing::FileContent(path) == kContent);
  CHECK(std::filesystem::status(path).permissions() == std::filesystem::perms(0750));
}

TEST_CASE("copy script: what comes in damaged is removed") {
  Receiver there;
  there.CloseInput();
  const CommandResult ran = there.Receive("another");
  CHECK(ran.exit_code == 1);
  CHECK(ran.last_error == "the copy has another checksum. Is the disk there full?");
  CHECK(there.Left() == "");
}

TEST_CASE("copy script: what is not whole is removed, also where nobody hears of it any more") {
  Receiver cut;
  cut.CloseInput();
  cut.ReceiveUnheard("another");
  CHECK(cut.Left() == "");
  const Receiver quiet;
  quiet.ReceiveUnheard(SumOfContent());
  CHECK(quiet.Left() == "");
}

TEST_CASE("copy script: a directory in the file's place is told, and nothing is put into it") {
  Receiver there;
  there.CloseInput();
  std::filesystem::create_directories(there.directory + "/below/it's");
  const CommandResult ran = there.Receive(SumOfContent());
  CHECK(ran.exit_code == 1);
  CHECK(ran.last_error == "a directory has the name of ./below/it's. Remove it.");
  CHECK(there.Left() == "it's\n");
  CHECK(std::filesystem::is_empty(there.directory + "/below/it's"));
}

TEST_CASE("copy script: a program that nobody may run has no sum, so that it is copied anew") {
  const std::string directory = testing::NewDirectory();
  const std::string path = directory + "/it";
  std::ofstream(path) << kContent;
  const auto sum = [&](const char* mode) {
    const OpenFile nothing("/dev/null");
    const std::string script = SumsScript(directory, {{"", "it", mode}});
    return RunCommand("there", {"/bin/sh", "-c", script}, nothing.fd()).output;
  };
  CHECK(sum("644").find(kSum + SumOfContent()) != std::string::npos);
  CHECK(sum("755").find(std::string(kSum) + "none") != std::string::npos);
  std::filesystem::permissions(path, std::filesystem::perms(0755));
  CHECK(sum("755").find(kSum + SumOfContent()) != std::string::npos);
}

TEST_CASE("copy script: where nothing more comes, as of a link that was cut, it ends and leaves nothing") {
  const Receiver there;
  const CommandResult ran = there.Receive(SumOfContent());
  CHECK(ran.exit_code == 1);
  CHECK(ran.last_error == "nothing has come for 1 s.");
  CHECK(there.Left() == "");
}

}  // namespace
}  // namespace dtrain
