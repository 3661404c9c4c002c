#include "core/tensor/npy.h"

#include <array>

#include "core/base/lexer.h"

namespace fusion {
namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr size_t kAlignment = 64;

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
                                                     {DType::kU64, "<u8"}}};

absl::StatusOr<DType> TypeOf(std::string_view descr) {
  // The order of single bytes does not matter, however it is written.
  std::string text(descr);
  if (text.size() == 3 && text[2] == '1') text[0] = '|';
  if (!text.empty() && text[0] == '=') text[0] = '<';
  if (text == "|V2") text[0] = '<';  // as NumPy writes the bytes of a type that it does not know
  for (const Descr& d : kDescrs) {
    if (d.text == text) return d.type;
  }
  return Unimplemented("descr ", QuoteShort(descr), " is not supported; supported: ",
                       StrJoin(kDescrs, " ", [](const Descr& d) { return d.text; }));
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
      if (word == "True") return Unimplemented("column-major order (fortran_order)");
      if (word != "False") return in.Error("True or False");
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

}  // namespace

absl::StatusOr<HostTensor> ParseNpy(std::string_view bytes) {
  if (!bytes.starts_with(kMagic) || bytes.size() < 12) {
    return InvalidArgument("no .npy file: it does not begin with \\x93NUMPY");
  }
  const int version = static_cast<unsigned char>(bytes[6]);
  if (version < 1 || version > 3) {
    return Unimplemented("version ", version, " of the .npy format; supported: 1, 2, 3");
  }
  const size_t length_bytes = version == 1 ? 2 : 4;
  size_t length = 0;
  for (size_t i = length_bytes; i-- > 0;) {
    length = length << 8 | static_cast<unsigned char>(bytes[8 + i]);
  }
  const size_t begin = 8 + length_bytes;
  if (length > bytes.size() - begin) {
    return InvalidArgument("header of ", length, " bytes, the file has ", bytes.size());
  }
  absl::StatusOr<Header> header = ParseHeader(bytes.substr(begin, length));
  if (!header.ok()) return Annotate(header.status(), "header");
  ASSIGN_OR_RETURN(DType type, TypeOf(header->descr));
  return HostTensor::FromBytes(type, header->shape, bytes.substr(begin + length));
}

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
