"""A function as a tool: its inputs from its annotations, its outputs from what it gives.

Plain and async functions, generators and async generators are all the same from outside. This
module knows nothing of any wire; tool servers and agents both run functions with it.
"""

from __future__ import annotations

import asyncio
import dataclasses
import inspect
import json
import os
import tempfile
import typing
from pathlib import Path
from typing import Any, AsyncIterator, Callable, Dict, Iterator, Mapping, Optional

from ._host import Host
from .context import Context
from .fault import Canceled, Fault, InvalidInput
from .files import File
from .schema import Schema, convert, inner, schema_of

# How often an async function is looked after while it waits: whether its run was called off.
LOOK_SECONDS = 0.05
NOTHING = inspect.Parameter.empty


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

    @property
    def required(self) -> bool:
        """Whether it must be given."""
        return self.default is NOTHING

    def schema(self) -> Schema:
        """What it may be, as JSON Schema."""
        if self.annotation is NOTHING:
            return {}
        if inner(self.annotation) in (Path, File):
            return dict(_described(self.annotation), type="string")
        schema = schema_of(self.annotation)
        if isinstance(self.default, (str, int, float, bool)):
            schema["default"] = self.default
        return schema


class Function:
    """A function, taken apart."""

    def __init__(self, work: Callable[..., Any], stream: str = "text") -> None:
        self.work, self.stream = work, stream
        self.name: str = work.__name__
        self.description = inspect.cleandoc(work.__doc__ or "").split("\n\n")[0].replace("\n", " ")
        self.parameters: Dict[str, Parameter] = {}
        self.context_name = ""
        self.takes_all = False
        hints = _hints(work)
        for name, parameter in inspect.signature(work).parameters.items():
            self._take(parameter, hints.get(name, NOTHING))
        self.returns = hints.get("return", NOTHING)
        self.is_stream = inspect.isgeneratorfunction(work) or inspect.isasyncgenfunction(work)
        self.input_schema()

    def _take(self, parameter: inspect.Parameter, hint: Any) -> None:
        name, kind = parameter.name, parameter.kind
        if kind is parameter.VAR_KEYWORD:
            self.takes_all = True
        elif kind in (parameter.VAR_POSITIONAL, parameter.POSITIONAL_ONLY):
            raise TypeError("%s: inputs have names, so `%s` cannot be one." % (self.name, name))
        elif isinstance(hint, type) and issubclass(hint, Context):
            self.context_name = name
        elif hint is NOTHING and name in ("context", "call") and not self.context_name:
            self.context_name = name
        else:
            self.parameters[name] = Parameter(name, hint, parameter.default)

    def input_schema(self) -> Schema:
        """The JSON Schema of the inputs."""
        properties = {name: one.schema() for name, one in self.parameters.items()}
        schema: Schema = {"type": "object", "properties": properties}
        required = [name for name, one in self.parameters.items() if one.required]
        if required:
            schema["required"] = required
        if not self.takes_all:
            schema["additionalProperties"] = False
        return schema

    def output_schema(self) -> Optional[Schema]:
        """The JSON Schema of the outputs, if the function says what it gives."""
        kind = inner(self.returns)
        if isinstance(kind, type) and (
            dataclasses.is_dataclass(kind) and kind is not Result or hasattr(kind, "__total__")
        ):
            return dict(schema_of(kind), additionalProperties=True)
        return None

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
        if self.context_name:
            given[self.context_name] = context
        return given

    def run(self, given: Mapping[str, Any], context: Context) -> Dict[str, Any]:
        """Runs the function to its end and gives its outputs, by name."""
        if inspect.iscoroutinefunction(self.work) or inspect.isasyncgenfunction(self.work):
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


def _described(annotation: Any) -> Schema:
    if typing.get_origin(annotation) is typing.Annotated:
        texts = [one for one in typing.get_args(annotation)[1:] if isinstance(one, str)]
        return {"description": texts[-1]} if texts else {}
    return {}


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
    if "string" in _types(parameter):
        return convert(parameter.annotation, text, name)
    try:
        return convert(parameter.annotation, json.loads(text), name)
    except ValueError:
        raise InvalidInput("The file of `%s` is not JSON." % name) from None


def _types(parameter: Parameter) -> typing.Set[str]:
    schema = schema_of(inner(parameter.annotation))
    return {one.get("type", "") for one in [schema] + schema.get("anyOf", [])}


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
