// ColumnFormat: how the numbers of one column of a table look to be written: their marks, unit or currency.
// Thread: any; plain data and free functions.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "trainer/config/choices.h"
#include "trainer/config/item_text.h"
#include "trainer/input/csv_reader.h"

namespace dtrain {

struct ColumnFormat {
  NumberFormat format;
  std::string example;                 // as data.number_format takes it
  std::string units;                   // as in ColumnProfile
  std::string doubtful, other_format;  // a number, and its other format, if it may as well have that
  bool maybe_thousands = false;        // so it would be without numbers of other columns
};
// `rows`: the first rows of the table, without a header. Without a sign of another one it is the plain format
// with `decimal`, and marks between thousands. `shown`: the mark before decimals that other columns show, by
// which doubtful numbers are read; unset: none.
ColumnFormat FindFormat(const std::vector<CsvRecord>& rows, size_t column, Decimal decimal,
                        std::optional<Decimal> shown = std::nullopt);

// Whether a text is a number with this mark before its decimals, perhaps with a unit or a currency.
bool IsNumberWith(std::string_view text, Decimal decimal);
// Whether numbers are written in `format`, that of the same column elsewhere; some may be plain.
bool IsWrittenSo(const std::vector<CsvRecord>& rows, size_t column, const NumberFormat& format);

}  // namespace dtrain
