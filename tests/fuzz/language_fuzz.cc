// libFuzzer target: the language of custom ops, and the text forms of expressions and loop bodies.
// What is read must have a body that verifies, and its text form must read back.
#include "core/custom/custom_ops.h"
#include "core/op/body/loop_body_text.h"
#include "core/op/op_def.h"
#include "tests/fuzz/require.h"

namespace fusion {
namespace {

constexpr std::string_view kSeedTexts[] = {
    "op acme.Snake(x) {a: float = 1.0} = let s = sin(a * x); x + s * s / a",
    "op acme.Dot(x[m, k], y[n, k]) -> [m, n] = sum[k] abs(x[m, k] - y[n, k])",
    "op a.Pool(x[n, w]) {s: int = 2} -> [n, v] for v: (w - 3) / s + 1, t: 3 = max[t] x[n, s * v + "
    "t]",
    "op a.Gate(x, y) = !(x < 1e-3) && isnan(y) || x != -2 ? pow(x, 2) : f32(i64(y)) % 0x1p3 "
    "# note",
    "select(lt(in0, f32(0x1p+0)), cast.i64(in0), i64(-3))",
    "for m:8 k:4 [m] = sum(in0[m, k], in1[2*m + 1] where m in [0, 3]) : mul(in0, in1)"};

// Types that the inputs may have.
std::vector<TensorType> Types(size_t choice) {
  const DType a = static_cast<DType>(choice % kDTypeCount);
  const DType b = choice % 3 == 0 ? DType::kF32 : a;
  return {{a, Shape({3, 4})}, {b, Shape({5, 4})}, {DType::kF32, Shape({4})}};
}

void FuzzCustomOps(std::string_view text, size_t choice) {
  absl::StatusOr<CustomOps> ops = CustomOps::Parse(text);
  if (!ops.ok()) return RequireBlamesText(ops.status());
  for (const char* name : {"Snake", "Dot", "Pool", "Gate"}) {
    const CustomOpSyntax* op = ops->Find("a", name);
    if (op == nullptr) op = ops->Find("acme", name);
    if (op == nullptr) continue;
    const std::vector<TensorType> all = Types(choice);
    std::vector<std::optional<TensorType>> types;
    for (size_t i = 0; i < op->params.size(); ++i) types.emplace_back(all[i % all.size()]);
    absl::StatusOr<CustomCall> call = Instantiate(*op, types, {});
    if (!call.ok()) {
      RequireBlamesText(call.status());
      continue;
    }
    std::vector<std::optional<TensorType>> read;
    for (int input : call->inputs) read.push_back(types[static_cast<size_t>(input)]);
    auto operand = [](size_t i) { return StrCat("in", i); };
    const OpCall again(*FindOp("Custom"), read, {{"body", LoopBodyToString(call->body, operand)}});
    absl::StatusOr<LoopBody> body = again.def().body(again, 0);
    Require(body.ok(), "the text form of a body does not read", body.status());
    Require(*body == call->body, "the text form of a body reads back as another",
            absl::InternalError(StrCat(LoopBodyToString(call->body, operand), "\n",
                                       LoopBodyToString(*body, operand))));
  }
}

void FuzzTexts(std::string_view text, size_t choice) {
  const std::vector<TensorType> types = Types(choice);
  Lexer expression(text);
  absl::StatusOr<Expr> e = Expr::Parse(expression, {types[0].dtype, types[1].dtype});
  if (e.ok()) {
    const std::string written = e->ToString();
    Lexer in(written);
    absl::StatusOr<Expr> read = Expr::Parse(in, {types[0].dtype, types[1].dtype});
    Require(read.ok() && *read == *e, "an expression does not read back", read.status());
  } else {
    RequireBlamesText(e.status());
  }
  const OpCall call(*FindOp("Custom"), {types[0], types[1]}, {{"body", std::string(text)}});
  absl::StatusOr<LoopBody> body = call.def().body(call, 0);
  if (!body.ok()) RequireBlamesText(body.status());
}

}  // namespace
}  // namespace fusion

extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
  const std::string corpus = fusion::SeedsDirectory(*argc, *argv);
  if (corpus.empty()) return 0;
  int count = 0;
  for (std::string_view text : fusion::kSeedTexts) {
    fusion::WriteSeed(corpus, fusion::StrCat("text_", count++), fusion::StrCat("0", text));
  }
  std::exit(0);
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  fusion::FuzzCustomOps(text, data[0]);
  fusion::FuzzTexts(text, data[0]);
  return 0;
}
