// The report lines of a task on another machine, and those of its log, as dtrain launch takes them.
#include "cmd/run/exit_verdict.h"
#include "fuzz/input.h"
#include "fuzz/target.h"

namespace dtrain::fuzz {
namespace {

int FuzzOne(const uint8_t* data, size_t size) {
  Input input(data, size);
  RunResults results;
  while (!input.empty()) {
    const std::string task = input.Flag() ? "ps 0" : "worker 1";
    const char* const words[] = {kBegunWord, kResultWord, kLostWord, "@exit"};
    const std::string word = words[input.Below(std::size(words))];
    const size_t length = input.Short();
    std::string text;
    while (text.size() < length && !input.empty()) text += input.Text(255);
    results.Take(task, word, text);
    results.TakeLine(task, text + "\n");
  }
  results.Stage();
  ToJson(results.Summary());
  return 0;
}

const AddTarget added("reports", FuzzOne);

}  // namespace
}  // namespace dtrain::fuzz
