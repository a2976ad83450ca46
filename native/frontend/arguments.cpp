// The root frame: the signature of the call as values, inputs and symbols.
#include "frontend/interpreter.h"
#include "frontend/scope.h"

namespace cuvil::frontend {

Interpreter::Interpreter(const compiler::Request& request, Traced& traced,
                         std::vector<std::pair<uint32_t, uint32_t>> shared)
    : request_(request),
      traced_(traced),
      g_(*traced.graph),
      capture_(traced.facts, traced.identities, request.tools),
      region_(traced.graph->root()),
      shared_(std::move(shared)) {}

// Symbols are told apart by name in the text form.
std::string Interpreter::unique_symbol(std::string name) const {
  for (size_t s = 0; s < g_.dims.symbol_count(); ++s)
    if (g_.dims.info(ir::SymbolId{static_cast<int32_t>(s)}).name == name)
      return unique_symbol(name + "_");
  return name;
}

ir::Dim Interpreter::shape_symbol(const compiler::AxisRequest& axis, uint32_t slot, uint32_t k,
                                  const std::string& name) {
  if (!axis.symbolic) return g_.dims.constant(axis.size);
  if (!axis.symbol.empty()) {
    auto it = named_symbols_.find(axis.symbol);
    if (it != named_symbols_.end() && g_.dims.info(it->second).example == axis.size)
      return g_.dims.symbol(it->second);  // the caller checks that both axes agree
  }
  ir::DimTable::SymbolInfo info;
  info.name =
      unique_symbol(axis.symbol.empty() ? name + ".shape" + std::to_string(k) : axis.symbol);
  info.kind = artifact::Symbol::Kind::kShape;
  info.array = slot;
  info.axis = k;
  info.range = {2, INT64_MAX};
  info.example = axis.size;
  ir::SymbolId s = g_.dims.add_symbol(std::move(info));
  if (!axis.symbol.empty()) named_symbols_.emplace(axis.symbol, s);
  return g_.dims.symbol(s);
}

Value Interpreter::array_argument(size_t index, const compiler::ArgRequest& arg) {
  const auto slot = static_cast<uint32_t>(slots_.size());
  ir::Shape shape;
  ArraySlot info;
  for (size_t k = 0; k < arg.shape.size(); ++k) {
    shape.push_back(shape_symbol(arg.shape[k], slot, static_cast<uint32_t>(k), arg.name));
    info.shape.push_back(arg.shape[k].size);
  }
  info.object = PyRef::borrow(arg.object);
  info.spec = arg.array;
  info.strides = arg.strides;
  ir::ValueId v = ir::add_array_input(g_, arg.array, shape, slot, false, arg.name, arg.strides);
  for (auto [a, b] : shared_)
    if (b == slot) info.cell = slots_[a].cell;
  if (info.cell < 0) {
    info.cell = new_cell(v);
    Cell& c = cells_.back();
    c.input = static_cast<int32_t>(g_.inputs.size() - 1);
    c.writeable = arg.array.writeable;
    c.name = arg.name;
  }
  slots_.push_back(info);
  argument_shapes_[index] = shape;
  Tensor t;
  t.cell = info.cell;
  t.scalar = arg.array.numpy_scalar;
  t.source = capture_.source(Capture::Kind::kArgument, -1, static_cast<uint32_t>(index), arg.name);
  return Value(t);
}

Result<> Interpreter::bind_arguments(Frame& frame) {
  using Kind = artifact::ArgSpec::Kind;
  artifact::Artifact& facts = traced_.facts;
  facts.call_shape = request_.call_shape;
  Values values;
  uint32_t scalars = 0;
  for (size_t i = 0; i < request_.arguments.size(); ++i) {
    const compiler::ArgRequest& arg = request_.arguments[i];
    artifact::ArgSpec spec;
    spec.kind = arg.kind;
    spec.array = arg.array;
    auto source = [&] {
      return capture_.source(Capture::Kind::kArgument, -1, static_cast<uint32_t>(i), arg.name);
    };
    switch (arg.kind) {
      case Kind::kArray: values.push_back(array_argument(i, arg)); break;
      case Kind::kInt: {
        ir::DimTable::SymbolInfo info;
        info.name = unique_symbol(arg.name);
        info.kind = artifact::Symbol::Kind::kScalar;
        info.array = scalars++;
        info.example = to_int64(arg.object).value_or(0);
        values.push_back(Value(g_.dims.symbol(g_.dims.add_symbol(std::move(info)))));
        break;
      }
      case Kind::kFloat: {
        ir::ValueId v = ir::add_scalar_input(g_, scalars++, arg.name);
        values.push_back(Value(fresh(v, ops::Weak::kFloat)));
        break;
      }
      case Kind::kStatic: {
        std::optional<artifact::Const> c = const_of(arg.object);
        if (!c)
          return make_error(ErrorClass::kInternal,
                            "the argument `" + arg.name + "` was taken for a constant",
                            "report this");
        spec.value = std::move(*c);
        capture_.mark_fixed(source());
        values.push_back(Value(Static{PyRef::borrow(arg.object), source()}));
        break;
      }
      case Kind::kObject: {
        CUVIL_TRY(Value v, load(PyRef::borrow(arg.object), source(), frame.function->node));
        values.push_back(std::move(v));
        break;
      }
    }
    facts.arguments.push_back(std::move(spec));
  }
  facts.scalar_slots = scalars;

  // The bound vector: positional parameters, elements of *args, keyword-only parameters, **kwargs.
  Node parameters = frame.function->node.child(CUVIL_NAME("args"));
  size_t at = 0;
  auto next = [&]() { return at < values.size() ? values[at++] : Value(); };
  for (PyObject* list : {CUVIL_NAME("posonlyargs"), CUVIL_NAME("args")})
    for (const Node& p : parameters.children(list))
      frame.locals[p.text(CUVIL_NAME("arg"))] = next();
  if (Node p = parameters.child(CUVIL_NAME("vararg")); p.present()) {
    Values rest;
    for (uint32_t k = 0; k < request_.call_shape.varargs; ++k) rest.push_back(next());
    frame.locals[p.text(CUVIL_NAME("arg"))] =
        make_container(Container::Kind::kTuple, std::move(rest));
  }
  for (const Node& p : parameters.children(CUVIL_NAME("kwonlyargs")))
    frame.locals[p.text(CUVIL_NAME("arg"))] = next();
  if (Node p = parameters.child(CUVIL_NAME("kwarg")); p.present()) {
    Value dict = make_container(Container::Kind::kDict, {});
    for (const std::string& name : request_.call_shape.keyword_names) {
      dict.container()->keys.push_back(to_str(name));
      dict.container()->items.push_back(next());
    }
    frame.locals[p.text(CUVIL_NAME("arg"))] = std::move(dict);
  }
  if (at != values.size())
    return make_error(ErrorClass::kInternal, "the call's arguments do not fit the function",
                      "report this");
  return Ok{};
}

Result<> Interpreter::run() {
  CUVIL_TRY(WalkedFunction * f, walked(request_.function, -1));
  g_.name = f->name == "<lambda>" ? "lambda" : f->name;
  auto frame = std::make_shared<Frame>();
  frame->function = f;
  frames_.push_back(frame);  // so that errors know whose lines they speak of
  Error refusal;
  if (!check_callable_code(*f, f->node, &refusal)) return refusal;
  frame->local_names = local_names(f->node);
  CUVIL_CHECK(bind_arguments(*frame));
  frames_.pop_back();
  CUVIL_TRY(Value result, run_body(frame, f->node));
  frames_.push_back(frame);
  return finish(result, f->node);
}

}  // namespace cuvil::frontend
