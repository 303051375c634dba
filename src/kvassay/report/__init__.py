"""report.html: one self-contained page drawn from the card and the artifacts of its run."""
