"""The streams of NATS, which its worker and its caller both name."""

from nats.js.api import RetentionPolicy, StorageType

CALLS = {
    "name": "CALLS",
    "subjects": ["calls.>"],
    "storage": StorageType.FILE,
    "retention": RetentionPolicy.WORK_QUEUE,
}
RESULTS = {"name": "RESULTS", "subjects": ["results.>"], "storage": StorageType.FILE}


async def made(jetstream):
    """Makes the streams, or finds them made."""
    for stream in (CALLS, RESULTS):
        await jetstream.add_stream(**stream)
