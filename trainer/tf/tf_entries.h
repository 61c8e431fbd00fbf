// What the entries of a checkpoint of TensorFlow say: types of values, shapes, slices and the values of V1.
// Thread: any; free functions.
//
// Formats: tensorflow/core/protobuf/tensor_bundle.proto, saved_tensor_slice.proto, tensor_slice.proto, and of
// the keys of slices tensorflow/core/lib/strings/ordered_code.h.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace dtrain {

// The numbers of tensorflow/core/framework/types.proto.
enum class TfType : uint32_t {
  kFloat32 = 1,
  kFloat64 = 2,
  kInt32 = 3,
  kString = 7,
  kInt64 = 9,
  kBfloat16 = 14,
  kFloat16 = 19,
};
// "float32"; of a number that has no name here "type 21".
std::string NameOf(TfType type);
// The bytes of a value; 0: strings, and types that are not known.
int64_t BytesOf(TfType type);
// Whether values can be read as float32: float32, float64, float16 and bfloat16.
bool IsReal(TfType type);

// Returns "w" of "w/part_12", the name of a part of a variable; in an estimator's DNN it is "w/t_12". Other
// names are returned as they are.
std::string_view WithoutPart(std::string_view name);

// Reads a TensorShapeProto. False: it is damaged, or no tensor has it.
bool ReadShape(std::string_view message, std::vector<int64_t>* shape);

constexpr int64_t kWholeSide = -1;  // the length of a slice that has all of a dimension
// Reads a TensorSliceProto: appends start and length of each dimension. False: it is damaged.
bool ReadSlice(std::string_view message, std::vector<int64_t>* extents);
// Reads the key of a slice: 0, the name, 0 1, the rank, start and length of each dimension. False: it is
// none.
bool ReadSliceKey(std::string_view key, std::string* name, std::vector<int64_t>* extents);

// Returns the values in an entry of V1 as little-endian bytes. Empty: it has none, or is damaged.
std::string ValuesOf(TfType type, std::string_view entry);

}  // namespace dtrain
