#include "server/object_count.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/wire_format_lite.h>

namespace fusion {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::internal::WireFormatLite;
using google::protobuf::io::CodedInputStream;

// Parsers refuse what nests deeper.
constexpr int kMaxDepth = 100;

// What a length-delimited field holds: objects, or packed numbers.
bool HoldsObject(const FieldDescriptor& field) {
  return field.type() == FieldDescriptor::TYPE_MESSAGE ||
         field.type() == FieldDescriptor::TYPE_STRING ||
         field.type() == FieldDescriptor::TYPE_BYTES;
}

int64_t Count(const Descriptor& type, CodedInputStream* in, int64_t limit, int depth) {
  if (depth > kMaxDepth) return -1;
  int64_t objects = 0;
  while (uint32_t tag = in->ReadTag()) {
    if (WireFormatLite::GetTagWireType(tag) != WireFormatLite::WIRETYPE_LENGTH_DELIMITED) {
      if (!WireFormatLite::SkipField(in, tag)) return -1;
      continue;
    }
    uint32_t length = 0;
    if (!in->ReadVarint32(&length)) return -1;
    if (static_cast<int64_t>(length) > in->BytesUntilLimit()) return -1;
    const FieldDescriptor* field = type.FindFieldByNumber(WireFormatLite::GetTagFieldNumber(tag));
    // Parsers keep unknown fields too.
    if (field == nullptr || HoldsObject(*field)) ++objects;
    if (field == nullptr || field->type() != FieldDescriptor::TYPE_MESSAGE) {
      if (!in->Skip(static_cast<int>(length))) return -1;
    } else {
      CodedInputStream::Limit outer = in->PushLimit(static_cast<int>(length));
      int64_t inner = Count(*field->message_type(), in, limit - objects, depth + 1);
      if (inner < 0) return -1;
      objects += inner;
      if (objects > limit) return objects;
      if (in->BytesUntilLimit() != 0) return -1;
      in->PopLimit(outer);
    }
    if (objects > limit) return objects;
  }
  return in->ConsumedEntireMessage() ? objects : -1;
}

}  // namespace

int64_t CountObjects(const Descriptor& type, std::string_view bytes, int64_t limit) {
  CodedInputStream in(reinterpret_cast<const uint8_t*>(bytes.data()),
                      static_cast<int>(bytes.size()));
  return Count(type, &in, limit, 0);
}

}  // namespace fusion
