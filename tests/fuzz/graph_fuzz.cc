// libFuzzer target: the text form of graphs, as the keys of imported plans hold it. What is read
// must come back as it was, and one graph in canonical form has one text.
#include "core/graph/build/canonical.h"
#include "core/graph/build/text.h"
#include "tests/fuzz/require.h"

namespace {

constexpr std::string_view kSeeds[] = {
    R"(graph "" {
  %0 = input "" : f32[8,64]
  %1 = input "x" : i64[1,2]
  %2 = weight "" : f32[64,32]
  %3 = const "" : f32[] {0x1p-1}
  %4 = initializer "b" : i32[2,2] {1, -2, 3, 4}
  %5 = MatMul(%0, %2) : f32[8,32]  "" @ ""
  %6 = Mul(%5, %3) : f32[8,32]  "" @ ""
  %7, %8 = Split(%6) {axis=1, num_outputs=2} : f32[8,16], f32[8,16]  "", "" @ ""
  %9 = Softmax(%7) {axis=-1} : f32[8,16]  "" @ "n"
  %10 = Concat(%9, %8) {axis=1} : f32[8,32]  "" @ ""
  output %10
  strides input 0 [128, 1]
}
)",
    R"(graph "s" {
  symbol s0 "seq" min 1 max 512 multiple 1 likely [128]
  %0 = input "" : f32[s0,64]
  %1 = Relu(%0) : f32[s0,64]  "" @ ""
  output %1
}
)",
    R"(graph "kv" {
  %0 = input "" : f32[1,2,4]
  %1 = input "" : f32[1,1,4]
  %2 = Concat(%0, %1) {axis=1} : f32[1,3,4]  "" @ ""
  output %2
  share input 0 output 0 dim 1 capacity 512
}
)"};

}  // namespace

extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
  const std::string corpus = fusion::SeedsDirectory(*argc, *argv);
  if (corpus.empty()) return 0;
  int number = 0;
  for (std::string_view seed : kSeeds) {
    const absl::StatusOr<fusion::Graph> graph = fusion::ParseGraph(seed);
    fusion::Require(graph.ok(), "a seed is no graph", graph.status());
    fusion::WriteSeed(corpus, fusion::StrCat("graph", ++number), seed);
  }
  std::exit(0);
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const absl::StatusOr<fusion::Graph> graph = fusion::ParseGraph(text);
  if (!graph.ok()) return 0;
  const std::string printed = fusion::ToString(*graph);
  const absl::StatusOr<fusion::Graph> again = fusion::ParseGraph(printed);
  fusion::Require(again.ok(), "a graph does not come back", again.status());
  fusion::Require(fusion::ToString(*again) == printed, "a graph comes back as another");
  const absl::StatusOr<fusion::CanonicalGraph> canonical = fusion::Canonicalise(*graph);
  if (!canonical.ok()) return 0;
  const absl::StatusOr<fusion::CanonicalGraph> twice = fusion::Canonicalise(canonical->graph);
  fusion::Require(twice.ok(), "a canonical graph has no canonical form", twice.status());
  fusion::Require(twice->key_text == canonical->key_text, "a canonical graph has another one");
  return 0;
}
