#include "core/import/model/shared_names.h"

namespace fusion {
namespace {

// Position of the tensor of this name; -1: none.
int Find(const GraphBuilder& builder, const std::vector<TensorId>& list, const std::string& name) {
  for (size_t i = 0; i < list.size(); ++i) {
    if (builder.tensor(list[i]).name == name) return static_cast<int>(i);
  }
  return -1;
}

// The only dim in which the shapes differ; -1: none, or several.
int DifferentDim(const Shape& a, const Shape& b) {
  if (a.rank() != b.rank()) return -1;
  int found = -1;
  for (int d = 0; d < a.rank(); ++d) {
    if (a.dim(d) == b.dim(d)) continue;
    if (found >= 0) return -1;
    found = d;
  }
  return found;
}

absl::Status Share(const SharedNames& wanted, GraphBuilder* builder) {
  SharedBuffer shared{.input = Find(*builder, builder->inputs(), wanted.input),
                      .output = Find(*builder, builder->outputs(), wanted.output),
                      .capacity = wanted.capacity};
  if (shared.input < 0) return InvalidArgument("the graph has no such input");
  if (shared.output < 0) return InvalidArgument("the graph has no such output");
  const TensorType& in = builder->tensor(builder->inputs()[static_cast<size_t>(shared.input)]).type;
  const TensorType& out =
      builder->tensor(builder->outputs()[static_cast<size_t>(shared.output)]).type;
  shared.dim = DifferentDim(in.shape, out.shape);
  if (shared.dim < 0) {
    return InvalidArgument(
        "the input is ", in.ToString(), ", the output ", out.ToString(),
        "; expected shapes that differ in one dim, along which the output is longer");
  }
  const Dim& most = out.shape.dim(shared.dim);
  if (shared.capacity == 0 && !most.is_static()) {
    return InvalidArgument("dim ", shared.dim, " of the output is open; expected a capacity");
  }
  if (shared.capacity == 0) shared.capacity = most.value();
  return builder->ShareBuffer(shared);
}

// A graph may return an input as it is: then this is where both lie.
absl::Status Bind(const NamedStrides& wanted, GraphBuilder* builder) {
  bool found = false;
  for (const bool output : {false, true}) {
    const int position =
        Find(*builder, output ? builder->outputs() : builder->inputs(), wanted.tensor);
    if (position < 0) continue;
    found = true;
    RETURN_IF_ERROR(
        builder->BindStrides({.output = output, .position = position, .strides = wanted.strides}));
  }
  return found ? absl::OkStatus() : InvalidArgument("the graph has no such input or output");
}

}  // namespace

absl::Status ShareByName(const std::vector<SharedNames>& wanted, GraphBuilder* builder) {
  for (size_t i = 0; i < wanted.size(); ++i) {
    absl::Status done = Share(wanted[i], builder);
    if (done.ok()) continue;
    return Annotate(done, StrCat("shared_buffers[", i, "]: input ", QuoteShort(wanted[i].input),
                                 " and output ", QuoteShort(wanted[i].output)));
  }
  return absl::OkStatus();
}

absl::Status BindByName(const std::vector<NamedStrides>& wanted, GraphBuilder* builder) {
  for (size_t i = 0; i < wanted.size(); ++i) {
    absl::Status done = Bind(wanted[i], builder);
    if (done.ok()) continue;
    return Annotate(done, StrCat("bound_strides[", i, "]: tensor ", QuoteShort(wanted[i].tensor)));
  }
  return absl::OkStatus();
}

}  // namespace fusion
