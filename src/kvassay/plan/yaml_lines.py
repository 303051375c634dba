"""A small, bounded part of YAML: mappings, lists and plain values, each with the line it stands on.

Anchors, aliases, tags, duplicate keys and deep nesting are refused: a plan needs none of them, and they are how YAML files do harm.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import yaml

from kvassay.errors import BadInput

MAX_YAML_BYTES = 128 * 2**10
MAX_DEPTH = 12
MAX_NODES = 20_000

Path_ = tuple[str | int, ...]

# YAML 1.1 reads 1e-3 as text; everybody who writes it means a number. Longer ones are commit ids that happen to hold one letter.
EXPONENT = re.compile(r"[-+]?\d{1,17}(\.\d{0,17})?[eE][-+]?\d{1,3}")
PLAIN_TAGS = {f"tag:yaml.org,2002:{name}" for name in ("null", "bool", "int", "float", "str", "timestamp", "map", "seq")}


@dataclass(frozen=True)
class Document:
    """`data`: mappings, lists, texts, numbers, booleans and None. `lines`: the line (from 1) of each value, by its path."""

    data: Any
    lines: dict[Path_, int]

    def line(self, path: Path_) -> int:
        """The line of the value at `path`, or of the nearest one that holds it."""
        while path and path not in self.lines:
            path = path[:-1]
        return self.lines.get(path, 1)


def parse_yaml(data: bytes, name: str) -> Document:
    """Parse one YAML document. Raises BadInput "name, line N: ..." for anything outside the small part."""
    if len(data) > MAX_YAML_BYTES:
        raise BadInput(f"{name}: larger than {MAX_YAML_BYTES:,} bytes, so not a plan")
    try:
        text = data.decode("utf-8-sig")
        _check_events(text, name)
        root = yaml.compose(text, Loader=yaml.SafeLoader)
    except UnicodeDecodeError as error:
        raise BadInput(f"{name}: not UTF-8 text ({error.reason} at byte {error.start})") from error
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f"{name}, line {mark.line + 1}" if mark else name
        raise BadInput(f"{where}: not valid YAML ({error.problem or error.context})") from error
    except yaml.YAMLError as error:
        raise BadInput(f"{name}: not valid YAML ({str(error).splitlines()[0]})") from error
    if root is None:
        raise BadInput(f"{name}: empty")
    lines: dict[Path_, int] = {}
    return Document(_value(root, (), lines, name), lines)


def _check_events(text: str, name: str) -> None:
    """Walk the events, which needs no recursion, before anything is built."""
    depth = nodes = documents = 0
    for event in yaml.parse(text, Loader=yaml.SafeLoader):
        line = event.start_mark.line + 1 if event.start_mark else 0
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None):
            raise BadInput(f"{name}, line {line}: anchors and aliases are not read; write the value out")
        if isinstance(event, yaml.NodeEvent):
            nodes += 1
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        elif isinstance(event, yaml.DocumentStartEvent):
            documents += 1
        if depth > MAX_DEPTH or nodes > MAX_NODES or documents > 1:
            raise BadInput(f"{name}, line {line}: nested too deep, too long, or more than one document, so not a plan")


def _value(node: yaml.Node, path: Path_, lines: dict[Path_, int], name: str) -> Any:
    line = node.start_mark.line + 1
    lines.setdefault(path, line)
    if node.tag not in PLAIN_TAGS:
        raise BadInput(f"{name}, line {line}: the tag {node.tag.replace('tag:yaml.org,2002:', '!!')} is not read")
    if isinstance(node, yaml.MappingNode):
        return _mapping(node, path, lines, name)
    if isinstance(node, yaml.SequenceNode):
        return [_value(each, (*path, at), lines, name) for at, each in enumerate(node.value)]
    return _scalar(node, line, name)


def _mapping(node: yaml.MappingNode, path: Path_, lines: dict[Path_, int], name: str) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for key_node, value_node in node.value:
        line, key = key_node.start_mark.line + 1, key_node.value
        if not isinstance(key_node, yaml.ScalarNode) or not isinstance(key, str):
            raise BadInput(f"{name}, line {line}: a key must be a word")
        if key in values:
            raise BadInput(
                f"{name}, line {line}: {'.'.join(map(str, (*path, key)))}: stands twice; the first is on line {lines[(*path, key)]}"
            )
        lines[(*path, key)] = line
        values[key] = _value(value_node, (*path, key), lines, name)
    return values


def _scalar(node: yaml.Node, line: int, name: str) -> Any:
    plain = node.style is None if isinstance(node, yaml.ScalarNode) else False
    if node.tag.endswith(":timestamp"):
        return node.value
    if node.tag.endswith(":str"):
        return float(node.value) if plain and EXPONENT.fullmatch(node.value) else node.value
    try:
        return _CONSTRUCTOR.construct_object(node)
    except (ValueError, yaml.YAMLError) as error:
        raise BadInput(f"{name}, line {line}: {node.value[:40]!r} cannot be read ({str(error).splitlines()[0]})") from error


_CONSTRUCTOR = yaml.constructor.SafeConstructor()
