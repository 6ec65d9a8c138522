// Fragments and points of operations that run over the same points share one layout: a class. A class is anchored by a
// gemm's accumulator, by an annotation, by a gemm that reads it, or by what its accesses of memory like best; one that
// follows only some dimensions of another, or runs over a box of a fragment, takes the layout that the other leaves it.
#pragma once
#include "analysis/uniformity.h"
#include "passes/threads/fragment_box.h"

namespace tilewright::passes {

inline constexpr int64_t kMostLanes = 128;  // of 16 bytes: as many as it has bits

struct LayoutNode {
  ir::BufferId fragment;  // or
  ir::Stmt stmt;          // the operation whose points these are
  std::vector<int64_t> shape;
  std::string name;  // for people
};

struct LayoutClass {
  std::vector<int64_t> shape;  // without extents of 1, but for the last
  int64_t threads = 0, first_thread = 0;
  // The widest element of memory accessed along the last dimension; 0: none. Vectors fill 16 bytes of it: a lane that
  // took several such pieces would leave gaps in what the warp touches at once.
  int element_bits = 0;
  // The same of memory with an element for each point: what rows share, many threads read again. 0: none.
  int own_bits = 0;
  // The most neighbours that lie at a multiple of their size in every row of the global memory accessed: wider vectors
  // would be taken apart, and a lane's elements would lie between those of others.
  int64_t aligned = kMostLanes;
  bool global = false;  // some of that memory is global
  bool apart = false;   // memory is accessed, and holds what lies along the last dimension far from each other
  // Of each dimension along which memory has neighbours for the points, how: `bits` of the accesses that have an
  // element for each point, their widest element, and how many neighbours are aligned in all of them.
  struct Along {
    int64_t bits = 0;
    int widest = 8;
    int64_t aligned = kMostLanes;
  };
  std::map<size_t, Along> in_global, on_chip;  // by dimension
  bool reduced = false;                        // along the last dimension
  int64_t within = 0;     // elements from the first dimension on that is reduced and not the last; 0: none is
  bool by_queue = false;  // cp.async moves the elements
  std::optional<FragmentLayout> anchor, layout;
  std::optional<FragmentLayout> operand;    // a gemm reads it from registers so
  std::optional<FragmentLayout> annotated;  // the program's wish: threads may count on what each of them holds
  std::string decided_by;

  // Of what vectors fill 16 bytes. Where a row is reduced, wider vectors of what is its own leave fewer rows to a
  // thread, each of which it reduces and exchanges.
  int vector_bits() const {
    const int bits = reduced && own_bits ? own_bits : element_bits;
    return bits ? bits : 32;
  }
};

// `child` holds what `parent` leaves when only the dimensions `dims` are kept.
struct Follows {
  size_t parent, child;
  std::vector<int> dims;  // of the parent, one a dimension of the child; -1: an extent of 1
  bool writes = false;    // the parent's threads write the child: they must be all that hold it
};

// A Map over a box of a fragment: its points lie as the fragment's elements do.
struct Covers {
  size_t fragment, map;
  analysis::Followed box;
};

// The same registers under two shapes.
struct Reshaped {
  size_t fragment, view;
};

struct LayoutClasses {
  std::vector<LayoutNode> nodes;
  std::vector<Follows> follows;
  std::vector<Covers> covers;
  std::vector<Reshaped> reshaped;

  size_t add(LayoutNode node, const analysis::ThreadSet& threads);
  // Whether their shapes are the same but for columns of extent 1.
  bool are_alike(size_t a, size_t b) const;
  // Both nodes are of one class from now on; the anchor of the one that was added first holds.
  void unite(size_t a, size_t b);
  size_t find(size_t node) const;  // the node by which its class is known
  LayoutClass& of(size_t node) { return classes[find(node)]; }
  const LayoutClass& of(size_t node) const { return classes[find(node)]; }
  FragmentLayout layout_of(size_t node) const;

  std::vector<LayoutClass> classes;  // by node; only those of find() count
  std::vector<size_t> parents;
};

// The layout under another shape with the same extents other than 1.
FragmentLayout shaped(const FragmentLayout& layout, const std::vector<int64_t>& shape);

// Gives every class a layout: what is anchored first, then what is largest, each handing on to what follows it.
void choose_layouts(LayoutClasses& classes);

// What the child would have of its parent, once both have layouts.
FragmentLayout wanted_of(const LayoutClasses& classes, const Follows& follows);
// The layout of `to`, whose elements are those of `from` in order; none: no thread could have them so.
std::optional<FragmentLayout> wanted_of(const LayoutClasses& classes, size_t from, size_t to);
// The layout of a Map over a box of a fragment; none: threads would need each other's elements.
std::optional<FragmentLayout> wanted_of(const LayoutClasses& classes, const Covers& covers);

}  // namespace tilewright::passes
