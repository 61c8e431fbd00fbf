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

TEST_CASE("closest name: case counts nowhere, and what differs by it alone is closest") {
  CHECK(ClosestName("SYNC", {"async", "sync"}) == "sync");
  CHECK(ClosestName("Sofmtax", {"linear", "SoftMax"}) == "SoftMax");
  CHECK(ClosestName("ID", {"Index_Day", "id"}) == "id");
  CHECK(DidYouMean("train", "Batch_Size").question == "did you mean \"batch_size\"?");
  CHECK(DidYouMean("", "Batch_Size").question == "did you mean \"train.batch_size\"?");
}

TEST_CASE("closest name: another word is left alone") {
  const std::vector<std::string> names = {"linear", "logistic", "softmax"};
  CHECK(ClosestName("mlp", names) == "");
  CHECK(ClosestName("", names) == "");
  CHECK(ClosestName(std::string(1000000, 'x'), names) == "");
}

TEST_CASE("did you mean: looks in the section first") {
  CHECK(DidYouMean("train.optimizer", "learning_rat").question == "did you mean \"learning_rate\"?");
  CHECK(DidYouMean("", "trian").question == "did you mean \"train\"?");
}

TEST_CASE("did you mean: names keys and sections of other places in full") {
  CHECK(DidYouMean("", "batch_size").question == "did you mean \"train.batch_size\"?");
  CHECK(DidYouMean("", "batchsize").question == "did you mean \"train.batch_size\"?");
  CHECK(DidYouMean("", "optimizer").question == "did you mean \"train.optimizer\"?");
  CHECK(DidYouMean("", "seed").question == "did you mean \"data.seed\" or \"model.init.seed\"?");
}

TEST_CASE("did you mean: has the full names") {
  CHECK(DidYouMean("", "trian").names == std::vector<std::string>{"train"});
  CHECK(DidYouMean("train.optimizer", "learning_rat").names ==
        std::vector<std::string>{"train.optimizer.learning_rate"});
  CHECK(DidYouMean("", "seed").names == std::vector<std::string>{"data.seed", "model.init.seed"});
  CHECK(DidYouMean("", "train.steps").names == std::vector<std::string>{"train.steps"});
  CHECK(DidYouMean("", "metrics").names.empty());
}

TEST_CASE("did you mean: a dotted name is led to its map") {
  CHECK(DidYouMean("", "train.optimizer.kind").question ==
        "did you mean \"kind\" in the map \"train.optimizer\"?");
}

TEST_CASE("did you mean: has nothing to say of keys that later versions may have") {
  CHECK(DidYouMean("", "metrics").question == "");
  CHECK(DidYouMean("model", "table").question == "");
  CHECK(DidYouMean("eval", "warm_up").question == "");
  CHECK(DidYouMean("summary", "kind").question == "");  // other sections have a "kind", of other things
}

TEST_CASE(
    "suggest: initials mean the name that they are of, and of two letters none is near but a longer one") {
  CHECK(DidYouMean("train.optimizer", "lr").question == "did you mean \"learning_rate\"?");
  CHECK(DidYouMean("train.optimizer", "l3").question == "");
  CHECK(ClosestName("ok", {"oa", "oak"}) == "oak");
}

TEST_CASE("suggest: a name that goes on behind a known one means that") {
  CHECK(DidYouMean("", "evaluate").question == "did you mean \"eval\"?");
  CHECK(DidYouMean("", "checkpoints").question == "did you mean \"checkpoint\"?");
  CHECK(DidYouMean("", "model_dir").question == "");
}

TEST_CASE("list text: puts the word before the last item") {
  CHECK(ListText({}, "or") == "");
  CHECK(ListText({"a"}, "or") == "a");
  CHECK(ListText({"a", "b"}, "or") == "a or b");
  CHECK(ListText({"a", "b", "c"}, "and") == "a, b and c");
}

}  // namespace
}  // namespace dtrain
