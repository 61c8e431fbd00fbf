"""Prints as JSON what TensorBoard's own package reads from the event files of one directory.

Usage: read_events.py DIRECTORY
{"scalars": {tag: [[step, value, wall_time], ...]},
 "graph": {node: {"op", "device", "inputs", "type", "shape"}} or null}
"""
import json
import sys

from tensorboard.backend.event_processing import event_accumulator
from tensorboard.compat.proto import types_pb2


def read_scalars(events):
    return {
        tag: [[event.step, event.value, event.wall_time] for event in events.Scalars(tag)]
        for tag in events.Tags()["scalars"]
    }


def describe(node):
    data_type = node.attr["dtype"].type or node.attr["T"].type
    shapes = node.attr["_output_shapes"].list.shape
    return {
        "op": node.op,
        "device": node.device,
        "inputs": list(node.input),
        "type": types_pb2.DataType.Name(data_type),
        "shape": [dim.size for dim in shapes[0].dim],
    }


def main():
    # 0: keep every point instead of a sample.
    events = event_accumulator.EventAccumulator(sys.argv[1], size_guidance={event_accumulator.SCALARS: 0})
    events.Reload()
    graph = {node.name: describe(node) for node in events.Graph().node} if events.Tags()["graph"] else None
    json.dump({"scalars": read_scalars(events), "graph": graph}, sys.stdout)


main()
