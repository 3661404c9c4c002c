#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/graph/program/program.h"

namespace fusion {

/// A unified dim of a space-mapping graph: an atom that no reshape splits further. Dims of extent 1
/// do not appear.
struct SmgDim {
  std::string name;  // unique within the SMG
  int64_t extent = 1;
  bool operator==(const SmgDim&) const = default;
};

/// How an iteration space reads one data space. Indices and guards are expressions over unified
/// dims.
struct SmgRead {
  enum Relation : uint8_t {
    kInput,    // a kernel input, in memory: any affine index is possible
    kAligned,  // an intermediate, read at the coordinates where it was written
    kShifted,  // an intermediate, read at an offset or in a part of a dim (slice, concat)
    kAliased,  // an intermediate that cannot be read in place: its dims and the reader's
               // have no common factors, or uniting them would put two axes of one class
               // into one iteration space
  };
  ValueId value = 0;
  int producer = -1;  // position in Smg::ops of the op that writes the value; -1: kernel input
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
  std::vector<DimId> reduced;  // the dims that the output lacks
  std::vector<SmgRead> reads;
  IndexMap write;  // one per tensor dim of the output
  Expr value;      // over in<i> (read i), axis(dim) and within(dim, ...)
  std::optional<Monoid> reduce;
  bool operator==(const SmgOp&) const = default;

  bool Has(DimId d) const;
  bool Reduces(DimId d) const;
  /// Dims of the data space that this op writes.
  std::vector<DimId> OutputDims() const;
};

/// A window that slides along a dim: output coordinate i reads the input at stride * i + dilation *
/// k, for every coordinate k of the dim `over`, which the op reduces.
struct SmgWindow {
  DimId over = -1;
  int64_t extent = 1;
  int64_t stride = 1;
  int64_t dilation = 1;
  /// Padding elements before and behind the data, in elements of the padded dim. The op inside the
  /// SMG that pads writes a constant there. 0 if padding is not part of the SMG.
  int64_t pad_begin = 0;
  int64_t pad_end = 0;
  bool operator==(const SmgWindow&) const = default;
};

/// A typed edge between a data space and an iteration space. Data spaces are values (an input has
/// one data space per use); iteration spaces are ops.
struct SmgMapping {
  enum Kind : uint8_t { kOneToOne, kOneToAll, kAllToOne, kShift, kIndexed, kWindow };
  Kind kind = kOneToOne;
  ValueId value = 0;      // the data space
  int op = 0;             // the iteration space
  bool from_data = true;  // direction: data space -> iteration space; false: the reverse
  DimId dim = -1;         // kOneToAll, kAllToOne, kShift, kWindow
  std::string monoid;     // kAllToOne: name of the reduction
  SmgWindow window;       // kWindow
  bool operator==(const SmgMapping&) const = default;
};

/// The space-mapping graph of a set of loop ops (SpaceFusion, EuroSys 2025): data and iteration
/// spaces over unified dims. Dims are united per use, never per tensor; thus the queries and keys
/// of self-attention keep separate dims. A plain value.
struct Smg {
  std::vector<SmgDim> dims;
  std::vector<SmgOp> ops;  // topological order

  const SmgDim& dim(DimId d) const { return dims[static_cast<size_t>(d)]; }
  const SmgOp& op(int i) const { return ops[static_cast<size_t>(i)]; }
  std::string DimNames(const std::vector<DimId>& list) const;
  bool operator==(const Smg&) const = default;
};

/// Builds the SMG of the ops `loops` (ascending) of a program. Values that these ops write are
/// intermediates or outputs; all others are kernel inputs. Pure; any thread. InvalidArgument,
/// naming the op, if the kind of one is not LoopOp::kLoop.
absl::StatusOr<Smg> BuildSmg(const Program& program, const std::vector<LoopId>& loops);

/// Maps the coordinates of a read to the iteration space of the op that wrote the value
/// (read.producer >= 0). For each output dim of that op: its coordinate as an expression over the
/// reader's dims; Axis(d) where reader and writer walk the dim together. nullopt if the read is
/// aliased, or if it indexes a merged dim in a way that cannot be separated into its factors.
std::optional<std::vector<std::pair<DimId, IndexExpr>>> ProducerCoordinates(const Smg& smg,
                                                                            const SmgRead& read);

/// Removes a dim that no op uses any more. Higher dim numbers decrease by one.
void RemoveDim(DimId gone, Smg* smg);

/// All mappings of the SMG, derived from the index maps. u -> v is One-to-All along each dim that v
/// has and u lacks, All-to-One along each dim that u has and v lacks, and One-to-One if there is
/// neither. A read at stride * d + dilation * k with k reduced is a Window along d; a read at an
/// offset is a Shift.
std::vector<SmgMapping> Mappings(const Smg& smg);

/// "one-to-all n", "all-to-one k sum", "window oh over kh:3 stride 2 dilation 1 pad 1 1".
std::string LabelOf(const Smg& smg, const SmgMapping& mapping);

/// "op 3 Add": the name of op `i` in refusals and verdicts.
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
/// SMG omits. InvalidArgument, with line and column.
absl::StatusOr<Smg> ParseSmg(std::string_view text, const Program& program);

}  // namespace fusion
