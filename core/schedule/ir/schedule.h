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

/// Where a buffer lives; what that is on a device is the backend's business.
enum class Level : uint8_t {
  kGlobal,     // params: tensors of the caller
  kWorkspace,  // between phases of one launch, shared by all workers
  kStaged,     // on chip: a cache-resident tile, shared memory, L1/UB
  kAcc,        // the accumulator of a matrix product: registers
};

enum class ParamKind : uint8_t { kInput, kWeight, kOutput };

/// How the elements of a buffer lie in memory.
struct BufferLayout {
  /// Dim cut into blocks of `block`, stored [dim / block][other dims in order][block]; the last
  /// block is padded with zeros. -1: strided.
  int blocked = -1;
  int64_t block = 0;
  /// Of blocked ones: so many neighbours along the last other dim lie next to each other, [dim /
  /// block][other dims, the last one / pack][block][pack], as instructions want them that sum up
  /// products of narrow elements (VNNI); what is missing of the last ones is zero.
  int64_t pack = 1;
  /// Params and workspace, strided: elements between neighbours of each dim. Local buffers are
  /// dense in the order of their dims (a backend may pad rows).
  Dims strides;

  /// The dim whose neighbours lie in packs, of `rank`; -1: none.
  int PackedDim(int rank) const;
  bool operator==(const BufferLayout&) const = default;
};

struct Buffer {
  std::string name;
  Level level = Level::kStaged;
  DType dtype = DType::kF32;
  // kGlobal, kWorkspace: a tensor.
  ParamKind kind = ParamKind::kInput;
  Dims shape;
  /// kWorkspace: the output param or workspace declared before whose memory this is, under another
  /// shape; both dense and row-major. -1: memory of its own.
  int same_as = -1;
  // kStaged, kAcc: a tile over these dims, as long as their windows where it is allocated.
  std::vector<DimId> dims;
  BufferLayout layout;
  bool operator==(const Buffer&) const = default;

  bool IsLocal() const { return level == Level::kStaged || level == Level::kAcc; }
  int rank() const { return static_cast<int>(IsLocal() ? dims.size() : shape.size()); }
};

/// An element or tile of a buffer: one index per buffer dim, over absolute coordinates of dims.
/// Where a guard fails, a load gives 0 and the value is not used. An indirect index
/// (IndexExpr::Indirect(i)) adds the integer value v<i> of the region; negative values count from
/// the end, values outside are clamped.
struct Access {
  BufferId buffer = 0;
  IndexMap index;
  std::vector<Guard> guards;
  bool operator==(const Access&) const = default;
};

struct Stmt;
using Block = std::vector<Stmt>;

/// Cuts the current window of `dim` into tiles and runs `body` once a tile; the last tile may be
/// shorter.
struct LoopStmt {
  DimId dim = 0;
  int64_t tile = 1;
  /// Restricts the loop to [begin, end) of the dim's coordinates; end -1: the whole window.
  int64_t begin = 0;
  int64_t end = -1;
  /// Tiles in flight (software pipelining); 1: none.
  int stages = 1;
  /// The tiles are what blocks of a phase would be, were it not one of a pipeline.
  bool blocks = false;
  Block body;
};

/// Runs `body` only where it can matter: if each of these functions of the coordinates is at least
/// 0 somewhere in the current windows, or, with a `watched` buffer, unless its one element is at
/// least `least`.
struct IfStmt {
  std::vector<IndexExpr> somewhere;
  BufferId watched = -1;  // local, without dims, float; -1: none
  double least = 0;
  Block body;
};

/// Declares a local buffer for the rest of the enclosing block.
struct AllocStmt {
  BufferId buffer = 0;
};

/// Fills local buffers (one per state value) with the identity of a monoid.
struct InitStmt {
  std::vector<BufferId> buffers;
  std::string monoid;
};

/// One step of an element-wise region: values v0, v1, ... live in vector registers.
struct ElementOp {
  enum Kind : uint8_t { kLoad, kCompute, kStore, kReduce };
  Kind kind = kCompute;
  int result = -1;                   // kLoad, kCompute: the value defined
  absl::InlinedVector<int, 3> args;  // values used
  // kCompute: the scalar function; leaves kConst, kAxis (dim `axis`), kWithin (dim `axis` in
  // [begin, end)).
  ScalarOp op = ScalarOp::kConst;
  DType type = DType::kF32;
  double real = 0;
  int64_t integer = 0;  // constant, or begin of kWithin
  int64_t end = 0;
  DimId axis = -1;
  // kLoad: 1, kStore: 1, kReduce: one per state value of `monoid`.
  std::vector<Access> access;
  std::string monoid;
  bool operator==(const ElementOp&) const = default;

  /// True if the steps do the same, whatever their results are called: all else is equal, constants
  /// to the bit.
  bool DoesTheSame(const ElementOp& other) const;
};

/// Runs the steps for every point of the current windows of `dims` (last fastest; the last one is
/// the vector dim).
struct EachStmt {
  std::vector<DimId> dims;
  std::vector<ElementOp> ops;
  /// With a `place`, the number of an i64 value of the steps: only for points at which that is
  /// `at`, a mixed-radix number of dims (IsPlace) on which neither it nor the vector dim depends.
  /// The dims of `at` need not be walked. All that such steps do is to reduce.
  IndexExpr at = {};
  int place = -1;

  bool IsPlaced() const { return place >= 0; }
  /// True if `d` is one of the dims of `at`.
  bool Places(DimId d) const { return IsPlaced() && at.CoefficientOf(d) != 0; }
};

/// c[m, n] (+)= sum over `over` of a[.., m, k..] * b[.., k.., n] on the current windows; all other
/// dims named have windows of one coordinate.
struct MmaStmt {
  Access c;
  Access a;
  Access b;
  DimId m = -1;  // -1: no row dim (one row)
  DimId n = -1;
  std::vector<DimId> over;
  bool accumulate = false;
  /// Of bf16 by bf16: denormals, operands and sums alike, may count as zero, and two products may
  /// be rounded as they are added, as instructions for such pairs do it.
  bool flushes = false;
};

/// How many neighbours along the last summed dim lie next to each other in the columns of a
/// product, for rows and columns of these types: 1 for f32 by f32 or i8, 2 for bf16 columns by rows
/// of bf16 or f32, 4 for i8 columns by rows of u8. nullopt: no product has such operands. Rows
/// narrower than f32 lie along the last summed dim.
std::optional<int64_t> ColumnPack(DType rows, DType columns);

/// What a product with rows of this type sums up in: i32, modulo 2^32, for u8, else f32.
DType SumType(DType rows);

/// Moves a tile to a local buffer or a param of another layout, element by element: target over the
/// windows of `dims`.
struct CopyStmt {
  Access target;
  Access source;
  std::vector<DimId> dims;
};

/// target = target merged with source, states of a monoid, over the windows of `dims` (split
/// reductions).
struct MergeStmt {
  std::string monoid;
  std::vector<Access> target;
  std::vector<Access> source;
  std::vector<DimId> dims;
};

/// An opaque op (core/op/indexed/opaque.h) on params and workspace, which lie dense and row-major.
struct CallStmt {
  std::string op;
  AttrMap attrs;
  std::vector<BufferId> inputs;
  std::vector<BufferId> outputs;
  /// Local buffers that it works in, as long as it runs.
  std::vector<BufferId> scratch = {};
  /// Dims whose current windows say which part of its output it computes: by op, see
  /// core/schedule/lower/opaque.h. Empty: all of it.
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

/// Independent blocks: the grid's tiles (last dim fastest), each running `body`.
struct Segment {
  std::vector<GridDim> grid;
  /// Dims of which a block works on what its windows of others reach; each depends on the grid and
  /// on those before it.
  std::vector<Halo> halos;
  Block body;
};

/// Segments run side by side; a barrier follows the phase.
struct Phase {
  std::vector<Segment> segments;
};

struct ScheduleDim {
  std::string name;
  int64_t extent = 1;
  bool operator==(const ScheduleDim&) const = default;
};

/// One kernel, for every backend. Immutable once built; its text form is part of the kernel key.
struct Schedule {
  std::string label;     // op types in order
  bool bitwise = false;  // sums in index order, no fused multiply-add
  bool loose = false;    // what is not finite may come out as something else, see Streamed::loose
  std::vector<ScheduleDim> dims;
  std::vector<Buffer> buffers;  // params first
  int params = 0;
  /// Pairs (output param, input param) that may share memory: every element is read before it is
  /// written, by the same block and step.
  std::vector<std::pair<BufferId, BufferId>> may_alias;
  std::vector<Phase> phases;

  const ScheduleDim& dim(DimId d) const { return dims[static_cast<size_t>(d)]; }
  const Buffer& buffer(BufferId b) const { return buffers[static_cast<size_t>(b)]; }
  /// The buffer whose memory `b` is.
  BufferId MemoryOf(BufferId b) const { return buffer(b).same_as >= 0 ? buffer(b).same_as : b; }
  int64_t Tasks(size_t phase) const;
  /// True if parts are left out where masks hide them: a NaN there is not seen.
  bool SkipsMasked() const;
};

/// Text form; ParseSchedule(ToString(s)) prints the same text.
std::string ToString(const Schedule& schedule);
absl::StatusOr<Schedule> ParseSchedule(std::string_view text);

/// Checks ids, ranks, types, allocation before use, and that indices stay inside their buffers.
/// Schedules of ours pass; texts from elsewhere may not.
absl::Status Verify(const Schedule& schedule);

/// The dims of a blocked param as it lies in memory, row-major, padding included.
Dims StoredDims(const Buffer& buffer);
/// Elements a param occupies in memory, padding included.
int64_t StoredElements(const Buffer& buffer);
int64_t StoredBytes(const Buffer& buffer);
/// Of all params.
int64_t ParamBytes(const Schedule& schedule);
/// Where an element of a param lies, in elements from the start.
int64_t StoredOffset(const Buffer& buffer, const std::vector<int64_t>& index);

}  // namespace fusion
