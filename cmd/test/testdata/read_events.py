"""Prints as JSON what TensorBoard's own package reads from the event files of one directory.

Usage: read_events.py DIRECTORY
{"scalars": {tag: [[step, value, wall_time], ...]},
 "graph": {node: {"op", "device", "inputs", "type", "shape"}} or null,
 "descriptions": {tag: text}, "text": {tag: text},
 "hparams": {key: value} or null, "session": how it ended, or null}
"""
import json
import sys

from tensorboard.backend.event_processing import event_accumulator
from tensorboard.compat.proto import types_pb2
from tensorboard.plugins.hparams import api_pb2
from tensorboard.plugins.hparams import metadata


def read_scalars(events):
    return {
        tag: [[event.step, event.value, event.wall_time] for event in events.Scalars(tag)]
        for tag in events.Tags()["scalars"]
    }


# The parts of a session, as the plugin itself parses them: the start's hyperparameters, and the end's status.
def read_session(events):
    hparams = session = None
    for tag, summary in events.summary_metadata.items():
        if summary.plugin_data.plugin_name != metadata.PLUGIN_NAME:
            continue
        if tag == metadata.SESSION_START_INFO_TAG:
            start = metadata.parse_session_start_info_plugin_data(summary.plugin_data.content)
            hparams = {key: getattr(value, value.WhichOneof("kind")) for key, value in start.hparams.items()}
        elif tag == metadata.SESSION_END_INFO_TAG:
            end = metadata.parse_session_end_info_plugin_data(summary.plugin_data.content)
            session = api_pb2.Status.Name(end.status)
    return hparams, session


def read_text(events):
    texts = [tag for tag, summary in events.summary_metadata.items() if summary.plugin_data.plugin_name == "text"]
    return {tag: events.Tensors(tag)[0].tensor_proto.string_val[0].decode() for tag in texts}


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
    hparams, session = read_session(events)
    descriptions = {tag: summary.summary_description for tag, summary in events.summary_metadata.items()}
    json.dump({"scalars": read_scalars(events), "graph": graph, "descriptions": descriptions,
               "text": read_text(events), "hparams": hparams, "session": session}, sys.stdout)


main()
