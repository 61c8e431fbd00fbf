#include "trainer/export/tensor_maps.h"

#include <doctest/doctest.h>

#include <fstream>

#include "base/error.h"
#include "base/testing/files.h"

namespace dtrain::testing {
namespace {

using Strings = std::vector<std::string>;

void WriteFile(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

template <typename Action>
std::string ErrorOf(const Action& action) {
  try {
    action();
  } catch (const UserError& error) {
    return error.what();
  }
  return "";
}

TEST_CASE("maps: a star is the same text on both sides") {
  CHECK(ExpandMaps({"net/*=*"}, "f", {"net/weights/W1", "net/biases/b1", "other"},
                   {"weights/W1", "biases/b1"}) ==
        Strings{"net/biases/b1=biases/b1", "net/weights/W1=weights/W1"});
  CHECK(ExpandMaps({"in/*_embedding/w=embeddings/E1[*]"}, "f", {"in/a_embedding/w", "in/b_embedding/w"},
                   {"embeddings/E1[a]", "embeddings/E1[b]", "weights/W1[a]"}) ==
        Strings{"in/a_embedding/w=embeddings/E1[a]", "in/b_embedding/w=embeddings/E1[b]"});
}

TEST_CASE("maps: numbers that differ go together in their order, as numbers and not as texts") {
  const Strings ours = {"weights/W1", "weights/W2", "weights/W3"};
  CHECK(ExpandMaps({"fc_*/k=weights/W*"}, "f", {"fc_10/k", "fc_01/k", "fc_2/k"}, ours) ==
        Strings{"fc_01/k=weights/W1", "fc_2/k=weights/W2", "fc_10/k=weights/W3"});
  CHECK(ExpandMaps({"dense*/k=weights/W*"}, "f", {"dense/k", "dense_1/k", "dense_2/k"}, ours) ==
        Strings{"dense/k=weights/W1", "dense_1/k=weights/W2", "dense_2/k=weights/W3"});
}

TEST_CASE("maps: a plain map goes before a pattern, which has what is left") {
  CHECK(ExpandMaps({"d_*/k=weights/W*", "d_1/k=weights/W2"}, "f", {"d_0/k", "d_1/k"},
                   {"weights/W1", "weights/W2"}) == Strings{"d_1/k=weights/W2", "d_0/k=weights/W1"});
}

TEST_CASE("maps: a pattern that fits nothing, numbers of another count and a star alone are refused") {
  const auto error = [](const std::string& map) {
    return ErrorOf([&] {
      ExpandMaps({map}, "f", {"d_0/k", "d_1/k"}, {"weights/W1", "weights/W2", "weights/W3"});
    });
  };
  CHECK(error("e_*/k=weights/W*").find("f has no such tensor") != std::string::npos);
  CHECK(error("d_*/k=weights/W*").find("do not go together: f has d_0/k and d_1/k") != std::string::npos);
  CHECK(error("d_0/k=weights/W*").find("must have one * on both sides") != std::string::npos);
}

TEST_CASE("maps: of a file that is written a pattern makes the names, and a misspelt one is told") {
  const Strings ours = {"weights/W1", "weights/W2", "biases/b1"};
  CHECK(ExpandMaps({"d_*/k=weights/W*", "d/b=biases/b1"}, ours) ==
        Strings{"d/b=biases/b1", "d_1/k=weights/W1", "d_2/k=weights/W2"});
  CHECK(ErrorOf([&] { ExpandMaps({"a=wieghts/W1"}, ours); }).find("Did you mean weights/W1?") !=
        std::string::npos);
  CHECK(ErrorOf([&] {
          ExpandMaps({"a=weights/W1", "b=weights/W1"}, ours);
        }).find("once for each tensor") != std::string::npos);
  CHECK(!ErrorOf([&] { ExpandMaps({"=weights/W1"}, ours); }).empty());
}

TEST_CASE("maps: those of a YAML file come behind the others, and what is no pair is told with its line") {
  const std::string path = NewDirectory() + "/maps.yaml";
  WriteFile(path, "dense/kernel: weights/W1   # a layer\n\"\": [biases/b1, biases/b2]\n");
  CHECK(WithMapsOf({"a=b"}, path) == Strings{"a=b", "dense/kernel=weights/W1", "=biases/b1", "=biases/b2"});
  CHECK(WithMapsOf({"a=b"}, "") == Strings{"a=b"});
  for (const char* const text : {"- a\n- b\n", "a: {b: c}\n", "a: b: c\n", ""}) {
    CAPTURE(text);
    WriteFile(path, text);
    CHECK(ErrorOf([&] { WithMapsOf({}, path); }).find(path + ":1: ") == 0);
  }
}

}  // namespace
}  // namespace dtrain::testing
