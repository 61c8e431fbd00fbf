#include "cmd/grammar/command_line.h"

#include <doctest/doctest.h>

#include <fstream>

#include "base/error.h"
#include "base/testing/files.h"

namespace dtrain {
namespace {

template <typename Kind>
Kind Parse(std::vector<const char*> words) {
  words.insert(words.begin(), "dtrain");
  return std::get<Kind>(ParseCommandLine(static_cast<int>(words.size()), words.data()));
}

std::string ErrorOf(std::vector<const char*> words) {
  words.insert(words.begin(), "dtrain");
  try {
    ParseCommandLine(static_cast<int>(words.size()), words.data());
  } catch (const UserError& error) {
    return error.what();
  }
  return "";
}

TEST_CASE("command line: a task has role, index and its overrides in order") {
  const auto task = Parse<TaskArguments>({"--config", "a.yaml", "--role", "worker", "--index", "3", "--set",
                                          "a.b=1", "--set", "a.b=[x:1, y:2]", "--result", "r.json"});
  CHECK(task.config.path == "a.yaml");
  CHECK(task.config.sets == std::vector<std::string>{"a.b=1", "a.b=[x:1, y:2]"});
  REQUIRE(task.task.has_value());
  CHECK(task.task->role == Role::kWorker);
  CHECK(task.task->index == 3);
  CHECK(task.result == "r.json");
}

TEST_CASE("command line: eval, predict and export have the checkpoint that is meant") {
  const auto eval = Parse<EvalArguments>({"eval", "run/ckpt"});
  CHECK(eval.checkpoint.path == "run/ckpt");
  CHECK_FALSE(eval.checkpoint.best);
  CHECK_FALSE(eval.checkpoint.newest);
  CHECK(Parse<PredictArguments>({"predict", "run/ckpt", "--data", "-", "--best"}).checkpoint.best);
  CHECK(Parse<ExportArguments>({"export", "run/ckpt", "--out", "a.npz", "--newest"}).checkpoint.newest);
}

TEST_CASE("command line: values of --set reach the config as they were written") {
  for (const char* value : {"k=[\"a:1\", \"b:2\"]", "k=[a]", "k=", "k=-1", "k='x y'", "k={a: b}", "k=a=b",
                            "k=a,b", "k=%%", "k=--role"}) {
    CAPTURE(value);
    const auto check = Parse<CheckArguments>({"check", "--config", "a", "--set", value});
    CHECK(check.config.sets == std::vector<std::string>{value});
    const auto glued =
        Parse<CheckArguments>({"check", "--config", "a", ("--set=" + std::string(value)).c_str()});
    CHECK(glued.config.sets == std::vector<std::string>{value});
  }
}

TEST_CASE("command line: one --set takes one value") {
  CHECK(ErrorOf({"check", "--config", "a", "--set", "a=1", "b=2"}).find("b: unknown") != std::string::npos);
}

TEST_CASE("command line: the commands about a config take it without --config") {
  CHECK(Parse<LocalArguments>({"local", "x.yaml"}).config.path == "x.yaml");
  CHECK(Parse<LocalArguments>({"local", "--set", "a=1", "x", "--ps", "2"}).config.path == "x");
  CHECK(Parse<LaunchArguments>({"launch", "x.yaml"}).config.path == "x.yaml");
  CHECK(Parse<PlanArguments>({"plan", "-c", "x.yaml"}).config.path == "x.yaml");
  const auto check = Parse<CheckArguments>({"check", "x.yaml", "--ps", "3", "--json"});
  CHECK(check.config.path == "x.yaml");
  CHECK(check.size.ps == 3);
  CHECK(check.json);
}

TEST_CASE("command line: a second config is refused, and one where none is taken is told how to be written") {
  const std::string second = "x.yaml: a second config file, beside a. Leave one of them out.";
  CHECK(ErrorOf({"local", "--config", "a", "x.yaml"}) == second);
  CHECK(ErrorOf({"check", "x.yaml", "--config", "a"}) == second);
  CHECK(ErrorOf({"x.yaml"}) ==
        "x.yaml: a config file needs its option here. Write --config x.yaml, or dtrain local x.yaml.");
  CHECK(ErrorOf({"eval", "run/ckpt", "x.yaml"}) ==
        "x.yaml: a config file needs its option here. Write --config x.yaml.");
  for (const std::vector<const char*>& words :
       {std::vector<const char*>{"local", "a.yaml", "x.yaml"}, {"inspect", "run/ckpt", "x.yaml"}}) {
    CHECK(ErrorOf(words).find("x.yaml: unknown command or argument") == 0);
  }
  CHECK(ErrorOf({"local", "--cfg=x.yaml"}).find("unknown option") != std::string::npos);
}

TEST_CASE("command line: words of other tools lead to the command, or to the key of the config") {
  const auto says = [](const std::vector<const char*>& words, const std::string& part) {
    const std::string error = ErrorOf(words);
    CAPTURE(error);
    CHECK(error.find(part) != std::string::npos);
  };
  says({"train", "x.yaml"}, "train: unknown command or argument. Did you mean local?");
  says({"test", "run"}, "Did you mean eval?");
  says({"infer"}, "Did you mean predict?");
  says({"runs"}, "Did you mean status runs?");
  says({"local", "x.yaml", "--epochs", "3"},
       "--epochs: unknown option. It is a key of the config: --set train.epochs=3.");
  says({"local", "x.yaml", "--lr=0.5"}, "--set train.optimizer.learning_rate=0.5.");
  says({"local", "x.yaml", "--batch-size"}, "--set train.batch_size=64.");
  says({"local", "x.yaml", "--dropout", "0.1"}, "dtrain has no dropout.");
  says({"local", "x.yaml", "--worker", "2"}, "Did you mean --workers?");
  says({"report", "--epochs", "3"}, "--epochs: unknown option. See dtrain report --help.");
}

TEST_CASE(
    "command line: a file in place of a model, and a table without its option, are told what to write") {
  const std::string directory = testing::NewDirectory(), config = directory + "/a.yaml",
                    table = directory + "/t.csv";
  std::ofstream(config) << "model: linear\n";
  std::ofstream(table) << "a,y\n1,2\n";
  CHECK(ErrorOf({"eval", config.c_str()}) ==
        "eval " + config +
            ": a config, and eval takes a model: the directory of a run, such as runs/NAME, or a " +
            "checkpoint. dtrain local " + config + " trains one.");
  CHECK(ErrorOf({"predict", table.c_str()}).find("dtrain check " + table + " shows what is in a table.") !=
        std::string::npos);
  CHECK(ErrorOf({"predict", "run", table.c_str()}) ==
        table + ": a table needs its option here. Write --data " + table + ".");
  CHECK(ErrorOf({table.c_str()}).find("dtrain init " + table + " writes a config for it") !=
        std::string::npos);
}

TEST_CASE("command line: help and version are commands too") {
  CHECK(Parse<ShowText>({"help"}).text == Parse<ShowText>({"--help"}).text);
  CHECK(Parse<ShowText>({"help", "local"}).text == Parse<ShowText>({"local", "--help"}).text);
  CHECK(ErrorOf({"help", "lokal"}) == "lokal: unknown command. Did you mean local? See dtrain --help.");
  Parse<ShowVersion>({"version"});
  Parse<ShowVersion>({"-V"});
}

TEST_CASE("command line: what is generated is one of four") {
  CHECK(Parse<ShowGenerated>({"--generate", "fish"}).what == "fish");
  CHECK(ErrorOf({"--generate", "csh"}) == "--generate csh: must be man, bash, zsh or fish.");
}

TEST_CASE("command line: -q is of what runs tasks") {
  CHECK(Parse<LocalArguments>({"local", "x", "-q"}).quiet);
  CHECK(Parse<LaunchArguments>({"launch", "x", "--quiet"}).quiet);
  CHECK(Parse<TaskArguments>({"-c", "x", "--role", "ps", "--index", "0", "-q"}).quiet);
  CHECK_FALSE(Parse<LocalArguments>({"local", "x"}).quiet);
}

TEST_CASE("command line: local has counts where given") {
  const auto plain = Parse<LocalArguments>({"local", "--config", "a.yaml"});
  CHECK_FALSE(plain.size.ps.has_value());
  CHECK_FALSE(plain.size.workers.has_value());
  CHECK_FALSE(plain.in_process);
  const auto given =
      Parse<LocalArguments>({"local", "--config=a.yaml", "--ps=2", "--workers", "5", "--in-process"});
  CHECK(given.size.ps == 2);
  CHECK(given.size.workers == 5);
  CHECK(given.in_process);
}

TEST_CASE("command line: check and plan take the counts of local, and check not those of a scheduler") {
  const auto plan = Parse<PlanArguments>({"plan", "--config", "a", "--ps", "16", "--workers", "64"});
  CHECK(plan.size.ps == 16);
  CHECK(plan.size.workers == 64);
  const auto check = Parse<CheckArguments>({"check", "--config", "a", "--ps", "3"});
  CHECK(check.size.ps == 3);
  CHECK_FALSE(check.size.workers.has_value());
  CHECK_FALSE(check.from.has_value());
  const auto from = Parse<CheckArguments>({"check", "--config", "a", "--from", "mpi", "--ps", "3"});
  CHECK_FALSE(from.size.ps.has_value());
  REQUIRE(from.from.has_value());
  CHECK(from.from->options.ps == 3);
  CHECK(ErrorOf({"check", "--config", "a", "--from", "mpi", "--workers", "4"}) ==
        "--workers 4: has no effect with --from, which says how many there are. Leave it out.");
}

TEST_CASE("command line: check takes a table or a config, and not both") {
  const auto table = Parse<CheckTableArguments>({"check", "t.csv", "--label", "x"});
  CHECK(table.path == "t.csv");
  CHECK(table.label == "x");
  CHECK(Parse<CheckTableArguments>({"check", "-"}).path == "-");
  CHECK(ErrorOf({"check", "t.csv", "--config", "a"}) ==
        "t.csv: unknown command or argument beside --config, which is about a config.");
  CHECK(ErrorOf({"check", "--label", "x", "--config", "a"}) ==
        "--label x: goes with a table. Write dtrain check table.csv --label x.");
  CHECK(ErrorOf({"check"}).find("check: what? Name a YAML file") == 0);
}

TEST_CASE("command line: init has a table, a label and a file") {
  const auto init = Parse<InitArguments>({"init", "t.csv", "--label", "x", "--out", "-"});
  CHECK(init.path == "t.csv");
  CHECK(init.label == "x");
  CHECK(init.out == "-");
  CHECK(ErrorOf({"init"}) == "init: which table? Try dtrain init table.csv --label NAME.");
  CHECK(ErrorOf({"init", "x.yaml"}).find("init x.yaml: must be a table") == 0);
}

TEST_CASE("command line: synth has a table of its own, a number of rows, and options of that table alone") {
  const auto synth =
      Parse<SynthArguments>({"synth", "criteo", "--rows", "5000000000", "--seed", "3", "--truth"});
  CHECK(synth.name == "criteo");
  CHECK(synth.rows == 5000000000);
  CHECK(synth.first == 0);
  CHECK(synth.seed == 3);
  CHECK(synth.truth);
  CHECK_FALSE(synth.header);
  CHECK(ErrorOf({"synth", "critoe", "--rows", "1"}) ==
        "synth critoe: must be linear, digits, criteo, libsvm or vw. Did you mean criteo?");
  CHECK(ErrorOf({"synth", "linear"}) == "--rows is missing: how many rows? Try --rows 1000.");
  CHECK(ErrorOf({"synth", "linear", "--rows", "0"}) ==
        "--rows 0: must be a whole number >= 1. Try --rows 1000.");
  CHECK(ErrorOf({"synth", "digits", "--rows", "1", "--header"}) ==
        "--header: goes with synth criteo alone. Leave it out.");
  const auto sparse = Parse<SynthArguments>({"synth", "vw", "--rows", "1", "--width", "4294967296"});
  CHECK(sparse.features == 39);
  CHECK(sparse.width == 4294967296);
  CHECK(ErrorOf({"synth", "linear", "--rows", "1", "--width", "5"}) ==
        "--width: goes with synth libsvm or vw alone. Leave it out.");
  CHECK(ErrorOf({"synth", "libsvm", "--rows", "1", "--width", "38"}) ==
        "--width 38: must be at least --features, 39, and at most 1000000000000.");
}

TEST_CASE("command line: numbers that are none, too small or too large are refused by name") {
  for (const char* bad : {"-1", "1x", "", "1.5", "99999999999999999999", " 1", "0x1"}) {
    CAPTURE(bad);
    const std::string index = std::string("--index=") + bad;
    const std::string text = ErrorOf({"--config", "a", "--role", "ps", index.c_str()});
    CHECK(text.find("--index") == 0);
  }
  CHECK(ErrorOf({"local", "--config", "a", "--ps", "0"}) ==
        "--ps 0: must be a whole number >= 1. Try --ps 1.");
}

TEST_CASE("command line: an option twice is refused, not silently the last one") {
  CHECK(ErrorOf({"check", "--config", "a", "--config", "b"}).find("--config") != std::string::npos);
}

TEST_CASE("command line: a scheduler takes the place of role and index") {
  const auto task =
      Parse<TaskArguments>({"--config", "a", "--from", "slurm", "--ps", "2", "--base-port", "7000"});
  REQUIRE(task.from.has_value());
  CHECK(task.from->scheduler == Scheduler::kSlurm);
  CHECK(task.from->options.ps == 2);
  CHECK(task.from->options.base_port == 7000);
  CHECK_FALSE(task.task.has_value());
  const auto check = Parse<CheckArguments>({"check", "--config", "a", "--from", "tf_config"});
  REQUIRE(check.from.has_value());
  CHECK(check.from->scheduler == Scheduler::kTfConfig);
  CHECK_FALSE(check.from->options.ps.has_value());
}

TEST_CASE("command line: what contradicts --from, or has no effect, is refused") {
  CHECK(ErrorOf({"--config", "a", "--from", "slurm", "--role", "ps"}).find("--role ps: --from slurm says") ==
        0);
  CHECK(ErrorOf({"--config", "a", "--from", "mpi", "--index", "1"}).find("--index 1: --from mpi says") == 0);
  CHECK(ErrorOf({"--config", "a", "--from", "slrum"}) ==
        "--from slrum: must be slurm, tf_config or mpi. Did you mean slurm?");
  CHECK(ErrorOf({"--config", "a", "--from", "tf_config", "--ps", "1"}).find("--ps: has no effect") == 0);
  CHECK(ErrorOf({"--config", "a", "--ps", "1"}).find("--ps 1: goes with --from slurm") == 0);
  CHECK(ErrorOf({"check", "--config", "a", "--base-port", "1"}).find("--base-port 1: goes with") == 0);
  CHECK(ErrorOf({"--config", "a", "--from", "slurm", "--ps", "0"}).find("--ps 0: must be") == 0);
  CHECK(ErrorOf({"--config", "a", "--from", "slurm", "--base-port", "65536"})
            .find("--base-port 65536: must be at") == 0);
}

TEST_CASE("command line: a dumped config needs no role") {
  const auto dump = Parse<TaskArguments>({"--config", "a", "--dump-config"});
  CHECK(dump.config.dump);
  CHECK_FALSE(dump.task.has_value());
}

TEST_CASE("command line: what follows -- is handed to a guard as it is, and --help hides it") {
  const auto guard =
      Parse<GuardArguments>({"guard", "--directory=/a b", "--config=c", "--silence-s=7", "--", "--config=x",
                             "[a, b]", "--", "-x", "", "--directory=/c", "local"});
  CHECK(guard.directory == "/a b");
  CHECK(guard.config == "c");
  CHECK(guard.silence_s == 7);
  CHECK(guard.task ==
        std::vector<std::string>{"--config=x", "[a, b]", "--", "-x", "", "--directory=/c", "local"});
  const std::string help = Parse<ShowText>({"--help"}).text;
  CHECK(help.find("launch") != std::string::npos);
  CHECK(help.find("guard") == std::string::npos);
  CHECK(ErrorOf({"gard"}).find("guard") == std::string::npos);
}

TEST_CASE("command line: launch has a config, and may only show what it would do") {
  const auto launch = Parse<LaunchArguments>({"launch", "--config", "a", "--dry-run", "--result=r"});
  CHECK(launch.config.path == "a");
  CHECK(launch.dry_run);
  CHECK(launch.result == "r");
  CHECK_FALSE(Parse<LaunchArguments>({"launch", "--config", "a"}).dry_run);
}

TEST_CASE("command line: nothing at all, and help of each command, is text") {
  CHECK(Parse<ShowText>({}).text == Parse<ShowText>({"--help"}).text);
  CHECK(Parse<ShowText>({"local", "--help"}).text.find("dtrain local") != std::string::npos);
  for (const char* command : {"inspect", "eval", "predict", "export", "import"}) {
    CAPTURE(command);
    CHECK(Parse<ShowText>({command, "--help"}).text.find("[OPTIONS] path\n") != std::string::npos);
  }
  CHECK(Parse<ShowText>({"check", "-h"}).text.find("dtrain check") != std::string::npos);
}

}  // namespace
}  // namespace dtrain
