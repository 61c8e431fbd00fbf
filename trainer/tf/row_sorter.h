// RowSorter: takes rows of a table by feature and gives them by their numbers, in some 32 MiB of memory
// however many there are: what does not fit lies in a file without a name meanwhile, in buckets of
// neighbours. Errors are thrown as SaveError. Owner: dtrain import. Thread: one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace dtrain {

class RowSorter {
 public:
  // For row numbers below `rows`, each with `values` values. The file is in `directory`. `memory`: bytes.
  RowSorter(const std::string& directory, uint64_t rows, int64_t values, size_t memory = kMemory);
  ~RowSorter();
  RowSorter(const RowSorter&) = delete;
  RowSorter& operator=(const RowSorter&) = delete;

  // Returns where the values of a row are to be written before the next call. Each number comes once.
  float* Add(uint64_t row);
  // Visits all rows in ascending order; nothing is added any more.
  void Visit(const std::function<void(uint64_t row, const float* values)>& visit);

 private:
  static constexpr size_t kMemory = size_t{24} << 20;

  struct Bucket {
    std::vector<float> buffer;
    size_t records = 0;    // in the buffer
    uint64_t written = 0;  // records in the file
  };

  void Flush(Bucket* bucket);
  // Where a record of a bucket is in the file.
  uint64_t OffsetOf(const Bucket& bucket, uint64_t record) const;
  [[noreturn]] void Fail(int error) const;

  const std::string path_;
  const size_t record_;       // words: the number of the row in its bucket, then its values
  uint64_t bucket_rows_ = 0;  // numbers of a bucket
  size_t buffer_records_ = 0;
  int fd_ = -1;
  std::vector<Bucket> buckets_;
};

}  // namespace dtrain
