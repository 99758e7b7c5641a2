"""Video with progress: a bar of a colour that the prompt decides moves across the picture.

The file is a real one, uncompressed AVI, and is written while it is made.
"""

from __future__ import annotations

import hashlib
import struct
from typing import Annotated, Any, Dict

from wharf_sdk import Context, per_second, tool

WIDTH, HEIGHT, RATE = 64, 48, 4
SIZE, COST_MICRO_PER_SECOND = WIDTH * HEIGHT * 3, 20_000


@tool
def generate(
    prompt: str, duration: Annotated[int, {"minimum": 1, "maximum": 30}], context: Context
) -> Dict[str, Any]:
    """Makes a short video and says how far it is."""
    context.log("Loading model")
    colour, frames = hashlib.sha256(prompt.encode("utf-8")).digest()[:3], duration * RATE
    with context.writer("video") as file:
        file.write(head(frames))
        for number in range(frames):
            file.write(struct.pack("<4sI", b"00db", SIZE) + picture(number, frames, colour))
            if (number + 1) % RATE == 0:
                context.cost(per_second(1, COST_MICRO_PER_SECOND))
                context.progress((number + 1) / frames)
            context.pause(0.005)
    return {"frames": frames}


def picture(number: int, frames: int, colour: bytes) -> bytes:
    """Rows from the bottom up, three bytes a point, blue first."""
    at = number * (WIDTH - 8) // max(frames - 1, 1)
    row = bytearray(b"\x20\x20\x20" * WIDTH)
    row[at * 3 : (at + 8) * 3] = colour * 8
    return bytes(row) * HEIGHT


def head(frames: int) -> bytes:
    """Everything before the first picture; all sizes follow from the number of pictures."""
    rate = (1_000_000 // RATE, SIZE * RATE, 0, 0, frames, 0, 1, SIZE)
    main = struct.pack("<14I", *rate, WIDTH, HEIGHT, 0, 0, 0, 0)
    kind = struct.pack("<4s4sIHHI", b"vids", b"DIB ", 0, 0, 0, 0)
    timing = struct.pack("<7I4H", 1, RATE, 0, frames, SIZE, 0xFFFFFFFF, 0, 0, 0, WIDTH, HEIGHT)
    form = struct.pack("<IiiHHIIiiII", 40, WIDTH, HEIGHT, 1, 24, 0, SIZE, 0, 0, 0, 0)
    streams = b"strl" + chunk(b"strh", kind + timing) + chunk(b"strf", form)
    heads = chunk(b"LIST", b"hdrl" + chunk(b"avih", main) + chunk(b"LIST", streams))
    movie = 4 + frames * (SIZE + 8)
    start = struct.pack("<4sI4s", b"RIFF", 4 + len(heads) + 8 + movie, b"AVI ")
    return start + heads + struct.pack("<4sI4s", b"LIST", movie, b"movi")


def chunk(name: bytes, data: bytes) -> bytes:
    """A piece of a RIFF file: its name, its length, its bytes."""
    return name + struct.pack("<I", len(data)) + data
