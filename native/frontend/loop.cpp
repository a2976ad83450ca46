// `for`. Short static loops are unrolled; others become a `for` op whose carried values are the variables
// and array cells that its body changes. What those are is found by walking the body on trial:
//
//     total = zeros            %0 = ...
//     for i in range(n):  ->   %1 = for %0 {symbol = i, begin = 0, trip = n} {
//         total = total * i      ^(%2: f64[33])
//                                %3 = mul %2, ...
//                                yield %3
//                              }
#include "frontend/interpreter.h"
#include "ops/layout.h"
#include "ops/structural.h"

namespace cuvil::frontend {

namespace attr = ops::attr;

namespace {

constexpr int64_t kUnrollUpTo = 8;
constexpr int64_t kUnrollIfNeeded = 256;  // a static loop whose body does not compile as a loop
constexpr int kMostPasses = 16;

// How a carried variable travels through a region parameter.
enum class Carry : uint8_t { kTensor, kInt };

}  // namespace

// Everything that a trial may change.
struct LoopSnapshot {
  std::vector<Cell> cells;
  std::map<std::string, Value> locals;
  ir::RegionId region;
  size_t root_ops = 0;
};

// Drops everything emitted into `region` since it held `ops` ops, regions inside included.
static void discard_ops(ir::Graph& g, ir::RegionId region, size_t ops) {
  std::vector<ir::OpId>& list = g.region(region).ops;
  for (size_t k = ops; k < list.size(); ++k) {
    for (ir::RegionId inner : g.op(list[k]).regions) {
      discard_ops(g, inner, 0);
      g.region(inner).yields.clear();
      g.region(inner).params.clear();
    }
  }
  list.resize(ops);
}

class LoopTracer {
 public:
  LoopTracer(Interpreter& in, const Node& n, const Value& iterable, ir::Dim first, ir::Dim trip)
      : in_(in), g_(in.g_), n_(n), iterable_(iterable), first_(first), trip_(trip) {}

  Result<> run();

 private:
  struct Pass {
    std::map<std::string, Value> end;  // locals after the body
    std::vector<Cell> cells;
    ir::OpId op;
  };

  LoopSnapshot snapshot() const {
    return {in_.cells_, in_.frame().locals, in_.region_, g_.region(in_.region_).ops.size()};
  }
  void restore(const LoopSnapshot& s) {
    in_.cells_.resize(std::max(in_.cells_.size(), s.cells.size()));
    std::copy(s.cells.begin(), s.cells.end(), in_.cells_.begin());
    in_.frame().locals = s.locals;
    in_.region_ = s.region;
    discard_ops(g_, s.region, s.root_ops);
  }
  bool same(const Value& a, const Value& b) const;
  Result<std::pair<ir::ValueId, Carry>> encode(const std::string& name, const Value& v);
  Result<Value> decode(ir::ValueId v, const Value& like);
  Result<bool> pass(const LoopSnapshot& before);
  Result<> leave(const LoopSnapshot& before);
  Result<> check_aliases(const LoopSnapshot& before, const std::string& name, const Value& start);

  Interpreter& in_;
  ir::Graph& g_;
  const Node& n_;
  const Value& iterable_;
  ir::Dim first_, trip_;
  std::vector<std::string> variables_;  // carried
  std::vector<int32_t> cells_;          // carried
  bool wants_peel_ = false;
  // Of the last pass.
  ir::RegionId body_;
  std::vector<ir::ValueId> inits_, yields_;
  std::vector<Value> ends_;
  std::map<std::string, int32_t> entry_cells_;  // the cell a carried array has inside
  std::map<std::string, Value> after_;
  std::vector<Cell> after_cells_;
  ir::SymbolId symbol_;
};

bool LoopTracer::same(const Value& a, const Value& b) const {
  if (a.v.index() != b.v.index()) return false;
  if (const Static* s = a.get<Static>()) {
    PyObject *x = s->object.get(), *y = b.get<Static>()->object.get();
    if (x == y) return true;
    std::optional<artifact::Const> cx = const_of(x), cy = const_of(y);
    return cx && cy && *cx == *cy;
  }
  if (const Tensor* t = a.get<Tensor>()) {
    const Tensor* u = b.get<Tensor>();
    return t->cell == u->cell && t->steps == u->steps && t->weak == u->weak &&
           t->scalar == u->scalar;
  }
  if (const ir::Dim* d = a.get<ir::Dim>()) return *d == *b.get<ir::Dim>();
  if (a.container()) {
    if (a.container() == b.container()) return true;
    const Container &x = *a.container(), &y = *b.container();
    if (x.kind != y.kind || x.items.size() != y.items.size() || x.kind == Container::Kind::kDict)
      return false;
    for (size_t k = 0; k < x.items.size(); ++k)
      if (!same(x.items[k], y.items[k])) return false;
    return true;
  }
  if (const auto* f = a.get<std::shared_ptr<LocalFunction>>())
    return (*f)->node.object() == (*b.get<std::shared_ptr<LocalFunction>>())->node.object();
  return false;
}

Result<std::pair<ir::ValueId, Carry>> LoopTracer::encode(const std::string& name, const Value& v) {
  using Encoded = std::pair<ir::ValueId, Carry>;
  ops::Builder b = in_.builder(n_);
  if (const Tensor* t = v.get<Tensor>()) return Encoded{in_.read(*t), Carry::kTensor};
  if (const ir::Dim* d = v.get<ir::Dim>()) return Encoded{b.dim_value(*d), Carry::kInt};
  if (const Static* s = v.get<Static>()) {
    PyObject* o = s->object.get();
    CUVIL_CHECK(in_.use(*s, n_));
    if (PyBool_Check(o)) return Encoded{b.constant_int(DType::kBool, o == Py_True), Carry::kTensor};
    if (PyLong_Check(o))
      if (std::optional<int64_t> i = to_int64(o))
        return Encoded{b.constant_int(DType::kI64, *i), Carry::kInt};
    if (is_exactly(o, &PyFloat_Type))
      return Encoded{b.constant(DType::kF64, PyFloat_AsDouble(o)), Carry::kTensor};
    if (PyObject_HasAttrString(o, "dtype") && PyObject_HasAttrString(o, "tobytes")) {
      CUVIL_TRY(Value c, in_.constant_array(o, n_));
      return Encoded{in_.read(*c.get<Tensor>()), Carry::kTensor};
    }
  }
  return in_.unsupported("the variable `" + name + "` (" + in_.describe(v) +
                             ") changes in a loop that runs in compiled code",
                         "keep numbers and arrays in such variables", n_);
}

// A region parameter or loop result as the variable's value.
Result<Value> LoopTracer::decode(ir::ValueId v, const Value& like) {
  if (const Tensor* t = like.get<Tensor>()) {
    Tensor made = in_.fresh(v, t->weak, t->scalar);
    return Value(made);
  }
  const Static* s = like.get<Static>();
  PyObject* o = s ? s->object.get() : nullptr;
  if (like.is<ir::Dim>() || (o && PyLong_Check(o) && !PyBool_Check(o))) {
    CUVIL_TRY(ir::Dim d, in_.bind_scalar(in_.fresh(v), n_));
    return Value(d);
  }
  if (o && PyBool_Check(o)) return Value(in_.fresh(v, ops::Weak::kBool));
  if (o && is_exactly(o, &PyFloat_Type)) return Value(in_.fresh(v, ops::Weak::kFloat));
  return Value(in_.fresh(v, ops::Weak::kNo, true));
}

// Walks the body once, carrying what is known to be carried. True if nothing new turned up.
Result<bool> LoopTracer::pass(const LoopSnapshot& before) {
  inits_.clear();
  yields_.clear();
  ends_.clear();
  entry_cells_.clear();
  wants_peel_ = false;
  std::vector<Value> starts;
  std::vector<Carry> carries;
  for (const std::string& name : variables_) {
    const Value start = before.locals.at(name);
    CUVIL_TRY(auto encoded, encode(name, start));
    inits_.push_back(encoded.first);
    carries.push_back(encoded.second);
    starts.push_back(start);
  }
  for (int32_t c : cells_) inits_.push_back(before.cells[static_cast<size_t>(c)].current);

  body_ = g_.add_region(ir::OpId{});
  ir::DimTable::SymbolInfo info;
  info.name = in_.unique_symbol("i" + std::to_string(in_.symbol_counter_++));
  ir::Range trips = g_.dims.range(trip_), begins = g_.dims.range(first_);
  info.range.lo = begins.lo;
  if (trips.hi != INT64_MAX && begins.hi != INT64_MAX && trips.hi < INT64_MAX / 2 &&
      begins.hi < INT64_MAX / 2)
    info.range.hi = std::max(begins.lo, begins.hi + trips.hi - 1);
  symbol_ = g_.dims.add_symbol(std::move(info));
  const ir::Dim k = g_.dims.symbol(symbol_);
  in_.bounds_[symbol_.id] = {first_, g_.dims.sub(g_.dims.add(first_, trip_), g_.dims.constant(1))};

  in_.region_ = body_;
  ++in_.loop_depth_;
  std::map<std::string, Value> entry = before.locals;
  for (size_t v = 0; v < variables_.size(); ++v) {
    ir::ValueId p = g_.add_param(body_, ir::Type(g_.type(inits_[v])), variables_[v]);
    g_.value(p).order = ops::layout_order(g_, inits_[v]);
    CUVIL_TRY(Value inside, decode(p, starts[v]));
    if (const Tensor* t = inside.get<Tensor>()) entry_cells_[variables_[v]] = t->cell;
    in_.frame().locals[variables_[v]] = inside;
    entry[variables_[v]] = inside;
  }
  for (size_t c = 0; c < cells_.size(); ++c) {
    Cell& cell = in_.cells_[static_cast<size_t>(cells_[c])];
    const ir::ValueId init = cell.current;
    cell.current = g_.add_param(body_, ir::Type(g_.type(init)));
    g_.value(cell.current).order = ops::layout_order(g_, init);
    ++cell.version;
  }
  const std::vector<Cell> cells_at_entry = in_.cells_;

  CUVIL_TRY(Value item, in_.iteration_item(iterable_, k, n_.child(CUVIL_NAME("iter"))));
  CUVIL_CHECK(in_.assign(n_.child(CUVIL_NAME("target")), std::move(item)));
  std::set<std::string> targets;
  for (const auto& [name, value] : in_.frame().locals)
    if (!entry.count(name) || !same(entry.at(name), value)) targets.insert(name);
  CUVIL_TRY(Flow flow, in_.exec_block(n_.children(CUVIL_NAME("body"))));
  if (flow == Flow::kBreak || flow == Flow::kReturn)
    return in_.unsupported(std::string(flow == Flow::kBreak ? "`break`" : "`return`") +
                               " out of a loop that runs in compiled code",
                           "let the loop run to its end, or use a condition on its bounds", n_);

  // What did the body change?
  bool grown = false;
  const auto known_cells = before.cells.size();
  for (size_t c = 0; c < known_cells; ++c) {
    bool carried = std::find(cells_.begin(), cells_.end(), static_cast<int32_t>(c)) != cells_.end();
    if (!carried && in_.cells_[c].version != cells_at_entry[c].version) {
      cells_.push_back(static_cast<int32_t>(c));
      grown = true;
    }
  }
  for (const auto& [name, start] : before.locals) {
    auto now = in_.frame().locals.find(name);
    if (now == in_.frame().locals.end())
      return in_.unsupported("`del` of `" + name + "` in a loop that runs in compiled code",
                             "leave it out", n_);
    bool carried = std::find(variables_.begin(), variables_.end(), name) != variables_.end();
    if (carried || same(start, now->second) || targets.count(name)) continue;
    variables_.push_back(name);
    grown = true;
  }
  if (grown) return false;

  // Yields, with types that do not change from one iteration to the next.
  for (size_t v = 0; v < variables_.size(); ++v) {
    const Value& end = in_.frame().locals.at(variables_[v]);
    CUVIL_TRY(auto encoded, encode(variables_[v], end));
    const ir::Type &from = g_.type(inits_[v]), &to = g_.type(encoded.first);
    const Tensor *a = starts[v].get<Tensor>(), *b = end.get<Tensor>();
    auto weak_of = [&](const Value& value, const Tensor* t) {
      if (t) return t->weak;
      const Static* s = value.get<Static>();
      if (s && PyBool_Check(s->object.get())) return ops::Weak::kBool;
      if (s && PyFloat_Check(s->object.get())) return ops::Weak::kFloat;
      if (s && !PyLong_Check(s->object.get())) return ops::Weak::kNo;
      return ops::Weak::kInt;
    };
    bool same_kind = encoded.second == carries[v] && weak_of(starts[v], a) == weak_of(end, b) &&
                     (!a || !b || a->scalar == b->scalar);
    if (from != to || !same_kind) {
      wants_peel_ = true;
      return in_.unsupported("the variable `" + variables_[v] + "` is " + in_.describe(starts[v]) +
                                 " before the loop and " + in_.describe(end) +
                                 " after a turn of it",
                             "start it with the dtype and shape that the loop gives it", n_);
    }
    if (ops::layout_order(g_, inits_[v]) != ops::layout_order(g_, encoded.first)) {
      wants_peel_ = true;
      return in_.unsupported(
          "the array `" + variables_[v] +
              "` has its axes in another order in memory after a turn of a loop "
              "that runs in compiled code",
          "copy it at the end of the turn: " + variables_[v] + " = " + variables_[v] + ".copy()",
          n_);
    }
    yields_.push_back(encoded.first);
    ends_.push_back(end);
    CUVIL_CHECK(check_aliases(before, variables_[v], starts[v]));
  }
  for (int32_t c : cells_) yields_.push_back(in_.cells_[static_cast<size_t>(c)].current);
  after_ = in_.frame().locals;
  after_cells_ = in_.cells_;
  return true;
}

// A carried array is a value inside; that is right unless somebody else sees its storage change.
Result<> LoopTracer::check_aliases(const LoopSnapshot& before, const std::string& name,
                                   const Value& start) {
  auto inside = entry_cells_.find(name);
  const Tensor* t = start.get<Tensor>();
  if (!t || inside == entry_cells_.end()) return Ok{};
  const Cell& outer = before.cells[static_cast<size_t>(t->cell)];
  bool written = in_.cells_[static_cast<size_t>(inside->second)].written;
  bool outer_written = std::find(cells_.begin(), cells_.end(), t->cell) != cells_.end();
  bool shared = outer.input >= 0 || !t->steps.empty();
  for (const auto& frame : in_.frames_)
    for (const auto& [other, value] : frame->locals)
      if (const Tensor* u = value.get<Tensor>())
        shared = shared || (u->cell == t->cell && !(frame == in_.frames_.back() && other == name));
  // Which array the name stands for is often settled after the first turn (`y = x` before the loop).
  wants_peel_ = outer_written || (written && shared);
  if (wants_peel_)
    return in_.unsupported("the variable `" + name +
                               "` names different arrays in different turns of a loop, "
                               "and one of them is written to",
                           "copy it before the loop: " + name + " = " + name + ".copy()", n_);
  return Ok{};
}

// Makes the op and gives variables and cells their values after the loop.
Result<> LoopTracer::leave(const LoopSnapshot& before) {
  const std::vector<ir::ValueId> yields = yields_;
  const std::vector<Value> ends = ends_;
  g_.region(body_).yields = yields;
  in_.region_ = before.region;
  in_.bounds_.erase(symbol_.id);
  std::vector<ir::Type> types;
  for (ir::ValueId v : inits_) types.push_back(g_.type(v));
  ir::OpId op = g_.add_op(in_.region_, *ops::find_desc("for"), inits_, std::move(types),
                          {{attr::kSymbol, int64_t{symbol_.id}},
                           {attr::kBegin, ir::Shape{first_}},
                           {attr::kTrip, ir::Shape{trip_}}},
                          in_.loc(n_), {body_});
  const std::vector<ir::ValueId> results = g_.op(op).results;
  for (size_t k = 0; k < results.size(); ++k)
    g_.value(results[k]).order = ops::layout_order(g_, inits_[k]);

  std::vector<Cell> cells = before.cells;
  for (size_t c = 0; c < cells.size(); ++c) cells[c].frozen = in_.cells_[c].frozen;
  std::copy(cells.begin(), cells.end(), in_.cells_.begin());
  for (size_t c = 0; c < cells_.size(); ++c) {
    Cell& cell = in_.cells_[static_cast<size_t>(cells_[c])];
    cell.current = results[variables_.size() + c];
    cell.written = true;
    ++cell.version;
  }
  // Cells made inside are gone: their values live in the region.
  std::map<std::string, Value> locals = before.locals;
  for (const auto& [name, value] : after_)
    if (!locals.count(name) || !same(locals.at(name), value))
      locals[name] =
          Poison{"`" + name + "` is read after the loop that assigns it in compiled code",
                 "assign it before the loop as well, so that it is carried through"};
  for (size_t v = 0; v < variables_.size(); ++v) {
    CUVIL_TRY(locals[variables_[v]], decode(results[v], ends[v]));
    // An array that was there before, under another name: neither may be written any more.
    if (const Tensor* t = ends[v].get<Tensor>();
        t && static_cast<size_t>(t->cell) < before.cells.size() && !t->scalar &&
        t->weak == ops::Weak::kNo) {
      std::string why =
          "`" + variables_[v] + "` may or may not be an array that has another name, too";
      in_.cells_[static_cast<size_t>(t->cell)].frozen = why;
      in_.cells_[static_cast<size_t>(locals[variables_[v]].get<Tensor>()->cell)].frozen = why;
    }
  }
  in_.frame().locals = std::move(locals);
  return Ok{};
}

Result<> LoopTracer::run() {
  const LoopSnapshot before = snapshot();
  const int depth = in_.loop_depth_;
  const size_t frames = in_.frames_.size(), trail = in_.trail_.size();
  bool peeled = false;
  LoopSnapshot start = before;
  for (int round = 0; round < kMostPasses; ++round) {
    Result<bool> done = pass(start);
    in_.loop_depth_ = depth;
    in_.frames_.resize(frames);
    if (done.ok() && *done) return leave(start);
    in_.bounds_.erase(symbol_.id);
    discard_ops(g_, body_, 0);
    g_.region(body_).params.clear();
    restore(start);
    if (done.ok()) continue;
    // A variable that gets its final type in the first turn: run that turn before the loop.
    if (!wants_peel_ || peeled) return std::move(done.error());
    in_.trail_.resize(trail);
    Result<bool> runs = in_.less(g_.dims.constant(0), trip_, n_);
    if (!runs.ok() || !*runs) return std::move(done.error());
    peeled = true;
    CUVIL_TRY(Value item, in_.iteration_item(iterable_, first_, n_.child(CUVIL_NAME("iter"))));
    CUVIL_CHECK(in_.assign(n_.child(CUVIL_NAME("target")), std::move(item)));
    CUVIL_TRY(Flow flow, in_.exec_block(n_.children(CUVIL_NAME("body"))));
    if (flow == Flow::kBreak || flow == Flow::kReturn)
      return in_.unsupported("`break` or `return` out of a loop that runs in compiled code",
                             "let the loop run to its end", n_);
    first_ = g_.dims.add(first_, g_.dims.constant(1));
    trip_ = g_.dims.sub(trip_, g_.dims.constant(1));
    start = snapshot();
    variables_.clear();
    cells_.clear();
  }
  return in_.unsupported("a loop whose variables never settle", "write it with array operations",
                         n_);
}

Result<Flow> Interpreter::run_unrolled(const Node& n, const Value& iterable, int64_t trip) {
  Node target = n.child(CUVIL_NAME("target"));
  const std::vector<Node> body = n.children(CUVIL_NAME("body"));
  for (int64_t k = 0; k < trip; ++k) {
    CUVIL_TRY(Value item,
              iteration_item(iterable, g_.dims.constant(k), n.child(CUVIL_NAME("iter"))));
    CUVIL_CHECK(assign(target, std::move(item)));
    CUVIL_TRY(Flow flow, exec_block(body));
    if (flow == Flow::kBreak) return Flow::kNext;
    if (flow == Flow::kReturn) return flow;
  }
  return exec_block(n.children(CUVIL_NAME("orelse")));
}

Result<> Interpreter::run_traced(const Node& n, const Value& iterable, ir::Dim trip) {
  // A bounded number of turns: arithmetic on the index needs no checks then.
  if (!g_.dims.depends_on_internal(trip)) CUVIL_CHECK(fitting(trip, n));
  return LoopTracer(*this, n, iterable, g_.dims.constant(0), trip).run();
}

Result<Flow> Interpreter::exec_for(const Node& n) {
  Node iter = n.child(CUVIL_NAME("iter"));
  CUVIL_TRY(Value iterable, eval(iter));
  CUVIL_TRY(ir::Dim trip, iteration_count(iterable, iter));
  std::optional<int64_t> count = g_.dims.as_constant(trip);
  const Static* s = iterable.get<Static>();
  const bool sequence = iterable.container() || (s && !is_exactly(s->object.get(), &PyRange_Type));
  if (sequence) {
    // A snapshot of the items: the body may append to the list it walks, which is not supported.
    CUVIL_TRY(Values items, items_of(iterable, iter));
    const auto length = static_cast<int64_t>(items.size());
    Value fixed = make_container(Container::Kind::kTuple, std::move(items));
    return run_unrolled(n, fixed, length);
  }
  if (count && *count <= kUnrollUpTo) return run_unrolled(n, iterable, *count);
  if (!count && !g_.dims.depends_on_internal(trip)) {
    CUVIL_TRY(bool none_at_all, less(trip, g_.dims.constant(1), n));
    if (none_at_all) return exec_block(n.children(CUVIL_NAME("orelse")));
  }

  const LoopSnapshot before{cells_, frame().locals, region_, g_.region(region_).ops.size()};
  const size_t trail = trail_.size();
  Result<> traced = run_traced(n, iterable, trip);
  if (traced.ok()) return exec_block(n.children(CUVIL_NAME("orelse")));
  const bool can_unroll =
      count && *count <= kUnrollIfNeeded && traced.error().cls == ErrorClass::kUnsupported;
  if (!can_unroll) return std::move(traced.error());
  // The body needs to know the index: unroll it.
  trail_.resize(trail);
  std::copy(before.cells.begin(), before.cells.end(), cells_.begin());
  frame().locals = before.locals;
  region_ = before.region;
  discard_ops(g_, region_, before.root_ops);
  Result<Flow> unrolled = run_unrolled(n, iterable, *count);
  return unrolled;
}

}  // namespace cuvil::frontend
