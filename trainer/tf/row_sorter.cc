#include "trainer/tf/row_sorter.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "trainer/checkpoint/checkpoint_errors.h"

namespace dtrain {

RowSorter::RowSorter(const std::string& directory, uint64_t rows, int64_t values, size_t memory)
    : path_(directory + "/rows"), record_(1 + static_cast<size_t>(values)) {
  // A third of the memory is for a bucket that is sorted, and the rest for the buffers of all.
  const size_t third = memory / 3 / (record_ * sizeof(float));
  bucket_rows_ = std::clamp<uint64_t>(third, 1, std::max<uint64_t>(1, rows));
  buckets_.resize((rows + bucket_rows_ - 1) / bucket_rows_);
  buffer_records_ = std::clamp<uint64_t>(2 * third / std::max<size_t>(1, buckets_.size()), 1, bucket_rows_);
}

RowSorter::~RowSorter() {
  if (fd_ >= 0) close(fd_);
}

float* RowSorter::Add(uint64_t row) {
  DT_CHECK(row / bucket_rows_ < buckets_.size(), row);
  Bucket& bucket = buckets_[row / bucket_rows_];
  if (bucket.records == buffer_records_) Flush(&bucket);
  if (bucket.buffer.empty()) bucket.buffer.resize(buffer_records_ * record_);
  float* const record = bucket.buffer.data() + bucket.records++ * record_;
  const auto number = static_cast<uint32_t>(row % bucket_rows_);
  std::memcpy(record, &number, sizeof number);
  return record + 1;
}

// A bucket has its place in the file, with room for all of its rows.
void RowSorter::Flush(Bucket* bucket) {
  if (fd_ < 0) {
    fd_ = open(path_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd_ < 0 || unlink(path_.c_str()) != 0) Fail(errno);
  }
  const auto* const from = reinterpret_cast<const char*>(bucket->buffer.data());
  const size_t bytes = bucket->records * record_ * sizeof(float);
  const uint64_t offset = OffsetOf(*bucket, bucket->written);
  for (size_t done = 0; done < bytes;) {
    const ssize_t wrote = pwrite(fd_, from + done, bytes - done, static_cast<off_t>(offset + done));
    if (wrote < 0 && errno != EINTR) Fail(errno);
    done += wrote > 0 ? static_cast<size_t>(wrote) : 0;
  }
  bucket->written += bucket->records;
  bucket->records = 0;
}

uint64_t RowSorter::OffsetOf(const Bucket& bucket, uint64_t record) const {
  const auto index = static_cast<uint64_t>(&bucket - buckets_.data());
  return (index * bucket_rows_ + record) * record_ * sizeof(float);
}

void RowSorter::Visit(const std::function<void(uint64_t row, const float* values)>& visit) {
  std::vector<float> records;   // all of a bucket
  std::vector<uint32_t> place;  // of the row in `records`, from 1; 0: there is none
  for (size_t i = 0; i < buckets_.size(); ++i) {
    Bucket& bucket = buckets_[i];
    const auto count = static_cast<size_t>(bucket.written) + bucket.records;
    records.resize(count * record_);
    const size_t bytes = static_cast<size_t>(bucket.written) * record_ * sizeof(float);
    auto* const to = reinterpret_cast<char*>(records.data());
    for (size_t done = 0; done < bytes;) {
      const ssize_t got = pread(fd_, to + done, bytes - done, static_cast<off_t>(OffsetOf(bucket, 0) + done));
      if (got == 0 || (got < 0 && errno != EINTR)) Fail(got == 0 ? EIO : errno);
      done += got > 0 ? static_cast<size_t>(got) : 0;
    }
    std::copy_n(bucket.buffer.data(), bucket.records * record_,
                records.data() + static_cast<size_t>(bucket.written) * record_);
    bucket.buffer = std::vector<float>();
    place.assign(bucket_rows_, 0);
    for (uint32_t record = 0; record < count; ++record) {
      uint32_t number = 0;
      std::memcpy(&number, records.data() + record * record_, sizeof number);
      place[number] = record + 1;
    }
    for (uint64_t number = 0; number < bucket_rows_; ++number) {
      if (place[number] > 0)
        visit(i * bucket_rows_ + number, records.data() + (place[number] - 1) * record_ + 1);
    }
  }
}

void RowSorter::Fail(int error) const { throw SaveError(path_, "written", error); }

}  // namespace dtrain
