#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/graph/program/program.h"

namespace fusion {

/// A unified dim of a space-mapping graph: an atom that no reshape splits further. Extent-1 dims do
/// not appear.
struct SmgDim {
  std::string name;  // unique within the SMG
  int64_t extent = 1;
  bool operator==(const SmgDim&) const = default;
};

/// How an iteration space reads one data space. Indices and guards are over dims.
struct SmgRead {
  enum Relation : uint8_t {
    kInput,    // a kernel input: any affine index is fine, it lies in memory
    kAligned,  // an intermediate, read at the coordinates where it was written
    kShifted,  // an intermediate, read at an offset or in a part of a dim (slice, concat)
    kAliased,  // an intermediate whose dims could not be united with the reader's: reading it in
               // place would put two axes of one class into one iteration space, or the dims have
               // no common factors
  };
  ValueId value = 0;
  int producer = -1;  // position of the op in Smg::ops that writes it; -1: kernel input
  Relation relation = kInput;
  IndexMap index;  // one per tensor dim
  std::vector<Guard> guards;
  bool operator==(const SmgRead&) const = default;
};

/// One iteration space: a loop op over unified dims.
struct SmgOp {
  LoopId loop = kNoLoop;  // in the program
  std::string label;
  NodeId origin = kNoNode;
  ValueId output = 0;
  std::vector<DimId> dims;     // of the iteration space, outermost first
  std::vector<DimId> reduced;  // those the output lacks
  std::vector<SmgRead> reads;
  IndexMap write;  // one per tensor dim of the output
  Expr value;      // over in<i> and axis(dim), within(dim, ...)
  std::optional<Monoid> reduce;
  bool operator==(const SmgOp&) const = default;

  bool Has(DimId d) const;
  bool Reduces(DimId d) const;
  /// Dims of the data space this op writes.
  std::vector<DimId> OutputDims() const;
};

/// A window that slides along a dim: element i of it reads stride * i + dilation * k for the
/// coordinates k of the dim `over`, which the op reduces.
struct SmgWindow {
  DimId over = -1;
  int64_t extent = 1;
  int64_t stride = 1;
  int64_t dilation = 1;
  /// Elements before and behind the data that windows cover; what they read there is a constant, by
  /// the op that pads inside of the SMG. 0 where padding is not part of it.
  int64_t pad_begin = 0;
  int64_t pad_end = 0;
  bool operator==(const SmgWindow&) const = default;
};

/// A typed edge between spaces. Data spaces are values (an input has one space per use), iteration
/// spaces are ops.
struct SmgMapping {
  enum Kind : uint8_t { kOneToOne, kOneToAll, kAllToOne, kShift, kIndexed, kWindow };
  Kind kind = kOneToOne;
  ValueId value = 0;  // the data space
  int op = 0;         // the iteration space
  bool from_data = true;
  DimId dim = -1;      // kOneToAll, kAllToOne, kShift, kWindow
  std::string monoid;  // kAllToOne
  SmgWindow window;    // kWindow
  bool operator==(const SmgMapping&) const = default;
};

/// The space-mapping graph of a set of loop ops (SpaceFusion, EuroSys 2025): data and iteration
/// spaces over unified dims. Dims are united per use, never per tensor, so that self-attention
/// keeps queries and keys apart. Immutable value.
struct Smg {
  std::vector<SmgDim> dims;
  std::vector<SmgOp> ops;  // topological order

  const SmgDim& dim(DimId d) const { return dims[static_cast<size_t>(d)]; }
  const SmgOp& op(int i) const { return ops[static_cast<size_t>(i)]; }
  std::string DimNames(const std::vector<DimId>& list) const;
  bool operator==(const Smg&) const = default;
};

/// Builds the SMG of the ops `loops` (ascending) of a program. Values written by these ops are
/// intermediates (or outputs), all others are kernel inputs. Reinterpreting ops cannot be part of
/// an SMG: InvalidArgument.
absl::StatusOr<Smg> BuildSmg(const Program& program, const std::vector<LoopId>& loops);

/// Where read `read` of op `reader` looks in the iteration space of the op that wrote the value:
/// for each of that op's output dims its coordinate in terms of the reader's dims (Axis(d) itself
/// where both walk together). nullopt if a merged dim is read in a way that cannot be taken apart,
/// or the read is aliased.
std::optional<std::vector<std::pair<DimId, IndexExpr>>> ProducerCoordinates(const Smg& smg,
                                                                            const SmgRead& read);

/// Takes a dim out that no index map looks at any more; those behind it move up by one.
void RemoveDim(DimId gone, Smg* smg);

/// Every mapping of the SMG, derived from the index maps: u -> v is One-to-All along the dims that
/// v has and u lacks, All-to-One along those that u has and v lacks, One-to-One if there is
/// neither. A read at stride * d + dilation * k, k reduced, is a Window along d; one at an offset
/// a Shift.
std::vector<SmgMapping> Mappings(const Smg& smg);

/// "one-to-all n", "all-to-one k sum", "window oh over kh:3 stride 2 dilation 1 pad 1 1".
std::string LabelOf(const Smg& smg, const SmgMapping& mapping);

/// "op 3 Add": how reasons name op `i`.
std::string OpName(const Smg& smg, int i);

/// Text form: dims, ops, then the mappings (which the parser recomputes and compares).
///
///   smg {
///     dims m:64 n:32 k:16
///     op 3 MatMul @0 %2[m, n] = sum(%0[m, k], %1[k, n]) : mul(in0, in1) over [m, n, k]
///     map %0 -> op 3 one-to-all n
///     map op 3 -> %2 all-to-one k sum
///   }
std::string ToString(const Smg& smg);
/// Inverse of ToString. `program` gives the element types of the values, which the text form of an
/// SMG does not repeat. Fails with line and column.
absl::StatusOr<Smg> ParseSmg(std::string_view text, const Program& program);

}  // namespace fusion
