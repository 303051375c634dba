"""What several geometry tests do: inspect a configuration from the command line."""

import json

import pytest

from kvassay.cli import run_command


@pytest.fixture
def inspected(tmp_path, capsys):
    """`kvassay inspect --json` of a config, as a document; what it says on stderr where another exit code is expected."""

    def run(values, *arguments, code=0):
        path = tmp_path / "config.json"
        path.write_text(json.dumps(values))
        got = run_command(["inspect", str(path), "--json", *arguments])
        said = capsys.readouterr()
        assert got == code, said.err[-400:]
        return json.loads(said.out) if code == 0 else said.err

    return run
