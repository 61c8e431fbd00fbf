"""Reads the manifests of deploy/ for deploy_test.

    manifests.py validate SCHEMA FILE...   every document against its schema; SCHEMA is that of a TFJob
    manifests.py documents FILE...         all of them as one JSON list
Exit code 1, and a line for each error, where a document does not hold.
"""
import json
import sys

import jsonschema
import kubernetes_validate
import yaml

KUBERNETES = "1.30"


def documents(paths):
    for path in paths:
        with open(path) as file:
            for document in yaml.safe_load_all(file):
                yield path, document


def errors_of(document, tfjob_schema):
    if document["kind"] == "TFJob":
        validator = jsonschema.Draft202012Validator(tfjob_schema)
        for error in validator.iter_errors(document):
            yield f"{error.json_path}: {error.message}"
        # Its pods are Kubernetes' own.
        for name, replica in document["spec"]["tfReplicaSpecs"].items():
            pod = {"apiVersion": "v1", "kind": "PodTemplate", "metadata": {"name": "pod"}, "template": replica["template"]}
            for error in errors_of(pod, tfjob_schema):
                yield f"{name}: {error}"
        return
    try:
        kubernetes_validate.validate(document, KUBERNETES, strict=True)
    except kubernetes_validate.ValidationError as error:
        yield f"{'.'.join(map(str, error.path))}: {error.message}"


def validate(schema_path, paths):
    with open(schema_path) as file:
        schema = json.load(file)
    bad = False
    for path, document in documents(paths):
        for error in errors_of(document, schema):
            print(f"{path}: {document['kind']}: {error}")
            bad = True
    sys.exit(1 if bad else 0)


if sys.argv[1] == "validate":
    validate(sys.argv[2], sys.argv[3:])
else:
    json.dump([document for _, document in documents(sys.argv[2:])], sys.stdout)
