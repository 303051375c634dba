"""The run card: everything measured in one record, and one decision by the gates of the plan."""
