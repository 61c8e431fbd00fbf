#include "trainer/tf/tf_stream.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "base/crc32c.h"
#include "base/error.h"
#include "base/tfrecord.h"
#include "trainer/config/user_text.h"

namespace dtrain {
namespace {

ElementType ElementTypeOf(TfType type) {
  switch (type) {
    case TfType::kFloat64:
      return ElementType::kFloat64;
    case TfType::kFloat16:
      return ElementType::kFloat16;
    case TfType::kBfloat16:
      return ElementType::kBfloat16;
    default:
      return ElementType::kFloat32;
  }
}

// Returns how many values of a piece stand before value `end` of the tensor.
int64_t CountBefore(const TfTensor& tensor, const TfPiece& piece, int64_t end) {
  int64_t stride = tensor.size(), inside = piece.size(), count = 0;
  if (end >= stride) return inside;
  for (size_t i = 0; i < tensor.shape.size(); ++i) {
    stride /= tensor.shape[i];
    inside /= piece.length[i];
    const int64_t at = end / stride - piece.begin[i];
    end %= stride;
    count += std::clamp<int64_t>(at, 0, piece.length[i]) * inside;
    if (at < 0 || at >= piece.length[i]) break;
  }
  return count;
}

// Returns where value `number` of a piece stands in the tensor.
int64_t PlaceOf(const TfTensor& tensor, const TfPiece& piece, int64_t number) {
  int64_t at = 0, stride = 1;
  for (size_t i = tensor.shape.size(); i-- > 0; stride *= tensor.shape[i]) {
    at += (number % piece.length[i] + piece.begin[i]) * stride;
    number /= piece.length[i];
  }
  return at;
}

// Returns how many values of a piece are neighbours in the tensor.
int64_t RunOf(const TfTensor& tensor, const TfPiece& piece) {
  int64_t run = 1;
  for (size_t i = tensor.shape.size(); i-- > 0;) {
    run *= piece.length[i];
    if (piece.length[i] != tensor.shape[i]) break;
  }
  return run;
}

}  // namespace

TfStream::TfStream(const TfCheckpoint& checkpoint, const TfTensor& tensor)
    : checkpoint_(checkpoint), tensor_(tensor), states_(tensor.pieces.size()) {
  if (tensor.unreadable.empty() && IsReal(tensor.type)) return;
  throw UserError("{}: {}: {}.", checkpoint.prefix(), Shown(tensor.name),
                  tensor.unreadable.empty()
                      ? "its type is " + NameOf(tensor.type) + ", and weights are real numbers"
                      : tensor.unreadable);
}

void TfStream::Read(int64_t count, float* out) {
  const int64_t end = next_ + count;
  DT_CHECK(count >= 0 && end <= tensor_.size(), next_, count, tensor_.size());
  const auto is_done = [&](size_t i) { return states_[i].taken == tensor_.pieces[i].size(); };
  while (first_ < states_.size() && is_done(first_)) ++first_;
  // Pieces are in the order of the first dimension that is cut.
  const auto is_behind = [&](const TfPiece& piece) {
    return !piece.begin.empty() && piece.begin[0] * (tensor_.size() / tensor_.shape[0]) >= end;
  };
  for (size_t i = first_; count > 0 && i < states_.size() && !is_behind(tensor_.pieces[i]); ++i) {
    if (!is_done(i)) Take(i, CountBefore(tensor_, tensor_.pieces[i], end) - states_[i].taken, out);
  }
  next_ = end;
}

// Puts the next values of a piece where they belong among those from next_ on.
void TfStream::Take(size_t index, int64_t count, float* out) {
  const TfPiece& piece = tensor_.pieces[index];
  int64_t number = states_[index].taken;
  const int64_t run = RunOf(tensor_, piece);
  if (count <= run - number % run) {
    if (count > 0) ReadValues(index, count, out + PlaceOf(tensor_, piece, number) - next_);
    return;
  }
  scratch_.resize(static_cast<size_t>(count));
  ReadValues(index, count, scratch_.data());
  for (const float* from = scratch_.data(); count > 0;) {
    const int64_t here = std::min(count, run - number % run);
    std::copy_n(from, here, out + PlaceOf(tensor_, piece, number) - next_);
    from += here;
    number += here;
    count -= here;
  }
}

void TfStream::ReadValues(size_t index, int64_t count, float* out) {
  const TfPiece& piece = tensor_.pieces[index];
  State& state = states_[index];
  const bool is_v1 = checkpoint_.is_v1();
  if (is_v1 && state.taken == 0)
    checkpoint_.ReadValues(tensor_, piece, [&](std::string_view bytes) { state.bytes = bytes; });
  uint64_t at = static_cast<uint64_t>(state.taken * BytesOf(tensor_.type));
  const auto read = [&](uint64_t bytes, void* to) {
    if (is_v1) {
      std::memcpy(to, state.bytes.data() + at, bytes);
    } else {
      checkpoint_.FileOf(tensor_, piece).ReadAt(piece.offset + at, bytes, to);
      state.crc = Crc32cExtend(state.crc, to, bytes);
    }
    at += bytes;
  };
  if (tensor_.type == TfType::kFloat32) {
    read(static_cast<uint64_t>(count) * sizeof(float), out);
  } else if (const auto beyond = ReadElements(ElementTypeOf(tensor_.type), count, read, out)) {
    throw UserError("{}: {}", checkpoint_.FileName(piece.file), beyond->Text(Shown(tensor_.name)));
  }
  state.taken += count;
  if (state.taken < piece.size()) return;
  if (!is_v1 && MaskCrc(state.crc) != piece.crc) checkpoint_.ThrowDamaged(tensor_, piece);
  state.bytes = std::string();
}

}  // namespace dtrain
