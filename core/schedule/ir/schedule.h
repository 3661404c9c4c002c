#pragma once

#include <absl/container/inlined_vector.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "core/op/attr.h"
#include "core/op/body/index_map.h"
#include "core/op/body/loop_body.h"
#include "core/op/body/monoid.h"
#include "core/smg/halo.h"

namespace fusion {

using BufferId = int;

/// Where a buffer lives. The backend maps a level to memory of the device.
enum class Level : uint8_t {
  kGlobal,     // params: tensors of the caller
  kWorkspace,  // memory between the phases of one launch, shared by all workers
  kStaged,     // on chip: a cache-resident tile, shared memory, L1/UB
  kAcc,        // the accumulator of a matrix product: registers
};

enum class ParamKind : uint8_t { kInput, kWeight, kOutput };

/// The memory layout of a buffer.
struct BufferLayout {
  /// Position of the dim that is stored in blocks of `block` elements: [dim / block][other dims in
  /// order][block]. The last block is padded with zeros. -1: strided.
  int blocked = -1;
  int64_t block = 0;
  /// Blocked layouts only: number of neighbours along the last other dim that are stored next to
  /// each other, [dim / block][other dims, the last one / pack][block][pack]. Instructions that add
  /// up products of narrow elements take operands in this form (VNNI). The last pack is padded with
  /// zeros. 1: no packs.
  int64_t pack = 1;
  /// Strided params and workspace: distance between neighbours of each dim, in elements. Empty for
  /// local buffers, which are dense in the order of their dims (a backend may pad rows).
  Dims strides;

  /// Position of the packed dim in a buffer of rank `rank`; -1: none.
  int PackedDim(int rank) const;
  bool operator==(const BufferLayout&) const = default;
};

struct Buffer {
  std::string name;
  Level level = Level::kStaged;
  DType dtype = DType::kF32;
  // kGlobal, kWorkspace: a tensor of `shape`. `kind` is meaningful for kGlobal only.
  ParamKind kind = ParamKind::kInput;
  Dims shape;
  /// kWorkspace only: an output param or workspace buffer, declared before this one, whose memory
  /// this buffer reuses under another shape. Both are dense and row-major, with equal numbers of
  /// elements. -1: memory of its own.
  int same_as = -1;
  // kStaged, kAcc: a tile over these dims. Its lengths are those of the dims' windows at the
  // AllocStmt.
  std::vector<DimId> dims;
  BufferLayout layout;
  bool operator==(const Buffer&) const = default;

  bool IsLocal() const { return level == Level::kStaged || level == Level::kAcc; }
  int rank() const { return static_cast<int>(IsLocal() ? dims.size() : shape.size()); }
};

/// An element or tile of a buffer: one index for each buffer dim, in absolute coordinates of the
/// schedule's dims. A load whose guard fails gives 0, and that value is not used. An indirect index
/// (IndexExpr::Indirect(i)) adds the integer value v<i> of the region: negative values count from
/// the end, values outside are clamped.
struct Access {
  BufferId buffer = 0;
  IndexMap index;
  std::vector<Guard> guards;
  bool operator==(const Access&) const = default;
};

struct Stmt;
using Block = std::vector<Stmt>;

/// Tiles the current window of `dim` and runs `body` once for each tile. The last tile may be
/// shorter. Inside, the window of `dim` is the tile.
struct LoopStmt {
  DimId dim = 0;
  int64_t tile = 1;
  /// Restricts the loop to the coordinates [begin, end) of the dim. end -1: the whole window.
  int64_t begin = 0;
  int64_t end = -1;
  /// Number of tiles in flight (software pipelining); 1: no pipelining.
  int stages = 1;
  /// True for a loop that RunAsPipeline made from the grid of a phase: its tiles were the blocks of
  /// that phase.
  bool blocks = false;
  Block body;
};

/// Skips `body` where it changes nothing. `body` runs if every function of `somewhere` is at least
/// 0 at some point of the current windows (each tested on its own). With `first` it also runs in
/// windows that begin at 0 along this dim, so that what it writes is there after a loop that would
/// skip all its tiles. With a `watched` buffer `body` also runs if the buffer's one element is less
/// than `least` or NaN.
struct IfStmt {
  std::vector<IndexExpr> somewhere;  // at least one; over coordinates of dims
  DimId first = -1;                  // -1: none
  BufferId watched = -1;             // a local float buffer without dims; -1: none
  double least = 0;
  Block body;
};

/// Declares a local buffer. It lives until the end of the enclosing block.
struct AllocStmt {
  BufferId buffer = 0;
};

/// Fills local buffers, one for each state value of the monoid, with the monoid's identity.
struct InitStmt {
  std::vector<BufferId> buffers;
  std::string monoid;
};

/// One step of an element-wise region. Values v0, v1, ... live in vector registers.
struct ElementOp {
  enum Kind : uint8_t { kLoad, kCompute, kStore, kReduce };
  Kind kind = kCompute;
  int result = -1;                   // kLoad, kCompute: number of the value defined
  absl::InlinedVector<int, 3> args;  // numbers of the values used
  // kCompute: the scalar function. Leaves: kConst, kAxis (the coordinate of dim `axis`), kWithin
  // (whether the coordinate of dim `axis` is in [begin, end)).
  ScalarOp op = ScalarOp::kConst;
  DType type = DType::kF32;
  double real = 0;
  int64_t integer = 0;  // constant, or begin of kWithin
  int64_t end = 0;
  DimId axis = -1;
  // kLoad and kStore: one access. kReduce: one for each state value of `monoid`.
  std::vector<Access> access;
  std::string monoid;
  bool operator==(const ElementOp&) const = default;

  /// True if both steps compute the same: all but `result` is equal, constants bit by bit.
  bool DoesTheSame(const ElementOp& other) const;
};

/// Runs the steps for every point of the current windows of `dims`. The last dim is innermost and
/// is the vector dim.
struct EachStmt {
  std::vector<DimId> dims;
  std::vector<ElementOp> ops;
  /// `place` is the number of an i64 value of the steps, or -1. With a place the steps run only for
  /// the points at which v<place> equals `at`; such steps load, compute and reduce, and never
  /// store. `at` is a mixed-radix number (IsPlace) of some of `dims`, not of the vector dim.
  /// v<place> does not depend on the dims of `at`, so a backend need not walk these dims: it looks
  /// up the point (scatters).
  IndexExpr at = {};
  int place = -1;

  bool IsPlaced() const { return place >= 0; }
  /// True if `d` is one of the dims of `at`.
  bool Places(DimId d) const { return IsPlaced() && at.CoefficientOf(d) != 0; }
};

/// A matrix product on the current windows. All other dims of the accesses have windows of one
/// coordinate.
///
///   c[m, n] (+)= sum over `over` of a[.., m, k..] * b[.., k.., n]
struct MmaStmt {
  Access c;
  Access a;
  Access b;
  DimId m = -1;  // -1: no row dim (one row)
  DimId n = -1;
  std::vector<DimId> over;
  bool accumulate = false;
  /// Products of bf16 by bf16 only: denormal operands and sums may count as zero, and two products
  /// may be rounded when they are added. Hardware instructions for such pairs do both.
  bool flushes = false;
};

/// The pack (BufferLayout::pack) of the columns of a product with these types of rows and columns:
/// 1 for f32 by f32 or i8, 2 for bf16 columns with rows of bf16 or f32, 4 for i8 columns with rows
/// of u8. nullopt: products with these types are not supported. Rows narrower than f32 are
/// contiguous along the last summed dim.
std::optional<int64_t> ColumnPack(DType rows, DType columns);

/// Type of the sum of a product with rows of this type: i32, modulo 2^32, for u8; f32 otherwise.
DType SumType(DType rows);

/// Copies a tile, element by element, to a local buffer or to a param of another layout. `target`
/// is written over the windows of `dims`.
struct CopyStmt {
  Access target;
  Access source;
  std::vector<DimId> dims;
};

/// Merges the states of a monoid over the windows of `dims`: target = merge(target, source). One
/// access for each state value (split reductions).
struct MergeStmt {
  std::string monoid;
  std::vector<Access> target;
  std::vector<Access> source;
  std::vector<DimId> dims;
};

/// A call of an opaque op (core/op/indexed/opaque.h) on whole params and workspace buffers, which
/// are dense and row-major.
struct CallStmt {
  std::string op;
  AttrMap attrs;
  std::vector<BufferId> inputs;
  std::vector<BufferId> outputs;
  /// Local buffers that the op uses as scratch during the call.
  std::vector<BufferId> scratch = {};
  /// Dims whose current windows select the part of the output that is computed. Their meaning for
  /// each op is in core/schedule/lower/opaque.h. Empty: all of the output.
  std::vector<DimId> over = {};
};

struct Stmt {
  std::variant<LoopStmt, IfStmt, AllocStmt, InitStmt, EachStmt, MmaStmt, CopyStmt, MergeStmt,
               CallStmt>
      node;
};

struct GridDim {
  DimId dim = 0;
  int64_t tile = 1;
  bool operator==(const GridDim&) const = default;
};

/// Independent blocks that run the same `body`: one for each tile of the grid (last dim fastest).
struct Segment {
  std::vector<GridDim> grid;
  /// Dims whose per-block range follows from other dims' windows (halo). A halo depends only on the
  /// grid and on halos before it.
  std::vector<Halo> halos;
  Block body;
};

/// The segments of a phase run concurrently. A barrier follows the phase.
struct Phase {
  std::vector<Segment> segments;
};

struct ScheduleDim {
  std::string name;
  int64_t extent = 1;
  bool operator==(const ScheduleDim&) const = default;
};

/// One kernel, independent of the backend. Immutable once built. Its text form is part of the
/// kernel key.
struct Schedule {
  std::string label;     // op types in order
  bool bitwise = false;  // sums in index order, no fused multiply-add
  bool loose = false;    // results that depend on non-finite values may differ from the operators',
                         // see Streamed::loose
  std::vector<ScheduleDim> dims;
  std::vector<Buffer> buffers;  // params first, then local buffers and workspace
  int params = 0;               // number of params
  /// Pairs (output param, input param) that may share memory: the step that writes an element reads
  /// the input's element at the same index first, and no other block or step reads it.
  std::vector<std::pair<BufferId, BufferId>> may_alias;
  std::vector<Phase> phases;

  const ScheduleDim& dim(DimId d) const { return dims[static_cast<size_t>(d)]; }
  const Buffer& buffer(BufferId b) const { return buffers[static_cast<size_t>(b)]; }
  /// The buffer that owns the memory of `b`: `b` itself, or its `same_as`.
  BufferId MemoryOf(BufferId b) const { return buffer(b).same_as >= 0 ? buffer(b).same_as : b; }
  /// Number of blocks of a phase, over all its segments.
  int64_t Tasks(size_t phase) const;
  /// True if the kernel skips tiles that a mask hides (IfStmt): a NaN in such a tile is not seen.
  bool SkipsMasked() const;
};

/// Text form. ParseSchedule(ToString(s)) prints the same text. ParseSchedule checks syntax only,
/// call Verify on its result; InvalidArgument for text that does not parse.
std::string ToString(const Schedule& schedule);
absl::StatusOr<Schedule> ParseSchedule(std::string_view text);

/// InvalidArgument, naming the label and the fault, unless ids, ranks and types are consistent,
/// local buffers are allocated before use, outputs are written, and every index stays inside its
/// buffer. Schedules of this compiler pass. Parsed text need not.
absl::Status Verify(const Schedule& schedule);

/// Dims of a blocked param in memory, row-major, padding included. Requires `buffer.layout.blocked`
/// >= 0.
Dims StoredDims(const Buffer& buffer);
/// Memory that a param occupies, padding and gaps between strides included.
int64_t StoredElements(const Buffer& buffer);
int64_t StoredBytes(const Buffer& buffer);
/// Sum of StoredBytes over all params.
int64_t ParamBytes(const Schedule& schedule);
/// Offset of an element of a param from the first one, in elements.
int64_t StoredOffset(const Buffer& buffer, const std::vector<int64_t>& index);

}  // namespace fusion
