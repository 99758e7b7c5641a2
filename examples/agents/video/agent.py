"""Video generation with progress: phases, log lines, a file, a price.

What is drawn does not follow the prompt very closely: a bar of a colour that the prompt decides
moves once across the picture. The file is a real one all the same, uncompressed AVI, which any
player shows.
"""

import hashlib
import struct

import wharf_agent
from wharf_agent import Tool

WIDTH, HEIGHT, FRAMES_PER_SECOND = 64, 48, 4
COST_MICRO_PER_SECOND = 20_000
PAUSE_SECONDS = 0.005


def frame(number, frames, colour):
    """One picture: rows from the bottom up, three bytes a point, blue first."""
    at = number * (WIDTH - 8) // max(frames - 1, 1)
    row = bytearray(b"\x20\x20\x20" * WIDTH)
    row[at * 3:(at + 8) * 3] = colour * 8
    return bytes(row) * HEIGHT


def chunk(name, data):
    """A piece of a RIFF file: its name, its length, and an even number of bytes."""
    return name + struct.pack("<I", len(data)) + data + b"\0" * (len(data) % 2)


def avi(pictures):
    """The pictures as an AVI file without compression."""
    count, size = len(pictures), WIDTH * HEIGHT * 3
    microseconds = 1_000_000 // FRAMES_PER_SECOND
    has_index = 0x10
    main = struct.pack("<14I", microseconds, size * FRAMES_PER_SECOND, 0, has_index, count, 0, 1,
                       size, WIDTH, HEIGHT, 0, 0, 0, 0)
    stream = struct.pack("<4s4sIHHIIIIIIII4H", b"vids", b"DIB ", 0, 0, 0, 0, 1, FRAMES_PER_SECOND,
                         0, count, size, 0xFFFFFFFF, 0, 0, 0, WIDTH, HEIGHT)
    form = struct.pack("<IiiHHIIiiII", 40, WIDTH, HEIGHT, 1, 24, 0, size, 0, 0, 0, 0)
    streams = chunk(b"LIST", b"strl" + chunk(b"strh", stream) + chunk(b"strf", form))
    head = chunk(b"LIST", b"hdrl" + chunk(b"avih", main) + streams)
    movie, index, at = b"movi", b"", 4
    for picture in pictures:
        whole = 0x10
        index += struct.pack("<4s3I", b"00db", whole, at, size)
        piece = chunk(b"00db", picture)
        movie, at = movie + piece, at + len(piece)
    return chunk(b"RIFF", b"AVI " + head + chunk(b"LIST", movie) + chunk(b"idx1", index))


def generate(call):
    prompt, seconds = call.input["prompt"], call.input["duration"]
    call.phase("started", 0.0)
    call.log("Loading model")
    colour = hashlib.sha256(prompt.encode("utf-8")).digest()[:3]
    frames = seconds * FRAMES_PER_SECOND
    pictures = []
    for number in range(frames):
        pictures.append(frame(number, frames, colour))
        call.cost_micro = seconds * COST_MICRO_PER_SECOND * (number + 1) // frames
        if number + 1 == frames // 2:
            call.log("Drew frame %d of %d" % (number + 1, frames))
            call.phase("checkpoint", 0.5)
        call.pause(PAUSE_SECONDS)
    video = call.write_output("video", avi(pictures))
    call.phase("completed", 1.0)
    return {"video": video, "frames": frames}


wharf_agent.serve(
    "dev.wharf.video",
    "0.1.0",
    [
        Tool(
            "generate",
            generate,
            "Makes a short video and says how far it is.",
            {
                "prompt": {"type": "string"},
                "duration": {"type": "integer", "minimum": 1, "maximum": 30},
            },
            required=["prompt", "duration"],
            outputs={"frames": {"type": "integer"}},
        )
    ],
)
