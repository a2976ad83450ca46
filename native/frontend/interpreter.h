// The abstract interpreter: walks statements and expressions, emits CIR, records sources and guards.
// One per trace. Split by what it does: stmt.cpp, assign.cpp, loop.cpp, expr.cpp, operators.cpp,
// subscript.cpp, call.cpp, inline.cpp, builtins.cpp, containers.cpp, tensors.cpp, results.cpp.
#pragma once

#include <map>
#include <string>
#include <vector>

#include <functional>

#include "frontend/capture.h"
#include "frontend/dtypes.h"
#include "frontend/errors.h"
#include "frontend/frontend.h"
#include "frontend/resolve.h"
#include "frontend/value.h"

namespace cuvil::frontend {

// What a statement tells the ones around it.
enum class Flow : uint8_t { kNext, kBreak, kContinue, kReturn };

struct Keyword {
  std::string name;
  Value value;
};

struct Arguments {
  Values positional;
  std::vector<Keyword> keywords;
  const Value* find(std::string_view name) const {
    for (const Keyword& k : keywords)
      if (k.name == name) return &k.value;
    return nullptr;
  }
};

class Interpreter {
 public:
  Interpreter(const compiler::Request& request, Traced& traced,
              std::vector<std::pair<uint32_t, uint32_t>> shared);
  Result<> run();
  // Array slots that are one array in this call and are written: trace again with them shared.
  const std::vector<std::pair<uint32_t, uint32_t>>& must_share() const { return must_share_; }
  // Call sites between the compiled function and the place of an error, innermost first.
  const std::vector<SourceLoc>& call_trail() const { return trail_; }
  // So far, something was written to an argument or a captured array.
  bool wrote_for_caller() const { return wrote_for_caller_; }

 private:
  friend class LoopTracer;
  friend class CallBinder;
  using BuiltinFn = Result<Value> (Interpreter::*)(const Arguments& args, const Node& node);
  struct Builtin {
    const char* name;
    BuiltinFn call;
  };

  // ---- arguments.cpp: the root frame, sources of arguments
  Result<> bind_arguments(Frame& frame);
  Value array_argument(size_t index, const compiler::ArgRequest& arg);
  std::string unique_symbol(std::string name) const;
  ir::Dim shape_symbol(const compiler::AxisRequest& axis, uint32_t slot, uint32_t k,
                       const std::string& name);

  // ---- inline.cpp: walking functions
  Result<WalkedFunction*> walked(PyObject* function, int32_t source);
  Result<Value> call_function(PyObject* function, int32_t source, Arguments args, const Node& node);
  Result<Value> call_local(const LocalFunction& f, Arguments args, const Node& node);
  Result<Value> run_body(std::shared_ptr<Frame> frame, const Node& function);
  bool check_callable_code(const WalkedFunction& f, const Node& n, Error* e);
  Result<> bind_parameters(Frame& frame, const Node& parameters, const std::string& name,
                           Arguments args, const Values& defaults, const Values& kw_defaults,
                           const Node& node);

  // ---- stmt.cpp
  Result<Flow> exec_block(const std::vector<Node>& body);
  Result<Flow> exec(const Node& stmt);
  Result<Flow> exec_if(const Node& n);
  Result<Flow> exec_while(const Node& n);
  Result<Flow> exec_return(const Node& n);
  Result<Flow> exec_raise(const Node& n);
  Result<Flow> exec_assert(const Node& n);
  Result<Flow> exec_delete(const Node& n);
  Result<Flow> exec_function(const Node& n);

  // ---- assign.cpp
  Result<> assign(const Node& target, Value value);
  Result<> assign_name(const std::string& name, Value value);
  Result<> unpack(const std::vector<Node>& targets, const Value& value, const Node& node);
  Result<Flow> exec_assign(const Node& n);
  Result<Flow> exec_aug_assign(const Node& n);
  Result<Flow> exec_ann_assign(const Node& n);
  Result<Value> in_place(const Node& op, const Value& target, const Value& operand, const Node& n);

  // ---- loop.cpp
  Result<Flow> exec_for(const Node& n);
  Result<Flow> run_unrolled(const Node& n, const Value& iterable, int64_t trip);
  Result<> run_traced(const Node& n, const Value& iterable, ir::Dim trip);

  // ---- expr.cpp
  Result<Value> eval(const Node& n);
  Result<Values> eval_all(const std::vector<Node>& nodes);  // with starred items spread
  Result<Value> eval_name(const Node& n);
  Result<Value> eval_constant(const Node& n);
  Result<Value> eval_attribute(const Node& n);
  Result<Value> eval_bool_op(const Node& n);
  Result<Value> eval_if_exp(const Node& n);
  Result<Value> eval_dict(const Node& n);
  Result<Value> eval_lambda(const Node& n);
  Result<Value> make_set(Values items, const Node& n);
  Error set_of_traced(const Node& n);
  Result<Value> eval_comprehension(const Node& n);
  Result<> comprehend(const std::vector<Node>& generators, size_t k,
                      const std::function<Result<>()>& body);
  Result<Value> eval_joined_string(const Node& n);
  Result<Value> attribute_of(const Value& value, const std::string& name, const Node& n);
  Result<Value> lookup(const std::string& name, const Node& n);
  // The bool of a condition; an error if it depends on run-time data.
  Result<bool> truth(
      const Value& v, const Node& n, const char* construct,
      const char* advice =
          "compute both values and choose with np.where(condition, a, b), or clip with "
          "np.maximum / np.minimum; what leaves a loop early stays in Python");

  // ---- operators.cpp
  Result<Value> eval_bin_op(const Node& n);
  Result<Value> eval_unary_op(const Node& n);
  Result<Value> eval_compare(const Node& n);
  Result<Value> beside(const Value& v, const Value& other, const Node& n);
  Result<Value> binary(NodeKind op, const Value& a, const Value& b, const Node& n);
  Result<Value> unary(NodeKind op, const Value& a, const Node& n);
  Result<Value> compare(NodeKind op, const Value& a, const Value& b, const Node& n);
  Result<Value> dim_binary(NodeKind op, ir::Dim a, ir::Dim b, const Value& va, const Value& vb,
                           const Node& n);
  Result<bool> is_same(const Value& a, const Value& b, const Node& n);
  Result<bool> contains(const Value& item, const Value& container, const Node& n);

  // ---- subscript.cpp
  Result<Value> eval_subscript(const Node& n);
  Result<Value> subscript(const Value& base, const Value& index, const Node& n);
  Result<Value> subscript_tensor(const Tensor& t, const Value& index, bool for_store,
                                 const Node& n);
  Result<> store_subscript(const Value& base, const Value& index, const Value& v, const Node& n);
  Result<Value> eval_slice(const Node& n);
  struct SliceDims {
    ir::Dim start, size;
    int64_t step = 1;
  };
  Result<SliceDims> slice_dims(const Values& parts, ir::Dim extent, const Node& n);
  // A run-time integer index of an axis of extent `dim`: checked and not negative.
  Result<ir::Dim> checked_index(ir::Dim index, ir::Dim dim, size_t axis, const Node& n);
  Result<ir::Dim> bind_scalar(const Tensor& t, const Node& n);

  // ---- call.cpp
  Result<Value> eval_call(const Node& n);
  Result<Arguments> eval_arguments(const Node& n);
  Result<Value> call(const Value& callee, Arguments args, const Node& n);
  Result<Value> call_static(const Static& callee, Arguments args, const Node& n);
  Result<Value> call_method(const BoundMethod& m, Arguments args, const Node& n);
  Result<Value> call_row(const ops::DialectRow& row, const Value* self, const Arguments& args,
                         int32_t source, const Node& n);
  Result<Value> call_operator(std::string_view name, const Values& operands, const Node& n);
  Result<Value> call_pure(PyObject* callable, const Arguments& args, const Node& n);
  Result<ops::ArgValue> to_arg(const Value& v, const Node& n);
  Result<Value> from_arg(const ops::ArgValue& a, const std::vector<Tensor>& operands,
                         const ops::DialectRow& row, const Node& n);

  Result<> store_result(const Tensor& result, const Tensor& target, const std::string& name,
                        const Node& n);
  static bool can_cast_same_kind(DType from, DType to);
  Result<Value> plain_ints(const Value& v, std::string_view parameter, const Node& n);
  Result<Value> python_scalar(const Tensor& t, const Node& n);

  // ---- builtins.cpp: functions of Python that understand traced values (pure.def)
#define CUVIL_BUILTIN(name, method) Result<Value> method(const Arguments& args, const Node& n);
#define CUVIL_PURE(name)
#include "frontend/pure.def"
#undef CUVIL_BUILTIN
#undef CUVIL_PURE
  Result<Value> extreme(const Arguments& args, bool largest, const Node& n);
  Result<Value> any_all(const Arguments& args, bool any, const Node& n);
  PyRef class_of(const Value& v);
  Result<Value> to_sequence(const Value& v, Container::Kind kind, const Node& n);
  void guard_class_of(const Static& s);
  void guard_contents_of_class(const Static& s);
  const Builtin* find_builtin(PyObject* object);

  // ---- containers.cpp
  Value make_container(Container::Kind kind, Values items);
  Result<Value> call_container_method(const Value& self, Container& c, const std::string& name,
                                      const Arguments& args, const Node& n);
  Result<> will_mutate(const Container& c, const Node& n);
  Result<> check_acyclic(const Container& c, const Value& added, const Node& n);
  // Items of anything with a length that is known now; an error otherwise.
  Result<Values> items_of(const Value& v, const Node& n);
  // Number of iterations and the k-th item, for anything a `for` can walk.
  Result<ir::Dim> iteration_count(const Value& v, const Node& n);
  Result<Value> iteration_item(const Value& v, ir::Dim k, const Node& n);
  Result<Values> items_of_static(const Static& s, const Node& n);
  // An object the function itself made: exact tuples, lists and dicts become containers.
  Value wrap(PyRef object);
  // The real object of a value, if every part of it is static; records guards for what it reads.
  Result<std::optional<PyRef>> as_object(const Value& v, const Node& n);
  // A run-time int as a static one: this specialisation then holds for its present value.
  Result<Value> specialise(ir::Dim d, const Node& n);

  // ---- tensors.cpp
  int32_t new_cell(ir::ValueId v);
  Tensor fresh(ir::ValueId v, ops::Weak weak = ops::Weak::kNo, bool scalar = false);
  ir::ValueId read(const Tensor& t);
  const ir::Type& type_of(const Tensor& t);
  Result<> write(const Tensor& t, ir::ValueId value, const Node& n);
  Result<> check_writable(const Tensor& t, const Node& n);
  // `value` cast and broadcast to the type of `t`, as NumPy's setitem does.
  Result<ir::ValueId> fit(const Value& value, const Tensor& t, const Node& n);
  Result<Tensor> as_tensor(const Value& v, const Node& n);
  Result<Value> constant_array(PyObject* array, const Node& n);
  bool is_packed(const ops::Access& access, const ir::Type& type);
  bool settle_reshape(ir::OpId id, const ops::Access& access);
  // The access of the last step, if each gives a view of memory.
  std::optional<ops::Access> replay(const Tensor& base, const std::vector<ir::OpId>& steps);
  Value dim_or_static(ir::Dim d);
  std::optional<ir::Dim> as_dim(const Value& v);  // run-time or static int
  Value static_of(PyRef object) { return Value(Static{std::move(object), -1}); }
  Value static_int(int64_t v) { return static_of(PyRef::steal(PyLong_FromLongLong(v))); }
  Value static_bool(bool v) { return static_of(PyRef::borrow(v ? Py_True : Py_False)); }
  Value none() { return static_of(PyRef::borrow(Py_None)); }

  // ---- sources and guards (capture.cpp does the bookkeeping)
  // An object found outside: an array becomes a captured input, anything else a static with a source.
  Result<Value> load(PyRef object, int32_t source, const Node& n);
  // The specialisation relies on this static from here on: records its guard.
  Result<> use(const Static& s, const Node& n);
  // The same where Python's own code is to work with it: an error if its guard does not tell all of it.
  Result<> use_value(const Static& s, const Node& n);
  Result<Value> captured_array(PyObject* array, int32_t source, const Node& n);

  // ---- predicates.cpp: questions about dims
  Result<bool> less(ir::Dim a, ir::Dim b, const Node& n);
  Result<bool> equal(ir::Dim a, ir::Dim b, const Node& n);
  Result<std::optional<ir::Dim>> fitting(std::optional<ir::Dim> result, const Node& n);
  bool provably_less(ir::Dim a, ir::Dim b);  // for every value of the symbols
  std::pair<std::optional<ir::Dim>, std::optional<ir::Dim>> loop_bounds(ir::SymbolId s);
  ir::Dim bound(ir::Dim d, bool upper);
  ir::Dim new_symbol(const std::string& stem, ir::Range range);

  // ---- results.cpp
  Result<> finish(const Value& result, const Node& n);
  Result<> add_result_tree(const Value& v, const Node& n);
  Result<> add_tensor_result(const Tensor& t, const Node& n);
  void finish_aliases();
  void count_leaves(const Value& v);
  void number_symbols();

  // ---- errors
  SourceLoc loc(const Node& n) const;
  Error fail(ErrorClass c, std::string found, std::string remedy, const Node& n) const {
    return make_error(c, std::move(found), std::move(remedy), loc(n));
  }
  Error unsupported(std::string found, std::string remedy, const Node& n) const {
    return fail(ErrorClass::kUnsupported, std::move(found), std::move(remedy), n);
  }
  // Python's indicator is set: its exception travels on as it is.
  Error python_error(const Node& n) const {
    keep_exception();
    return fail(ErrorClass::kPython, {}, {}, n);
  }
  std::string describe(const Value& v);  // "an array float32[2, 3]", "the str 'a'"
  std::string describe_type(const ir::Type& t);

  ops::Builder builder(const Node& n) {
    ops::Builder b(g_, region_);
    b.loc = loc(n);
    return b;
  }

  const compiler::Request& request_;
  Traced& traced_;
  ir::Graph& g_;
  Capture capture_;
  ir::RegionId region_;
  std::vector<Cell> cells_;
  std::vector<std::shared_ptr<Frame>> frames_;
  std::vector<std::unique_ptr<WalkedFunction>> walked_;
  int loop_depth_ = 0;
  bool wrote_for_caller_ = false;
  std::map<const Container*, uint32_t> tree_nodes_;  // of the result
  std::vector<SourceLoc> trail_;
  // Bounds of loop indices in terms of outer dims: lo <= symbol <= hi.
  struct Bounds {
    ir::Dim lo, hi;
  };
  std::map<int32_t, Bounds> bounds_;
  std::map<std::string, ir::SymbolId> named_symbols_;
  std::vector<std::pair<uint32_t, uint32_t>> shared_, must_share_;
  struct ArraySlot {
    PyRef object;
    int32_t cell = -1;
    std::vector<int64_t> shape, strides;
    artifact::ArraySpec spec;
  };
  std::vector<ArraySlot> slots_;                 // by array slot
  std::map<int32_t, int32_t> captured_;          // source -> cell
  std::map<size_t, ir::Shape> argument_shapes_;  // argument -> dims
  // Results: the views of each cell that are returned, and those that have a result already.
  struct ReturnedView {
    int32_t cell = -1;
    std::vector<ir::OpId> steps;
    bool same_object = true;
    uint32_t result = 0;
  };
  std::map<int32_t, std::vector<std::pair<std::vector<ir::OpId>, bool>>> leaves_;
  std::vector<ReturnedView> returned_;
  std::map<int32_t, uint32_t> base_results_;
  std::vector<std::pair<ir::Dim, size_t>>
      result_dims_;  // run-time ints, index into Artifact::exprs
  uint32_t symbol_counter_ = 0;

  Frame& frame() { return *frames_.back(); }
};

}  // namespace cuvil::frontend
