#include "avro/decoder.h"

namespace fleuve::avro {

bool Skip(const Node& type, ByteReader& in, int depth) {
  if (depth > kMaxValueDepth) {
    return false;
  }
  switch (type.kind) {
    case Kind::kNull:
      break;
    case Kind::kBoolean:
      in.Take(1);
      break;
    case Kind::kInt:
    case Kind::kEnum:
      in.Int();
      break;
    case Kind::kLong:
      in.Long();
      break;
    case Kind::kFloat:
      in.Take(4);
      break;
    case Kind::kDouble:
      in.Take(8);
      break;
    case Kind::kBytes:
    case Kind::kString:
      in.Bytes();
      break;
    case Kind::kFixed:
      in.Take(type.size);
      break;
    case Kind::kRecord:
      for (const Field& field : type.fields) {
        if (!Skip(*field.type, in, depth + 1)) {
          return false;
        }
      }
      break;
    case Kind::kArray:
    case Kind::kMap:
      while (const std::int64_t count = in.BlockCount()) {
        for (std::int64_t i = 0; i < count; ++i) {
          if (type.kind == Kind::kMap) {
            in.Bytes();
          }
          if (!Skip(*type.children[0], in, depth + 1)) {
            return false;
          }
        }
      }
      break;
    case Kind::kUnion: {
      const std::int32_t branch = in.Int();
      return !in.failed() && branch >= 0 && static_cast<std::size_t>(branch) < type.children.size() &&
             Skip(*type.children[static_cast<std::size_t>(branch)], in, depth + 1);
    }
  }
  return !in.failed();
}

}  // namespace fleuve::avro
