"""`python -m kvassay` is the command line too."""

from kvassay.cli import main

main()
