#include "trainer/config/suggest.h"

#include <doctest/doctest.h>

namespace dtrain {
namespace {

TEST_CASE("edit distance: counts insertions, deletions, replacements and swaps of neighbours") {
  CHECK(EditDistance("", "") == 0);
  CHECK(EditDistance("abc", "") == 3);
  CHECK(EditDistance("steps", "step") == 1);
  CHECK(EditDistance("step", "stop") == 1);
  CHECK(EditDistance("trian", "train") == 1);
  CHECK(EditDistance("kitten", "sitting") == 3);
}

TEST_CASE("closest name: a slip is corrected") {
  const std::vector<std::string> names = {"linear", "logistic", "softmax"};
  CHECK(ClosestName("lineer", names) == "linear");
  CHECK(ClosestName("sofmtax", names) == "softmax");
  CHECK(ClosestName("log", names) == "logistic");  // shortened
}

TEST_CASE("closest name: another word is left alone") {
  const std::vector<std::string> names = {"linear", "logistic", "softmax"};
  CHECK(ClosestName("mlp", names) == "");
  CHECK(ClosestName("", names) == "");
  CHECK(ClosestName(std::string(1000000, 'x'), names) == "");
}

TEST_CASE("did you mean: looks in the section first") {
  CHECK(DidYouMean("train.optimizer", "learning_rat") == "did you mean \"learning_rate\"?");
  CHECK(DidYouMean("", "trian") == "did you mean \"train\"?");
}

TEST_CASE("did you mean: names keys and sections of other places in full") {
  CHECK(DidYouMean("", "batch_size") == "did you mean \"train.batch_size\"?");
  CHECK(DidYouMean("", "batchsize") == "did you mean \"train.batch_size\"?");
  CHECK(DidYouMean("", "optimizer") == "did you mean \"train.optimizer\"?");
  CHECK(DidYouMean("", "seed") == "did you mean \"data.seed\" or \"model.init.seed\"?");
}

TEST_CASE("did you mean: a dotted name is led to its map") {
  CHECK(DidYouMean("", "train.optimizer.kind") == "did you mean \"kind\" in the map \"train.optimizer\"?");
}

TEST_CASE("did you mean: has nothing to say of keys that later versions may have") {
  CHECK(DidYouMean("", "metrics") == "");
  CHECK(DidYouMean("model", "table") == "");
  CHECK(DidYouMean("eval", "warm_up") == "");
  CHECK(DidYouMean("summary", "kind") == "");  // other sections have a "kind", of other things
}

TEST_CASE("list text: puts the word before the last item") {
  CHECK(ListText({}, "or") == "");
  CHECK(ListText({"a"}, "or") == "a");
  CHECK(ListText({"a", "b"}, "or") == "a or b");
  CHECK(ListText({"a", "b", "c"}, "and") == "a, b and c");
}

}  // namespace
}  // namespace dtrain
