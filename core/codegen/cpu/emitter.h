#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "core/codegen/backend.h"
#include "core/codegen/code_writer.h"
#include "core/codegen/cpu/prelude.h"
#include "core/schedule/ir/access.h"
#include "core/schedule/memory/block_windows.h"
#include "core/schedule/memory/scratch.h"

namespace fusion {

/// The C code of an offset in elements: constant + sum of coefficient * C variable.
class LinearCode {
 public:
  void Add(const std::string& variable, int64_t coefficient);
  void Add(int64_t constant) { constant_ += constant; }
  int64_t CoefficientOf(const std::string& variable) const;
  /// "m * 768 + n + 32"; "0" if empty.
  std::string ToString() const;

 private:
  int64_t constant_ = 0;
  std::map<std::string, int64_t> terms_;
};

/// The C code of a number of tiles or tasks: a literal, or an expression if it depends on run-time
/// dims.
class SizeCode {
 public:
  explicit SizeCode(int64_t number) : number_(number) {}
  explicit SizeCode(std::string code) : code_(std::move(code)) {}
  /// True if it is the literal 0.
  bool IsZero() const { return code_.empty() && number_ == 0; }
  std::string ToString() const { return code_.empty() ? StrCat(number_) : code_; }
  SizeCode operator+(const SizeCode& other) const;
  SizeCode operator*(const SizeCode& other) const;

 private:
  int64_t number_ = 0;
  std::string code_;  // "": the number
};

/// The text of the C function run_tile (RunTile), with which kernels of families choose tiles when
/// they run, for this many threads.
std::string RunTileFunction(int threads);
/// The text of the C function even_step, which divides rows into steps of nearly equal length.
std::string EvenStepFunction();

/// The lengths 1, 2, ... `most` of windows that may end anywhere. If these are more than
/// kMostWindowLengths, only 1, 2 and `most`.
WindowLengths UpTo(int64_t most);

/// Writes one schedule as a C++ unit. Use one object for each schedule, and call Emit once.
/// Internal to the CPU backend.
class CpuEmitter {
 public:
  /// `options`: see Backend::Emit. `most` and `varies`: see Backend::EmitMember; null and empty for
  /// a schedule of static shape. Keeps references to `schedule`, `device` and `most`.
  CpuEmitter(const Schedule& schedule, const DeviceSpec& device, std::string_view symbol,
             const EmitOptions& options = {}, const Schedule* most = nullptr,
             std::vector<bool> varies = {});
  absl::StatusOr<KernelSource> Emit();

 private:
  // The range of a dim that the current statement works on.
  struct Window {
    std::string begin = "0";
    std::string end;
    WindowLengths lengths;
    /// For a member of a family: the window may have any length up to the longest; `lengths` need
    /// not list all.
    bool any = false;
    int depth = 0;  // nesting of tilings, for variable names

    int64_t Longest() const { return lengths.empty() ? 0 : lengths.back(); }
    bool IsPoint() const { return lengths.size() == 1 && lengths[0] == 1; }
  };

  // ---- members of families (emit_member.cc) ----
  /// True if the extent of a dim differs between members. Apart from numbers, the text must not
  /// depend on it.
  bool Varies(DimId d) const { return varies_[static_cast<size_t>(d)]; }
  bool IsMember() const { return most_ != &s_; }
  std::vector<BlockWindows> WindowsOf(size_t phase, size_t segment, std::vector<bool>* any) const;
  /// True if the tile of a dim of the grid is chosen when the kernel runs.
  bool TileVaries(const GridDim& g) const { return Varies(g.dim) && g.tile > 1; }
  std::string TileCode(size_t phase, size_t segment, const GridDim& g) const;
  SizeCode Tiles(const GridDim& g, const std::string& tile) const;
  SizeCode TasksOf(size_t phase, size_t segment) const;
  SizeCode TasksOf(size_t phase) const;
  int64_t StepOf(const Block& block, DimId d) const;
  bool HasRows(const Block& block, DimId d) const;
  bool OnlyRows(const Block& block, DimId d, bool* rows) const;
  void WriteTiles();
  void WriteSizes(bool args);
  void WriteNeeds(const std::vector<int64_t>& ascending);
  void WriteNeedsOutside(int64_t border, int64_t extent);

  // ---- unit (emitter.cc) ----
  absl::Status WriteSegment(size_t phase, size_t segment);
  void WriteHalo(const Halo& halo, const BlockWindows& windows);
  void DeclareWorkspace(BufferId id);
  void WriteEntry();
  void WriteDescriptor();
  void WriteReach();
  void WriteMemberReach();
  void WriteAccessReach(const Access& access, const LoopRanges& walked);
  void WriteReachRange(DimId d, const Access& access, const LoopRanges& walked,
                       const std::string& begin, const std::string& last);
  std::string Header() const;

  // ---- bounds (emit_guard.cc) ----
  /// Declares the pointer to a buffer's first element under the buffer's name. `memory`: an
  /// expression for its address. `elements`: code for the number of elements there. `comment`:
  /// appended to the line.
  void DeclareBuffer(BufferId id, const std::string& memory, const std::string& elements,
                     const std::string& comment);
  /// The C type of a pointer to elements of a buffer.
  std::string PointerType(BufferId id) const;
  /// In guarded units: sets the step that faults in the following code report.
  void SayStep(const std::string& step);
  /// Code for an index that was read from a tensor, as a place 0..extent - 1 along a dim of a
  /// buffer: negative values count from the end, values outside are clamped (guarded units also
  /// report them).
  std::string IndexWithin(BufferId id, int64_t extent, const std::string& index) const;

  // ---- statements (emitter.cc) ----
  absl::Status Write(const Block& block);
  absl::Status Write(const LoopStmt& loop);
  absl::Status Write(const IfStmt& branch);
  absl::Status Write(const AllocStmt& alloc);
  absl::Status Write(const InitStmt& init);
  absl::Status Write(const EachStmt& each);
  absl::Status Write(const MmaStmt& mma);
  absl::Status Write(const CopyStmt& copy);
  absl::Status Write(const MergeStmt& merge);
  absl::Status Write(const CallStmt& call);

  // ---- opaque ops (emit_opaque.cc) ----
  /// Code for a plain C pointer to a buffer.
  std::string PlainPointer(BufferId id) const;
  void OpenWholeParams(const CallStmt& call);
  /// Arguments for the begin and end of the windows: "o0, o0 + 1, i0, i0_end".
  std::string WindowArgs(const std::vector<DimId>& over) const;
  void WriteRunningFold(const CallStmt& call);
  void WriteRowOrder(const CallStmt& call);
  void WriteBoxChoice(const CallStmt& call);

  // ---- addresses (emitter.cc) ----
  const Buffer& buffer(BufferId b) const { return s_.buffer(b); }
  const ScheduleDim& dim(DimId d) const { return s_.dim(d); }
  Window& window(DimId d) { return windows_[static_cast<size_t>(d)]; }
  const Window& window(DimId d) const { return windows_[static_cast<size_t>(d)]; }
  /// The C name of the first coordinate of a tile, unique in the unit: "m0", inside that "m1".
  std::string TileName(DimId d, int depth) const;
  /// The C name or number of the current coordinate of a dim.
  std::string Coordinate(DimId d) const;
  /// ElementStrides of a buffer; of local buffers as laid out in scratch.
  Dims StridesOf(BufferId id) const;
  /// Offset of an access, in elements. Of a blocked dim whole blocks are counted, so its coordinate
  /// must be at the start of one.
  LinearCode Offset(const Access& access) const;
  /// The block term of a blocked buffer, to be added to Offset: "(n1 - n0) / 32 * 2048"; "" for
  /// strided buffers.
  std::string BlockOffset(const Access& access) const;
  /// Code for pointer + offset.
  std::string Address(const Access& access) const;
  int64_t StepAlong(const Access& access, DimId d) const;

  // ---- element-wise regions (emit_each.cc, emit_element.cc, emit_decided.cc, emit_turned.cc,
  // emit_placed.cc) ----
  // The plan of a region, fixed before its innermost body is written.
  struct Region {
    const EachStmt* each = nullptr;
    DimId vector = -1;           // dim along the lanes; -1: every lane has the same element
    bool folds = false;          // has reductions
    bool folds_vector = false;   // ... along the vector dim
    std::vector<DimId> reduced;  // reduced dims, the same for all reductions of the region
    std::vector<DimId> outer;    // loops outside the accumulators
    std::vector<DimId> inner;    // loops inside, without the vector dim
    int unroll = 1;              // number of independent accumulators
    /// The accumulators are interleaved along the innermost of `inner`, not along the vector dim.
    bool unrolls_inner = false;
    bool light = false;                 // hardly any arithmetic
    int in_turns = 1;                   // number of whole vectors whose steps are interleaved
    std::vector<size_t> by_reciprocal;  // divisions that are written as products
    /// The dim that is transposed with the vector dim, in blocks of lanes x lanes points, because
    /// some tensors are dense along it and not along the lanes; -1: none.
    DimId turned = -1;
    std::vector<size_t> turns;                           // loads and stores that are transposed
    std::map<DimId, std::pair<int64_t, int64_t>> range;  // coordinates a segment is restricted to
    std::map<int, int> kept;  // selects whose argument the tile decides (FullTiles::kept)
    bool scattered = false;   // each lane reduces at a place of its own
  };
  struct Lanes {
    std::string count;        // "": a full vector; else a C expression, the number of lanes
    std::string accumulator;  // index into the accumulators: "0" or "u"
  };
  absl::StatusOr<Region> PlanRegion(const EachStmt& each) const;
  void PlanTurns(Region* region) const;
  void WriteTurned(const Region& region, const Lanes& lanes);
  std::string TurnedName(const Region& region, size_t op) const;
  void WriteRegion(Region* region);
  std::string AtLeastZeroEverywhere(const IndexExpr& e) const;
  void WriteLoops(Region* region, size_t level, bool inside);
  void WriteSegments(Region* region, DimId d, const std::function<void()>& body);
  void WriteInTurn(const Region& region, const std::string& name, const std::string& from,
                   const std::string& to);
  void WriteVectorLoop(Region* region);
  void WriteStrips(Region* region, const std::string& begin, const std::string& end);
  std::vector<int> DecidedSelects(const Region& region) const;
  /// The same, restricted to these values.
  std::vector<int> DecidedSelects(const Region& region, const std::vector<int>& wanted) const;
  int VectorsInTurns(const EachStmt& each) const;
  std::vector<std::pair<size_t, size_t>> CommonDivisions(const Region& region) const;
  void WriteBody(const Region& region, const Lanes& lanes);
  void WriteInTurns(Region* region, const std::string& name);
  void WriteStep(const Region& region, const Lanes& lanes, const std::vector<int>& passes, size_t i,
                 int fold);
  Region PlanPlaced(const EachStmt& each) const;
  void OpenAtPlace(const EachStmt& each, const std::string& place);
  void CloseAtPlace(const EachStmt& each);
  bool WritePlaceAlone(const Region& region, const std::vector<int>& passes);
  void WriteAtPlace(Region* region);
  void WriteReduceAtPlace(const Region& region, const ElementOp& op, const Lanes& lanes);
  bool IsScatteredRead(const Region& region, const Access& access) const;
  absl::Status CheckElements(const EachStmt& each) const;
  /// The C variable of a value of the region.
  std::string ValueName(int value) const { return StrCat("v", value, turn_); }
  bool StreamsPastCaches(BufferId id) const;
  void WriteAccumulators(const Region& region);
  void WriteFolds(const Region& region, const Lanes& lanes);
  /// Coordinates of `d` at which guards begin or end, ascending. `outside` (may be null) receives
  /// those that are not inside the dim.
  std::vector<int64_t> Borders(const EachStmt& each, DimId d,
                               std::vector<int64_t>* outside = nullptr) const;
  std::string LoadCode(const Region& region, const ElementOp& op, const Lanes& lanes) const;
  std::string BareLoadCode(const Region& region, const ElementOp& op, const Lanes& lanes) const;
  std::string StoreCode(const Region& region, const ElementOp& op, const Lanes& lanes) const;
  std::string ComputeCode(const Region& region, const ElementOp& op) const;
  std::string QuotientInSingle(const Region& region, const ElementOp& cast) const;
  std::string IndirectOffset(const ElementOp& op, std::string_view at) const;

  // ---- rows and columns of the next step (emit_ahead.cc) ----
  /// The form in which a product is computed.
  struct ProductForm {
    int64_t packs = -1;  // packs along the last summed dim if their number is constant; else -1
    bool tiles = false;  // with AMX tiles
    bool rest = false;   // the tiles do not cover all of the sum
  };
  /// Columns that are prefetched while others are multiplied.
  struct ColumnsAhead {
    std::string name;         // name of the pointer to the next columns
    int64_t pack_bytes = 0;   // bytes to prefetch for each pack of the sum
    int64_t block_bytes = 0;  // bytes to prefetch for each block of rows
  };
  void FindRowsAhead(const LoopStmt& loop);
  void FindColumnsAhead(const LoopStmt& loop, const std::string& end);
  int64_t RowsAhead(const Region& region, const ElementOp& load, const Lanes& lanes) const;

  // ---- products and copies (emit_product.cc) ----
  void UseOperands(DType rows, DType columns, bool flushes);
  bool HasTiles(const MmaStmt& mma, int64_t packs) const;
  std::string MmaCall(const MmaStmt& mma, const ProductForm& form, int64_t rows, int64_t vectors,
                      bool partial);
  void WriteAnyColumns(int64_t most, const std::string& count, bool padded,
                       const std::function<void(int64_t, bool, const std::string&)>& write);
  DimId TurnedDim(const CopyStmt& copy, DimId n) const;
  absl::Status WriteTransposed(const CopyStmt& copy);

  void UseFunction(const ElementOp& op);
  void Use(std::string_view part) { use_.functions.insert(std::string(part)); }
  void UseMemory(DType type);

  const Schedule& s_;
  const Schedule* most_;      // decides everything but numbers; &s_ for a static schedule
  std::vector<bool> varies_;  // by dim
  const DeviceSpec& device_;
  const bool guard_;  // EmitOptions::guard
  std::string symbol_;
  int lanes_;  // floats per vector
  ScratchPlan scratch_;
  WorkspacePlan workspace_;
  PreludeUse use_;
  bool run_tiles_ = false;   // some tile is chosen at run time
  bool even_steps_ = false;  // some rows are divided by even_step
  CodeWriter out_;
  const Segment* segment_ = nullptr;  // the one being written
  std::vector<Window> windows_;
  std::vector<std::vector<std::string>>
      origin_;                      // by buffer: coordinate of its first element, by dim
  std::vector<std::string> point_;  // by dim: loop variable inside a region, or ""
  std::string turn_;                // suffix of value names of interleaved vectors
  bool uses_tiles_ = false;         // uses AMX
  bool streams_ = false;            // some stores bypass the caches
  // By load: elements from what it reads to what the next step of the loop reads.
  std::map<const ElementOp*, int64_t> ahead_;
  std::map<const MmaStmt*, ColumnsAhead> columns_ahead_;
  std::string vertical_lanes_;  // lanes of the strip around vertical folds; "": all
};

/// Code that merges two vectors, or two elements, of a monoid's values.
std::string MergeVectors(const std::string& monoid, DType type, const std::string& a,
                         const std::string& b);
std::string MergeScalars(const std::string& monoid, DType type, const std::string& a,
                         const std::string& b);
/// C type of an element in memory: "float", "i64", "unsigned char".
std::string_view MemoryTypeName(DType type);
/// C type of a vector of a small float's bits in memory (floats narrower than f32).
std::string_view BitsTypeName(DType type);
/// C type of a vector of values in registers: "vf", "vl", "vi", "vd".
std::string_view VectorTypeName(DType type);
/// Suffix of the functions on vectors of VectorTypeName: "f", "l", "i", "d".
std::string_view VectorSuffix(DType type);
/// The C literal of one element of this type: `real` for floats, else `integer`.
std::string ElementLiteral(DType type, double real, int64_t integer);

}  // namespace fusion
