#include "core/tensor/npy.h"

#include <algorithm>
#include <array>
#include <span>

#include "core/base/parse/lexer.h"
#include "core/tensor/strided_copy.h"

namespace fusion {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr size_t kAlignment = 64;
// Of magic, version and the least length.
constexpr size_t kFrontBytes = 10;
// A header is some hundred bytes.
constexpr size_t kMaxHeaderBytes = size_t{1} << 16;

struct Descr {
  DType type;
  std::string_view text;
};
constexpr std::array<Descr, kDTypeCount> kDescrs = {{{DType::kBool, "|b1"},
                                                     {DType::kU8, "|u1"},
                                                     {DType::kI8, "|i1"},
                                                     {DType::kI16, "<i2"},
                                                     {DType::kI32, "<i4"},
                                                     {DType::kI64, "<i8"},
                                                     {DType::kF16, "<f2"},
                                                     {DType::kBF16, "<V2"},
                                                     {DType::kF32, "<f4"},
                                                     {DType::kF64, "<f8"},
                                                     {DType::kU16, "<u2"},
                                                     {DType::kU32, "<u4"},
                                                     {DType::kU64, "<u8"},
                                                     // Written as bytes: read, they are those.
                                                     {DType::kI4, "|i1"},
                                                     {DType::kU4, "|u1"},
                                                     {DType::kI2, "|i1"},
                                                     {DType::kU2, "|u1"},
                                                     {DType::kF8E4M3FN, "|u1"},
                                                     {DType::kF8E4M3FNUZ, "|u1"},
                                                     {DType::kF8E5M2, "|u1"},
                                                     {DType::kF8E5M2FNUZ, "|u1"},
                                                     {DType::kF8E8M0, "|u1"},
                                                     {DType::kF6E2M3, "|u1"},
                                                     {DType::kF6E3M2, "|u1"},
                                                     {DType::kF4E2M1, "|u1"}}};

// The last of them, whose texts are those of others.
constexpr size_t kBytesOnly = 12;

struct ElementType {
  DType dtype = DType::kF32;
  bool is_big_endian = false;
};

absl::StatusOr<ElementType> TypeOf(std::string_view descr) {
  std::string text(descr);
  ElementType out;
  // The order of single bytes does not matter, however it is written.
  if (text.size() == 3 && text[2] == '1') text[0] = '|';
  if (!text.empty() && text[0] == '=') text[0] = '<';
  // As NumPy writes the bytes of a type that it does not know.
  if (text == "|V2") text[0] = '<';
  if (text == "|V1") text[1] = 'u';
  if (!text.empty() && text[0] == '>') {
    text[0] = '<';
    out.is_big_endian = true;
  }
  for (const Descr& d : kDescrs) {
    if (d.text != text) continue;
    out.dtype = d.type;
    return out;
  }
  return Unimplemented("descr ", QuoteShort(descr), " is not supported; supported: ",
                       StrJoin(std::span(kDescrs).first(kDescrs.size() - kBytesOnly), " ",
                               [](const Descr& d) { return d.text; }));
}

// A string of Python without escapes.
absl::StatusOr<std::string> PythonString(Lexer* in) {
  const char quote = in->Peek("'") ? '\'' : '"';
  RETURN_IF_ERROR(in->Expect(std::string_view(&quote, 1)));
  ASSIGN_OR_RETURN(std::string_view text, in->Until(quote));
  RETURN_IF_ERROR(in->Expect(std::string_view(&quote, 1)));
  return std::string(text);
}

absl::StatusOr<Dims> ShapeOf(Lexer* in) {
  RETURN_IF_ERROR(in->Expect("("));
  Dims dims;
  while (!in->Accept(")")) {
    ASSIGN_OR_RETURN(int64_t dim, in->Integer());
    in->Accept("L");  // as Python 2 wrote long integers
    dims.push_back(dim);
    if (dims.size() > kMaxTensorRank) {
      return InvalidArgument("shape has more than ", kMaxTensorRank, " dims");
    }
    if (!in->Peek(")")) RETURN_IF_ERROR(in->Expect(","));
  }
  return dims;
}

struct Header {
  std::string descr;
  Dims shape;
  bool has_shape = false;
  bool is_column_major = false;
};

absl::StatusOr<Header> ParseHeader(std::string_view text) {
  Lexer in(text);
  Header header;
  RETURN_IF_ERROR(in.Expect("{"));
  while (!in.Accept("}")) {
    ASSIGN_OR_RETURN(std::string key, PythonString(&in));
    RETURN_IF_ERROR(in.Expect(":"));
    if (key == "descr") {
      if (in.Peek("[")) return Unimplemented("a structured array");
      ASSIGN_OR_RETURN(header.descr, PythonString(&in));
    } else if (key == "fortran_order") {
      ASSIGN_OR_RETURN(std::string word, in.Identifier());
      if (word != "True" && word != "False") return in.Error("True or False");
      header.is_column_major = word == "True";
    } else if (key == "shape") {
      ASSIGN_OR_RETURN(header.shape, ShapeOf(&in));
      header.has_shape = true;
    } else {
      return InvalidArgument("unknown key ", QuoteShort(key));
    }
    if (!in.Peek("}")) RETURN_IF_ERROR(in.Expect(","));
  }
  if (header.descr.empty() || !header.has_shape) return InvalidArgument("no descr or no shape");
  return header;
}

// The header's text; `*bytes` is what was read until its end.
absl::StatusOr<std::string> ReadHeader(const ByteSource& source, int64_t* bytes) {
  std::array<char, 12> front{};
  ASSIGN_OR_RETURN(size_t have, source.ReadFully(front.data(), kFrontBytes));
  if (have < kFrontBytes || !std::string_view(front.data(), have).starts_with(kMagic)) {
    return InvalidArgument("no .npy file: it does not begin with \\x93NUMPY");
  }
  const int version = static_cast<unsigned char>(front[6]);
  if (version < 1 || version > 3) {
    return Unimplemented("version ", version, " of the .npy format; supported: 1, 2, 3");
  }
  if (version > 1) {
    ASSIGN_OR_RETURN(const size_t more, source.ReadFully(front.data() + have, 2));
    have += more;
  }
  size_t length = 0;
  for (size_t i = have; i-- > 8;) length = length << 8 | static_cast<unsigned char>(front[i]);
  if (length > kMaxHeaderBytes) {
    return InvalidArgument("header of ", length, " bytes; expected at most ", kMaxHeaderBytes);
  }
  std::string text(length, '\0');
  ASSIGN_OR_RETURN(const size_t read, source.ReadFully(text.data(), length));
  if (read < length) {
    return InvalidArgument("header of ", length, " bytes, the file has ", have + read);
  }
  *bytes = static_cast<int64_t>(have + length);
  return text;
}

absl::Status WrongLength(const HostTensor& tensor, std::string_view has) {
  return InvalidArgument("tensor ", DTypeName(tensor.dtype()), DimsToString(tensor.dims()), ": ",
                         has, " bytes of data, expected ", tensor.byte_size());
}

void SwapBytes(HostTensor* tensor) {
  const int64_t width = DTypeBytes(tensor->dtype());
  std::byte* bytes = tensor->bytes();
  for (int64_t i = 0; i < tensor->elements(); ++i) {
    std::reverse(bytes + i * width, bytes + (i + 1) * width);
  }
}

// `from` has the elements of the result in column-major order.
absl::StatusOr<HostTensor> ToRowMajor(const HostTensor& from) {
  ASSIGN_OR_RETURN(HostTensor out, HostTensor::Create(from.dtype(), from.dims()));
  Dims strides;  // of `from`
  int64_t stride = 1;
  for (int64_t dim : from.dims()) {
    strides.push_back(stride);
    stride *= dim;
  }
  if (out.elements() > 0) {
    CopyStrided(from.dtype(), from.dims(), from.bytes(), strides, out.bytes(),
                RowMajorStrides(from.dims()));
  }
  return out;
}

}  // namespace

absl::StatusOr<HostTensor> ReadNpy(const ByteSource& source, const TypeCheck& check) {
  int64_t before = 0;
  ASSIGN_OR_RETURN(const std::string text, ReadHeader(source, &before));
  absl::StatusOr<Header> header = ParseHeader(text);
  if (!header.ok()) return Annotate(header.status(), "header");
  ASSIGN_OR_RETURN(const ElementType type, TypeOf(header->descr));
  ASSIGN_OR_RETURN(const int64_t elements,
                   CheckedNumElements(header->shape, DTypeBytes(type.dtype)));
  if (check != nullptr) RETURN_IF_ERROR(check(type.dtype, header->shape));
  const int64_t bytes = elements * DTypeBytes(type.dtype);
  // Before there is memory for what is not there.
  if (source.bytes.has_value() && *source.bytes - before != bytes) {
    return InvalidArgument("tensor ", DTypeName(type.dtype), DimsToString(header->shape), ": ",
                           *source.bytes - before, " bytes of data, expected ", bytes);
  }
  ASSIGN_OR_RETURN(HostTensor out, HostTensor::Create(type.dtype, header->shape));
  auto* data = reinterpret_cast<char*>(out.bytes());
  ASSIGN_OR_RETURN(const size_t read, source.ReadFully(data, static_cast<size_t>(bytes)));
  if (static_cast<int64_t>(read) < bytes) return WrongLength(out, StrCat(read));
  char further = 0;
  ASSIGN_OR_RETURN(const size_t surplus, source.ReadFully(&further, 1));
  if (surplus > 0) return WrongLength(out, StrCat("more than ", bytes));
  if (type.is_big_endian) SwapBytes(&out);
  out.NormaliseBytes();
  if (!header->is_column_major || header->shape.size() < 2) return out;
  return ToRowMajor(out);
}

absl::StatusOr<HostTensor> ParseNpy(std::string_view bytes) { return ReadNpy(BytesOf(bytes)); }

std::string ToNpy(const HostTensor& tensor) {
  std::string_view descr;
  for (const Descr& d : kDescrs) {
    if (d.type == tensor.dtype()) descr = d.text;
  }
  std::string header =
      StrCat("{'descr': '", descr, "', 'fortran_order': False, 'shape': (",
             StrJoin(tensor.dims(), ", "), tensor.dims().size() == 1 ? "," : "", "), }");
  const size_t unpadded = kMagic.size() + 4 + header.size() + 1;
  header.append((kAlignment - unpadded % kAlignment) % kAlignment, ' ');
  header += '\n';
  std::string out(kMagic);
  out +=
      {'\1', '\0', static_cast<char>(header.size() & 255), static_cast<char>(header.size() >> 8)};
  out += header;
  out += tensor.byte_view();
  return out;
}

}  // namespace fusion
