"""Tasks: they make questions as token ids, and judge answers. One file each; `planned.py` lists them."""
