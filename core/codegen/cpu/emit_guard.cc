#include "core/codegen/cpu/emitter.h"

// Guarded units: Guarded<T> of the prelude replaces T* in every expression and checks bounds.

namespace fusion {

std::string CpuEmitter::PointerType(BufferId id) const {
  const Buffer& b = buffer(id);
  const bool read_only = b.level == Level::kGlobal && b.kind != ParamKind::kOutput;
  std::string element = StrCat(read_only ? "const " : "", MemoryTypeName(b.dtype));
  return guard_ ? StrCat("Guarded<", element, ">") : StrCat(element, "*");
}

void CpuEmitter::DeclareBuffer(BufferId id, const std::string& memory, const std::string& elements,
                               const std::string& comment) {
  const Buffer& b = buffer(id);
  const std::string type = PointerType(id);
  const std::string behind = comment.empty() ? "" : StrCat("  // ", comment);
  if (!guard_) {
    out_.Line(type, " ", b.name, " = (", type, ")", memory, ";", behind);
    return;
  }
  const bool read_only = b.level == Level::kGlobal && b.kind != ParamKind::kOutput;
  const std::string plain = StrCat(read_only ? "const " : "", MemoryTypeName(b.dtype), "*");
  out_.Line("const Bounds ", b.name, "_bounds = {fault, \"", b.name, "\", ",
            b.level == Level::kGlobal ? id : -1, ", ", elements, "};");
  out_.Line("const ", type, " ", b.name, " = {(", plain, ")", memory, ", &", b.name, "_bounds, 0};",
            behind);
}

void CpuEmitter::SayStep(const std::string& step) {
  if (guard_) out_.Line("fault->step = \"", step, "\";");
}

std::string CpuEmitter::IndexWithin(BufferId id, int64_t extent, const std::string& index) const {
  if (guard_) {
    return StrCat("index_within(", buffer(id).name, "_bounds, ", extent, ", ", index, ")");
  }
  return StrCat("max_i64(0, min_i64(", extent - 1, ", ", index, " < 0 ? ", index, " + ", extent,
                " : ", index, "))");
}

}  // namespace fusion
