// Programs: operators of a graph that C++ calls one after the other. The values between them need no objects of Python, and the interpreter
// lock is free meanwhile.
#pragma once
#include "tensor_access.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/ivalue.h>
#include <torch/csrc/Device.h>
#include <torch/csrc/Dtype.h>
#include <torch/csrc/Layout.h>
#include <torch/csrc/MemoryFormat.h>

namespace {

constexpr const char* kProgram = "torchspore_program";

// An argument of an operator: a constant, the value of a register, or a list of values of registers, in which -1 stands for None.
struct Operand {
  enum { constant, value, list, optional_list } kind = constant;
  c10::IValue number;
  std::vector<int64_t> registers;
};

// A call of an operator, or without one the item of a tuple or list. Then the registers in `last_used` are freed.
struct Instruction {
  std::optional<c10::OperatorHandle> operation;
  std::vector<Operand> operands;
  int64_t item = 0;
  int64_t output = 0;
  std::vector<int64_t> last_used;
};

struct Program {
  int64_t inputs = 0, registers = 0;
  std::vector<Instruction> instructions;
  std::vector<int64_t> outputs;
};

bool read_scalar(PyObject* value, c10::IValue& number) {
  at::Scalar scalar;
  if (PyBool_Check(value)) {
    number = at::Scalar(value == Py_True);
  } else if (read_number(value, scalar)) {
    number = scalar;
  } else {
    return false;
  }
  return true;
}

// Reads an int, or what torch stores as one: a dtype, a layout or a memory format.
bool read_enumerator(PyObject* value, c10::IValue& number) {
  int64_t integer = 0;
  if (read_int(value, integer)) {
    number = integer;
  } else if (THPDtype_Check(value)) {
    number = static_cast<int64_t>(reinterpret_cast<THPDtype*>(value)->scalar_type);
  } else if (THPLayout_Check(value)) {
    number = static_cast<int64_t>(reinterpret_cast<THPLayout*>(value)->layout);
  } else if (THPMemoryFormat_Check(value)) {
    number = static_cast<int64_t>(reinterpret_cast<THPMemoryFormat*>(value)->memory_format);
  } else {
    return false;
  }
  return true;
}

// Reads a register: an instance of a subclass of int; None is -1 where it may be missing.
bool read_register(PyObject* value, PyTypeObject* registers, bool may_be_none, std::vector<int64_t>& numbers) {
  if (value == Py_None && may_be_none) {
    numbers.push_back(-1);
    return true;
  }
  if (Py_TYPE(value) != registers) return false;
  numbers.push_back(PyLong_AsLongLong(value));
  return true;
}

template <class Element, class Read>
bool read_list(PyObject* value, Read read, c10::IValue& number) {
  c10::List<Element> list;
  for (Py_ssize_t index = 0; index < PySequence_Fast_GET_SIZE(value); ++index) {
    Element element;
    if (!read(PySequence_Fast_GET_ITEM(value, index), element)) return false;
    list.push_back(element);
  }
  number = std::move(list);
  return true;
}

bool read_float(PyObject* value, double& number) {
  int64_t integer = 0;
  if (PyFloat_CheckExact(value)) {
    number = PyFloat_AS_DOUBLE(value);
  } else if (read_int(value, integer)) {
    number = static_cast<double>(integer);
  } else {
    return false;
  }
  return true;
}

bool read_bool(PyObject* value, bool& number) {
  number = value == Py_True;
  return PyBool_Check(value);
}

bool read_items(const c10::Argument& argument, const c10::TypePtr& element, PyObject* value, PyTypeObject* registers, Operand& operand) {
  int64_t integer = 0;
  if (argument.N() && read_int(value, integer)) {                       // an int for all axes
    c10::List<int64_t> list;
    for (int32_t count = 0; count < *argument.N(); ++count) list.push_back(integer);
    operand.number = std::move(list);
    return element->kind() == c10::TypeKind::IntType;
  }
  if (!PyTuple_CheckExact(value) && !PyList_CheckExact(value)) return false;
  switch (element->kind()) {
    case c10::TypeKind::IntType:
      return read_list<int64_t>(value, read_int, operand.number);
    case c10::TypeKind::FloatType:
      return read_list<double>(value, read_float, operand.number);
    case c10::TypeKind::BoolType:
      return read_list<bool>(value, read_bool, operand.number);
    case c10::TypeKind::TensorType:
    case c10::TypeKind::OptionalType: {
      const bool may_be_none = element->kind() == c10::TypeKind::OptionalType;
      if (may_be_none && element->expectRef<c10::OptionalType>().getElementType()->kind() != c10::TypeKind::TensorType) return false;
      operand.kind = may_be_none ? Operand::optional_list : Operand::list;
      for (Py_ssize_t index = 0; index < PySequence_Fast_GET_SIZE(value); ++index) {
        if (!read_register(PySequence_Fast_GET_ITEM(value, index), registers, may_be_none, operand.registers)) return false;
      }
      return true;
    }
    default:
      return false;
  }
}

bool read_operand(const c10::Argument& argument, PyObject* value, PyTypeObject* registers, Operand& operand) {
  c10::TypePtr type = argument.type();
  if (type->kind() == c10::TypeKind::OptionalType) {
    if (value == Py_None) return true;
    type = type->expectRef<c10::OptionalType>().getElementType();
  }
  double real = 0;
  bool truth = false;
  switch (type->kind()) {
    case c10::TypeKind::TensorType:
      if (Py_TYPE(value) == registers) {
        operand.kind = Operand::value;
        return read_register(value, registers, false, operand.registers);
      } else {
        at::Scalar scalar;
        if (!read_number(value, scalar)) return false;
        operand.number = number_tensor(scalar);
        return true;
      }
    case c10::TypeKind::NumberType:
      return read_scalar(value, operand.number);
    case c10::TypeKind::IntType:
    case c10::TypeKind::ScalarTypeType:
    case c10::TypeKind::LayoutType:
    case c10::TypeKind::MemoryFormatType:
      return read_enumerator(value, operand.number);
    case c10::TypeKind::FloatType:
      if (!read_float(value, real)) return false;
      operand.number = real;
      return true;
    case c10::TypeKind::BoolType:
      if (!read_bool(value, truth)) return false;
      operand.number = truth;
      return true;
    case c10::TypeKind::StringType: {
      const char* text = PyUnicode_CheckExact(value) ? PyUnicode_AsUTF8(value) : nullptr;
      if (text == nullptr) return false;
      operand.number = std::string(text);
      return true;
    }
    case c10::TypeKind::DeviceObjType:
      if (!THPDevice_Check(value)) return false;
      operand.number = reinterpret_cast<THPDevice*>(value)->device;
      return true;
    case c10::TypeKind::ListType:
      return read_items(argument, type->expectRef<c10::ListType>().getElementType(), value, registers, operand);
    default:
      return false;
  }
}

// Reads (name, overload, arguments, keywords, output, last used), or (None, item, register, None, output, last used).
bool read_instruction(PyObject* parts, PyTypeObject* registers, Instruction& instruction) {
  PyObject *name, *overload, *arguments, *keywords, *last_used;
  long long output = 0;
  if (!PyArg_ParseTuple(parts, "OOOOLO!", &name, &overload, &arguments, &keywords, &output, &PyTuple_Type, &last_used)) return false;
  instruction.output = output;
  for (Py_ssize_t index = 0; index < PyTuple_GET_SIZE(last_used); ++index) {
    if (!read_register(PyTuple_GET_ITEM(last_used, index), registers, false, instruction.last_used)) return false;
  }
  if (name == Py_None) {
    instruction.operands.emplace_back();
    return read_int(overload, instruction.item) && instruction.item >= 0 &&
           read_register(arguments, registers, false, instruction.operands[0].registers);
  }
  const char *base = PyUnicode_AsUTF8(name), *variant = PyUnicode_AsUTF8(overload);
  if (base == nullptr || variant == nullptr || !PyTuple_CheckExact(arguments) || !PyDict_CheckExact(keywords)) return false;
  instruction.operation = c10::Dispatcher::singleton().findSchema({base, variant});
  if (!instruction.operation) return false;
  const c10::FunctionSchema& schema = instruction.operation->schema();
  if (schema.is_vararg() || PyTuple_GET_SIZE(arguments) > static_cast<Py_ssize_t>(schema.arguments().size())) return false;
  Py_ssize_t position = 0, count = PyTuple_GET_SIZE(arguments);
  for (const c10::Argument& argument : schema.arguments()) {
    Operand& operand = instruction.operands.emplace_back();
    PyObject* value = position < count ? PyTuple_GET_ITEM(arguments, position) : PyDict_GetItemString(keywords, argument.name().c_str());
    ++position;
    if (value == nullptr) {
      if (!argument.default_value()) return false;
      operand.number = *argument.default_value();
    } else if (!read_operand(argument, value, registers, operand)) {
      return false;
    }
  }
  for (const c10::Argument& result : schema.returns()) {
    const c10::TypeKind kind = result.type()->kind();
    if (kind != c10::TypeKind::TensorType && kind != c10::TypeKind::ListType) return false;
  }
  return !schema.returns().empty();
}

bool is_in_range(const Program& program) {
  const auto fits = [&](int64_t number) { return number >= 0 && number < program.registers; };
  for (const Instruction& each : program.instructions) {
    if (!fits(each.output)) return false;
    for (int64_t number : each.last_used) {
      if (!fits(number)) return false;
    }
    for (const Operand& operand : each.operands) {
      for (int64_t number : operand.registers) {
        if (!fits(number) && !(number == -1 && operand.kind == Operand::optional_list)) return false;
      }
    }
  }
  for (int64_t number : program.outputs) {
    if (!fits(number)) return false;
  }
  return program.inputs <= program.registers;
}

void free_program(PyObject* capsule) {
  delete static_cast<Program*>(PyCapsule_GetPointer(capsule, kProgram));
}

// new_program(register type, inputs, registers, instructions, outputs): a program, whose inputs are in the first registers; None if an
// instruction has arguments that C++ does not read.
PyObject* new_program(PyObject*, PyObject* arguments) {
  PyTypeObject* registers;
  PyObject *instructions, *outputs;
  long long inputs = 0, count = 0;
  if (!PyArg_ParseTuple(arguments, "O!LLO!O!", &PyType_Type, &registers, &inputs, &count, &PyList_Type, &instructions, &PyTuple_Type,
                        &outputs)) {
    return nullptr;
  }
  HANDLE_TH_ERRORS
  auto program = std::make_unique<Program>();
  program->inputs = inputs;
  program->registers = count;
  bool is_supported = true;
  for (Py_ssize_t index = 0; is_supported && index < PyList_GET_SIZE(instructions); ++index) {
    is_supported = read_instruction(PyList_GET_ITEM(instructions, index), registers, program->instructions.emplace_back());
  }
  for (Py_ssize_t index = 0; is_supported && index < PyTuple_GET_SIZE(outputs); ++index) {
    is_supported = read_register(PyTuple_GET_ITEM(outputs, index), registers, false, program->outputs);
  }
  if (!is_supported || !is_in_range(*program)) return left_to_python();
  PyObject* capsule = PyCapsule_New(program.get(), kProgram, free_program);
  if (capsule == nullptr) return nullptr;
  program.release();
  return capsule;
  END_HANDLE_TH_ERRORS
}

using Registers = std::vector<c10::IValue>;

void push(const Operand& operand, const Registers& registers, torch::jit::Stack& stack) {
  switch (operand.kind) {
    case Operand::constant:
      stack.push_back(operand.number);
      break;
    case Operand::value:
      stack.push_back(registers[operand.registers[0]]);
      break;
    case Operand::list: {
      c10::List<at::Tensor> list;
      list.reserve(operand.registers.size());
      for (int64_t number : operand.registers) list.push_back(registers[number].toTensor());
      stack.emplace_back(std::move(list));
      break;
    }
    case Operand::optional_list: {
      c10::List<std::optional<at::Tensor>> list;
      list.reserve(operand.registers.size());
      for (int64_t number : operand.registers) {
        list.push_back(number < 0 ? std::optional<at::Tensor>() : std::make_optional(registers[number].toTensor()));
      }
      stack.emplace_back(std::move(list));
      break;
    }
  }
}

void run_instructions(const Program& program, Registers& registers) {
  torch::jit::Stack stack;
  for (const Instruction& each : program.instructions) {
    if (!each.operation) {
      const c10::IValue& items = registers[each.operands[0].registers[0]];
      registers[each.output] = items.isTuple() ? items.toTupleRef().elements().at(each.item) : c10::IValue(items.toTensorList().get(each.item));
    } else {
      stack.clear();
      for (const Operand& operand : each.operands) push(operand, registers, stack);
      each.operation->callBoxed(stack);
      registers[each.output] = stack.size() == 1 ? std::move(stack[0]) : c10::IValue(c10::ivalue::Tuple::create(std::move(stack)));
    }
    for (int64_t number : each.last_used) registers[number] = c10::IValue();
  }
}

// The object of Python for a value: a torch tensor, or a tuple of such.
PyObject* python_value(const c10::IValue& value) {
  if (value.isTensor()) return THPVariable_Wrap(value.toTensor());
  std::vector<c10::IValue> items;
  if (value.isTuple()) {
    for (const c10::IValue& item : value.toTupleRef().elements()) items.push_back(item);
  } else {
    for (const at::Tensor& item : value.toTensorVector()) items.emplace_back(item);
  }
  THPObjectPtr tuple{PyTuple_New(items.size())};
  for (size_t index = 0; tuple && index < items.size(); ++index) {
    PyObject* item = python_value(items[index]);
    if (item == nullptr) return nullptr;
    PyTuple_SET_ITEM(tuple.get(), index, item);
  }
  return tuple.release();
}

PyObject* run_in_registers(const Program& program, PyObject* const* inputs) {
  HANDLE_TH_ERRORS
  Registers registers(program.registers);
  for (int64_t index = 0; index < program.inputs; ++index) registers[index] = THPVariable_Unpack(inputs[index]);
  without_lock([&] { run_instructions(program, registers); });
  if (program.outputs.size() == 1) return python_value(registers[program.outputs[0]]);
  THPObjectPtr tuple{PyTuple_New(program.outputs.size())};
  for (size_t index = 0; tuple && index < program.outputs.size(); ++index) {
    PyObject* item = python_value(registers[program.outputs[index]]);
    if (item == nullptr) return nullptr;
    PyTuple_SET_ITEM(tuple.get(), index, item);
  }
  return tuple.release();
  END_HANDLE_TH_ERRORS
}

// run_program(program, in_python, *inputs): the output, or a tuple of several. The function `in_python` does the same. It runs inside of
// modes, for other inputs than torch's tensors, and after an error, which it explains: the operators write into nothing. The program does not
// own the function, because the garbage collector would not find the cycle.
PyObject* run_program(PyObject*, PyObject* const* arguments, Py_ssize_t count) {
  auto* program = count < 2 ? nullptr : static_cast<Program*>(PyCapsule_GetPointer(arguments[0], kProgram));
  if (program == nullptr) {
    if (PyErr_Occurred() == nullptr) PyErr_SetString(PyExc_TypeError, "expected a program");
    return nullptr;
  }
  bool is_supported = engine_names != nullptr && count - 2 == program->inputs && !runs_python();
  for (Py_ssize_t index = 2; is_supported && index < count; ++index) is_supported = THPVariable_CheckExact(arguments[index]);
  if (is_supported) {
    PyObject* out = run_in_registers(*program, arguments + 2);
    if (out != nullptr || !PyErr_ExceptionMatches(PyExc_Exception)) return out;
    PyErr_Clear();
  }
  return PyObject_Vectorcall(arguments[1], arguments + 2, count - 2, nullptr);
}

}  // namespace
