#include "core/op/body/loop_body_text.h"

#include <unordered_map>

namespace fusion {

std::string LoopBodyToString(const LoopBody& body,
                             const std::function<std::string(size_t)>& operand) {
  auto name = [&](int axis) { return body.axes[static_cast<size_t>(axis)].name; };
  std::string text = "for";
  for (const LoopAxis& axis : body.axes) text += StrCat(" ", axis.name, ":", axis.extent.value());
  text += StrCat(" ", IndexMapToString(body.write, name), " = ",
                 body.reduce ? body.reduce->name() : "map", "(");
  for (size_t i = 0; i < body.reads.size(); ++i) {
    text += StrCat(i == 0 ? "" : ", ", operand(i), IndexMapToString(body.reads[i].index, name),
                   GuardsToString(body.reads[i].guards, name));
  }
  return StrCat(text, ") : ", body.value.ToString());
}

absl::StatusOr<LoopBody> ParseLoopBody(
    Lexer& in, const std::function<absl::StatusOr<DType>(Lexer& in)>& operand) {
  LoopBody body;
  RETURN_IF_ERROR(in.Expect("for"));
  std::unordered_map<std::string, int> axes;
  while (in.PeekIdentifier()) {
    ASSIGN_OR_RETURN(std::string name, in.Identifier());
    RETURN_IF_ERROR(in.Expect(":"));
    ASSIGN_OR_RETURN(int64_t extent, in.Integer());
    if (extent < 0 || !axes.emplace(name, static_cast<int>(body.axes.size())).second) {
      return in.Error("a new axis of a non-negative extent before this");
    }
    body.axes.push_back({name, Dim(extent)});
  }
  auto find = [&](std::string_view name) {
    auto it = axes.find(std::string(name));
    return it == axes.end() ? -1 : it->second;
  };
  ASSIGN_OR_RETURN(body.write, ParseIndexMap(in, find));
  RETURN_IF_ERROR(in.Expect("="));
  ASSIGN_OR_RETURN(std::string monoid, in.Identifier());
  RETURN_IF_ERROR(in.Expect("("));
  std::vector<DType> types;
  while (!in.Accept(")")) {
    if (!types.empty()) RETURN_IF_ERROR(in.Expect(","));
    ASSIGN_OR_RETURN(DType type, operand(in));
    types.push_back(type);
    Read read;
    ASSIGN_OR_RETURN(read.index, ParseIndexMap(in, find));
    ASSIGN_OR_RETURN(read.guards, ParseGuards(in, find));
    body.reads.push_back(std::move(read));
  }
  RETURN_IF_ERROR(in.Expect(":"));
  ASSIGN_OR_RETURN(body.value, Expr::Parse(in, types));
  if (monoid != "map") {
    auto named = Monoid::Named(monoid, body.value.type());
    if (!named) return in.Error(StrCat("a known monoid instead of ", monoid));
    body.reduce = *named;
  }
  return body;
}

}  // namespace fusion
