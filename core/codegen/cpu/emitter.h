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

/// constant + sum of coefficient * C variable: an offset in elements as it will stand in the
/// source.
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

/// A number of tiles or tasks as it will stand in the source.
class SizeCode {
 public:
  explicit SizeCode(int64_t number) : number_(number) {}
  explicit SizeCode(std::string code) : code_(std::move(code)) {}
  /// Known to be 0.
  bool IsZero() const { return code_.empty() && number_ == 0; }
  std::string ToString() const { return code_.empty() ? StrCat(number_) : code_; }
  SizeCode operator+(const SizeCode& other) const;
  SizeCode operator*(const SizeCode& other) const;

 private:
  int64_t number_ = 0;
  std::string code_;  // "": the number
};

/// The C function by which kernels choose tiles when they run, for this many threads; its text says
/// how.
std::string RunTileFunction(int threads);
/// The C function that makes steps of rows equally long.
std::string EvenStepFunction();

/// 1, 2, ... `most`: the lengths of windows that end anywhere. Where these are more than
/// kMostWindowLengths only the first two and the last.
WindowLengths UpTo(int64_t most);

/// Writes one schedule as a C++ unit. Internal to the CPU backend; one object per schedule.
class CpuEmitter {
 public:
  /// `options`: of Backend::Emit. `most`: null, or the largest member of the family of which
  /// `schedule` is one, and then `varies`: see Backend::EmitMember.
  CpuEmitter(const Schedule& schedule, const DeviceSpec& device, std::string_view symbol,
             const EmitOptions& options = {}, const Schedule* most = nullptr,
             std::vector<bool> varies = {});
  absl::StatusOr<KernelSource> Emit();

 private:
  // The part of a dim that the statement being written works on.
  struct Window {
    std::string begin = "0";
    std::string end;
    WindowLengths lengths;
    /// Of a member of a family: any length up to the longest; `lengths` need not name them all.
    bool any = false;
    int depth = 0;  // of cuts, for variable names

    int64_t Longest() const { return lengths.empty() ? 0 : lengths.back(); }
    bool IsPoint() const { return lengths.size() == 1 && lengths[0] == 1; }
  };

  // ---- members of families (emit_member.cc) ----
  /// True if the extent of a dim differs from member to member: nothing that is written may depend
  /// on what it is, but for numbers.
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
  /// Defines the C name of a buffer: where its first element is. `memory`: an expression for that;
  /// `elements`: code for how many elements lie there; `comment`: behind it.
  void DeclareBuffer(BufferId id, const std::string& memory, const std::string& elements,
                     const std::string& comment);
  /// The C type of a pointer to elements of a buffer.
  std::string PointerType(BufferId id) const;
  /// What a fault of what follows is said to come from; nothing without guards.
  void SayStep(const std::string& step);
  /// Code for an index, held by a tensor, into a dim of a buffer: within 0..extent - 1.
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
  /// A buffer as a pointer of C.
  std::string PlainPointer(BufferId id) const;
  void OpenWholeParams(const CallStmt& call);
  /// "o0, o0 + 1, i0, i0_end": where the windows begin and end.
  std::string WindowArgs(const std::vector<DimId>& over) const;
  void WriteRunningFold(const CallStmt& call);
  void WriteRowOrder(const CallStmt& call);
  void WriteBoxChoice(const CallStmt& call);

  // ---- addresses (emitter.cc) ----
  const Buffer& buffer(BufferId b) const { return s_.buffer(b); }
  const ScheduleDim& dim(DimId d) const { return s_.dim(d); }
  Window& window(DimId d) { return windows_[static_cast<size_t>(d)]; }
  const Window& window(DimId d) const { return windows_[static_cast<size_t>(d)]; }
  /// The C name of the first coordinate of a tile: "m0", "m1" inside it; of no other variable.
  std::string TileName(DimId d, int depth) const;
  /// The C name or number of the current coordinate of a dim.
  std::string Coordinate(DimId d) const;
  /// ElementStrides of a buffer (local: as laid out in scratch).
  Dims StridesOf(BufferId id) const;
  /// Offset of an access in elements. Blocked dims count whole blocks: the coordinate must be at
  /// the start of one.
  LinearCode Offset(const Access& access) const;
  /// The block term of a blocked buffer, to be added to Offset: "(n1 - n0) / 32 * 2048"; "" if
  /// strided.
  std::string BlockOffset(const Access& access) const;
  /// pointer + offset as an expression.
  std::string Address(const Access& access) const;
  int64_t StepAlong(const Access& access, DimId d) const;

  // ---- element-wise regions (emit_each.cc, emit_element.cc, emit_decided.cc, emit_turned.cc,
  // emit_placed.cc) ----
  // What is known while a region's innermost body is written.
  struct Region {
    const EachStmt* each = nullptr;
    DimId vector = -1;           // dim along the lanes; -1: every lane has the same element
    bool folds = false;          // has reductions
    bool folds_vector = false;   // ... along the vector dim
    std::vector<DimId> reduced;  // dims folded (one set for all reductions of the region)
    std::vector<DimId> outer;    // loops outside the accumulators
    std::vector<DimId> inner;    // loops inside, without the vector dim
    int unroll = 1;              // independent accumulators
    /// They take turns along the innermost of `inner`, not along the vector dim.
    bool unrolls_inner = false;
    bool light = false;                 // hardly any arithmetic
    int in_turns = 1;                   // whole vectors of which each step is written in turn
    std::vector<size_t> by_reciprocal;  // divisions that are written as products
    /// As many points along it as there are lanes are done at a time, and what lies dense along it,
    /// not along the lanes, is transposed; -1: there is nothing of that.
    DimId turned = -1;
    std::vector<size_t> turns;  // the ops that load or store what is transposed
    std::map<DimId, std::pair<int64_t, int64_t>> range;  // coordinates a segment is restricted to
    std::map<int, int> kept;  // selects of which the tile decides which argument they give
    bool scattered = false;   // lanes reduce at places of their own
  };
  struct Lanes {
    std::string count;        // "" for a full vector, else the C expression of how many
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
  /// The same, as far as these values are made.
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
  /// The variable that holds a value of a region.
  std::string ValueName(int value) const { return StrCat("v", value, turn_); }
  bool StreamsPastCaches(BufferId id) const;
  void WriteAccumulators(const Region& region);
  void WriteFolds(const Region& region, const Lanes& lanes);
  /// `outside` (may be null): those that do not lie between coordinates of the dim.
  std::vector<int64_t> Borders(const EachStmt& each, DimId d,
                               std::vector<int64_t>* outside = nullptr) const;
  std::string LoadCode(const Region& region, const ElementOp& op, const Lanes& lanes) const;
  std::string BareLoadCode(const Region& region, const ElementOp& op, const Lanes& lanes) const;
  std::string StoreCode(const Region& region, const ElementOp& op, const Lanes& lanes) const;
  std::string ComputeCode(const Region& region, const ElementOp& op) const;
  std::string QuotientInSingle(const Region& region, const ElementOp& cast) const;
  std::string IndirectOffset(const ElementOp& op, std::string_view at) const;

  // ---- rows and columns of the next step (emit_ahead.cc) ----
  /// How a product is computed.
  struct ProductForm {
    int64_t packs = -1;  // of the last summed dim, if their number is always the same
    bool tiles = false;  // of AMX
    bool rest = false;   // tiles are not all of a sum
  };
  /// Columns that are asked for while others are multiplied.
  struct ColumnsAhead {
    std::string name;         // of the pointer to what comes next
    int64_t pack_bytes = 0;   // of it, for each pack of the sum
    int64_t block_bytes = 0;  // for each block of rows
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
  const Schedule* most_;      // decides all that is no number; s_ itself where that is the only one
  std::vector<bool> varies_;  // by dim
  const DeviceSpec& device_;
  const bool guard_;  // EmitOptions::guard
  std::string symbol_;
  int lanes_;  // floats per vector
  ScratchPlan scratch_;
  WorkspacePlan workspace_;
  PreludeUse use_;
  bool run_tiles_ = false;   // some tile is chosen when the kernel runs
  bool even_steps_ = false;  // and some step of rows
  CodeWriter out_;
  const Segment* segment_ = nullptr;  // that is being written
  std::vector<Window> windows_;
  std::vector<std::vector<std::string>>
      origin_;                      // by buffer: coordinate of its first element, by dim
  std::vector<std::string> point_;  // by dim: loop variable inside a region, or ""
  std::string turn_;                // of vectors that take turns: the end of names of values
  bool uses_tiles_ = false;         // of AMX
  bool streams_ = false;            // some stores go past the caches
  std::map<const ElementOp*, int64_t> ahead_;  // elements from what a load reads to what the loop's
                                               // next step reads there
  std::map<const MmaStmt*, ColumnsAhead> columns_ahead_;
  std::string vertical_lanes_;  // lanes of the strip around vertical folds; "": all
};

/// Code that merges two vectors, or two elements, of values of a monoid.
std::string MergeVectors(const std::string& monoid, DType type, const std::string& a,
                         const std::string& b);
std::string MergeScalars(const std::string& monoid, DType type, const std::string& a,
                         const std::string& b);
/// C type of an element in memory: "float", "i64", "unsigned char".
std::string_view MemoryTypeName(DType type);
/// C type of a vector of the bits in memory of a float smaller than f32.
std::string_view BitsTypeName(DType type);
/// C type of a vector of values in registers: "vf", "vl", "vi", "vd".
std::string_view VectorTypeName(DType type);
/// Suffix of functions on such vectors: "f", "l", "i", "d".
std::string_view VectorSuffix(DType type);
/// A literal of a value of this type, as an element (not a vector).
std::string ElementLiteral(DType type, double real, int64_t integer);

}  // namespace fusion
