#include <doctest/doctest.h>

#include "trainer/config/fields.h"
#include "trainer/config/load_test_util.h"
#include "trainer/config/user_text.h"

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

TEST_CASE("did you mean: has the full names") {
  CHECK(DidYouMean("", "trian").names == std::vector<std::string>{"train"});
  CHECK(DidYouMean("train.optimizer", "learning_rat").names ==
        std::vector<std::string>{"train.optimizer.learning_rate"});
  CHECK(DidYouMean("", "seed").names == std::vector<std::string>{"data.seed", "model.init.seed"});
  CHECK(DidYouMean("", "batchsize").names == std::vector<std::string>{"train.batch_size"});
  CHECK(DidYouMean("", "train.steps").names == std::vector<std::string>{"train.steps"});
  CHECK(DidYouMean("", "telemetry").names.empty());
}

TEST_CASE("did you mean: has nothing to say of keys that later versions may have") {
  CHECK(DidYouMean("", "telemetry").question == "");
  CHECK(DidYouMean("model", "attention").question == "");
  CHECK(DidYouMean("eval", "warm_up").question == "");
  CHECK(DidYouMean("summary", "kind").question == "");  // other sections have a "kind", of other things
}

TEST_CASE(
    "suggest: initials mean the name that they are of, and of two letters none is near but a longer one") {
  CHECK(DidYouMean("train.optimizer", "lr").question == "did you mean \"learning_rate\"?");
  CHECK(DidYouMean("train.optimizer", "l3").question == "");
  CHECK(ClosestName("ok", {"oa", "oak"}) == "oak");
}

TEST_CASE("did you mean: a word of other tools leads to the key, or says that there is none") {
  const auto key = [](const char* section, const char* word) {
    const Meant meant = DidYouMean(section, word);
    REQUIRE(meant.names.size() == 1);
    CHECK(FieldsIn(meant.names[0]).size() > 0);
    CHECK(meant.question.find("did you mean \"") == 0);
    return meant.names[0];
  };
  CHECK(key("train", "early_stopping") == "eval.patience");
  CHECK(key("train", "patience") == "eval.patience");
  CHECK(key("train", "lr") == "train.optimizer.learning_rate");
  CHECK(key("train.optimizer", "gamma") == "train.optimizer.schedule.decay_rate");
  CHECK(key("train.optimizer.schedule", "step-size") == "train.optimizer.schedule.decay_steps");
  CHECK(key("", "lr_scheduler") == "train.optimizer.schedule");
  CHECK(DidYouMean("train", "device").question == "did you mean \"device.kind\"?");
  CHECK(key("train", "num_epochs") == "train.epochs");
  CHECK(key("model", "objective") == "model.kind");
  CHECK(key("data", "test_size") == "data.validation");
  CHECK(DidYouMean("train.optimizer.schedule", "gamma").question ==
        "did you mean \"decay_rate\"? It is the factor of the learning rate for each schedule.decay_steps "
        "updates.");
  const Meant none = DidYouMean("model", "Dropout");
  CHECK(none.names.empty());
  CHECK(none.question.find("dtrain has no dropout. ") == 0);
  CHECK(none.question.find("train.optimizer.l2 and eval.patience") != std::string::npos);
}

TEST_CASE("similar path: is that of the name beside it that is close") {
  const std::string path = WriteTestFile("customers.yaml", "");
  const std::string directory = path.substr(0, path.rfind('/'));
  CHECK(SimilarPathHint(directory + "/custommers.yaml") == " Did you mean " + path + "?");
  CHECK(SimilarPathHint(directory + "/flights.parquet") == "");
  CHECK(SimilarPathHint(directory + "/not/there.yaml") == "");
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

constexpr size_t kAllText = std::string::npos;

TEST_CASE("text: UTF-8, tabs and line ends are text") {
  CHECK(FirstNonText("") == kAllText);
  CHECK(FirstNonText("a: \xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80\r\n\t") == kAllText);
}

TEST_CASE("text: the first byte that is none is found") {
  CHECK(FirstNonText(std::string("ab\0c", 4)) == 2);
  CHECK(FirstNonText("\x1f\x8b") == 0);
  CHECK(FirstNonText("a\xff") == 1);
  CHECK(FirstNonText("a\xc3") == 1);          // cut short
  CHECK(FirstNonText("a\xc3(b") == 1);        // not continued
  CHECK(FirstNonText("\xc0\x80") == 0);       // an overlong zero
  CHECK(FirstNonText("ab\x1b[31mred") == 2);  // a terminal's escape sequence
}

TEST_CASE("text: UTF-8 is what any reader of it takes, control characters among it") {
  for (const char* good : {"", "caf\xc3\xa9", "\x1b\x7f", "\xe0\xa0\x80", "\xed\x9f\xbf", "\xf0\x90\x80\x80",
                           "\xf4\x8f\xbf\xbf"}) {
    CHECK(IsUtf8(good));
  }
  for (const char* bad : {"caf\xe9", "caf\xe9s", "\xc3", "\xc0\x80", "\xe0\x9f\xbf", "\xed\xa0\x80",
                          "\xf0\x8f\xbf\xbf", "\xf4\x90\x80\x80", "\xff", "\x80"}) {
    CAPTURE(Shown(bad));
    CHECK_FALSE(IsUtf8(bad));
    CHECK(FirstNonText(bad) != kAllText);
  }
}

TEST_CASE("quoted: quotes, backslashes and control characters are escaped") {
  CHECK(Quoted("a \"b\" \\ c\n") == "\"a \\\"b\\\" \\\\ c\\x0a\"");
}

TEST_CASE("shown: stays on one line and is cut at the end of a character") {
  CHECK(Shown("a\nb\x1b") == "a\\x0ab\\x1b");
  CHECK(Shown("a\xff") == "a\\xff");
  std::string accents;
  for (int i = 0; i < 100; ++i) accents += "\xc3\xa9";
  CHECK(Shown("x" + accents) == "x" + accents.substr(0, 80) + "...");
}

}  // namespace

}  // namespace dtrain
