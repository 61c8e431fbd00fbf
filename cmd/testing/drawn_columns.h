// Columns of a drawn table (drawn_table.h): each value as it is written, and as the plain table has it.
// Thread: one.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/random.h"

namespace dtrain::testing {

// The draws of one table, one after the other.
class Draws {
 public:
  explicit Draws(uint64_t seed) : random_(seed) { oddity_ = Of(std::vector<double>{0.1, 0.3, 0.3, 1}); }
  int Below(int bound) { return static_cast<int>(random_.Below(counter_++, static_cast<uint64_t>(bound))); }
  int Between(int min, int max) { return min + Below(max - min + 1); }
  bool Chance(double share) { return random_.Uniform(counter_++) < share; }
  // What most tables do not have: some tables have little of it, others much, so that a failure has few
  // causes.
  bool Rarely(double share) { return Chance(share * oddity_); }
  double Uniform(double min, double max) { return min + (max - min) * random_.Uniform(counter_++); }
  template <typename T>
  const T& Of(const std::vector<T>& items) {
    return items[static_cast<size_t>(Below(static_cast<int>(items.size())))];
  }

 private:
  CounterRandom random_;
  uint64_t counter_ = 0;
  double oddity_ = 1;
};

// A value as it is written, and as the plain table has it.
struct Cell {
  std::string text, plain;
};

struct Column {
  std::string name;
  std::vector<Cell> cells;
  std::vector<double> meaning;  // of each row, -1 to 1; for a column that can decide the label
  bool numbers = false;
  bool doubtful = false;  // its texts can be read in two ways
};

// ColumnDrawer: draws the columns of one table.
class ColumnDrawer {
 public:
  using Texts = std::vector<std::string>;
  // How the table is written, as far as it concerns values: whether a field may be empty, and whether all
  // numbers have commas before their decimals. Appends to *traits what is drawn, in words.
  struct Writing {
    bool has_empty_fields = true;
    bool decimal_comma = false;
  };
  ColumnDrawer(Draws* draws, int64_t rows, Writing writing, Texts* traits)
      : draws_(*draws), rows_(rows), writing_(writing), traits_(*traits) {}

  // Any column of a table: numbers, categories, dates, an id, free texts, or one value.
  Column Any();
  // One that decides the label: numbers, categories or dates. Only it has a meaning.
  Column Signal();
  // Labels that follow the meaning of `signal`. Sets the classes as texts.
  Column ClassesOf(const Column& signal, Texts* classes);
  Column QuantityOf(const Column& signal);

 private:
  Column Numbers(bool is_signal);
  Column Categories();
  Column Dates();
  Column Id();
  Column FreeTexts();
  Column Constant(bool is_empty);
  void AddGaps(Column* column, bool is_signal);

  Draws& draws_;
  const int64_t rows_;
  const Writing writing_;
  Texts& traits_;
};

}  // namespace dtrain::testing
