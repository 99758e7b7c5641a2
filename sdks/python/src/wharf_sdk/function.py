"""A function as a tool: its inputs from its annotations, its outputs from what it gives.

Plain and async functions, generators and async generators are all the same from outside. This
module knows nothing of any wire; tool servers and agents both run functions with it.
"""

from __future__ import annotations

import collections.abc
import dataclasses
import importlib
import inspect
import json
import os
import tempfile
import typing
from pathlib import Path
from typing import Any, AsyncIterator, Callable, Dict, Iterator, List, Mapping, Optional

from . import _pydantic, docstring
from ._host import Host
from .context import Context
from .encoding import fields_of_model, is_model
from .fault import Canceled, Fault, InvalidInput
from .files import File
from .forms import MAPPINGS, UNIONS, form_of
from .records import add_default, is_typed_dict
from .schema import Book, Schema, convert, inner

# How often an async function is looked after while it waits: whether its run was called off.
LOOK_SECONDS = 0.05
NOTHING = inspect.Parameter.empty
BINARY = (bytes, Path, File)
STREAMS = (
    collections.abc.Iterator,
    collections.abc.Iterable,
    collections.abc.Generator,
    collections.abc.AsyncIterator,
    collections.abc.AsyncIterable,
    collections.abc.AsyncGenerator,
)


@dataclasses.dataclass
class Result:
    """Outputs with their price. `cost_micro` is the whole price of the run when it is given."""

    outputs: Mapping[str, Any]
    cost_micro: Optional[int] = None


@dataclasses.dataclass(frozen=True)
class Parameter:
    """An input of a function."""

    name: str
    annotation: Any
    default: Any
    description: str = ""

    @property
    def required(self) -> bool:
        """Whether it must be given."""
        return self.default is NOTHING

    def schema(self, book: Book) -> Schema:
        """What it may be, as JSON Schema."""
        if self.annotation is NOTHING:
            schema: Schema = {}
        elif inner(self.annotation) in (Path, File):
            schema = _of_file(self.annotation)
        else:
            schema = form_of(self.annotation).schema(book)
        if self.description:
            schema.setdefault("description", self.description)
        if not self.required:
            add_default(schema, self.default)
        return schema


class Function:
    """A function, taken apart."""

    def __init__(self, work: Callable[..., Any], stream: str = "text") -> None:
        self.work, self.stream = work, stream
        self.name: str = work.__name__
        self.description = docstring.summary(work.__doc__)
        self.parameters: Dict[str, Parameter] = {}
        # Those whose default stands in a `Field`.
        self._fields: List[str] = []
        self.context_name = ""
        self.takes_all = False
        hints = _hints(work)
        said = docstring.parameters(work.__doc__)
        for name, parameter in inspect.signature(work).parameters.items():
            self._take(parameter, hints.get(name, NOTHING), said.get(name, ""))
        self.returns = hints.get("return", NOTHING)
        self.is_stream = inspect.isgeneratorfunction(work) or inspect.isasyncgenfunction(work)
        self.is_async = inspect.iscoroutinefunction(work) or inspect.isasyncgenfunction(work)
        if self.is_async:
            # Once, and not in each run; a third of what is imported, so others are spared it.
            importlib.import_module("asyncio")
        self.input_schema()

    def _take(self, parameter: inspect.Parameter, hint: Any, said: str) -> None:
        name, kind = parameter.name, parameter.kind
        if kind is parameter.VAR_KEYWORD:
            self.takes_all = True
        elif kind in (parameter.VAR_POSITIONAL, parameter.POSITIONAL_ONLY):
            raise TypeError("%s: inputs have names, so `%s` cannot be one." % (self.name, name))
        elif isinstance(hint, type) and issubclass(hint, Context):
            self.context_name = name
        elif hint is NOTHING and name in ("context", "call", "cx") and not self.context_name:
            self.context_name = name
        else:
            self.parameters[name] = self._parameter(parameter, hint, said)

    def _parameter(self, parameter: inspect.Parameter, hint: Any, said: str) -> Parameter:
        """An input; `x: int = Field(3, ge=1)` is one with a default of 3."""
        name, field = parameter.name, parameter.default
        if not _pydantic.is_field(field):
            return Parameter(name, hint, field, said)
        hint = typing.Annotated[Any if hint is NOTHING else hint, field]
        if field.default_factory is None and _pydantic.is_left_out(field.default):
            return Parameter(name, hint, NOTHING, said)
        self._fields.append(name)
        return Parameter(name, hint, field.get_default(call_default_factory=True), said)

    def input_schema(self) -> Schema:
        """The JSON Schema of the inputs."""
        book = Book()
        properties = {name: self._schema(one, book) for name, one in self.parameters.items()}
        schema: Schema = {"type": "object", "properties": properties}
        required = [name for name, one in self.parameters.items() if one.required]
        if required:
            schema["required"] = required
        if not self.takes_all:
            schema["additionalProperties"] = False
        return book.finish(schema)

    def _schema(self, parameter: Parameter, book: Book) -> Schema:
        try:
            return parameter.schema(book)
        except TypeError as problem:
            text = "%s: the input `%s`: %s" % (self.name, parameter.name, problem)
            raise TypeError(text) from None

    def output_schema(self) -> Optional[Schema]:
        """The JSON Schema of the outputs, if the function says what it gives."""
        try:
            return _outputs(self.returns, self.stream)
        except TypeError:
            return None  # What it gives need not be something that it could take.

    def bind(
        self, inputs: Mapping[str, Any], is_reference: Callable[[str], bool], context: Context
    ) -> Dict[str, Any]:
        """Inputs as the function's arguments; `InvalidInput` says what does not fit."""
        given: Dict[str, Any] = {}
        for name, value in inputs.items():
            parameter = self.parameters.get(name)
            if parameter is None:
                if not self.takes_all:
                    raise InvalidInput("The tool has no input `%s`." % name)
                parameter = Parameter(name, NOTHING, NOTHING)
            read = _referenced if is_reference(name) else _inline
            given[name] = read(parameter, value, context._host)
        for name, parameter in self.parameters.items():
            if parameter.required and name not in given:
                raise InvalidInput("`%s` is missing." % name)
        for name in self._fields:
            given.setdefault(name, self.parameters[name].default)
        if self.context_name:
            given[self.context_name] = context
        return given

    def run(self, given: Mapping[str, Any], context: Context) -> Dict[str, Any]:
        """Runs the function to its end and gives its outputs, by name."""
        if self.is_async:
            import asyncio

            last = asyncio.run(self._watched(given, context))
        else:
            last = self.work(**given)
            if inspect.isgenerator(last):
                last = self._drain(last, context)
        context.check()
        outputs: Dict[str, Any] = dict(context._grown)
        outputs.update(context._given)
        outputs.update(_named(last, context))
        return outputs

    def _drain(self, pieces: Iterator[Any], context: Context) -> Any:
        last = None
        try:
            while True:
                last = self._piece(next(pieces), context) or last
        except StopIteration as end:
            return last if end.value is None else end.value
        finally:
            # A generator cleans up when it is closed, also if its run was called off.
            typing.cast(Any, pieces).close()

    async def _watched(self, given: Mapping[str, Any], context: Context) -> Any:
        """Runs an async function, and cancels it when its run is called off."""
        import asyncio

        task = asyncio.ensure_future(self._awaited(given, context))
        try:
            while not task.done():
                if context.canceled:
                    task.cancel()
                await asyncio.wait([task], timeout=LOOK_SECONDS)
            return task.result()
        except asyncio.CancelledError:
            raise Canceled() from None

    async def _awaited(self, given: Mapping[str, Any], context: Context) -> Any:
        if not inspect.isasyncgenfunction(self.work):
            return await self.work(**given)
        last = None
        pieces: AsyncIterator[Any] = self.work(**given)
        try:
            async for piece in pieces:
                last = self._piece(piece, context) or last
        finally:
            await typing.cast(Any, pieces).aclose()
        return last

    def _piece(self, piece: Any, context: Context) -> Optional[Result]:
        """Takes what was yielded: text, outputs that are not final, or the end of it."""
        if isinstance(piece, str):
            context.append(self.stream, piece)
        elif isinstance(piece, Result):
            return piece
        elif isinstance(piece, Mapping):
            context._given.update(piece)
            context.partial(**piece)
        else:
            raise Fault("tool.invalid_output", "A tool yields text or a dictionary of outputs.")
        return None


def _hints(work: Callable[..., Any]) -> Dict[str, Any]:
    def bare() -> None: ...

    # Before Python 3.11 a default of None changes what an annotation means, and fails for some;
    # so they are read off a function that has no defaults.
    names = getattr(inspect.unwrap(work), "__globals__", {})
    bare.__annotations__ = dict(getattr(work, "__annotations__", {}))
    try:
        return typing.get_type_hints(bare, globalns=names, include_extras=True)
    except NameError as error:
        text = "%s: an annotation names what is not there: %s."
        raise TypeError(text % (work.__name__, error)) from None


def _of_file(annotation: Any) -> Schema:
    """The schema of an input that the tool takes as a file."""
    from .constraints import words_of

    schema: Schema = {"type": "string"}
    while typing.get_origin(annotation) is typing.Annotated:
        annotation, *extras = typing.get_args(annotation)
        schema.update(words_of(extras).said)
    return schema


def _named(last: Any, context: Context) -> Dict[str, Any]:
    """What a function gave, by name; anything but a record is `value`."""
    if isinstance(last, Result):
        if last.cost_micro is not None:
            context.cost_micro = 0
            context.cost(last.cost_micro)
        last = last.outputs
    if last is None:
        return {}
    if isinstance(last, Mapping):
        return {str(name): value for name, value in last.items()}
    if is_model(last):
        return fields_of_model(last)
    if dataclasses.is_dataclass(last) and not isinstance(last, type):
        return {field.name: getattr(last, field.name) for field in dataclasses.fields(last)}
    return {"value": last}


def _referenced(parameter: Parameter, value: Any, host: Host) -> Any:
    """An input that is a file, as its annotation wants it."""
    name, kind = parameter.name, inner(parameter.annotation)
    if kind is File:
        return File(name, lambda: host.fetch(name, value))
    path = host.fetch(name, value)
    if kind is Path:
        return path
    data = path.read_bytes()
    if kind is bytes:
        return data
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        if kind in (NOTHING, Any, object):
            return data
        raise InvalidInput("The file of `%s` is not text." % name) from None
    if kind in (NOTHING, Any, object):
        return text
    if str in _kinds(parameter.annotation):
        return convert(parameter.annotation, text, name)
    try:
        value = json.loads(text)
    except ValueError:
        if not _takes_text(parameter):
            raise InvalidInput("The file of `%s` is not JSON." % name) from None
        value = text.strip()
    return convert(parameter.annotation, value, name)


def _kinds(annotation: Any) -> typing.Tuple[Any, ...]:
    """The types that an input may have."""
    kind = inner(annotation)
    return typing.get_args(kind) if typing.get_origin(kind) in UNIONS else (kind,)


def _takes_text(parameter: Parameter) -> bool:
    """Whether text is one of the forms of an input, such as that of a date."""
    schema = form_of(parameter.annotation).schema(Book())
    return any(one.get("type") == "string" for one in [schema, *schema.get("anyOf", [])])


def _outputs(returns: Any, stream: str) -> Optional[Schema]:
    """What a function gives, by name, as far as its annotation says it."""
    origin, arguments = typing.get_origin(returns), typing.get_args(returns)
    if origin in STREAMS:
        return _streamed(arguments, stream)
    kind = inner(returns)
    if returns in (NOTHING, None, type(None), Any, object, Result) or kind in (Any, object, Result):
        return None
    if (typing.get_origin(kind) or kind) in MAPPINGS:
        return None
    book = Book(outputs=True)
    if _is_record(kind):
        schema = book.finish(form_of(kind).schema(book))
        if schema.get("type") != "object":
            return None
        schema = dict(schema, additionalProperties=True)
    elif any(_is_record(one) for one in typing.get_args(kind) if typing.get_origin(kind) in UNIONS):
        return None
    else:
        value = {"type": "string"} if kind in BINARY else form_of(kind).schema(book)
        schema = {"type": "object", "properties": {"value": value}, "required": ["value"]}
        schema = book.finish(schema)
    if kind is not returns and type(None) in _members(returns):
        schema.pop("required", None)  # Nothing at all is given instead of it.
    return schema


def _members(annotation: Any) -> typing.Tuple[Any, ...]:
    if typing.get_origin(annotation) is typing.Annotated:
        return _members(typing.get_args(annotation)[0])
    return typing.get_args(annotation) if typing.get_origin(annotation) in UNIONS else ()


def _streamed(arguments: typing.Tuple[Any, ...], stream: str) -> Optional[Schema]:
    """What a generator gives: the text that it yields, and what it returns."""
    last = _outputs(arguments[2], stream) if len(arguments) == 3 else None
    if not arguments or inner(arguments[0]) is not str:
        return last
    schema = last or {"type": "object"}
    schema["properties"] = dict({stream: {"type": "string"}}, **schema.get("properties", {}))
    return schema


def _is_record(kind: Any) -> bool:
    origin = typing.get_origin(kind) or kind
    return isinstance(origin, type) and (
        dataclasses.is_dataclass(origin)
        or is_typed_dict(origin)
        or hasattr(origin, "__pydantic_validator__")
    )


def _inline(parameter: Parameter, value: Any, host: Host) -> Any:
    """An input that was given as it is."""
    name, annotation = parameter.name, parameter.annotation
    if annotation is NOTHING:
        return value
    if inner(annotation) not in (Path, File):
        return convert(annotation, value, name)
    if value is None and annotation is not inner(annotation):
        return None
    text = convert(str, value, name)
    number, place = tempfile.mkstemp(dir=host.scratch(), prefix="text-")
    with os.fdopen(number, "w", encoding="utf-8", newline="") as file:
        file.write(text)
    path = Path(place)
    return path if inner(annotation) is Path else File(name, lambda: path)
