#include "trainer/worker/gradient_encoder.h"

namespace dtrain {

GradientEncoder::GradientEncoder(net::Compression form, const Layout& layout, int worker)
    : form_(form),
      layout_(layout),
      left_out_(form == net::Compression::kNone ? 0 : static_cast<size_t>(layout.size)),
      rounding_(static_cast<uint64_t>(worker)) {}

net::LentBytes GradientEncoder::Block(const net::LentBuffer& buffer, Range block) {
  const size_t values = static_cast<size_t>(block.size()) * sizeof(float);
  if (form_ == net::Compression::kNone) {
    return buffer.Lend(static_cast<size_t>(block.begin) * sizeof(float), values);
  }
  const size_t bytes = net::CompressedBytes(form_, block.size());
  const net::LentBuffer& compressed = compressed_.Free(bytes);
  net::Compress(form_, buffer.floats() + block.begin, left_out_.data() + block.begin, block.size(),
                reinterpret_cast<std::byte*>(compressed.floats()));
  bytes_saved_ += static_cast<int64_t>(values) - static_cast<int64_t>(bytes);
  return compressed.Lend(0, bytes);
}

net::LentBytes GradientEncoder::Rows(const net::LentBuffer* buffer, const KeyedBatch* of,
                                     const KeyedBatch* asks, int64_t block, uint64_t request,
                                     uint32_t* key_bytes) {
  const TableLayout& table = *layout_.table;
  const KeySpan keys = asks == nullptr ? KeySpan() : asks->KeysIn(block);
  const auto count = static_cast<size_t>(keys.size);
  const int64_t values = of == nullptr ? 0 : of->KeysIn(block).size * table.width();
  const net::Compression form = net::FormOfRows(form_);
  const size_t value_bytes = net::CompressedBytes(form, values);
  const net::LentBuffer& tensor = rows_.Free(value_bytes + MaxKeyBytes(count, table));
  auto* const bytes = reinterpret_cast<std::byte*>(tensor.floats());
  if (values > 0) {
    const float* const rows = buffer->floats() + layout_.size + of->FirstIn(block) * table.width();
    form == net::Compression::kNone
        ? static_cast<void>(std::copy_n(rows, values, tensor.floats()))
        : net::CompressAtRandom(form, rows, rounding_.Stream(request).Bits(static_cast<uint64_t>(block)),
                                values, bytes);
  }
  *key_bytes = static_cast<uint32_t>(EncodeKeys(keys, table.RangeOf(block), bytes + value_bytes));
  const size_t sent = value_bytes + *key_bytes;
  bytes_saved_ += values * static_cast<int64_t>(sizeof(float)) +
                  static_cast<int64_t>(count * table.key_bytes()) - static_cast<int64_t>(sent);
  return tensor.Lend(0, sent);
}

}  // namespace dtrain
