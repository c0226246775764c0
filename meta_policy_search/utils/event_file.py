"""Event files of TensorBoard as bytes: sequences of records of `Event`s, formed by its own package."""
import io
import time
from collections.abc import Mapping
from typing import Any


def first_record() -> bytes:
    """Returns the record that an event file begins with."""
    return _record(0, file_version="brain.Event:2")


def start_record(step: int) -> bytes:
    """Returns a record that makes what was written before from `step` on void, as a resumed process needs it."""
    from tensorboard.compat.proto.event_pb2 import SessionLog

    return _record(step, session_log=SessionLog(status=SessionLog.START))


def scalars_record(step: int, scalars: Mapping[str, float]) -> bytes:
    """Returns a record of numbers by name at `step`, an integer of at least 0; they become float32."""
    from tensorboard.compat.proto.summary_pb2 import Summary

    values = [Summary.Value(tag=tag, simple_value=value) for tag, value in scalars.items()]
    return _record(step, summary=Summary(value=values))


def _record(step: int, **content: Any) -> bytes:
    from tensorboard.compat.proto.event_pb2 import Event
    from tensorboard.summary.writer.record_writer import RecordWriter

    record = io.BytesIO()
    RecordWriter(record).write(Event(wall_time=time.time(), step=step, **content).SerializeToString())
    return record.getvalue()
