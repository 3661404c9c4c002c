#include <algorithm>

#include "core/codegen/cpu/emitter.h"
#include "core/schedule/ir/access.h"

namespace fusion {
namespace {

// Windows of more lengths than a full tile and a shorter last one.
constexpr size_t kMostColumnForms = 2;

// Number of separate sums of a product whose block has few accumulators: otherwise each
// multiply-add waits for the previous one. It takes 4 cycles on two units.
constexpr int64_t kBusyAccumulators = 8;

// Number of separate sums with which a block of this many accumulators adds stretches of `length`
// elements; -1: known at run time only. A block without accumulators has one.
int64_t SumsOf(int64_t accumulators, int64_t length) {
  accumulators = std::max<int64_t>(accumulators, 1);
  int64_t sums = 1;
  while (2 * sums * accumulators <= kBusyAccumulators && (length < 0 || 4 * sums <= length)) {
    sums *= 2;
  }
  return sums;
}

// A summed dim: its length, and the distance of a step along it in each operand.
struct Step {
  std::string extent;
  int64_t fixed;  // length if it is always the same, else -1
  int64_t a;
  int64_t b;
};

// The name of the prelude's operands of these types.
std::string_view OperandsName(DType rows, DType columns, bool flushes) {
  if (rows == DType::kU8) return "U8I8";
  if (columns == DType::kF32) return "F32";
  if (columns == DType::kI8) return "F32I8";
  if (rows == DType::kF32) return "F32BF16";
  return flushes ? "BF16Flushed" : "BF16";
}

// Packs of the summed dim in a tile of AMX (kTilePacks of the prelude), and the most accumulators
// of blocks whose sums are vectors in registers.
constexpr int64_t kTilePacks = 16;
constexpr int64_t kMostRegisters = 28;

// The last summed dim in packs; `rest`: elements after the last whole pack.
Step InPacks(const Step& elements, int64_t pack, std::string* rest) {
  const bool known = elements.fixed >= 0;
  *rest = known ? StrCat(elements.fixed % pack) : StrCat("(", elements.extent, ") % ", pack);
  return {known ? StrCat(elements.fixed / pack) : StrCat("(", elements.extent, ") / ", pack),
          known ? elements.fixed / pack : -1, elements.a * pack, elements.b * pack};
}

// Neighbouring dims that both operands walk without a gap are one.
std::vector<Step> Joined(std::vector<Step> steps) {
  for (size_t i = 0; i + 1 < steps.size();) {
    const Step& inner = steps[i + 1];
    const bool joined = inner.fixed >= 0 && steps[i].fixed >= 0 &&
                        steps[i].a == inner.a * inner.fixed && steps[i].b == inner.b * inner.fixed;
    if (!joined) {
      ++i;
      continue;
    }
    const int64_t length = steps[i].fixed * inner.fixed;
    steps[i] = {StrCat(length), length, inner.a, inner.b};
    steps.erase(steps.begin() + static_cast<int64_t>(i) + 1);
  }
  return steps;
}

}  // namespace

// The parts of the prelude that have the operands of a product.
void CpuEmitter::UseOperands(DType rows, DType columns, bool flushes) {
  use_.product = true;
  if (rows == DType::kU8) {
    UseMemory(DType::kI32);
    Use("product_u8_i8");
  } else if (columns == DType::kI8) {
    UseMemory(DType::kI8);
    Use("product_i8");
  } else if (columns == DType::kBF16) {
    Use(flushes ? "product_bf16_flushed" : "product_bf16");
  }
}

absl::Status CpuEmitter::Write(const MmaStmt& mma) {
  auto stride = [&](const Access& access, DimId d) {
    return StrideAlong(access.index, StridesOf(access.buffer), d, buffer(access.buffer).layout);
  };
  const Buffer& b = buffer(mma.b.buffer);
  const DType row_type = buffer(mma.a.buffer).dtype;
  const int64_t pack = b.layout.pack;
  if (ColumnPack(row_type, b.dtype) != pack) {
    return Unimplemented("unimplemented: products of ", DTypeName(row_type), " and ",
                         DTypeName(b.dtype), " on the cpu backend");
  }
  if (stride(mma.b, mma.n) != pack || stride(mma.c, mma.n) != 1) {
    return Internal("a product's columns are not contiguous in ", b.name);
  }
  UseOperands(row_type, b.dtype, mma.flushes);
  if (pack > 1) {
    if (mma.over.empty() || stride(mma.b, mma.over.back()) != b.layout.block ||
        (row_type != DType::kF32 && stride(mma.a, mma.over.back()) != 1)) {
      return Internal("a product does not sum along the packs of ", b.name);
    }
  }
  std::vector<Step> steps;
  for (DimId d : mma.over) {
    const Window& w = window(d);
    const bool in_packs = pack > 1 && d == mma.over.back();
    if (w.IsPoint() && !in_packs) continue;
    steps.push_back(
        {w.lengths.size() == 1 ? StrCat(w.lengths[0]) : StrCat("(", w.end, ") - (", w.begin, ")"),
         w.lengths.size() == 1 ? w.lengths[0] : -1, stride(mma.a, d), stride(mma.b, d)});
  }
  std::string rest = "0";
  if (pack > 1) steps.back() = InPacks(steps.back(), pack, &rest);
  if (rest == "0") steps = Joined(std::move(steps));
  if (steps.empty()) steps.push_back({"1", 1, 0, 0});

  const Window& columns = window(mma.n);
  bool padded = b.layout.blocked >= 0;  // blocks are filled up with zeros
  WindowLengths rows = mma.m >= 0 ? window(mma.m).lengths : WindowLengths{1};
  int64_t a_row = mma.m >= 0 ? stride(mma.a, mma.m) : 0;
  int64_t c_row = mma.m >= 0 ? stride(mma.c, mma.m) : 0;
  std::string row_count =
      mma.m >= 0 ? StrCat("(", window(mma.m).end, ") - (", window(mma.m).begin, ")") : "1";
  std::string column_count = StrCat("(", columns.end, ") - (", columns.begin, ")");
  std::string walk = StrJoin(
      steps, ", ", [](const Step& s) { return StrCat("{", s.extent, ", ", s.a, ", ", s.b, "}"); });
  std::string operands = StrCat("{", walk, "}, ", rest, ", ", Address(mma.a), ", ", a_row, ", ",
                                Address(mma.b), ", ", Address(mma.c), ", ", c_row);
  std::string comment = StrCat("// ", buffer(mma.c.buffer).name, mma.accumulate ? " += " : " = ",
                               buffer(mma.a.buffer).name, " * ", b.name, " over ",
                               StrJoin(mma.over, ", ", [&](DimId d) { return dim(d).name; }));
  out_.Line(comment);
  SayStep("product");
  for (DimId d : {mma.m, mma.n}) {
    if (d < 0 || window(d).Longest() <= static_cast<int64_t>(kMostWindowLengths)) continue;
    if (window(d).any) return Internal("a product runs on windows of any length of ", dim(d).name);
  }
  ProductForm form{.packs = steps.back().fixed};
  const WindowLengths shortest =
      mma.over.empty() ? WindowLengths{1} : window(mma.over.back()).lengths;
  form.tiles = HasTiles(mma, form.packs >= 0 ? form.packs : shortest.front() / pack);
  form.rest = form.packs < 0 || form.packs % kTilePacks != 0 || rest != "0";
  const auto found = columns_ahead_.find(&mma);
  const ColumnsAhead* ahead = found == columns_ahead_.end() ? nullptr : &found->second;
  const std::string asks = ahead == nullptr
                               ? ""
                               : StrCat(", Ahead<", (ahead->pack_bytes + 63) / 64, ">{",
                                        ahead->name, ", ", ahead->pack_bytes, "}");
  // `last`: lanes of the last vector.
  auto write = [&](int64_t vectors, bool partial, const std::string& last) {
    for (int64_t r : rows) {
      std::string call = MmaCall(mma, form, r, vectors, partial);
      StrAppend(&call, StrCat(">(", operands, ", ", last, asks, ");"));
      if (rows.size() == 1) {
        out_.Line(call);
      } else {
        out_.Line("if (", row_count, " == ", r, ") ", call);
      }
    }
  };
  if (IsMember() && columns.lengths.size() > kMostColumnForms) {
    WriteAnyColumns(columns.Longest(), column_count, padded, write);
    return absl::OkStatus();  // a member asks for nothing ahead
  }
  for (int64_t length : columns.lengths) {
    bool partial = !padded && length % lanes_ != 0;
    bool only_columns = columns.lengths.size() == 1;
    if (!only_columns) out_.Open("if (", column_count, " == ", length, ")");
    write((length + lanes_ - 1) / lanes_, partial, StrCat(partial ? length % lanes_ : lanes_));
    if (!only_columns) out_.Close();
  }
  if (ahead != nullptr) out_.Line(ahead->name, " += ", ahead->block_bytes, ";");
  return absl::OkStatus();
}

// True if the device multiplies tiles of these types, and a stretch of `packs` contains a whole
// one.
bool CpuEmitter::HasTiles(const MmaStmt& mma, int64_t packs) const {
  const DType rows = buffer(mma.a.buffer).dtype;
  const bool types = rows == DType::kU8 || (rows == DType::kBF16 && mma.flushes);
  // Guards know pointers, not tiles.
  return device_.isa >= Isa::kAvx512Amx && !guard_ && types && packs >= kTilePacks;
}

// The prelude function for this many rows and vectors of columns, up to its arguments.
std::string CpuEmitter::MmaCall(const MmaStmt& mma, const ProductForm& form, int64_t rows,
                                int64_t vectors, bool partial) {
  const DType row_type = buffer(mma.a.buffer).dtype;
  const bool bytes = row_type == DType::kU8;
  const std::string shape = StrCat(", ", rows, ", ", vectors, ", ", mma.accumulate, ", ");
  if (form.tiles) {
    uses_tiles_ = true;
    Use(bytes ? "tiles_u8_i8" : "tiles_bf16");
    return StrCat("mma_tiles<", bytes ? "TilesU8I8" : "TilesBF16", shape, form.rest);
  }
  const std::string_view operands = OperandsName(row_type, buffer(mma.b.buffer).dtype, mma.flushes);
  if (rows * vectors > kMostRegisters) {
    Use("product_rows");
    return StrCat("mma_rows<", operands, shape, partial);
  }
  // Equal bits need one order.
  const int64_t sums = s_.bitwise && !bytes ? 1 : SumsOf(rows * vectors, form.packs);
  return StrCat("mma<", operands, shape, partial, ", ", sums);
}

// Columns of any length: one variant for each number of whole vectors, and one for each that ends
// with a partial vector.
void CpuEmitter::WriteAnyColumns(
    int64_t most, const std::string& count, bool padded,
    const std::function<void(int64_t, bool, const std::string&)>& write) {
  const int64_t vectors = (most + lanes_ - 1) / lanes_;
  for (int64_t v = 1; v <= vectors; ++v) {
    if (padded) {
      out_.Open("if ((", count, " + ", lanes_ - 1, ") / ", lanes_, " == ", v, ")");
      write(v, false, StrCat(lanes_));
      out_.Close();
      continue;
    }
    out_.Open("if (", count, " > ", (v - 1) * lanes_, " && ", count, " < ", v * lanes_, ")");
    write(v, true, v == 1 ? count : StrCat(count, " - ", (v - 1) * lanes_));
    out_.Close();
    if (v * lanes_ > most) continue;
    out_.Open("if (", count, " == ", v * lanes_, ")");
    write(v, false, StrCat(lanes_));
    out_.Close();
  }
}

// A copy writes its target in storage order, so that the writes are contiguous; blocked targets are
// filled up with zeros behind the last column.
absl::Status CpuEmitter::Write(const CopyStmt& copy) {
  const Buffer& to = buffer(copy.target.buffer);
  SayStep("copy");
  if (to.layout.blocked >= 0) return WriteTransposed(copy);
  size_t opened = 0;
  for (DimId d : copy.dims) {
    const Window& w = window(d);
    if (w.IsPoint()) continue;
    std::string name = dim(d).name;
    out_.Open("for (i64 ", name, " = ", w.begin, "; ", name, " < ", w.end, "; ++", name, ")");
    point_[static_cast<size_t>(d)] = name;
    ++opened;
  }
  out_.Line("*(", Address(copy.target), ") = *(", Address(copy.source), ");");
  for (; opened > 0; --opened) out_.Close();
  for (DimId d : copy.dims) point_[static_cast<size_t>(d)].clear();
  return absl::OkStatus();
}

// The dim along which the source of a copy into panels is contiguous, if it is not contiguous along
// their columns `n`: then vectors are transposed. -1: none.
DimId CpuEmitter::TurnedDim(const CopyStmt& copy, DimId n) const {
  const Buffer& to = buffer(copy.target.buffer);
  const bool plain = to.dtype == DType::kF32 && to.layout.pack == 1 && !IsMember();
  if (!plain || StepAlong(copy.source, n) == 1) return -1;
  for (DimId d : copy.dims) {
    const bool dense = d != n && StepAlong(copy.source, d) == 1;
    if (dense && window(d).Longest() >= lanes_ / 2) return d;
  }
  return -1;
}

absl::Status CpuEmitter::WriteTransposed(const CopyStmt& copy) {
  const Buffer& to = buffer(copy.target.buffer);
  auto blocked = static_cast<size_t>(to.layout.blocked);
  const IndexExpr& along = copy.target.index[blocked];
  if (!along.IsPlainAxis()) return Internal("a blocked copy does not walk its blocked dim");
  DimId n = along.terms()[0].axis;
  const Window& columns = window(n);
  std::string origin =
      to.IsLocal() ? origin_[static_cast<size_t>(copy.target.buffer)][blocked] : "0";
  std::string block = StrCat(dim(n).name, "_block");
  std::string name = dim(n).name;
  std::string width = StrCat(name, "_width");
  const int64_t pack = to.layout.pack;
  const int packed = to.layout.PackedDim(to.rank());
  DimId k = -1;
  if (packed >= 0) {
    const IndexExpr& in_packs = copy.target.index[static_cast<size_t>(packed)];
    if (!in_packs.IsPlainAxis()) return Internal("a copy does not walk the dim that lies in packs");
    k = in_packs.terms()[0].axis;
  }
  const DimId turned = TurnedDim(copy, n);
  // Blocks of columns, then everything else, then the columns of the block.
  out_.Open("for (i64 ", block, " = ", columns.begin, "; ", block, " < ", columns.end, "; ", block,
            " += ", to.layout.block, ")");
  out_.Line("const i64 ", width, " = min_i64(", to.layout.block, ", ", columns.end, " - ", block,
            ");");
  size_t opened = 1;
  for (DimId d : copy.dims) {
    const Window& w = window(d);
    if (d == n || d == turned || (w.IsPoint() && d != k)) continue;
    const std::string step = d == k ? StrCat(dim(d).name, " += ", pack) : StrCat("++", dim(d).name);
    out_.Open("for (i64 ", dim(d).name, " = ", w.begin, "; ", dim(d).name, " < ", w.end, "; ", step,
              ")");
    point_[static_cast<size_t>(d)] = dim(d).name;
    ++opened;
  }
  point_[static_cast<size_t>(n)] = block;
  if (turned >= 0) {
    const Window& rows = window(turned);
    out_.Line("const i64 ", dim(turned).name, " = ", rows.begin, ";");
    point_[static_cast<size_t>(turned)] = dim(turned).name;
    Use("copy_turned");
  }
  out_.Line(PointerType(copy.target.buffer), " to = ", Address(copy.target), ";");
  out_.Line(
      guard_ ? PointerType(copy.source.buffer) : StrCat("const ", MemoryTypeName(to.dtype), "*"),
      " from = ", Address(copy.source), ";");
  LinearCode source = Offset(copy.source);
  auto times = [](const char* variable, int64_t step) {
    return step == 1 ? std::string(variable) : StrCat(variable, " * ", step);
  };
  const std::string at = times("i", source.CoefficientOf(block));
  if (turned >= 0) {
    const std::string& row = dim(turned).name;
    out_.Line("copy_turned(from, ", source.CoefficientOf(block), ", to, ",
              Offset(copy.target).CoefficientOf(row), ", ", window(turned).end, " - ", row, ", ",
              width, ", ", to.layout.block, ");");
  } else if (k < 0) {
    out_.Line("i64 i = 0;");
    out_.Line("for (; i < ", width, "; ++i) to[i] = from[", at, "];");
    out_.Line("for (; i < ", to.layout.block, "; ++i) to[i] = 0;");
  } else {
    out_.Line("i64 i = 0;");
    const std::string of_pack = times("p", source.CoefficientOf(dim(k).name));
    out_.Line("const i64 in_pack = min_i64(", pack, ", ", window(k).end, " - ", dim(k).name, ");");
    out_.Open("for (; i < ", width, "; ++i)");
    out_.Line("for (i64 p = 0; p < ", pack, "; ++p) to[i * ", pack, " + p] = p < in_pack ? from[",
              at, " + ", of_pack, "] : 0;");
    out_.Close();
    out_.Line("for (; i < ", to.layout.block, "; ++i) for (i64 p = 0; p < ", pack, "; ++p) to[i * ",
              pack, " + p] = 0;");
  }
  for (; opened > 0; --opened) out_.Close();
  for (DimId d : copy.dims) point_[static_cast<size_t>(d)].clear();
  return absl::OkStatus();
}

}  // namespace fusion
