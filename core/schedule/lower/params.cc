#include "core/schedule/lower/params.h"

#include <array>

#include "core/base/contains.h"
#include "core/base/refusal.h"
#include "core/schedule/lower/nests.h"

namespace fusion {
namespace {

class Declaration {
 public:
  Declaration(const FusionGroup& group, const ProductRoles& roles, Lowered* lowered)
      : group_(group), roles_(roles), schedule_(lowered->schedule), params_(lowered->params) {}

  absl::StatusOr<ParamTable> Run() {
    const std::vector<SmgOp>& ops = group_.smg.ops;
    for (int i = 0; i < static_cast<int>(ops.size()); ++i) {
      for (int r = 0; r < static_cast<int>(group_.smg.op(i).reads.size()); ++r) {
        const SmgRead& read = group_.smg.op(i).reads[static_cast<size_t>(r)];
        if (read.producer >= 0) continue;
        if (roles_.IsPacked(i, r)) {
          RETURN_IF_ERROR(AddPacked(i, r));
        } else if (table_.inputs.count(read.value) == 0) {
          bool constant = group_.view(read.value).constant;
          table_.inputs[read.value] =
              AddPlain(read.value, constant ? ParamKind::kWeight : ParamKind::kInput);
        }
      }
    }
    for (ValueId v : group_.outputs) table_.outputs[v] = AddPlain(v, ParamKind::kOutput);
    return std::move(table_);
  }

 private:
  BufferId AddPlain(ValueId value, ParamKind kind) {
    const TensorView& view = group_.view(value);
    return Add({.level = Level::kGlobal,
                .dtype = view.dtype,
                .kind = kind,
                .shape = view.shape,
                .layout = {.strides = view.strides}},
               {.value = value, .output = kind == ParamKind::kOutput});
  }

  // The columns operand of product i as [batch.., other columns.., over.., n] in blocks of n: what
  // one product reads lies in one piece.
  absl::Status AddPacked(int i, int r) {
    const SmgRead& read = group_.smg.op(i).reads[static_cast<size_t>(r)];
    ASSIGN_OR_RETURN(ProductSides sides, roles_.SidesOf(i));
    DimId n = roles_.ColumnDim(i, sides, nullptr);
    int64_t panel = roles_.ChoiceOf(i).block.n;
    if (!roles_.HoldsPanels(i, n)) {
      return RefusalStatus(RefusalCode::kColumns, group_.smg.dim(n).name,
                           " is cut inside panels of ", panel);
    }
    std::vector<DimId> dims = sides.ColumnOperandDims(n);
    const std::array<DType, 2> types = *FactorTypes(group_.smg.op(i));
    const DType dtype = types[static_cast<size_t>(r)];
    const DType rows = types[static_cast<size_t>(1 - r)];
    Buffer b{.level = Level::kGlobal,
             .dtype = dtype,
             .kind = ParamKind::kWeight,
             .layout = {.blocked = static_cast<int>(dims.size()) - 1,
                        .block = panel,
                        .pack = ColumnPack(rows, dtype).value_or(1)}};
    for (DimId d : dims) b.shape.push_back(schedule_.dim(d).extent);
    table_.packed[{i, r}] =
        Add(std::move(b),
            {.value = read.value, .packed = true, .source = read.index, .dims = std::move(dims)});
    return absl::OkStatus();
  }

  BufferId Add(Buffer buffer, LoweredParam param) {
    buffer.name = StrCat("p", schedule_.params);
    schedule_.buffers.push_back(std::move(buffer));
    params_.push_back(std::move(param));
    return schedule_.params++;
  }

  const FusionGroup& group_;
  const ProductRoles& roles_;
  Schedule& schedule_;
  std::vector<LoweredParam>& params_;
  ParamTable table_;
};

}  // namespace

absl::StatusOr<ParamTable> DeclareParams(const FusionGroup& group, const ProductRoles& roles,
                                         Lowered* lowered) {
  return Declaration(group, roles, lowered).Run();
}

void ReorderPacked(BufferId packed, const std::vector<DimId>& dims, Lowered* lowered) {
  LoweredParam& param = lowered->params[static_cast<size_t>(packed)];
  Buffer& buffer = lowered->schedule.buffers[static_cast<size_t>(packed)];
  size_t next = 0;
  for (size_t k = 0; k < param.dims.size(); ++k) {
    if (!Contains(dims, param.dims[k])) continue;
    param.dims[k] = dims[next++];
    buffer.shape[k] = lowered->schedule.dim(param.dims[k]).extent;
  }
}

}  // namespace fusion
