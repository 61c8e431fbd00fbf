// Drawn tables: whatever a table looks like, `dtrain init` refuses it with a reason or writes a config with
// which check, a run, eval and predict succeed, no row is lost, and the column that decides the label is a
// feature. Where the same rows written plainly give other answers, something was read as what it is not.
// scripts/drawn_tables.sh draws thousands of them.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <optional>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/error.h"
#include "base/json.h"
#include "base/testing/files.h"
#include "cmd/testing/drawn_table.h"
#include "cmd/testing/job.h"
#include "cmd/testing/two_at_once.h"
#include "trainer/config/config.h"
#include "trainer/config/load.h"
#include "trainer/config/user_text.h"

namespace dtrain::testing {
namespace {

namespace fs = std::filesystem;
using Texts = std::vector<std::string>;

// What became of a table.
struct Verdict {
  std::string fault;    // empty: all is as it should be
  std::string refusal;  // of init, which is no fault
};

struct Fault {
  std::string text;
};

std::string LastLine(const std::string& text) {
  const size_t end = text.find_last_not_of('\n');
  if (end == text.npos) return "";
  const size_t begin = text.rfind('\n', end);
  return text.substr(begin == text.npos ? 0 : begin + 1, end - (begin == text.npos ? 0 : begin + 1) + 1);
}

std::optional<double> Number(const std::string& text) {
  char* end = nullptr;
  const double number = std::strtod(text.c_str(), &end);
  return text.empty() || *end != '\0' ? std::nullopt : std::optional(number);
}

bool IsSameClass(const std::string& a, const std::string& b) {
  return LowerCase(a) == LowerCase(b) || (Number(a) && Number(a) == Number(b));
}

// TableTrial: what a user does with one table, in a directory of its own.
class TableTrial {
 public:
  TableTrial(const DrawnTable& table, std::string directory)
      : table_(table), directory_(std::move(directory)) {
    for (const DrawnFile& file : table.files) {
      const std::string path = Path(file.name), unpacked = path.substr(0, path.size() - (table.gzip ? 3 : 0));
      WriteFile(unpacked, file.content);
      if (table.gzip) DT_CHECK(system(fmt::format("gzip -n '{}'", unpacked).c_str()) == 0, path);
    }
    WriteFile(Path("plain.csv"), table.plain);
  }

  Verdict Try() {
    try {
      const Done made = Init(table_.argument, table_.label, "job.yaml");
      if (made.code == 2) return Refused(made);
      if (made.code != 0) throw Fault{fmt::format("init: exit code {}: {}", made.code, LastLine(made.error))};
      CheckLabel();
      FindQuestions(made.output);
      CheckData(made.output);
      Train("job");
      CheckEval();
      ComparePlain(Predict("job", table_.argument));
      return {};
    } catch (const Fault& fault) {
      return {fault.text, ""};
    } catch (const UserError& error) {
      return {std::string("the config: ") + error.what(), ""};
    }
  }

 private:
  std::string Path(const std::string& name) const { return directory_ + "/" + name; }

  Done Do(Texts arguments) const {
    Program program;
    program.directory = directory_;
    return Run(arguments, program);
  }

  Done Well(const Texts& arguments) const {
    Done done = Do(arguments);
    if (done.code != 0)
      throw Fault{fmt::format("{}: exit code {}: {}", arguments[0], done.code, LastLine(done.error))};
    return done;
  }

  Done Init(const std::string& data, const std::string& label, const std::string& out) const {
    Texts arguments = {"init", data, "--out", out};
    if (!label.empty()) arguments.insert(arguments.end(), {"--label", label});
    return Do(arguments);
  }

  // A few steps by NAME.yaml, in the directory of the run NAME.
  void Train(const std::string& name) const {
    Well({"local", name + ".yaml", "--run", name, "--set", "train.steps=20", "--set", "train.mode=sync",
          "--workers", "1", "--in-process"});
  }

  Verdict Refused(const Done& made) const {
    std::string said = made.error;
    std::replace(said.begin(), said.end(), '\n', ' ');
    if (!Contains(said, table_.files[0].name.substr(0, 4)))
      throw Fault{"init refuses and does not say which file: " + said};
    if (!table_.may_refuse) throw Fault{"init refuses a table: " + said};
    return {"", said};
  }

  void CheckLabel() const {
    const Config config =
        LoadConfig(Path("job.yaml"), {"cluster.ps=[localhost:1]", "cluster.worker=[localhost:2]"}, {});
    const std::string label = ColumnNameIn(config.data.train.label);
    if (label != table_.label_column)
      throw Fault{fmt::format("the label is {} and should be {}", label, table_.label_column)};
  }

  // Finds the columns that init asks about. Of others it is sure, since they can be read but in one way.
  void FindQuestions(const std::string& said) {
    std::istringstream lines(said);
    for (std::string line; std::getline(lines, line);) {
      if (!Contains(line, ", as NAME=")) continue;
      const size_t begin = line.find_first_not_of(' ');
      const std::string title = line.substr(begin, line.find(": ") - begin);
      asked_.push_back(title.substr(0, title.find(" (number ")));
      if (std::count(table_.doubtful.begin(), table_.doubtful.end(), asked_.back()) == 0)
        throw Fault{"init asks about a column that is clear: " + line};
    }
  }

  // The rows and the features that check counts. A table without names in which all columns are features has
  // no names of them. `said`: by init.
  void CheckData(const std::string& said) const {
    const Json data = Json::Parse(Well({"check", "job.yaml", "--json"}).output).at("data");
    const auto rows = data.at("train").at("rows").get<int64_t>(), labelled = table_.rows - table_.unlabelled;
    if (rows != labelled) throw Fault{fmt::format("check counts {} rows of {} with a label", rows, labelled)};
    bool named = false;
    for (const Json& feature : data.at("features")) {
      const std::string name = feature.get<std::string>();
      named = true;
      if (name == table_.signal || name.rfind(table_.signal + "=", 0) == 0) return;
    }
    if (!named || std::count(asked_.begin(), asked_.end(), table_.signal) > 0) return;
    throw Fault{fmt::format("{} decides the label and is no feature; init: {}", table_.signal, said)};
  }

  // So few rows that none is held out are nothing to evaluate on.
  void CheckEval() const {
    const bool holds_out = Contains(FileContent(Path("job.yaml")), "validation: ");
    Well(holds_out ? Texts{"eval", "job"} : Texts{"eval", "job", "--data", table_.argument});
  }

  // The answers, one a row.
  std::vector<Json> Predict(const std::string& run, const std::string& data) const {
    const int64_t skipped = table_.bad_rows + table_.other_lines;
    Texts arguments = {"predict", run, "--data", data, "--format", "jsonl"};
    if (skipped > 0) arguments.insert(arguments.end(), {"--skip-bad", fmt::format("{}", skipped)});
    std::istringstream lines(Well(arguments).output);
    std::vector<Json> answers;
    for (std::string line; std::getline(lines, line);) answers.push_back(Json::Parse(line));
    const auto count = static_cast<int64_t>(answers.size());
    if (count != table_.rows) throw Fault{fmt::format("{} rows predicted of {}", count, table_.rows)};
    CheckClasses(answers[0]);
    return answers;
  }

  void CheckClasses(const Json& answer) const {
    const Json* const probabilities = answer.Find("probabilities");
    if (probabilities == nullptr) {
      if (!table_.classes.empty() && !table_.may_be_quantity)
        throw Fault{"a quantity is predicted in place of classes"};
      return;
    }
    Texts classes;
    for (const auto& [name, value] : probabilities->items()) classes.push_back(name);
    const bool all =
        std::all_of(table_.classes.begin(), table_.classes.end(), [&](const std::string& wanted) {
          return std::any_of(classes.begin(), classes.end(),
                             [&](const std::string& name) { return IsSameClass(name, wanted); });
        });
    if (all && classes.size() == table_.classes.size()) return;
    throw Fault{
        fmt::format("the classes are {} and should be {}", fmt::join(classes, ", "),
                    table_.classes.empty() ? "numbers" : fmt::format("{}", fmt::join(table_.classes, ", ")))};
  }

  // The same steps on the same rows in plain writing give the same answers, unless init asked how a column is
  // meant.
  void ComparePlain(const std::vector<Json>& answers) const {
    if (table_.bad_rows + table_.other_lines > 0 || !asked_.empty()) return;
    const Done made = Init("plain.csv", table_.plain_label, "plain.yaml");
    if (made.code != 0) throw Fault{"init of the plain table: " + LastLine(made.error)};
    Train("plain");
    const std::vector<Json> plain = Predict("plain", "plain.csv");
    for (size_t row = 0; row < answers.size(); ++row) {
      if (!IsSameAnswer(answers[row], plain[row])) {
        throw Fault{fmt::format("row {} is answered by {}, and in plain writing by {}", row + 1,
                                answers[row].dump(), plain[row].dump())};
      }
    }
  }

  static bool IsSameAnswer(const Json& a, const Json& b) {
    const auto close = [](double x, double y) {
      return std::abs(x - y) <= 1e-3 * std::max(1.0, std::abs(y));
    };
    const Json* const of_a = a.Find("probabilities");
    const Json* const of_b = b.Find("probabilities");
    if (of_a == nullptr || of_b == nullptr) {
      return of_a == of_b && close(a.at("prediction").get<double>(), b.at("prediction").get<double>());
    }
    return std::all_of(of_a->items().begin(), of_a->items().end(), [&](const Json::Member& one) {
      return std::any_of(of_b->items().begin(), of_b->items().end(), [&](const Json::Member& other) {
        return IsSameClass(one.first, other.first) &&
               close(one.second.get<double>(), other.second.get<double>());
      });
    });
  }

  const DrawnTable& table_;
  const std::string directory_;
  Texts asked_;  // columns
};

// The seeds of the tests are 1 to kLastSeed. scripts/drawn_tables.sh tries all from FIRST to LAST.
constexpr uint64_t kLastSeed = 150;

// The seeds of a round: those of the tests, or FIRST to LAST of DTRAIN_DRAWN_TABLES="FIRST LAST ..".
struct Round {
  std::vector<uint64_t> seeds;
  bool by_hand = false;
  std::string keep;  // a directory for the tables at fault or refused; empty: they go

  Round() {
    const char* const range = std::getenv("DTRAIN_DRAWN_TABLES");
    const char* const directory = std::getenv("DTRAIN_DRAWN_KEEP");
    if (directory != nullptr) keep = directory;
    by_hand = range != nullptr;
    std::istringstream ranges(by_hand ? range : fmt::format("1 {}", kLastSeed));
    for (uint64_t first, last; ranges >> first >> last;) {
      for (uint64_t seed = first; seed <= last; ++seed) seeds.push_back(seed);
    }
  }
};

Verdict TrySeed(uint64_t seed, const Round& round, Texts* traits) {
  const DrawnTable table = DrawTable(seed);
  *traits = table.traits;
  const std::string directory = NewDirectory();
  const Verdict verdict = TableTrial(table, directory).Try();
  if (!round.keep.empty() && !(verdict.fault + verdict.refusal).empty()) {
    fs::copy(directory, fs::path(round.keep) / fmt::format("{}", seed),
             fs::copy_options::recursive | fs::copy_options::overwrite_existing);
  }
  fs::remove_all(directory);
  return verdict;
}

TEST_CASE(
    "drawn tables: init refuses with a reason, or what it writes runs, loses no row and reads what is "
    "meant") {
  const Round round;
  uint64_t refused = 0;
  Texts faults;
  TwoAtOnce(
      round.seeds.size(),
      [&](size_t i) {
        Texts traits;
        const Verdict verdict = TrySeed(round.seeds[i], round, &traits);
        return std::make_pair(verdict, traits);
      },
      [&](size_t i, const auto& tried) {
        const auto& [verdict, traits] = tried;
        const uint64_t seed = round.seeds[i];
        const std::string drawn = fmt::format("; drawn: {}", fmt::join(traits, ", "));
        if (!verdict.fault.empty())
          faults.push_back(fmt::format("seed {}: {}{}", seed, verdict.fault, drawn));
        if (verdict.refusal.empty()) return;
        ++refused;
        if (round.by_hand) fmt::print("seed {} refused: {}{}\n", seed, verdict.refusal, drawn);
      });
  for (const std::string& fault : faults) fmt::print("{}\n", fault);
  fmt::print("drawn tables: {} of {} are at fault, {} refused\n", faults.size(), round.seeds.size(), refused);
  CHECK(faults.empty());
}

}  // namespace
}  // namespace dtrain::testing
