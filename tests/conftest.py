"""Tests import shared helpers as `support.<name>`."""

import os
import sys
from pathlib import Path

from hypothesis import settings

os.environ.setdefault("HF_HUB_OFFLINE", "1")
sys.path.insert(0, str(Path(__file__).parent))

# A busy machine must not fail a property for being slow.
settings.register_profile("any_machine", deadline=None)
settings.load_profile("any_machine")
